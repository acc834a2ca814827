"""The common mistakes of an exercise: each is written as a change to a few lines of the solution. For example, in
`scaled_dot_product_attention_mistakes.md`:

    ## no_scale  (see: scaled_dot_product: Why divide by the root of d)
    The scores are not divided by the root of d_k. What keeps their spread the same when the vectors get longer?
    - / math.sqrt(query.shape[-1])

A heading is the key of a mistake. In parentheses may stand the section to read next, if it is not the exercise's own.
The paragraph below it is what a learner is told. A `-` line quotes code that occurs exactly once in the solution, part
of a line or whole lines. The `+` lines replace it; without any, it is deleted. Further lines keep the indentation of
the first. Several such changes may follow each other; an empty line ends one. The code may use what the module of the
solution uses, and torch, nn, F, math and Counter.

Mistakes that differ in a number or a word are written once, with the values in the heading:

    ## eps_{eps}  (for eps: 1e-12 1e-5)

A learner may write out what the solution calls, and make mistakes in it. A section says how; all other changes are
changes to what it makes of the solution:

    # Written out

    - scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)
    + (x @ w_q @ (x @ w_k).mT / math.sqrt(w_q.shape[-1])).softmax(dim=-1) @ (x @ w_v)

If another exercise is a part of this one, its mistakes can be inherited. A change puts a call of that exercise where
the part is:

    # Inherited

    ## softmax
    called: softmax
    without: unstable float32_*
    - scores.softmax(dim=-1)
    + softmax(scores, -1)

The heading is the prefix of the keys. `from` names the exercise, if it is not the prefix; `called` is what a learner
calls it; `without` and `only` are patterns of its keys; `as` is another name by which the change calls it; and
`whole: yes` says that it is all of the solution.

Two mistakes that change different places can be combined. The last section describes each briefly, and leaves out the
pairs in which one hides the other:

    # Two at once

    - no_scale: the scores are not divided by the root of d_k
    - no_mask: the mask is not used
    - without no_scale+no_mask
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from types import CodeType

import torch
from torch import nn

__all__ = [
    "Mistake",
    "OverlapError",
    "Part",
    "built",
    "changes_in",
    "mistakes_in",
    "parts_in",
    "patched",
    "written_out",
]

_HEADING = re.compile(r"## (?P<key>\S+)(?: +\((?P<options>.*)\))?")
_OPTION = re.compile(r"(?:for )?\w+: .*\S")
_NAMES = {"torch": torch, "nn": nn, "F": nn.functional, "math": math, "Counter": Counter}


@dataclass(frozen=True)
class Mistake:
    """A mistake as it is written in the file.

    Args:
        key: short name, unique in the exercise.
        message: what a learner is told.
        changes: pairs of a passage of the solution and what takes its place.
        see: what to read next, as "page: heading", if other than the exercise's own.
    """

    key: str
    message: str
    changes: tuple[tuple[str, str], ...]
    see: str = ""


@dataclass(frozen=True)
class Part:
    """An exercise whose mistakes may be made inside this one.

    Args:
        prefix: of the keys of these mistakes.
        exercise: its name, the prefix if left out.
        called: what a learner calls it, without an article.
        changes: with them, the solution calls it by its name.
        known_as: another name by which it is called.
        whole: the part is all of the solution.
        without: patterns of keys that make no sense here.
        only: patterns of keys that do.
    """

    prefix: str
    exercise: str
    called: str
    changes: tuple[tuple[str, str], ...]
    known_as: str
    whole: bool
    without: tuple[str, ...]
    only: tuple[str, ...]

    def takes(self, key: str) -> bool:
        """Whether a mistake of that exercise is one here."""
        return any(fnmatchcase(key, p) for p in self.only) and not any(fnmatchcase(key, p) for p in self.without)

    def useless(self, keys: list[str], code: str) -> str:
        """What has no effect: a pattern that no key matches, or a name that the code does not call; "" for nothing."""
        idle = [p for p in (*self.without, *self.only) if not any(fnmatchcase(key, p) for key in keys)]
        if idle:
            return f"no mistake of {self.exercise} is called {', '.join(idle)}"
        called = self.whole or re.search(rf"(?<!\.)\b{self.known_as}\b(?=\()", code)
        return "" if called else f"the solution with this change does not call {self.known_as}"


def mistakes_in(text: str, name: str, solution: str) -> dict[Mistake, str]:
    """The mistakes in the text of such a file, pairs of them last, and the code of each.

    Args:
        text: of the file.
        name: of the file, for messages.
        solution: the right code, written out.

    Raises:
        ValueError: a key stands twice, a mistake has no message or no change, a line is none of these, or a passage
            that changes is not in the solution exactly once.
    """
    chapters = _chapters(text, name)
    singles, pairs = chapters[""], chapters["Two at once"]
    found = [mistake for section in _sections(singles, name) for mistake in _mistakes(section, name)]
    keys = [mistake.key for mistake in found]
    if len(set(keys)) < len(keys):
        raise ValueError(f"{name}: two mistakes are called {max(keys, key=keys.count)!r}")
    code = {mistake: patched(solution, mistake.changes, f"{name}: {mistake.key}") for mistake in found}
    for pair in _pairs({mistake.key: mistake for mistake in found}, pairs, name):
        with contextlib.suppress(OverlapError):  # both change the same place
            code[pair] = patched(solution, pair.changes, f"{name}: {pair.key}")
    return code


def parts_in(text: str, name: str) -> list[Part]:
    """The parts whose mistakes are inherited, from the text of such a file.

    Raises:
        ValueError: an option is unknown, or a line is not as expected.
    """
    found = []
    for section in _sections(_chapters(text, name)["Inherited"], name):
        head, _, body = section.partition("\n")
        prefix = head.removeprefix("## ").strip()
        lines, changes = _split(body, f"{name}: {prefix}")
        options = dict(re.findall(r"^(\w+): (.*(?:\n .*)*)", lines, re.MULTILINE))
        unknown = options.keys() - {"from", "called", "as", "whole", "without", "only"}
        if unknown:
            raise ValueError(f"{name}: {prefix} has an unknown option {', '.join(sorted(unknown))}")
        written = "\n".join(f"{option}: {value}" for option, value in options.items())
        if written != lines.strip() or ("whole" in options and (options["whole"] != "yes" or changes)):
            raise ValueError(
                f"{name}: {prefix}: expected 'option: value', each once, and 'whole: yes' without a change"
            )
        exercise = options.get("from", prefix)
        patterns = (tuple(options.get(option, default).split()) for option, default in (("without", ""), ("only", "*")))
        as_, whole = options.get("as", exercise), "whole" in options
        found.append(Part(prefix, exercise, options.get("called", f"`{exercise}`"), changes, as_, whole, *patterns))
    return found


def written_out(text: str, name: str, solution: str) -> str:
    """The solution with what it calls written out, as the text of such a file says; the solution itself if it does not.

    Raises:
        ValueError: a line is not as expected, or a passage that changes is not in the solution exactly once.
    """
    lines, changes = _split(_chapters(text, name)["Written out"], f"{name}: Written out")
    if lines.strip():
        raise ValueError(
            f"{name}: Written out: expected lines that begin with '- ' or '+ ', got {lines.strip()[:60]!r}"
        )
    return patched(solution, changes, f"{name}: Written out")


def _chapters(text: str, name: str) -> dict[str, str]:
    """The mistakes under "", and the text of each further chapter by its title."""
    before, *chapters = (part.partition("\n")[::2] for part in re.split(r"^# ", text, flags=re.MULTILINE))
    titles, found = [title for title, _ in chapters], dict(chapters)
    further = {"Written out", "Inherited", "Two at once"}
    if any(before) or not titles or titles[0] in further or not set(titles[1:]) <= further or len(found) < len(titles):
        raise ValueError(f"{name}: expected a title and some of {', '.join(sorted(further))}, got {titles}")
    return {"": found[titles[0]], **{title: found.get(title, "") for title in further}}


def _sections(text: str, name: str) -> list[str]:
    before, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    if before.strip():
        raise ValueError(f"{name}: expected '## key', got {before.strip()[:60]!r}")
    return sections


def _split(body: str, where: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What stands before the changes, and the changes."""
    lines = body.rstrip().split("\n")
    first = next((number for number, line in enumerate(lines) if re.match(r"[-+]( |$)", line)), len(lines))
    return "\n".join(lines[:first]), changes_in(lines[first:], where)


