"""Find exercises that cannot tell right from wrong: degenerate cases, mistakes that no case shows, gifts of points.

python -m tools.exercise_lint [NAME…]     all exercises if none is named; exit 1 if anything is found
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from course_kit.checker.observing import Observation, Sequence, plain
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.judge import Verdict, judge
from course_kit.checker.verdict.same_result import alike
from course_kit.checker.verdict.sheet import Sheet, sheet_of
from course_kit.exercises import Exercise, all_exercises, find

SEEDS = (0, 20)
PAGE_WIDTH = 88  # characters of code that fit a page
FEWEST = 5  # misconceptions


def problems_of(exercise: Exercise, *, every: int = 1) -> Iterator[str]:
    """Everything that is wrong with an exercise, one line each.

    Args:
        every: look at one of this many inherited mistakes; they were looked at where they come from.
    """
    yield from _text(exercise)
    for seed in SEEDS:
        sheet = sheet_of(exercise, seed)
        where = f"seed {seed}: "
        yield from (where + text for text in _degenerate(sheet))
        yield from (where + text for text in _solutions(sheet))
        yield from (where + text for text in _misconceptions(sheet, every))


def _text(exercise: Exercise) -> Iterator[str]:
    if not 2 <= len(exercise.hints) <= 4:
        yield f"{len(exercise.hints)} hints, two to four are wanted"
    longest = max(exercise.stub.split("\n"), key=len)
    if len(longest) > PAGE_WIDTH:
        yield f"a line of the stub has {len(longest)} characters, at most {PAGE_WIDTH} fit the page: {longest.strip()}"
    if not exercise.read_next:
        yield "no section to look at"
    if not 1 <= exercise.difficulty <= 5:
        yield f"difficulty {exercise.difficulty} is not in 1 to 5"
    keys = [m.key for m in exercise.misconceptions]
    if len(set(keys)) < len(keys):
        yield "two misconceptions share a key"
    own = [m for m in exercise.misconceptions if not m.inherited_from]
    texts = [m.message for m in own]
    if len(set(texts)) < len(texts):
        yield "two misconceptions share their message"
    if len(own) < FEWEST:
        yield f"{len(own)} misconceptions, at least {FEWEST} are wanted"


def _degenerate(sheet: Sheet) -> Iterator[str]:
    exercise = sheet.exercise
    for trial in sheet.trials:
        case = trial.case
        if case.degenerate_because or case.raises:
            continue
        lengths: dict[str, int] = {}
        for name, arg in _tensors(exercise.arguments, case.args):
            axes = exercise.shapes.get(name)
            if axes is None:
                yield f"the axes of {name} are not named in `shapes`"
                continue
            if axes != "#":
                yield from _axes(name, axes.split(), arg, lengths, trial.number)
            yield from _values(exercise, name, arg, trial.number)
        for name, parameter in case.state.items():
            yield from _values(exercise, name, parameter, trial.number)
        for name, value in zip(exercise.init_arguments, case.init, strict=False):
            if lengths.get(name, value) != value:
                yield f"case {trial.number}: {name} is {value} in __init__ and {lengths[name]} in a shape"
            lengths[name] = value
        for (a, n), (b, m) in itertools.combinations(lengths.items(), 2):
            if n == m:
                yield f"case {trial.number}: {a} and {b} are both {n} long"


def _tensors(names: tuple[str, ...], args: tuple) -> Iterator[tuple[str, Tensor]]:
    """Tensor arguments; those in a tuple have the name of the tuple."""
    for name, arg in zip(names, args, strict=False):
        items = arg if isinstance(arg, tuple) else (arg,)
        yield from ((name, item) for item in items if isinstance(item, Tensor))


def _axes(name: str, axes: list[str], arg: Tensor, lengths: dict[str, int], number: int) -> Iterator[str]:
    named = axes[1:] if axes[0] == "..." else axes
    if len(named) > arg.dim() or (axes[0] != "..." and len(named) != arg.dim()):
        yield f"case {number}: {name} has shape {tuple(arg.shape)}, not {' '.join(axes)}"
        return
    batch = arg.shape[: arg.dim() - len(named)]
    pairs = [*zip(named, arg.shape[len(batch) :], strict=True), *((f"batch {i}", n) for i, n in enumerate(batch))]
    for axis, length in pairs:
        if axis.isdigit():
            continue
        if length == 1:
            yield f"case {number}: {axis} of {name} has length 1"
        if lengths.setdefault(axis, length) != length:
            yield f"case {number}: {axis} is {lengths[axis]} and {length} long"


def _values(exercise: Exercise, name: str, arg: Tensor, number: int) -> Iterator[str]:
    if not arg.is_floating_point() or arg.numel() < 3:
        return
    if name not in exercise.single_sign_args and bool((arg >= 0).all() | (arg <= 0).all()):
        yield f"case {number}: {name} has values of one sign"
    if arg.dim() >= 2 and arg.shape[-1] == arg.shape[-2] > 1 and torch.equal(arg, arg.transpose(-2, -1)):
        yield f"case {number}: {name} is symmetric"


def _solutions(sheet: Sheet) -> Iterator[str]:
    exercise = sheet.exercise
    own = judge(exercise, sheet.trials, sheet.run(exercise.reference), allow_twins=True)
    if own.status != "passed":
        failing = [(line.message, line.findings[0][1].text) for line in own.lines if not line.holds and line.findings]
        yield f"the reference does not pass: {failing}"
    stub = judge(exercise, sheet.trials, sheet.run(solution_from(exercise.stub, exercise.name)), allow_twins=True)
    if stub.status != "not attempted":
        yield f"the stub is {stub.status}"
    for name, gift in gifts(sheet).items():
        verdict = judge(exercise, sheet.trials, sheet.run(gift), allow_twins=True)
        given = [line.message for line in verdict.lines if line.holds and not line.conduct]
        if given:
            yield f"a solution that returns {name} gets points for {given}"


def _misconceptions(sheet: Sheet, every: int) -> Iterator[str]:
    """Mistakes that no case shows, and those that are taken for another one.

    An inherited mistake need not show, and may do here what another one does: then either name is right.
    """
    exercise = sheet.exercise
    lines: dict[str, bool] = {}  # of the report, by whether a mistake breaks them
    own = [mistake for mistake in exercise.misconceptions if not mistake.inherited_from]
    inherited = [mistake for mistake in exercise.misconceptions if mistake.inherited_from]
    for mistake in (*own, *inherited[::every]):
        seen = sheet.misconception(mistake.key)
        verdict = judge(exercise, sheet.trials, seen, allow_twins=True)
        for line in verdict.lines:
            lines[line.message] = lines.get(line.message, line.conduct) or line.holds is False
        if verdict.status != "failed":
            if not mistake.inherited_from:
                yield f"no case tells {mistake.key} from the reference ({verdict.status})"
            continue
        if not mistake.inherited_from and (missing := _undefined(seen)):
            yield f"{mistake.key} never runs: {missing}; write the name right, or import it"
        named = diagnose(sheet, verdict, seen)
        key = named.key if named else "unknown"
        if key == mistake.key:
            continue
        if not mistake.inherited_from or (
            not _ends_in_exceptions(sheet, mistake.key, verdict) and not _alike_throughout(sheet, mistake.key, key)
        ):
            yield f"{mistake.key} is diagnosed as {key}"
    if not exercise.repair:  # which has a mistake for each fault that may be left, and no others
        yield from (f"no mistake breaks the line {message!r}" for message, broken in lines.items() if not broken)
    for a, b in itertools.combinations([mistake.key for mistake in own], 2):
        if _indistinguishable(sheet, a, b):
            yield f"no case tells {a} from {b}"


def _undefined(seen: list[Observation]) -> str:
    """What Python says where every call ends in a name that is not defined."""
    ends = {one.problem.message if one.problem and one.problem.type == "NameError" else "" for one in seen}
    return ends.pop() if len(ends) == 1 else ""


def _ends_in_exceptions(sheet: Sheet, key: str, verdict: Verdict) -> bool:
    """Whether a mistake shows by exceptions only; a wrong shape inside a part looks the same as one around it."""
    seen = sheet.misconception(key)
    return all(seen[number].problem is not None for number in verdict.findings)


def _alike_throughout(sheet: Sheet, a: str, b: str) -> bool:
    """Whether two mistakes give the same values or the same kind of exception in every case."""
    if not {a, b} <= {m.key for m in sheet.exercise.misconceptions}:
        return False
    pairs = zip(sheet.misconception(a), sheet.misconception(b), strict=True)
    return all(alike(x, y) and x.changed == y.changed and x.gradients.keys() == y.gradients.keys() for x, y in pairs)


def _indistinguishable(sheet: Sheet, a: str, b: str) -> bool:
    """Whether two mistakes do the same in every case."""
    if not _alike_throughout(sheet, a, b):
        return False
    mine, theirs = (
        judge(sheet.exercise, sheet.trials, sheet.misconception(key), allow_twins=True).findings for key in (a, b)
    )
    return mine.keys() == theirs.keys() and all([f.text for f in mine[n]] == [f.text for f in theirs[n]] for n in mine)


def solution_from(source: str, name: str) -> Callable:
    """What a solution's source defines under the exercise's name."""
    import math

    namespace = {"torch": torch, "nn": nn, "math": math, "Tensor": Tensor}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    return namespace[name]


def gifts(sheet: Sheet) -> dict[str, Callable]:
    """Solutions without any thought, none of which may get a point: constants of the right shape, and an argument.

    They know the shapes of what is expected, which a real solution would have to work out.
    """
    exercise = sheet.exercise

    def constant(fill: Callable[[Tensor], Tensor], number) -> Callable:
        answers = iter(
            itertools.cycle([_like(trial, fill, number) for trial in sheet.trials for _ in range(_calls(trial))])
        )

        def solution(*args):
            return next(answers)

        if not exercise.is_class:
            return solution

        class Solution(exercise.reference):
            def forward(self, *args):
                return next(answers)

        return Solution

    def first(*args):
        return args[0]

    class First(exercise.reference if exercise.is_class else nn.Module):
        def forward(self, x, *args):
            return x

    return {
        "zeros": constant(torch.zeros_like, 0),
        "ones": constant(torch.ones_like, 1),
        "its first argument": First if exercise.is_class else first,
    }


def _calls(trial) -> int:
    return 1 + trial.train_too + bool(trial.cotangents)


def _like(trial, fill, number):
    return _filled(plain(trial.expected.value), fill, number, trial)


def _filled(value, fill, number, trial):
    if isinstance(value, Sequence):
        items = [_filled(item, fill, number, trial) for item in value.items]
        return items if value.type == "list" else tuple(items)
    if isinstance(value, Tensor):
        return fill(value).to(trial.case.dtype) if value.is_floating_point() and trial.case.dtype else fill(value)
    return type(value)(number) if value is not None else None


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    exercises = [find(name) for name in options.names] or list(all_exercises().values())
    count = 0
    for exercise in exercises:
        for problem in problems_of(exercise):
            print(f"{exercise.stem}.{exercise.name}: {problem}")
            count += 1
    print(
        f"{len(exercises)} exercises, {sum(len(e.misconceptions) for e in exercises)} misconceptions, {count} problems"
    )
    sys.exit(bool(count))


if __name__ == "__main__":
    main()
