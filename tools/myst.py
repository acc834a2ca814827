"""The one place where MyST is read: a page's source as blocks, by markdown-it-py with the plugins that MyST adds.

    for block in blocks(source):
        if block.is_directive("exercise"):
            print(block.argument)

Only what stands at the left margin is a block of its own; a fence inside a list belongs to the text of the list. The
lines of all blocks together are the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

__all__ = ["ROLE", "Block", "blocks", "in_line", "replaced", "titled"]

# A role in the text: `name` and `text`. The parser says that there is one, but not at which characters.
ROLE = re.compile(r"\{(?P<name>[\w:]+)\}`(?P<text>[^`]+)`")

_DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\}\s*(?P<argument>.*)$")
_OPENING = re.compile(r"^(`{3,})(\{[\w:-]+\}.*)$", re.MULTILINE)
_TITLED = re.compile(r"^(?P<title>.+?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there
_KINDS = {
    "fence": "code",
    "colon_fence": "code",
    "math_block": "math",
    "math_block_label": "math",
    "myst_target": "label",
    "myst_line_comment": "comment",
    "front_matter": "header",
}


@dataclass(frozen=True)
class Block:
    """A part of a page.

    Args:
        kind: "directive", "code" (a fence without a directive), "math", "label", "comment", "header" (the settings in
            front of the page) or "text" (all between those).
        source: its lines.
        name: of the directive, the label, or the equation.
        argument: what follows the directive's name.
        options: those of the directive, `:key: value` or YAML between two lines of dashes.
        body: what stands inside, without fences and options.
    """

    kind: str
    source: str
    name: str = ""
    argument: str = ""
    options: dict = field(default_factory=dict)
    body: str = ""

    def is_directive(self, *names: str) -> bool:
        """Whether it is a directive of one of these names."""
        return self.kind == "directive" and self.name in names


def blocks(source: str) -> list[Block]:
    """The blocks of a source, in order.

    Raises:
        ValueError: a fence is never closed.
    """
    return list(_blocks(source))


@lru_cache(maxsize=8192)  # a build asks for the same pages and paragraphs over and over
def _blocks(source: str) -> tuple[Block, ...]:
    lines, found, done = source.split("\n"), [], 0
    # CommonMark takes no fence of backticks for one if its line has code in it; the question of a quiz may.
    marked = _OPENING.sub(lambda match: match[1] + match[2].replace("`", "\N{PRIME}"), source)
    for token in _parser().parse(marked):
        if token.level == 0 and token.type in _KINDS:
            start, end = token.map
            found += _text(lines[done:start])
            found.append(_block(token, lines[start:end]))
            done = end
    return tuple(found + _text(lines[done:]))


def replaced(source: str, name: str, make: Callable[[Block], str]) -> str:
    """The source with each directive of this name replaced by what `make` makes of it."""
    if f"{{{name}}}" not in source:  # most pages have few of them, and parsing takes time
        return source
    return "\n".join(make(block) if block.is_directive(name) else block.source for block in blocks(source))


def in_line(text: str) -> list[Token]:
    """The tokens inside the lines of Markdown: texts, roles, formulas, code, and what they are made of."""
    return [child for token in _parser().parse(text) if token.type == "inline" for child in token.children]


def titled(text: str) -> tuple[str | None, str]:
    """Title and target of what a role says: `the page <page>` or `page`."""
    match = _TITLED.match(text)
    return (match["title"], match["target"]) if match else (None, text)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    parser.use(colon_fence_plugin).use(myst_block_plugin).use(myst_role_plugin)
    return parser.use(dollarmath_plugin, allow_labels=True)


def _text(lines: list[str]) -> list[Block]:
    return [Block("text", "\n".join(lines))] if lines else []


def _block(token: Token, lines: list[str]) -> Block:
    kind, source = _KINDS[token.type], "\n".join(lines)
    if kind == "code":
        if len(lines) < 2 or lines[-1].rstrip() != token.markup:
            raise ValueError(f"the block that starts with {lines[0]!r} is never closed by {token.markup!r}")
        if match := _DIRECTIVE.match(lines[0].lstrip(token.markup[0])):
            options, body = _options(lines[1:-1])
            return Block("directive", source, match["name"], match["argument"].strip(), options, "\n".join(body))
        return Block(kind, source, token.info.strip(), body="\n".join(lines[1:-1]))
    if kind == "label":
        return Block(kind, source, token.content)
    return Block(kind, source, token.info if kind == "math" else "", body=token.content)


def _options(body: list[str]) -> tuple[dict, list[str]]:
    if body and body[0].rstrip() == "---" and "---" in (rest := [line.rstrip() for line in body[1:]]):
        end = rest.index("---") + 1
        return yaml.load("\n".join(body[1:end]), Loader=_LOADER) or {}, body[end + 1 :]
    options, position = {}, 0
    while position < len(body) and (match := re.match(r"^:([\w-]+):\s*(.*)$", body[position])):
        options[match[1]] = match[2]
        position += 1
    return options, body[position:]