def _mistakes(section: str, name: str) -> Iterator[Mistake]:
    """The mistake of a section; several, if it stands for several values."""
    head, _, body = section.partition("\n")
    heading = _HEADING.fullmatch(head.rstrip())
    listed = [option.strip() for option in (heading["options"] or "").split(";") if option.strip()] if heading else []
    options = dict(option.split(": ", 1) for option in listed if _OPTION.fullmatch(option))
    variables = [option for option in options if option.startswith("for ")]
    if (
        heading is None
        or len(options) < len(listed)
        or not options.keys() - set(variables) <= {"see"}
        or len(variables) > 1
    ):
        raise ValueError(f"{name}: expected '## key' or '## key  (see: page: heading)', got {head!r}")
    variable = variables[0].removeprefix("for ") if variables else ""
    values = options[variables[0]].split() if variables else [""]
    lines, changes = _split(body, f"{name}: {heading['key']}")
    message = " ".join(lines.split())
    if not message or not changes:
        raise ValueError(f"{name}: expected a message and at least one change in {heading['key']!r}")
    for value in values:

        def put(text: str, value: str = value) -> str:
            return text.replace(f"{{{variable}}}", value) if variable else text

        yield Mistake(
            put(heading["key"]),
            put(message),
            tuple((put(old), put(new)) for old, new in changes),
            options.get("see", ""),
        )


