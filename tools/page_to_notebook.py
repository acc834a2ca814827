"""From a MyST page to a notebook that reads well where MyST is not understood: Colab, JupyterLab, VS Code.

Directives and roles become plain Markdown and HTML, cross-references become links into the published book, citations
links to what they cite. What is not known here is an error, so that no raw MyST syntax ever reaches a reader.
"""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from functools import cache
from pathlib import Path

import jupytext
import nbformat
from pybtex.database import Person, parse_file

from tools.exercise_sections import in_notebook
from tools.myst import ROLE, Block, blocks, titled
from tools.pages import Page, all_pages
from tools.publisher import Publisher

ADMONITIONS = {"note": "Note", "tip": "Tip", "warning": "Warning", "important": "Important", "seealso": "See also"}
REFERENCES = "book/references"

# What must never be left in a converted cell. The test of the notebooks looks for the same.
RAW_MYST = re.compile(r"\{[a-z][\w:-]*\}`|^:::|^`{3,}\{|^\([\w-]+\)=\s*$|^%|^\+\+\+", re.MULTILINE)


# What each extra brings, by the names it is imported by, and the modules of the package that need it.
IMPORTED_BY = {
    "": (),
    "models": ("tokenizers", "safetensors", "huggingface_hub"),
    "training": ("pytorch_lightning", "tokenizers", "safetensors", "sacrebleu", "yaml", "platformdirs"),
}
MODULES_OF = {"models": "bert|language_model", "training": "data|translator"}


def to_notebook(page: Page, publisher: Publisher | None) -> nbformat.NotebookNode:
    """The page as a notebook without outputs.

    Raises:
        ValueError: the page uses a directive or a role that has no plain form here, or refers to something unknown.
    """
    notebook = jupytext.reads(page.text, fmt="md:myst")
    converter = _Converter(page, publisher)
    cells = [
        nbformat.v4.new_code_cell(install_cell(publisher, extra_of(page.text)), metadata={"tags": ["remove-cell"]})
    ]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cells.append(nbformat.v4.new_markdown_cell(converter.text(cell.source)))
            continue
        cells.append(nbformat.v4.new_code_cell(cell.source, metadata=cell.metadata))
        caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption")
        if caption:
            cells.append(nbformat.v4.new_markdown_cell(f"*{converter.text(caption).strip()}*"))
    # The title stays first: it is what a reader, and a list of notebooks, sees.
    cells[0], cells[1] = cells[1], cells[0]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number:03d}"
    kernel = notebook.metadata.kernelspec
    return nbformat.v4.new_notebook(
        cells=cells,
        metadata={"kernelspec": kernel, "language_info": {"name": "python"}},
        nbformat_minor=5,
    )


def extra_of(text: str) -> str:
    """The extras of the package that a page needs, separated by commas: "training" where it imports what is built on
    other libraries, "models" where it loads trained encoders."""
    return ",".join(extra for extra, modules in MODULES_OF.items() if _imports(text, modules))


def _imports(text: str, modules: str) -> bool:
    module = rf"\b(?:{modules})\b"
    direct = rf"^[ \t]*(?:from|import) [^\n]*\bcourse_kit\.{module}"
    listed = rf"^[ \t]*from course_kit import (?:\([^)]*|[^\n(#]*){module}"
    return bool(re.search(f"{direct}|{listed}", text, re.MULTILINE))


