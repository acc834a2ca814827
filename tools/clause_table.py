"""The tables in `book/teaching.md` that say which line of a report refuses the breach of which clause.

python -m tools.clause_table             run every breach, and write the tables
python -m tools.clause_table --check     run every breach, and say whether the tables are right
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from course_lib.exercises import STEMS, all_exercises, find
from course_lib.grader.verdict.diagnose import diagnose
from course_lib.grader.verdict.judge import judge
from course_lib.grader.verdict.sheet import sheet_of
from tools.publisher import ROOT

PAGE = ROOT / "book/teaching.md"
BEGIN, END = "<!-- clauses: begin (python -m tools.clause_table) -->", "<!-- clauses: end -->"
SEEDS = (0, 5)


@dataclass(frozen=True)
class Refusal:
    """What became of a solution that breaks one clause.

    Args:
        stem: chapter.
        exercise: name of the exercise.
        clause: the clause that is broken.
        solution: name and place of the solution, for who has to look at it.
        passes_at: seeds at which nothing refuses it.
        lines: lines of the report that fail at every seed, or at the first one where none does.
        key: name of the mistake at the first seed, "" where it has none.
    """

    stem: str
    exercise: str
    clause: str
    solution: str
    passes_at: tuple[int, ...]
    lines: tuple[str, ...]
    key: str


@cache
def refusals(root: Path = ROOT) -> tuple[Refusal, ...]:
    """Every breach, tried at all seeds."""
    sys.path.insert(0, str(root / "tests/exercises"))
    from contract_clauses import breaches

    return tuple(tried(breach) for breach in breaches())


@cache
def tried(breach) -> Refusal:
    """One breach, at all seeds."""
    exercise = find(breach.exercise)
    failing: list[list[str]] = []
    passes_at, key = [], ""
    for seed in SEEDS:
        sheet = sheet_of(exercise, seed)
        seen = sheet.run(breach.solution)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        failing.append([line.says for line in verdict.lines if line.holds is False])
        if verdict.status != "failed":
            passes_at.append(seed)
        elif seed == SEEDS[0]:
            found = diagnose(sheet, verdict, seen)
            key = " + ".join(found.keys or (found.key,)) if found else ""
    always = [line for line in failing[0] if all(line in others for others in failing)]
    code = breach.solution.__code__ if hasattr(breach.solution, "__code__") else None
    place = f"{breach.solution.__module__}.{breach.solution.__qualname__}" + (f":{code.co_firstlineno}" if code else "")
    lines = tuple(always or failing[0])
    return Refusal(exercise.stem, breach.exercise, breach.clause, place, tuple(passes_at), lines, key)


def row_of(refusal: Refusal) -> str:
    """The row of one breach."""
    named = f"`{refusal.key}`" if refusal.key else "unknown"
    more = len(refusal.lines) - 1
    lines = "".join(refusal.lines[:1]) + (f" (and {more} more)" if more > 0 else "")
    cells = (f"`{refusal.exercise}`", refusal.clause, lines, named)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def tables(found: Iterable[Refusal]) -> str:
    """One dropdown per chapter, with one row per breach."""
    rows: dict[str, list[str]] = {}
    for refusal in found:
        rows.setdefault(refusal.exercise, []).append(row_of(refusal))
    return tables_of(rows)


def tables_of(rows: dict[str, list[str]]) -> str:
    """One dropdown per chapter, from the rows of each exercise."""
    parts = []
    for stem in STEMS:
        here = [
            row for name, exercise in all_exercises().items() if exercise.stem == stem for row in rows.get(name, ())
        ]
        if here:
            head = [f":::{{dropdown}} `{stem}`: {len(here)} breach{'es' if len(here) != 1 else ''}"]
            head += ["| exercise | clause | refused by | named |", "|---|---|---|---|"]
            parts.append("\n".join([*head, *here, ":::"]))
    return "\n\n".join(parts)


def rows_in(text: str) -> dict[str, list[str]]:
    """The rows of the page, for each exercise."""
    rows: dict[str, list[str]] = {}
    for row in text[text.index(BEGIN) : text.index(END)].splitlines():
        if name := re.match(r"\| `(\w+)` \|", row):
            rows.setdefault(name[1], []).append(row)
    return rows


def page_with(text: str, fresh: str) -> str:
    """The page's text with these tables in their place.

    Raises:
        ValueError: the page has no place for them.
    """
    if BEGIN not in text or END not in text:
        raise ValueError(f"expected the lines {BEGIN!r} and {END!r} in book/teaching.md")
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{fresh}\n{END}", text, flags=re.DOTALL)


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the tables are not right")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = refusals()
    for refusal in found:
        if refusal.passes_at:
            print(f"{refusal.exercise}: {refusal.solution} passes at seed {refusal.passes_at}: {refusal.clause}")
    text = PAGE.read_text(encoding="utf-8")
    fresh = page_with(text, tables(found))
    if options.check:
        sys.exit(
            "The tables of clauses in book/teaching.md are not right; run `python -m tools.clause_table`."
            if fresh != text
            else 0
        )
    PAGE.write_text(fresh, encoding="utf-8")
    print(f"{PAGE}: {len(found)} breaches, {'written' if fresh != text else 'as it was'}")


if __name__ == "__main__":
    main()
