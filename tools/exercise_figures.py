"""The table in `book/teaching.md` that says how good each exercise's checks are.

python -m tools.exercise_figures             measure, and write the table
python -m tools.exercise_figures --check     measure, and say whether the table is right
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch

from course_lib.exercises import all_exercises
from course_lib.grader.verdict.sheet import sheet_of
from tools.mutants import mutants_of, survives
from tools.publisher import ROOT

PAGE = ROOT / "book/teaching.md"
BEGIN, END = "<!-- figures: begin (python -m tools.exercise_figures) -->", "<!-- figures: end -->"


def table(root: Path = ROOT) -> str:
    """A row an exercise: cases, misconceptions, mutants that are noticed, mutants that change nothing."""
    sys.path.insert(0, str(root / "tests/exercises"))
    from equivalent_mutants import EQUIVALENT

    rows = ["| exercise | cases | named mistakes | mutants noticed | equivalent mutants |", "|---|---|---|---|---|"]
    for exercise in all_exercises().values():
        changes = [(mutant.change, survives(exercise, mutant)) for mutant in mutants_of(exercise)]
        equivalent = [change for change, alive in changes if alive and change in EQUIVALENT.get(exercise.name, {})]
        counted = [(change, alive) for change, alive in changes if change not in equivalent]
        noticed = sum(not alive for _, alive in counted)
        cases, mistakes = len(sheet_of(exercise, 0).trials), len(exercise.misconceptions)
        rows.append(f"| `{exercise.name}` | {cases} | {mistakes} | {noticed} of {len(counted)} | {len(equivalent)} |")
    return "\n".join(rows)


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