def changes_in(lines: list[str], where: str) -> tuple[tuple[str, str], ...]:
    """Pairs of what goes and what comes, of lines that begin with `-` and `+`."""
    changes: list[tuple[list[str], list[str]]] = []
    begun = False
    for line in lines:
        sign, text = line[:1], line[2:]
        if not line:
            begun = False
            continue
        if sign not in "-+" or line[1:2].strip() or (sign == "+" and not begun):
            raise ValueError(f"{where}: expected lines that begin with '- ' and then '+ ', got {line!r}")
        if sign == "-" and (not begun or changes[-1][1]):
            changes.append(([], []))
            begun = True
        changes[-1][sign == "+"].append(text)
    for first, *rest in filter(None, itertools.chain(*changes)):
        indent = len(first) - len(first.lstrip())
        if any(line[:indent].strip() for line in rest):
            raise ValueError(f"{where}: expected no line to be indented less than its first, {first!r}")
    return tuple(("\n".join(old), "\n".join(new)) for old, new in changes)


def _pairs(mistakes: dict[str, Mistake], text: str, name: str) -> Iterator[Mistake]:
    """All pairs of the mistakes in the last section, except for those that it leaves out."""
    told = dict(re.findall(r"^- (\S+): (.*(?:\n  .*)*)", text, re.MULTILINE))
    without = re.findall(r"^- without (.*)", text, re.MULTILINE)
    hidden = {frozenset(pair.split("+")) for line in without for pair in line.split()}
    rest = re.sub(r"^- (?:without .*|\S+: .*(?:\n  .*)*)$", "", text, flags=re.MULTILINE)
    if rest.strip():
        raise ValueError(f"{name}: expected '- key: words' or '- without a+b', got {rest.strip()[:60]!r}")
    unknown = {key for key in [*told, *itertools.chain(*hidden)] if key not in mistakes}
    if unknown:
        raise ValueError(f"{name}: no mistake is called {', '.join(sorted(unknown))}")
    for a, b in itertools.combinations(told, 2):
        if frozenset((a, b)) not in hidden:
            message = f"There are two mistakes here: {told[a]}, and {told[b]}. Correct them one at a time."
            changes = (*mistakes[a].changes, *mistakes[b].changes)
            yield Mistake(f"{a}+{b}", " ".join(message.split()), changes)


class OverlapError(ValueError):
    """Two changes of one place."""


def patched(source: str, changes: tuple[tuple[str, str], ...], where: str = "the changes") -> str:
    """The source with all changes made.

    Args:
        source: code.
        changes: what goes and what comes.
        where: they are written, for messages.

    Raises:
        OverlapError: two of them change the same place.
        ValueError: what goes does not stand in the source exactly once.
    """
    spans = sorted(_span(source, old, new, where) for old, new in changes)
    for (_, end, _), (start, _, _) in itertools.pairwise(spans):
        if start < end:
            raise OverlapError(f"{where}: two changes overlap at {source[start:end]!r}")
    for start, end, new in reversed(spans):
        source = source[:start] + new + source[end:]
    return source


def _span(source: str, old: str, new: str, where: str) -> tuple[int, int, str]:
    """Where a passage begins and ends, and what takes its place, indented as it is."""
    first = old.lstrip().split("\n", 1)[0]
    found = []
    for match in re.finditer(f"(?={re.escape(first)})", source):
        line = source[source.rfind("\n", 0, match.start()) + 1 :]
        indent = line[: len(line) - len(line.lstrip())]
        passage = _indented(old, indent)
        if source.startswith(passage, match.start()):
            found.append((match.start(), match.start() + len(passage), _indented(new, indent)))
    if not first or len(found) != 1:
        raise ValueError(f"{where}: expected {old!r} once in the solution, found it {len(found)} times in\n{source}")
    return found[0]


def _indented(text: str, indent: str) -> str:
    """The lines as they follow a line with this indent: the first one as it is, the others moved."""
    first, *rest = text.split("\n")
    own = len(first) - len(first.lstrip())
    return "\n".join([first.lstrip(), *(indent + line[own:] if line.strip() else "" for line in rest)])


def built(code: str, name: str, module: str, **others: Callable) -> Callable:
    """The function or class of this name.

    Args:
        code: which defines it.
        name: of the function or class.
        module: whose names the code uses.
        others: further names that it uses.
    """
    names = {**_NAMES, **vars(sys.modules[module]), **others, "__name__": module}
    exec(_compiled(code, f"<a mistake in {name}>"), names)
    return names[name]


# A part's mistakes are all called by the same code.
@lru_cache(maxsize=16)
def _compiled(code: str, file: str) -> CodeType:
    return compile(code, file, "exec")
