"""How often mistakes are named, which tips are given, and for what: pairs to judge the tips by.

python -m tools.diagnosis_figures [SET]              the wrong solutions of a set in tests/exercises/solutions
python -m tools.diagnosis_figures --generic          as if no mistake had a name: what the generic tips alone say
python -m tools.diagnosis_figures --named-mistakes   the exercises' own misconceptions instead of these
python -m tools.diagnosis_figures --pairs PATH       write "what is wrong → what was said" for each, by tip
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from course_kit.checker.verdict.diagnose import Diagnosis, diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import STEMS, all_exercises, find
from tools.publisher import ROOT


@dataclass(frozen=True)
class Pair:
    """What is wrong with a solution, in the words of its author, and what was said about it."""

    stem: str
    exercise: str
    key: str
    wrong: str
    said: Diagnosis | None

    @property
    def kind(self) -> str:
        """named, generic or unknown"""
        if self.said is None:
            return "unknown"
        return "generic" if self.said.key.startswith("any/") else "named"


def pairs(
    wrong: Iterator[tuple[str, str, str, Callable]], *, seed: int = 0, generic: bool = False
) -> Iterator[Pair | str]:
    """Diagnose wrong solutions; a solution that passes gives a line that says so instead of a pair.

    Args:
        wrong: exercise, key, what is wrong, and the solution.
        seed: of the cases.
        generic: leave out the mistakes that have a name.
    """
    for name, key, message, solution in wrong:
        exercise = find(name)
        sheet = sheet_of(exercise, seed)
        seen = sheet.run(solution)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        if verdict.status != "failed":
            yield f"{key} is {verdict.status}: {message}"
            continue
        yield Pair(exercise.stem, name, key, message, diagnose(sheet, verdict, seen, named=not generic))


def from_set(kind: str) -> Iterator[tuple[str, str, str, Callable]]:
    """The solutions of a set that is kept for the tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    from solutions_by_others import cells

    for cell in cells(kind):
        yield cell.exercise, cell.key, cell.message, cell.load()


def from_exercises() -> Iterator[tuple[str, str, str, Callable]]:
    """The misconceptions of all exercises, inherited ones left out."""
    for exercise in all_exercises().values():
        for mistake in exercise.misconceptions:
            if not mistake.inherited_from:
                yield exercise.name, f"{exercise.stem}/{exercise.name}/{mistake.key}", mistake.message, mistake.solution


def figures(found: list[Pair]) -> Iterator[str]:
    """A table by chapter, and one by tip."""
    yield f"{'chapter':<22}{'solutions':>10}{'named':>8}{'generic':>9}{'unknown':>9}"
    for stem in (*STEMS, ""):
        here = [pair for pair in found if stem in ("", pair.stem)]
        kinds = Counter(pair.kind for pair in here)
        if here:
            counts = f"{len(here):>10}{kinds['named']:>8}{kinds['generic']:>9}{kinds['unknown']:>9}"
            yield f"{stem or 'all':<22}{counts}"
    yield ""
    tips = Counter(pair.said.key for pair in found if pair.kind == "generic")
    yield from (f"{count:>5}  {tip}" for tip, count in tips.most_common())


def written(found: list[Pair]) -> str:
    """Every pair, by tip, for someone who judges whether what was said is right."""
    lines = []
    for pair in sorted(found, key=lambda p: (p.kind, p.said.key if p.said and p.kind == "generic" else "", p.key)):
        said = f"{pair.said.key}: {pair.said.message}" if pair.said else "unknown"
        lines += [f"## {pair.key}", f"wrong: {pair.wrong}", f"said:  {said}", ""]
    return "\n".join(lines)


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", choices=("held_out", "held_out_2"), default="held_out")
    parser.add_argument("--generic", action="store_true")
    parser.add_argument("--named-mistakes", action="store_true")
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    wrong = from_exercises() if options.named_mistakes else from_set(options.set)
    found = list(pairs(wrong, seed=options.seed, generic=options.generic))
    passed = [text for text in found if isinstance(text, str)]
    failed = [pair for pair in found if isinstance(pair, Pair)]
    print("\n".join([*figures(failed), *passed]))
    if options.pairs:
        options.pairs.write_text(written(failed), encoding="utf-8")


if __name__ == "__main__":
    main()
