"""Solutions by people who knew the contract only: right ones pass, wrong ones fail and are named rightly or not at all.

Of wrong ones a third person has said which names are right. The judges of `held_out` saw no diagnosis; the judge of
`held_out_2` compared each diagnosis with the code. So did the author of both sets of `inspection`, the author of the
second set of `efficiency`, and the author of those of `self_attention`, who also wrote their mistakes. One person
judged both sets of `debugging`, before any of its solutions was diagnosed, and another one both sets of
`language_model`, with the diagnoses in view. Names were added afterwards only for the solutions that had led to them:
`keys_transposed_by_axes_1_and_2` and `exponentials_overflow`, each to one of `held_out_2`, and those in
`test_a_solution_that_led_to_a_better_diagnosis_gets_it`.
"""

import dataclasses
import itertools
import json
import os
from collections import Counter

import pytest
from solutions_by_others import cells, cells_in

from course_kit.checker.observing import observe
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.checker.verdict.trials import trials_of
from course_kit.exercises import Exercise, all_exercises, find
from tools.publisher import ROOT

WRONG = ("held_out", "held_out_2")
SEEDS = (0, 5)
MANY_SEEDS = range(100, 150)
SHARE = 7  # one solution of this many is judged at a seed
WITH_GRADIENTS = MANY_SEEDS[: 2 * SHARE]
TEACHING = " ".join((ROOT / "book/teaching.md").read_text(encoding="utf-8").split())


def verdict_and_diagnosis(cell, seed):
    exercise = find(cell.exercise)
    sheet = sheet_of(exercise, seed)
    seen = sheet.run(cell.load())
    verdict = judge(exercise, sheet.trials, seen, allow_twins=False)
    return verdict, diagnose(sheet, verdict, seen)


each_exercise = pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.name)


def of(exercise, kind):
    return [cell for cell in cells(kind) if cell.exercise == exercise.name]


@pytest.mark.thorough
@each_exercise
def test_a_right_solution_gets_full_marks_however_it_is_written(exercise, capsys):
    for cell, seed in itertools.product(of(exercise, "right"), SEEDS):
        verdict, diagnosis = verdict_and_diagnosis(cell, seed)
        assert (verdict.status, verdict.score) == ("passed", 1), (cell.key, cell.message, diagnosis, verdict.findings)


@pytest.mark.thorough
@each_exercise
def test_no_draw_refuses_a_right_solution(exercise):
    """A verdict does not depend on the seed, so no class is graded with cases that an unlucky draw made unfair.

    Each of 50 seeds is judged with a seventh of the solutions, and each solution at seven seeds, at two of them with
    gradients and in train mode. Nothing is watched, since that takes longer than the rest. For all exercises this takes
    under three minutes; all solutions at all seeds take eleven.
    """
    solutions = [(cell, cell.load()) for cell in of(exercise, "right")]
    refused = {}
    for seed in MANY_SEEDS:
        trials = trials_of(exercise, seed)
        if seed not in WITH_GRADIENTS:
            trials = [dataclasses.replace(trial, cotangents=(), train_too=False) for trial in trials]
        for cell, solution in solutions[seed % SHARE :: SHARE]:
            seen = [
                observe(solution, exercise, trial.case, trial.cotangents, train_too=trial.train_too, watch=False)
                for trial in trials
            ]
            findings = judge(exercise, trials, seen, allow_twins=True).findings
            if findings:
                refused[f"{cell.kind} {cell.key}, seed {seed}: {cell.message}"] = findings
    assert refused == {}


