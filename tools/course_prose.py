"""The text that the chapter on language models learns from: the prose of the book's pages, without code and formulas.

    python -m tools.course_prose     write course_kit/data/course_prose.txt

The file is frozen: results on the page and in `language_blocks.json` belong to it, so it is not written again when a
page changes.
"""

from __future__ import annotations

import re

from course_kit._files import write_whole
from course_kit.data.course_prose import PATH, SEPARATOR
from tools.pages import notebook_pages

LEFT_OUT = ("language_model", "exercises")


def prose(text: str) -> str:
    """The paragraphs of a page that read without its code, its tables and its formulas."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^(`{3,})(?!\{question)[^\n]*\n.*?^\1\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:`{3,}|\(|:|\||%|\$\$)[^\n]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\s*\{cite:\w\}`[^`]*`", "", text)
    text = re.sub(r"\{\w+\}`([^`<]*?)\s*(?:<[^`>]*>)?`", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\$([^$\\]{1,24})\$", r"\1", text)  # a formula that is a letter or a number
    text = text.translate(str.maketrans("“”’–−×…", '""\'--x.', "*`#"))
    paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n|\n\s*(?=[-+\d] )|\n  (?=\w)", text)]
    kept = [each.lstrip("-+ ") for each in paragraphs if each.isascii() and not re.search(r"[$\\{}|^]", each)]
    return "\n".join(each for each in kept if each.count(" ") >= 3)


def main() -> None:
    """One document per page, in the order of the book."""
    pages = [page for page in notebook_pages() if not page.name.endswith(LEFT_OUT)]
    write_whole(PATH, SEPARATOR.join(prose(page.source.read_text(encoding="utf-8")) for page in pages) + "\n")


if __name__ == "__main__":
    main()
