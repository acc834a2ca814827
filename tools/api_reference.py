"""The reference of the package, from its docstrings: a heading, the signature and the docstring of each public name.

A page says which module it wants, and which of its names (all of `__all__` if it names none):

    ```{api} course_lib.masking
    ```

The sources are read and not imported, as `literalinclude` reads them: a signature is shown as it is written, with the
shapes of its tensors, and nothing has to be loaded. `{api-index}` becomes a list of all names on the page.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pybtex.database import parse_file

from course_kit.exercises import STEMS, all_exercises
from tools.myst import Block, blocks, replaced
from tools.publisher import ROOT
from tools.signatures import Definition, fields, is_record, laid_out, stub

__all__ = ["Entry", "anchor", "api_sources", "entries", "expand_api", "public_names"]

PACKAGES = {"cl": "course_lib", "ck": "course_kit", "ck.nn": "course_kit.nn"}  # as pages call them
PARTS = {"Args": "Arguments", "Returns": "Returns", "Yields": "Yields", "Raises": "Raises", "Attributes": "Attributes"}
_PART = re.compile(rf"^({'|'.join(PARTS)}):$")
_ITEM = re.compile(r"^([\w.*, ]+): (.+)$", re.DOTALL)
_SOURCE = re.compile(
    r"(?P<first>[A-Z][\w'’-]+)(?:(?: et al\.)|(?:, [A-Z][\w'’-]+)*(?:,? & [A-Z][\w'’-]+))? \((?P<year>\d{4})\)"
)


@dataclass(frozen=True)
class Entry:
    """A public name.

    Args:
        name: as it is imported, or `Class.method`; with `ck.nn.` in front if `course_lib` has one of the same name.
        file: where it is defined.
        node: its definition.
        is_method: whether a class has it.
        signature: as it is called.
    """

    name: str
    file: Path
    node: Definition
    is_method: bool
    signature: str

    @property
    def docstring(self) -> str:
        """As written, without indentation."""
        return inspect.cleandoc(ast.get_docstring(self.node) or "")


def anchor(name: str) -> str:
    """What stands behind the # of an entry's address: `causal-mask`, `multiheadattention-from-torch`.

    Several capitals after a small letter begin a word, so that `SwiGLU` is not where `swiglu` is.
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z]{2})", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def public_names() -> list[str]:
    """What `import course_lib as cl` and `import course_kit as ck` offer."""
    return [*_listed(_file("course_lib")), *_listed(_file("course_kit"))]


def entries(module: str, names: list[str] | None = None) -> list[Entry]:
    """The entries of a module's public names, or of these; a class is followed by its public methods.

    All names of a module come in the order of the alphabet, as in the index; `__all__` has capitals first.

    Raises:
        ValueError: the module does not define one of the names, or one has no docstring.
    """
    file = _file(module)
    defined = {node.name: node for node in _tree(file).body if isinstance(node, Definition)}
    wanted = []
    for name in names or sorted(_listed(file), key=str.lower):
        if name not in defined:
            raise ValueError(f"{module} was expected to define {name}, and has {', '.join(defined)}")
        shown = _shown(module, name)
        wanted.append((shown, defined[name] if shown == name else _with_init(defined[name]), False))
        wanted += [(f"{shown}.{method.name}", method, True) for method in _methods(defined[name])]
    stubs = tuple(stub(name, node, method=is_method) for name, node, is_method in wanted)
    found = [
        Entry(name, file, node, is_method, signature)
        for (name, node, is_method), signature in zip(wanted, laid_out(stubs), strict=True)
    ]
    if bare := [entry.name for entry in found if not entry.docstring]:
        raise ValueError(f"every public name has a docstring, and these of {module} have none: {', '.join(bare)}")
    return found


def expand_api(text: str) -> str:
    """The page with the entries that it asks for."""
    if "```{api" not in text:
        return text
    shown = [entry for block in blocks(text) if block.is_directive("api") for entry in _wanted(block)]
    text = replaced(text, "api-index", lambda _block: _index(shown))  # first, while the text is short
    return replaced(text, "api", lambda block: "\n\n".join(_written(entry) for entry in _wanted(block)))


