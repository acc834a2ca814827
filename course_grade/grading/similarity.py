"""Pairs of submissions that are nearly the same, whatever their names and comments.

The method is that of Moss (Schleimer, Wilkerson and Aiken, "Winnowing: local algorithms for document fingerprinting",
2003), on the code that the graded exercises run. `copydetect`, the library for it, was last released in March 2024 and
draws its fingerprints from Python's randomised hashes, so that two runs differ; this is the part of it that is needed.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from course_grade.submission.submissions import Submission, needed
from course_kit.exercises import all_exercises, find

__all__ = ["Pair", "Script", "script_from", "script_of", "similar_pairs"]

GRAM = 10  # tokens that are compared as one: shorter pieces occur in every submission
WINDOW = 4  # grams of which one is kept; a shared run of GRAM + WINDOW - 1 tokens is always found
SHARED_BY = 10  # submissions; what more of them share is how the exercise is usually written
LEAST = 8  # shared fingerprints; fewer say nothing
NEARLY = 0.7  # share of the fingerprints that both have
LONGEST = 200_000  # characters of code that are compared, per submission
_BUILTIN = frozenset(dir(builtins))


@dataclass(frozen=True)
class Script:
    """The code of a submission that is compared.

    Args:
        student: name of the file or folder.
        code: what the graded exercises run.
        fingerprints: of the code without names and comments, with the lines where each begins and ends.
    """

    student: str
    code: str
    fingerprints: dict[int, list[tuple[int, int]]] = field(repr=False)


@dataclass(frozen=True)
class Pair:
    """Two submissions that have much in common.

    Args:
        one: the first by name.
        other: the second.
        share: of their unusual fingerprints, how many both have; 0 to 1.
        shared: the fingerprints that both have.
    """

    one: Script
    other: Script
    share: float
    shared: frozenset[int]


def script_of(submission: Submission, names: Iterable[str]) -> Script:
    """The code of a submission that these exercises run, and its fingerprints.

    Args:
        names: of the exercises.
    """
    statements: dict[tuple[str, int], str] = {}
    for name in names:
        source = submission.find(name, find(name).stem)
        try:
            pieces = needed(source, name) if source else []
        except ValueError:  # it needs more statements than are run
            pieces = []
        statements |= {(piece.file, piece.line): piece.code for piece in pieces if not piece.imported}
    return script_from(submission.student, list(statements.values()))


def script_from(student: str, statements: list[str]) -> Script:
    """The fingerprints of the statements at the top level of a file. None spans two, whose order means nothing."""
    marks: dict[int, list[tuple[int, int]]] = defaultdict(list)
    code = ""
    for statement in statements:
        if len(code) + len(statement) > LONGEST:
            break
        above = code.count("\n")
        for mark, spans in _winnowed(list(_grams(statement))).items():
            marks[mark] += [(first + above, last + above) for first, last in spans]
        code += f"{statement.rstrip()}\n\n"
    return Script(student, code.rstrip(), dict(marks))


def similar_pairs(scripts: list[Script]) -> list[Pair]:
    """Pairs that are nearly the same, the most similar first. What the course gives or many share does not count."""
    given = _given()
    having: dict[int, list[int]] = defaultdict(list)
    for place, script in enumerate(scripts):
        for mark in script.fingerprints.keys() - given:
            having[mark].append(place)
    most = max(2, min(SHARED_BY, len(scripts) // 3))
    unusual: list[set[int]] = [set() for _ in scripts]
    common: dict[tuple[int, int], set[int]] = defaultdict(set)
    for mark, places in having.items():
        if len(places) <= most:
            for place in places:
                unusual[place].add(mark)
            for both in combinations(places, 2):
                common[both].add(mark)
    pairs = []
    for (one, other), shared in common.items():
        share = len(shared) / len(unusual[one] | unusual[other])
        if len(shared) >= LEAST and share >= NEARLY:
            pairs.append(Pair(scripts[one], scripts[other], share, frozenset(shared)))
    return sorted(pairs, key=lambda pair: (-pair.share, pair.one.student, pair.other.student))


def _given() -> set[int]:
    """Fingerprints of the course's own code, stubs and solutions."""
    texts = [text for exercise in all_exercises().values() for text in (exercise.stub, exercise.solution)]
    return {mark for text in texts for mark, _ in _grams(text)}


def _grams(code: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Hashes of neighbouring tokens, with the lines that they span."""
    tokens = list(_tokens(code))
    for start in range(len(tokens) - GRAM + 1):
        part = tokens[start : start + GRAM]
        digest = hashlib.blake2b("\0".join(text for text, _ in part).encode("utf-8", "replace"), digest_size=8)
        yield int.from_bytes(digest.digest(), "big"), (part[0][1], part[-1][1])


def _tokens(code: str) -> Iterator[tuple[str, int]]:
    """What is left of code without comments, docstrings and the names that its author chose."""
    before: list[str] = ["", ""]  # the two tokens before this one
    statement = True  # whether a statement begins here: a string that is one is a docstring
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                statement = True
            if token.type in _WITHOUT_TEXT or not token.string.strip():
                continue
            text = token.string
            if token.type == tokenize.STRING:
                text = "" if statement else '"'
            elif token.type == tokenize.NAME and not _means_something(text, before):
                text = "name"
            statement = False
            before = [before[1], token.string]
            if text:
                yield text, token.start[0]
    except (tokenize.TokenError, SyntaxError):  # what cannot be read as Python
        return


_WITHOUT_TEXT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def _means_something(name: str, before: list[str]) -> bool:
    """Whether a name is Python's or a library's, not the author's."""
    if keyword.iskeyword(name) or name in _BUILTIN:
        return True
    return before[1] == "." and before[0] != "self"


def _winnowed(grams: list[tuple[int, tuple[int, int]]]) -> dict[int, list[tuple[int, int]]]:
    """Of each window of grams the one with the smallest hash."""
    kept: dict[int, list[tuple[int, int]]] = defaultdict(list)
    last = -1
    for start in range(max(1, len(grams) - WINDOW + 1)) if grams else ():
        window = grams[start : start + WINDOW]
        place = start + min(range(len(window)), key=lambda i: (window[i][0], -i))
        if place != last:
            kept[grams[place][0]].append(grams[place][1])
            last = place
    return kept
