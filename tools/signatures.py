"""Signatures of functions, classes and methods from their source, broken to fit a narrow page."""

from __future__ import annotations

import ast
import re
import textwrap

__all__ = ["Definition", "arguments_of_class", "fields", "signature"]

Definition = ast.FunctionDef | ast.ClassDef
WIDTH = 80  # characters of a line
_FIELDS = {"dataclass", "NamedTuple"}


def signature(name: str, node: Definition, *, method: bool = False) -> str:
    """As it is called, on lines of a page's width: arguments with their annotations, and what is returned.

    Args:
        name: as the reader calls it.
        node: the definition of a function, class or method.
        method: whether a class owns it, so that its first argument is not shown.
    """
    returned = ""
    if isinstance(node, ast.ClassDef):
        arguments = arguments_of_class(node)
    elif {"property", "cached_property"} & decorators(node):
        return _joined(name, None, ast.unparse(node.returns) if node.returns else "", " : ")
    else:
        own = method and "staticmethod" not in decorators(node)
        arguments = _arguments(node.args, skip=own)
        returned = ast.unparse(node.returns) if node.returns else ""
    return _joined(name, arguments, _double(returned))


def arguments_of_class(node: ast.ClassDef) -> list[str] | None:
    """Of `__init__`, or the fields of a dataclass; None for a class that has neither."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            return _arguments(inner.args, skip=True)
    if _FIELDS & (decorators(node) | {ast.unparse(base) for base in node.bases}):
        only = any("kw_only=True" in ast.unparse(decorator) for decorator in node.decorator_list)
        return ["*"] * only + [_double(ast.unparse(field)) for field in fields(node)]
    return None


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The annotated names in the body of a class."""
    return [inner for inner in node.body if isinstance(inner, ast.AnnAssign)]


def _arguments(args: ast.arguments, *, skip: bool) -> list[str]:
    """Each argument as it is written; without the first, `self`, in a method."""
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    written = [_argument(arg, default) for arg, default in zip(plain, defaults, strict=True)]
    if args.posonlyargs:
        written.insert(len(args.posonlyargs), "/")
    written = written[1:] if skip else written
    if args.vararg or args.kwonlyargs:
        written.append("*" + (_argument(args.vararg, None) if args.vararg else ""))
    written += [_argument(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return written + (["**" + _argument(args.kwarg, None)] if args.kwarg else [])


def _argument(arg: ast.arg, default: ast.expr | None) -> str:
    written = arg.arg + (f": {_double(ast.unparse(arg.annotation))}" if arg.annotation else "")
    return written + (f" = {_double(ast.unparse(default))}" if default is not None else "")


def _double(code: str) -> str:
    """With double quotes and grouped digits, as everywhere in the package."""
    code = re.sub(r"(?<![\w.])\d{5,}(?!\w)", lambda match: f"{int(match[0]):_}", code)
    return code.replace("'", '"') if '"' not in code else code


def _joined(name: str, arguments: list[str] | None, returned: str, arrow: str = " -> ") -> str:
    call = name + ("" if arguments is None else f"({', '.join(arguments)})")
    returned = f"{arrow}{returned}" if returned else ""
    if len(call + returned) <= WIDTH:
        return call + returned
    if arguments:
        call = f"{name}(\n{_indented(arguments)})"
    last = call.rsplit("\n", 1)[-1]
    return call + (returned if len(last + returned) <= WIDTH else _broken(returned))


def _broken(text: str) -> str:
    """With what is inside the first brackets on lines of its own."""
    match = re.fullmatch(r"([^\[]*\[)(.+)(\][^\]]*)", text)
    return f"{match[1]}\n{_indented(_split(match[2]))}{match[3]}" if match else text


def _indented(parts: list[str]) -> str:
    lines = [part if len(part) + 5 <= WIDTH else _broken(part) for part in parts]
    return "".join(textwrap.indent(line, "    ") + ",\n" for line in lines)


def _split(text: str) -> list[str]:
    """At the commas outside brackets and quotation marks."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        depth += (sign in "[(") - (sign in "])")
        if sign == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def decorators(node: Definition) -> set[str]:
    calls = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return {ast.unparse(call).rsplit(".", 1)[-1] for call in calls}