def api_sources(text: str) -> set[Path]:
    """The files that the entries of a page come from."""
    wanted = [block for block in blocks(text) if block.is_directive("api")] if "```{api" in text else []
    return {_file(block.argument) for block in wanted}


def _wanted(block: Block) -> list[Entry]:
    return entries(block.argument, block.body.split() or None)


def _shown(module: str, name: str) -> str:
    """`ck.nn.Transformer` for the fuller class of that name; `course_lib` has the plain one."""
    return f"ck.nn.{name}" if module.startswith("course_kit.nn") and name in _listed(_file("course_lib")) else name


def _with_init(node: ast.ClassDef) -> ast.ClassDef:
    """A fuller class with the `__init__` that it takes over from the plain one of its name, if it has none."""
    plain = [other for stem in STEMS for other in _tree(_file(f"course_lib.{stem}")).body
             if isinstance(other, ast.ClassDef) and other.name == node.name]  # fmt: skip
    first = next(
        (inner for one in (node, *plain) for inner in one.body if getattr(inner, "name", "") == "__init__"), None
    )
    return ast.ClassDef(**{**vars(node), "body": [*node.body, *filter(None, [first])]})


def _methods(node: Definition) -> Iterator[ast.FunctionDef]:
    for inner in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_") and inner.name != "extra_repr":
            yield inner


def _index(shown: list[Entry]) -> str:
    names = sorted((entry.name for entry in shown if not entry.is_method), key=str.lower)
    return " · ".join(f"[`{name}`](#api-{anchor(name)})" for name in names)


# The form of an entry


def _written(entry: Entry) -> str:
    parts = [
        f"(api-{anchor(entry.name)})=\n{'####' if entry.is_method else '###'} `{entry.name}`",
        f"```python\n{entry.signature}\n```",
        _readable(entry.docstring),
    ]
    if isinstance(entry.node, ast.ClassDef) and (commented := _comments(entry)):
        parts.append(
            "**Fields**\n\n" + "\n\n".join(f"`{name}`\n: {_escaped(text)}" for name, text in commented.items())
        )
    if not entry.is_method and (places := _places(entry.name, entry.file)):
        parts.append(places)
    return "\n\n".join(parts)


def _readable(docstring: str) -> str:
    """A docstring as Markdown: its parts get a title, and the items of a part become a list of definitions."""
    written, part = [], ""
    for paragraph in _paragraphs(docstring):
        first, _, rest = paragraph.partition("\n")
        if match := _PART.match(first):
            part, paragraph = match[1], inspect.cleandoc(rest)
            written.append(f"**{PARTS[part]}**")
        if part in {"Args", "Raises", "Attributes"} and paragraph and not paragraph.startswith("Source:"):
            written += [_item(item) for item in _items(paragraph)]
        elif paragraph.startswith("    "):
            written.append(f"```{'python' if _is_python(paragraph) else 'text'}\n{inspect.cleandoc(paragraph)}\n```")
        elif paragraph.startswith("Source:"):
            written.append(f"**Source:** {_cited(_escaped(paragraph.removeprefix('Source:').strip()))}")
        elif paragraph.startswith("| "):  # a table
            written.append(paragraph)
        elif paragraph:
            written.append(_escaped(paragraph))
    return "\n\n".join(written)


def _is_python(code: str) -> bool:
    try:
        return bool(ast.parse(inspect.cleandoc(code)))
    except SyntaxError:
        return False


def _paragraphs(docstring: str) -> list[str]:
    """Separated by empty lines, or by the beginning of a part."""
    parted = re.sub(rf"^(?=(?:{'|'.join([*PARTS, 'Source'])}):)", "\n", docstring, flags=re.MULTILINE)
    return [part.rstrip() for part in re.split(r"\n\s*\n", parted) if part.strip()]


def _items(paragraph: str) -> list[str]:
    """`name: text` each, with the lines that are indented below it."""
    return [" ".join(item.split()) for item in re.split(r"\n(?=\S)", paragraph)]


def _item(item: str) -> str:
    match = _ITEM.match(item)
    return f"`{match[1]}`\n: {_escaped(match[2])}" if match else _escaped(item)


