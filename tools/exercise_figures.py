"""The table in `book/teaching.md` that says how good each chapter's checks are.

python -m tools.exercise_figures             measure, and write the table
python -m tools.exercise_figures --check     measure, and say whether the table is right
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch

from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import STEMS, Exercise, all_exercises
from tools.mutants import mutants_of, survives
from tools.publisher import ROOT

PAGE = ROOT / "book/teaching.md"
BEGIN, END = "<!-- figures: begin (python -m tools.exercise_figures) -->", "<!-- figures: end -->"
HEAD = "| chapter | exercises | cases | named mistakes | mutants noticed | breaches |\n|---|---|---|---|---|---|"


def table(root: Path = ROOT) -> str:
    """A row a chapter: exercises, cases, misconceptions, mutants that are noticed, breaches of clauses."""
    sys.path.insert(0, str(root / "tests/exercises"))
    from equivalent_mutants import EQUIVALENT

    rows = [HEAD]
    for stem in STEMS:
        exercises = [exercise for exercise in all_exercises().values() if exercise.stem == stem]
        alive = {exercise.name: survivors(exercise) for exercise in exercises}
        equivalent = sum(len(set(alive[name]) & set(EQUIVALENT.get(name, {}))) for name in alive)
        counted = sum(len(list(mutants_of(exercise))) for exercise in exercises) - equivalent
        rows.append(row_of(stem, noticed=counted - sum(map(len, alive.values())) + equivalent, counted=counted))
    return "\n".join(rows)


def survivors(exercise: Exercise) -> list[str]:
    """The changes of the reference that no case notices."""
    return [mutant.change for mutant in mutants_of(exercise) if survives(exercise, mutant)]


def row_of(stem: str, *, noticed: int, counted: int) -> str:
    """The row of a chapter, whose mutants have been counted."""
    exercises = [exercise for exercise in all_exercises().values() if exercise.stem == stem]
    cases = sum(len(sheet_of(exercise, 0).trials) for exercise in exercises)
    mistakes = sum(len(exercise.misconceptions) for exercise in exercises)
    breaches = sum(len(exercise.breaches) for exercise in exercises)
    return f"| {{doc}}`{stem}` | {len(exercises)} | {cases} | {mistakes:,} | {noticed} of {counted} | {breaches} |"


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the table is not right")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = PAGE.read_text(encoding="utf-8")
    fresh = re.sub(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{table()}\n{END}", text, flags=re.DOTALL
    )
    if options.check:
        sys.exit(
            "The table in book/teaching.md is not right; run `python -m tools.exercise_figures`."
            if fresh != text
            else 0
        )
    PAGE.write_text(fresh, encoding="utf-8")
    print(f"{PAGE}: {'written' if fresh != text else 'as it was'}")


if __name__ == "__main__":
    main()
