"""The table in `book/teaching.md` that says how good each chapter's checks are.

python -m tools.exercise_figures             measure, and write the table
python -m tools.exercise_figures --check     measure, and say whether the table is right
"""

from __future__ import annotations

import argparse
import re
import sys

import torch

from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import STEMS, all_exercises
from tools.publisher import ROOT

PAGE = ROOT / "book/teaching.md"
BEGIN, END = "<!-- figures: begin (python -m tools.exercise_figures) -->", "<!-- figures: end -->"
HEAD = "| chapter | exercises | cases | named mistakes | breaches |\n|---|---|---|---|---|"


def table() -> str:
    """A row a chapter: exercises, cases, misconceptions, breaches of clauses."""
    rows = [HEAD]
    for stem in STEMS:
        exercises = [exercise for exercise in all_exercises().values() if exercise.stem == stem]
        cases = sum(len(sheet_of(exercise, 0).trials) for exercise in exercises)
        mistakes = sum(len(exercise.misconceptions) for exercise in exercises)
        breaches = sum(len(exercise.breaches) for exercise in exercises)
        rows.append(f"| {{doc}}`{stem}` | {len(exercises)} | {cases} | {mistakes:,} | {breaches} |")
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