def _escaped(text: str) -> str:
    """Plain text with code in backticks and emphasis between asterisks, as Markdown: nothing else in it is markup.

    A name with an underscore, such as d_model, is code too. Names in backticks that have an entry become links.
    """
    pieces = re.split(r"(`[^`]+`|(?<![\w*])\*\w[^*]*\w\*(?![\w*])|(?<![\w.])[A-Za-z]\w*_\w+)", text)
    return "".join(_code(piece) if number % 2 else re.sub(r"([\\*_<>$\[\]{}|#~])", r"\\\1", piece)
                   for number, piece in enumerate(pieces))  # fmt: skip


def _code(piece: str) -> str:
    if piece[0].isalpha():
        return f"`{piece}`"
    name = piece.strip("`")
    return f"[{piece}](#api-{anchor(name)})" if piece[0] == "`" and name in public_names() else piece


def _cited(text: str) -> str:
    """Works that the bibliography has become citations."""
    return _SOURCE.sub(lambda match: f"{{cite:t}}`{key}`" if (key := _works().get((match["first"], match["year"])))
                       else match[0], text)  # fmt: skip


@cache
def _works() -> dict[tuple[str, str], str]:
    """Keys of the bibliography by first author and year, where these two say which work it is."""
    found: dict[tuple[str, str], list[str]] = {}
    for key, entry in parse_file(str(ROOT / "book/references.bib")).entries.items():
        for person in entry.persons.get("author", [])[:1]:
            name = " ".join([*person.prelast_names, *person.last_names])
            found.setdefault((name, entry.fields["year"]), []).append(key)
    return {work: keys[0] for work, keys in found.items() if len(keys) == 1}


def _comments(entry: Entry) -> dict[str, str]:
    """What stands behind the fields of a class."""
    found = fields(entry.node) if is_record(entry.node) else []
    lines = _line_comments(entry.file) if found else {}
    return {field.target.id: lines[field.end_lineno] for field in found if field.end_lineno in lines}


@cache
def _line_comments(file: Path) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


# Where a name is taught, exercised and used


def _places(name: str, file: Path) -> str:
    exercise = all_exercises().get(name)
    used = _users().get(name, [])
    own = [f"book/{file.stem}"] if file.parent.name == "course_lib" and file.stem in STEMS else used[:1]
    first = [f"**Chapter** {_links(own)}"] if own else []
    if exercise:
        first.append(f"**Exercise** {{ref}}`{exercise.title} <exercise-{anchor(name)}>`")
    others = [page for page in used if page not in own]
    return "  \n".join(filter(None, [" · ".join(first), f"**Used in** {_links(others)}" if others else ""]))


def _links(pages: list[str]) -> str:
    return ", ".join(f"{{doc}}`/{page}`" for page in pages)


@cache
def _users() -> dict[str, list[str]]:
    """The lessons whose code imports a name, or shows its source, in reading order."""
    from tools.pages import all_pages

    found: dict[str, list[str]] = {}
    for page in all_pages():
        if page.is_lesson:
            for name in _used_by(page.source.read_text(encoding="utf-8")):
                found.setdefault(name, []).append(page.name)
    return found


def _used_by(source: str) -> set[str]:
    names = set()
    for block in blocks(source):
        if block.is_directive("literalinclude"):
            names.add(block.options.get("pyobject"))
        elif block.is_directive("code-cell") and re.search(r"\bcourse_(lib|kit)\b|\bc[lk]\.", block.body):
            for node in ast.walk(ast.parse(block.body)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("course_lib", "course_kit")):
                    names |= {_shown(node.module, alias.name) for alias in node.names}
                elif isinstance(node, ast.Attribute) and (module := PACKAGES.get(ast.unparse(node.value))):
                    names.add(_shown(module, node.attr))
    return names


# Sources


def _file(module: str) -> Path:
    """A module's source.

    Raises:
        ValueError: there is no such module.
    """
    path = ROOT / module.replace(".", "/")
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return file
    raise ValueError(f"there is no module {module!r}: expected {path.with_suffix('.py')}")


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _listed(file: Path) -> list[str]:
    """What a module offers; of a package that offers all that its modules offer, the names of these."""
    stars = [node.module for node in _tree(file).body if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    if stars:
        return sorted(name for module in stars for name in _listed(_file(module)))
    for node in _tree(file).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError(f"{file} has no __all__")
