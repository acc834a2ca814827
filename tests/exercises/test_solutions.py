"""Solutions by people who knew the contract only: right ones pass, wrong ones fail and are named rightly or not at
all."""

import json
from collections import Counter

import pytest
from exercise_cells import FOLDER, cells

from course_lib.exercises import all_exercises, find
from course_lib.grader._diagnosing import diagnose
from course_lib.grader._judging import judge, sheet_of
from tools.publisher import ROOT

SEEDS = (0, 5)
TEACHING = " ".join((ROOT / "book/teaching.md").read_text(encoding="utf-8").split())


def verdict_and_diagnosis(cell, seed):
    exercise = find(cell.exercise)
    sheet = sheet_of(exercise, seed)
    seen = sheet.run(cell.load())
    verdict = judge(exercise, sheet.trials, seen, allow_twins=False)
    return verdict, diagnose(sheet, verdict, seen)


@pytest.mark.parametrize("cell", cells("right"), ids=lambda cell: f"{cell.key} {cell.says[:40]}")
def test_a_right_solution_gets_full_marks_however_it_is_written(cell, capsys):
    for seed in SEEDS:
        verdict, diagnosis = verdict_and_diagnosis(cell, seed)
        assert verdict.status == "passed", (diagnosis, verdict.findings)
        assert verdict.score == 1.0


def test_every_exercise_has_at_least_four_other_right_solutions():
    counts = Counter(cell.exercise for cell in cells("right"))
    assert set(counts) == set(all_exercises())
    assert min(counts.values()) >= 4
    assert f"{len(cells('right'))} solutions in other styles" in TEACHING


def judged() -> dict[str, list[str]]:
    """Which names are right for which wrong solution, by a judge who saw no diagnosis."""
    found = {}
    for path in sorted((FOLDER / "held_out").glob("judged_*.json")):
        found |= json.loads(path.read_text(encoding="utf-8"))
    return {key: entry["keys"] for key, entry in found.items()}


def outcomes(seed: int) -> dict[str, tuple[str, str]]:
    """For each wrong solution: "right", "wrong" or "unknown", and the name that was given."""
    right = judged()
    found = {}
    for cell in cells("held_out"):
        verdict, diagnosis = verdict_and_diagnosis(cell, seed)
        assert verdict.status in {"failed", "not counted"}, f"{cell.key} passes: {cell.says}"
        name = diagnosis.key if diagnosis else ""
        kind = "unknown" if diagnosis is None else "right" if name in right[cell.key] else "wrong"
        found[cell.key] = (kind, name)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_unseen_mistakes_are_named_rightly_or_called_unknown(seed, capsys):
    found = outcomes(seed)
    counts = Counter(kind for kind, _ in found.values())
    with capsys.disabled():
        print(f"\nheld-out wrong solutions, seed {seed}: {dict(counts)}")
    wrong = {key: name for key, (kind, name) in found.items() if kind == "wrong"}
    assert counts["right"] / len(found) >= 0.80
    if seed == SEEDS[0]:  # the page has these figures
        numbers = f"{counts['right']} of {len(found)}; named wrongly: {counts['wrong']}"
        assert numbers in TEACHING
    assert counts["wrong"] / len(found) <= 0.02, wrong


def test_the_held_out_set_has_five_wrong_solutions_of_each_exercise():
    counts = Counter(cell.exercise for cell in cells("held_out"))
    assert set(counts) == set(all_exercises())
    assert min(counts.values()) >= 5
    assert {cell.key for cell in cells("held_out")} == set(judged())


@pytest.mark.parametrize("cell", cells("dev"), ids=lambda cell: f"{cell.key} {cell.says[:40]}")
def test_the_wrong_solutions_of_the_development_set_fail(cell):
    verdict, _ = verdict_and_diagnosis(cell, 0)
    assert verdict.status in {"failed", "not counted"}
