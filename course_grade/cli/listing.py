"""`course-lib list`, `show` and `clauses`: the exercises."""

from __future__ import annotations

import argparse

from course_grade.output.export_assignment import level_of
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import STEMS, all_exercises, find

__all__ = ["add_to"]


def add_to(commands: argparse._SubParsersAction) -> None:
    """Add the commands."""
    listing = commands.add_parser("list", help="all exercises")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="one exercise: statement, stub, hints")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--hints", action="store_true", help="with all hints")
    show.add_argument("--solution", action="store_true", help="with a solution")
    show.set_defaults(run=_show)

    clauses = commands.add_parser("clauses", help="what the checks of an exercise refuse, clause by clause")
    clauses.add_argument("name", metavar="NAME")
    clauses.set_defaults(run=_clauses)


def _clauses(options: argparse.Namespace) -> int:
    exercise = find(options.name)
    sheet = sheet_of(exercise, seed=0)
    print(f"{exercise.title}\n")
    passed = False
    for breach in exercise.breaches:
        seen = sheet.run(breach.solution)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        found = diagnose(sheet, verdict, seen)
        lines = [line.message for line in verdict.lines if line.holds is False]
        passed |= not lines
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        refused = f"refused by: {lines[0]}{more}" if lines else "NOT REFUSED"
        print(f"{breach.clause}\n    {refused}\n    named: {found.key if found else 'unknown'}")
    print(f"{len(exercise.breaches)} solutions, each written to break the clause above it and nothing else.")
    return int(passed)


def _list(options: argparse.Namespace) -> int:
    for stem in STEMS:
        exercises = [exercise for exercise in all_exercises().values() if exercise.stem == stem]
        if exercises:
            print(stem)
        for exercise in exercises:
            print(f"  {exercise.name:<30} {level_of(exercise)} {exercise.minutes:>3} min  {exercise.title}")
    return 0


def _show(options: argparse.Namespace) -> int:
    exercise = find(options.name)
    facts = f"chapter {exercise.stem}, difficulty {level_of(exercise)}, about {exercise.minutes} minutes"
    print(f"{exercise.title}\n{facts}\n")
    print(exercise.statement.rstrip() + "\n")
    print(exercise.stub.rstrip())
    if not (options.hints or options.solution):
        print(f"\n{len(exercise.hints)} hints: course-lib show {exercise.name} --hints")
    if options.hints:
        print()
        for number, text in enumerate(exercise.hints, 1):
            print(f"Hint {number}: {text}")
    if options.solution:
        print("\n" + exercise.solution.rstrip())
    return 0