def install_cell(publisher: Publisher | None, extra: str = "") -> str:
    """Source of the first code cell: makes `course_lib` available, and does nothing where it is."""
    needed = list(dict.fromkeys(["course_lib", *(name for one in extra.split(",") for name in IMPORTED_BY[one])]))
    what = "The course's package and what this chapter needs beside it" if extra else "The course's package"
    commit = ", at the commit of this notebook" if publisher else ""
    head = f"# {what}{commit}. Does nothing where it is installed.\nimport importlib.util\n\n"
    if extra:
        listed = textwrap.fill(", ".join(f'"{name}"' for name in needed), 84)
        listed = f"[{listed}]" if "\n" not in listed else f"[\n{textwrap.indent(listed, '    ')},\n]"
        head += f"needed = {listed}\nif any(importlib.util.find_spec(name) is None for name in needed):\n"
    else:
        head += 'if importlib.util.find_spec("course_lib") is None:\n'
    if publisher is not None:
        return head + f'    %pip install --quiet "{publisher.requirement(extra)}"'
    missing = "course_lib or what it needs here" if extra else "course_lib"
    command = f"pip install '.[{extra}]'" if extra else "pip install ."
    message = (
        f"{missing} is not installed. Get a copy of the course, run `{command}` in its folder (the one with "
        f"pyproject.toml), restart this notebook and run the cell again."
    )
    lines = textwrap.wrap(message, 90)
    quoted = [f'        "{line} "' for line in lines[:-1]] + [f'        "{lines[-1]}"']
    return head + "\n".join(["    raise ModuleNotFoundError(", *quoted, "    )"])


class _Converter:
    """Converts the Markdown of one page; equations are numbered in order of their labels."""

    def __init__(self, page: Page, publisher: Publisher | None):
        self.page = page
        self.publisher = publisher
        labels = [block.name for block in blocks(page.text) if block.kind == "math" and block.name]
        self.equations = {label: number for number, label in enumerate(labels, 1)}

    def text(self, source: str) -> str:
        """The Markdown of a source; a label has no text, and a comment is for authors."""
        try:
            found = blocks(source)
        except ValueError as error:
            self._fail(str(error))
        forms = {"directive": self._directive, "math": self._equation, "text": self._plain}
        forms["code"] = lambda block: block.source
        return "\n".join(forms[block.kind](block) for block in found if block.kind in forms).strip("\n")

    def _plain(self, block: Block) -> str:
        if link := re.search(r"\]\([^)\s]+\.md[)#]", block.source):
            self._fail(f"the link {link[0][1:]} has no target in a notebook, {{doc}} and {{ref}} have")
        return ROLE.sub(self._role, block.source)  # a role may run over a line break

    def _equation(self, block: Block) -> str:
        if not block.name:
            return block.source
        return "\n".join(["$$", block.body.strip("\n"), rf"\tag{{{self.equations[block.name]}}}", "$$"])

    def _directive(self, block: Block) -> str:
        name, argument, options = block.name, block.argument, block.options
        if name == "exercise-help":
            return in_notebook(argument)
        if name == "literalinclude":
            return self._included(argument, options)
        inner = self.text(block.body)
        if name == "math":
            return f"$$\n{inner}\n$$"
        if name == "dropdown" or (name in {*ADMONITIONS, "admonition"} and "dropdown" in options.get("class", "")):
            title = self.text(argument) or ADMONITIONS.get(name, "More")
            title = re.sub("`([^`]+)`", r"<code>\1</code>", title)  # inside HTML, Markdown is not read
            return f"<details><summary><b>{title}</b></summary>\n\n{inner}\n\n</details>"
        if name == "admonition" and options.get("class") == "question":  # no quotation: Colab folds nothing inside one
            return f"**{argument}.** {inner}"
        if name in {*ADMONITIONS, "admonition"}:
            title = self.text(argument) or ADMONITIONS[name]
            return "\n".join(f"> {line}".rstrip() for line in [f"**{title}**", "", *inner.split("\n")])
        self._fail(f"the directive {{{name}}} has no plain form for notebooks")

    def _included(self, path: str, options: dict[str, str]) -> str:
        file = (self.page.source.parent / path).resolve()
        code = _python_object(file, options["pyobject"]) if "pyobject" in options else _part(file, options)
        where, language = file.relative_to(self.page.root).as_posix(), options.get("language", "python")
        comment = "//" if language == "javascript" else "#"
        return f"```{language}\n{comment} {where}\n{code}\n```"

    def _role(self, match: re.Match) -> str:
        name, text = match["name"], match["text"]
        title, target = titled(text)
        if name in {"cite:p", "cite:t", "cite"}:
            bibliography = self.page.root / "book/references.bib"
            cited = [_citation(bibliography, key.strip(), textual=name == "cite:t") for key in text.split(",")]
            return " and ".join(cited) if name == "cite:t" else f"({'; '.join(cited)})"
        if name == "eq":
            if target not in self.equations:
                self._fail(f"{{eq}} refers to the unknown equation {target!r}")
            return f"({self.equations[target]})"
        if name == "doc":
            page = self.page.named(target)
            if not page.source.exists():
                self._fail(f"{{doc}} refers to the unknown page {target!r}")
            return self._link(title or page.title, page, "")
        if name == "ref":
            for page in all_pages(self.page.root):
                heading = page.labels().get(target)
                if heading:
                    return self._link(title or heading, page, target)
            self._fail(f"{{ref}} refers to the unknown label {target!r}")
        self._fail(f"the role {{{name}}} has no plain form for notebooks")

    def _link(self, title: str, page: Page, anchor: str) -> str:
        if self.publisher:
            return f"[{title}]({self.publisher.page_url(page.name, anchor)})"
        if page.name == self.page.name or not page.has_code:
            return f"*{title}*"
        return f"[{title}]({posixpath.relpath(page.name, posixpath.dirname(self.page.name))}.ipynb)"

    def _fail(self, message: str) -> None:
        raise ValueError(
            f"{self.page.source.name}: {message}; extend tools/page_to_notebook.py, or write it another way"
        )