@pytest.mark.parametrize(("kind", "fewest"), [("right", 4), ("held_out", 5), ("held_out_2", 5)])
def test_an_exercise_with_solutions_by_others_has_several(kind, fewest):
    counts = Counter(cell.exercise for cell in cells(kind))
    assert len(counts) >= 60  # a new exercise may come without
    assert set(counts) <= set(all_exercises())
    assert min(counts.values()) >= fewest
    assert kind != "right" or f"{len(cells(kind))} solutions in other styles" in TEACHING


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    """For each wrong solution to an exercise: "right", "wrong" or "unknown", and the name that was given.

    Every worker reads what another one has found out in this run.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "outcomes"
    folder.mkdir(exist_ok=True)

    def outcomes_of(kind: str, seed: int, exercise: Exercise) -> dict[str, list[str]]:
        file = folder / f"{kind}-{seed}-{exercise.name}.json"
        if not file.exists():
            partial = folder / f"{file.name}-{os.getpid()}"
            partial.write_text(json.dumps(found_out(kind, seed, exercise)), encoding="utf-8")
            os.replace(partial, file)
        return json.loads(file.read_text(encoding="utf-8"))

    return outcomes_of


def found_out(kind: str, seed: int, exercise: Exercise) -> dict[str, list[str]]:
    found = {}
    for cell in of(exercise, kind):
        verdict, diagnosis = verdict_and_diagnosis(cell, seed)
        assert verdict.status in {"failed", "not counted"}, f"{cell.key} passes: {cell.message}"
        name = diagnosis.key if diagnosis else ""
        found[cell.key] = ["unknown" if diagnosis is None else "right" if name in cell.names else "wrong", name]
    return found


@pytest.mark.thorough
@each_exercise
def test_an_exercise_refuses_unseen_mistakes(exercise, outcomes):
    for seed, kind in itertools.product(SEEDS, WRONG):
        assert len(outcomes(kind, seed, exercise)) == len(of(exercise, kind))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("kind", "key", "name"),
    [
        ("held_out", "lora/3", "update_not_transposed"),
        ("held_out", "swiglu/8", "gate_clamped_at_50"),
        ("held_out_2", "swiglu/7", "gate_clamped_at_50"),
        ("held_out_2", "swiglu/6", "cut_along_axis_1"),
        ("held_out", "induction_score/2", "token_before"),
        ("held_out_2", "induction_score/10", "token_before"),
        ("held_out", "load_balancing_loss/1", "experts_up_to_the_largest"),
        ("held_out", "load_balancing_loss/8", "any/RuntimeError"),
        ("held_out_2", "load_balancing_loss/4", "repeated_index_counts_once"),
        ("held_out_2", "load_balancing_loss/9", "share_weighted_by_probability"),
    ],
)
def test_a_solution_that_led_to_a_better_diagnosis_gets_it(kind, key, name, seed, outcomes):
    exercise = find(key.partition("/")[0])
    assert outcomes(kind, seed, exercise)[f"{exercise.stem}/{key}"] == ["right", name]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", WRONG)
def test_unseen_mistakes_are_named_rightly_or_called_unknown(kind, seed, outcomes, capsys):
    """The tests before this one, on all workers, have found them out."""
    found = {key: o for exercise in all_exercises().values() for key, o in outcomes(kind, seed, exercise).items()}
    counts = Counter(outcome for outcome, _ in found.values())
    with capsys.disabled():
        print(f"\n{kind}, seed {seed}: {dict(counts)}")
    wrong = {key: name for key, (outcome, name) in found.items() if outcome == "wrong"}
    assert counts["right"] / len(found) >= 0.90
    chapters = Counter(key.split("/")[0] for key in found)
    right = Counter(key.split("/")[0] for key, (outcome, _) in found.items() if outcome == "right")
    assert all(right[stem] / number >= 0.84 for stem, number in chapters.items()), right
    if seed == SEEDS[0]:  # the page has these figures
        numbers = f"{counts['right']} of {len(found)}; named wrongly: {counts['wrong']}"
        assert numbers in TEACHING
    assert counts["wrong"] / len(found) <= 0.02, wrong


JUDGE = "judge: A sum. → summed any/factor\n"
SECTION = f"## held_out: a sum\n{JUDGE}```python\ndef f(x):\n    ## no heading\n    return x\n```\n"


def test_a_file_of_solutions_is_read():
    right, wrong = cells_in(
        SECTION.replace("held_out", "right").replace("judge: A sum. → summed any/factor\n", "") + SECTION, "a", "f"
    )
    assert (right.kind, right.key, right.names) == ("right", "a/f/1", ())
    assert (wrong.kind, wrong.message, wrong.names) == ("held_out", "a sum", ("summed", "any/factor"))
    assert wrong.code == "def f(x):\n    ## no heading\n    return x\n"
    assert wrong.load()(3) == 3


@pytest.mark.parametrize(("old", "new"), [(JUDGE, ""), ("x\n```\n", "x\n"), (" → ", " "), ("## held", "# held")])
def test_a_file_of_solutions_that_is_not_as_expected_is_an_error(old, new):
    with pytest.raises(ValueError, match="solutions of f: expected"):
        list(cells_in(SECTION.replace(old, new), "a", "f"))