def _part(file: Path, options: dict[str, str]) -> str:
    """From the first line that contains `start-at` to the one before `end-before`, as in Sphinx; or all of it."""
    lines = file.read_text("utf-8").splitlines()
    first = _line_with(options["start-at"], lines, file) if "start-at" in options else 0
    last = _line_with(options["end-before"], lines, file) if "end-before" in options else len(lines)
    return "\n".join(lines[first:last]).rstrip()


def _line_with(words: str, lines: list[str], file: Path) -> int:
    found = [number for number, line in enumerate(lines) if words in line]
    if len(found) != 1:
        raise ValueError(f"expected one line with {words!r} in {file}, found {len(found)}")
    return found[0]


def _python_object(file: Path, name: str) -> str:
    source = file.read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(source).body if getattr(node, "name", None) == name]
    if not nodes:
        raise ValueError(f"{file.name} has no function or class {name!r} at its top level")
    first = min([nodes[0].lineno, *(decorator.lineno for decorator in nodes[0].decorator_list)])
    return "\n".join(source.split("\n")[first - 1 : nodes[0].end_lineno])


@cache
def _bibliography(file: Path):
    return parse_file(str(file)).entries


def _citation(file: Path, key: str, *, textual: bool) -> str:
    """Authors and year, "A (2017)" as part of a sentence and "A, 2017" for brackets, linked to the work."""
    entry = _bibliography(file).get(key)
    if entry is None:
        raise ValueError(f"{key!r} is cited, but is not in {file.name}")
    names = [_last_name(person) for person in entry.persons.get("author", [])]
    authors = {0: entry.fields.get("title", key), 1: names[0] if names else "", 2: " & ".join(names)}.get(
        len(names), f"{names[0] if names else ''} et al."
    )
    year, doi = entry.fields["year"], entry.fields.get("doi")
    url = entry.fields.get("url") or (f"https://doi.org/{doi}" if doi else "")
    words = f"{authors} ({year})" if textual else f"{authors}, {year}"
    return f"[{words}]({url})" if url else words


def _last_name(person: Person) -> str:
    name = " ".join([*person.prelast_names, *person.last_names])
    return name.replace("{", "").replace("}", "")
