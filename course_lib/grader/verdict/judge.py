"""From observations to verdicts: what holds, what does not, and how much it is worth.

Expected values come from the reference in float64, so that they are more exact than any solution in the case's dtype.
"""

from __future__ import annotations

import builtins
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from course_lib.exercises import Case, Draw, Exercise
from course_lib.grader.points import exact
from course_lib.grader.sandbox.observing import Foreign, Observation, Sequence, leaves, observe, unwrapped
from course_lib.grader.shortening import listed, shortened

__all__ = ["CONDUCT", "Finding", "Line", "Sheet", "Trial", "Verdict", "judge", "sheet_of", "trials_of"]

# How far a careful computation may be from the exact value: times (1 + its size).
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

# What is checked of every exercise: facet of a finding, and the line of the report.
CONDUCT = {
    "parameters": "It has the named parameters, and no others",
    "dtype": "The result has the right dtype",
    "gradient": "Gradients flow, and are right",
    "manners": "Arguments stay as they are",
    "mode": "Train and eval mode give the same",
}
GRADIENT_CASES = 2  # of each property; gradients cost as much as everything else together


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    Args:
        facet: "problem", "structure", "shape", "value", or a key of `CONDUCT`.
        text: what was expected and what came.
        where: which returned value or gradient it is about.
        index: of the worst entry of a tensor.
    """

    facet: str
    text: str
    where: str = ""
    index: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Trial:
    """A case with everything that the parent knows about it and a solution does not.

    Args:
        number: position among the exercise's trials.
        line: index of the property that it belongs to.
        case: what goes in.
        expected: observation of the reference in float64.
        cotangents: for gradients; empty where they are not asked for.
        train_too: whether a class is called in train mode as well.
    """

    number: int
    line: int
    case: Case
    expected: Observation
    cotangents: tuple[Tensor | None, ...] = ()
    train_too: bool = False


@dataclass
class Line:
    """A property and whether it holds: True, False, or None where nothing could be observed.

    Args:
        says: the property.
        holds: whether it does.
        weight: in the score.
        conduct: whether it is about how a solution behaves, not about its values.
        findings: what is not as it should be.
        refusal: whether all that it asks for is an error.
    """

    says: str
    holds: bool | None
    weight: float
    conduct: bool = False
    findings: list[tuple[Trial, Finding]] = field(default_factory=list)
    refusal: bool = False


@dataclass
class Verdict:
    """What can be said of a solution.

    Args:
        status: "passed", "failed", "not attempted" or "not counted" (a forbidden function is in use).
        lines: the properties.
        used: forbidden functions in use.
        findings: by number of the trial.
    """

    exercise: Exercise
    status: str
    lines: list[Line]
    used: tuple[str, ...] = ()
    findings: dict[int, list[Finding]] = field(default_factory=dict)

    @property
    def score(self) -> Fraction:
        """Share of the points, 0 to 1.

        Properties count by their weight. How a solution behaves otherwise (dtype, gradients, side effects) and the
        errors that it must raise count in proportion to what it gets right: doing nothing has no side effects either,
        and always raising an error raises the right ones too.
        """
        if self.status in {"not attempted", "not counted"}:
            return Fraction()
        weights = [(line, exact(line.weight)) for line in self.lines]
        values = [pair for pair in weights if not (pair[0].conduct or pair[0].refusal)]
        right = sum((weight for line, weight in values if line.holds), Fraction())
        share = right / sum(weight for _, weight in values)
        rest = [pair for pair in weights if pair[0].conduct or pair[0].refusal]
        kept = sum((weight for line, weight in rest if line.holds), Fraction())
        return (right + share * kept) / sum(weight for _, weight in weights)


def trials_of(exercise: Exercise, seed: int) -> list[Trial]:
    """The exercise's cases drawn from a seed, with what the reference makes of them; see `_drawn_for` for secrecy."""
    trials = []
    for line, prop in enumerate(exercise.properties):
        draw = Draw(_drawn_for(seed, exercise.name, line))
        graded = 0
        for position, case in enumerate(prop.cases(draw)):
            exact = case.to(torch.float64)
            train_too = exercise.is_class and position == 0 and case.raises is None
            expected = observe(exercise.reference, exercise, exact, watch=False)
            if (expected.problem is None) == (case.raises is not None):
                raise AssertionError(f"{exercise.name}: the reference and the case {case} disagree: {expected.problem}")
            cotangents: tuple[Tensor | None, ...] = ()
            if exercise.differentiable and case.gradients and case.raises is None and graded < GRADIENT_CASES:
                cotangents = tuple(_cotangent(draw, value, case.dtype) for value in leaves(expected.value))
                expected = observe(exercise.reference, exercise, exact, cotangents, watch=False)
                graded += 1
            trials.append(Trial(len(trials), line, case, expected, cotangents, train_too))
    return trials


def _drawn_for(seed: int, name: str, line: int) -> int:
    """The seed of one line's generator: HMAC-SHA256 of exercise and line, with the assignment's seed as the key.

    A submission sees the draws of every line. PyTorch's generator uses only 32 bits of what it is seeded with, so
    these 32 bits can be found by trying them all, and the rest of *this* line foreseen. They say nothing about the
    seed, nor about any other line or exercise, as long as the seed cannot be guessed: `draw_seed` draws 128 bits. A
    short seed that an instructor chose, such as 4711, can be found by trying seeds until the draws agree.
    """
    key = str(seed).encode()
    return int.from_bytes(hmac.digest(key, f"{name}\0{line}".encode(), "sha256"), "big")


def judge(exercise: Exercise, trials: list[Trial], observations: list[Observation], *, allow_twins: bool) -> Verdict:
    """The verdict on a solution from what was observed of it.

    Args:
        trials: what it was asked.
        observations: one for each trial.
        allow_twins: count a solution that calls PyTorch's own function for the whole exercise.
    """
    findings = {t.number: findings_of(exercise, t, o) for t, o in zip(trials, observations, strict=True)}
    used = tuple(sorted({name for o in observations for name in o.used}))
    if all(unfinished(o) for o in observations if o is not None):
        return Verdict(exercise, "not attempted", [Line(p.says, None, p.weight) for p in exercise.properties])
    lines = []
    for number, prop in enumerate(exercise.properties):
        line = Line(prop.says, True, prop.weight)
        line.refusal = all(trial.case.raises is not None for trial in trials if trial.line == number)
        for trial in trials:
            if trial.line == number:
                line.findings += [(trial, f) for f in findings[trial.number] if f.facet not in CONDUCT]
        line.holds = not line.findings
        lines.append(line)
    for facet, says in CONDUCT.items():
        if not _applies(exercise, facet, trials):
            continue
        line = Line(says, True, 0.5, conduct=True)
        for trial in trials:
            line.findings += [(trial, f) for f in findings[trial.number] if f.facet == facet]
        looked_at = any(
            _looked_at(facet, trial, seen, findings[trial.number])
            for trial, seen in zip(trials, observations, strict=True)
        )
        line.holds = False if line.findings else (True if looked_at else None)
        lines.append(line)
    right = all(line.holds for line in lines)
    status = "passed" if right else "failed"
    if used and not allow_twins:
        status = "not counted"
    return Verdict(exercise, status, lines, used, {k: v for k, v in findings.items() if v})


def _looked_at(facet: str, trial: Trial, seen: Observation, found: list[Finding]) -> bool:
    """Whether this trial could show anything about a facet of conduct; wrong values show nothing of it."""
    if trial.case.raises is not None or seen.stage in {"build", "load"}:
        return False
    facets = {finding.facet for finding in found}
    if facet == "gradient":
        return bool(trial.cotangents) and not facets & {"structure", "shape", "value", "problem"}
    if facet == "mode":
        return trial.train_too and not facets & {"structure", "shape", "value", "problem"}
    if facet == "dtype":
        return not facets & {"structure", "problem"}
    return seen.problem is None


def unfinished(observation: Observation) -> bool:
    """Whether the solution says itself that it is not written yet."""
    problem = observation.problem
    # PyTorch raises the same for a dtype that an operation does not know.
    return (
        problem is not None and problem.type == "NotImplementedError" and "not implemented for" not in problem.message
    )


def _applies(exercise: Exercise, facet: str, trials: list[Trial]) -> bool:
    if facet == "parameters":
        return exercise.is_class
    if facet == "mode":
        return exercise.is_class
    if facet == "gradient":
        return exercise.differentiable
    mutable = any(isinstance(arg, Tensor | list | tuple) for trial in trials for arg in trial.case.args)
    if facet == "dtype":
        return any(t.is_floating_point() for x in trials for t in leaves(x.expected.value) if isinstance(t, Tensor))
    return mutable


def findings_of(exercise: Exercise, trial: Trial, seen: Observation) -> list[Finding]:
    """Everything about one observation that is not as it should be."""
    case, expected = trial.case, trial.expected
    if case.raises is not None:
        return _about_the_error(case, seen)
    found = []
    if seen.stage == "load" and seen.problem is not None:
        texts = _about_parameters(case, seen)
        why = f"not called, because its parameters are not those of the contract ({'; '.join(texts)})"
        return [*(Finding("parameters", text) for text in texts), Finding("problem", why)]
    if seen.problem is not None and seen.stage != "gradients":
        return [Finding("problem", f"{seen.problem.type}: {seen.problem.message}")]
    names = exercise.returns
    fault = exercise.properties[trial.line].fault
    if fault is not None:
        text = fault(case.args, unwrapped(seen.value))
        found += [Finding("value", text, names[0])] if text else []
    else:
        found += compare(expected.value, seen.value, case, names)
    if seen.changed:
        found.append(Finding("manners", f"the call changed {' and '.join(seen.changed)}", seen.changed[0]))
    if trial.train_too and not found:
        in_training = compare(expected.value, seen.training, case, names)
        found += [
            Finding("mode", f"in train mode, {f.where or 'the result'} differs: {f.text}", f.where) for f in in_training
        ]
    if trial.cotangents and not any(f.facet in {"structure", "shape", "value"} for f in found):
        found += _about_gradients(exercise, trial, seen)
    return found


def _about_the_error(case: Case, seen: Observation) -> list[Finding]:
    wanted = case.raises.__name__
    if seen.problem is None:
        return [Finding("problem", f"expected a {wanted}, but nothing was raised")]
    known = getattr(builtins, seen.problem.type, None)
    is_one = wanted in seen.problem.bases or (isinstance(known, type) and issubclass(known, case.raises))
    return (
        [] if is_one else [Finding("problem", f"expected a {wanted}, got {seen.problem.type}: {seen.problem.message}")]
    )


def _about_parameters(case: Case, seen: Observation) -> list[str]:
    wanted = {name: tuple(p.shape) for name, p in case.state.items()}
    missing = [name for name in wanted if name not in seen.parameters]
    extra = [name for name in seen.parameters if name not in wanted]
    other = [n for n, shape in wanted.items() if n in seen.parameters and seen.parameters[n] != shape]
    texts = []
    if missing:
        texts.append(f"missing: {listed(missing)}")
    if extra:
        texts.append(f"not in the contract: {listed(extra)}")
    shapes = [f"{name} has shape {seen.parameters[name]}, expected {wanted[name]}" for name in other]
    return [*texts, listed(shapes, 2)] if shapes else texts


def compare(expected: Any, actual: Any, case: Case, names: tuple[str, ...]) -> list[Finding]:
    """How a returned value differs from the expected one; a dtype of lower precision is judged at that precision."""
    if isinstance(expected, Sequence) and len(names) > 1:
        if not isinstance(actual, Sequence) or len(actual.items) != len(expected.items):
            wanted = f"{len(expected.items)} values, ({', '.join(names)})"
            return [Finding("structure", f"expected {wanted}, got {describe(actual)}")]
        found = []
        for name, wanted, got in zip(names, expected.items, actual.items, strict=True):
            found += _compare_one(wanted, got, case, name)
        return found
    return _compare_one(expected, actual, case, names[0])


def _compare_one(expected: Any, actual: Any, case: Case, name: str) -> list[Finding]:
    if isinstance(expected, Sequence):
        return _compare_sequence(expected, actual, case, name)
    if not isinstance(expected, Tensor):
        return _compare_number(expected, actual, name)
    if not isinstance(actual, Tensor):
        return [Finding("structure", f"expected a tensor, got {describe(actual)}", name)]
    if actual.shape != expected.shape:
        text = f"expected shape {tuple(expected.shape)}, got {tuple(actual.shape)}"
        return [Finding("shape", text, name)]
    found = []
    wanted = (case.dtype or torch.float32) if expected.is_floating_point() else expected.dtype
    if actual.dtype != wanted:
        found.append(Finding("dtype", f"expected {_short(wanted)}, got {_short(actual.dtype)}", name))
        if not expected.is_floating_point() or not actual.is_floating_point():  # another kind of number altogether
            return [Finding("structure", found[0].text, name)]
    if actual.numel() == 0:
        return found
    wrong = differs(expected, actual, case.tolerance, wanted)
    if wrong is not None and wrong.any():
        flat = int(_badness(expected, actual).masked_fill(~wrong, -1.0).argmax())
        index = _index_of(flat, expected.shape)
        text = "expected {}, got {}".format(*numbers(expected[index], actual[index]))
        found.append(Finding("value", text, name, index))
    return found


def differs(expected: Tensor, actual: Tensor, tolerance: float, dtype: torch.dtype) -> Tensor:
    """Which entries are further away than a careful computation in this dtype (or the worse one of `actual`) can be."""
    if not expected.is_floating_point():
        return expected != actual
    # Where a result came in a coarser dtype, that is a fault of its own; its values are judged as coarsely, up to a
    # point.
    loose = max(TOLERANCE.get(dtype, 1e-9) * tolerance, min(TOLERANCE.get(actual.dtype, 0.0), TOLERANCE[torch.float16]))
    expected, actual = expected.double(), actual.double()
    near = (expected - actual).abs() <= loose * (1 + expected.abs())
    return ~((expected == actual) | (near & expected.isfinite()))  # NaN is never the same


def _badness(expected: Tensor, actual: Tensor) -> Tensor:
    if not expected.is_floating_point():
        return (expected != actual).double()
    return (expected.double() - actual.double()).abs().nan_to_num(nan=1e300, posinf=1e299)


def _index_of(flat: int, shape: Iterable[int]) -> tuple[int, ...]:
    """The index of an entry by its place in memory order; `torch.unravel_index` takes a hundred times as long."""
    index = []
    for size in reversed(tuple(shape)):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))


def _compare_sequence(expected: Sequence, actual: Any, case: Case, name: str) -> list[Finding]:
    if expected.type == "list":  # of numbers: one value, to be read as a whole
        if _listed(expected) == _listed(actual):
            return []
        numbers_only = not any(isinstance(item, Tensor | Foreign) for item in leaves(actual))
        is_list = isinstance(actual, Sequence) and actual.type == "list" and numbers_only
        text = f"expected {_listed(expected)}, got {_listed(actual)}"
        return [Finding("value" if is_list else "structure", text, name)]
    if not isinstance(actual, Sequence) or len(actual.items) != len(expected.items):
        return [Finding("structure", f"expected {len(expected.items)} values, got {describe(actual)}", name)]
    found = []
    for number, (wanted, got) in enumerate(zip(expected.items, actual.items, strict=True)):
        found += _compare_one(wanted, got, case, f"{name}[{number}]")
    return found


def _listed(value: Any) -> str:
    """A list of numbers as it is written; what is not a list and no number as `describe` has it."""
    if isinstance(value, Sequence):
        inside = ", ".join(map(_listed, value.items))
        return f"[{inside}]" if value.type == "list" else f"({inside}{',' * (len(value.items) == 1)})"
    return repr(value) if type(value) in (int, float, bool, str) else describe(value)


def _compare_number(expected: Any, actual: Any, name: str) -> list[Finding]:
    if type(expected) is int and type(actual) is float and actual == expected:
        return [Finding("structure", f"expected the int {expected}, got the float {actual}", name)]
    if type(expected) is float and type(actual) is int:
        actual = float(actual)  # 0 for 0.0 is not a mistake
    if type(actual) is not type(expected):
        return [Finding("structure", f"expected {describe(expected)}, got {describe(actual)}", name)]
    # In proportion, since a rate may be a millionth; a result of 0.0 is exact.
    near = abs(expected - actual) <= 1e-5 * abs(expected) + 1e-12 if type(expected) is float else expected == actual
    return [] if near else [Finding("value", f"expected {expected}, got {actual}", name)]


def _about_gradients(exercise: Exercise, trial: Trial, seen: Observation) -> list[Finding]:
    if seen.stage == "gradients" and seen.problem is not None:
        text = f"with gradients, the call ends in {seen.problem.type}: {seen.problem.message}"
        return [Finding("gradient", text)]
    found = []
    for name, wanted in trial.expected.gradients.items():
        got = seen.gradients.get(name)
        if wanted is None or name in exercise.constant or not wanted.any():
            continue
        if got is None:
            found.append(Finding("gradient", f"no gradient reaches {name}", f"gradient of {name}"))
            continue
        if got.shape != wanted.shape:
            text = f"the gradient of {name} has shape {tuple(got.shape)}"
            found.append(Finding("gradient", text, f"gradient of {name}"))
            continue
        if name in exercise.sum_to_one:
            wanted, got = _along_the_rows(wanted), _along_the_rows(got)
        wrong = differs(wanted, got, _slack(trial.case), trial.case.dtype)
        if wrong.any():
            flat = int(_badness(wanted, got).masked_fill(~wrong, -1.0).argmax())
            index = _index_of(flat, wanted.shape)
            right, wrong_one = numbers(wanted[index], got[index])
            text = f"the gradient of {name} is {wrong_one} at {list(index)}, expected {right}"
            found.append(Finding("gradient", text, f"gradient of {name}", index))
    return found


def _along_the_rows(gradient: Tensor) -> Tensor:
    """A gradient without the part that changes the sum of a row."""
    return (gradient.double() - gradient.double().mean(-1, keepdim=True)).to(gradient.dtype)


def _slack(case: Case) -> float:
    """Gradients add up more roundings than values do; in half precision there is less room for that."""
    return case.tolerance * (4 if case.dtype in (torch.float16, torch.bfloat16) else 20)


def _cotangent(draw: Draw, value: Any, dtype: torch.dtype | None) -> Tensor | None:
    if isinstance(value, Tensor) and value.is_floating_point():
        return draw.normal(*value.shape, dtype=dtype or torch.float64)
    return None


def describe(value: Any) -> str:
    """A returned value in a few words."""
    if isinstance(value, Tensor):
        return f"a {_short(value.dtype)} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Sequence):
        return f"a {value.type} of {len(value.items)} values"
    if isinstance(value, Foreign):
        return f"an object of type {value.type}"
    if value is None:
        return "None (is there a return?)"
    return shortened(f"the {type(value).__name__} {value!r}", 100)


def numbers(expected: Any, actual: Any) -> tuple[str, str]:
    """Two numbers as a report shows them, with as many decimals as it takes to see that they differ."""
    pair = [x.item() if isinstance(x, Tensor) else x for x in (expected, actual)]
    if not all(type(x) is float for x in pair):
        return str(pair[0]), str(pair[1])
    for digits in range(3, 13):
        forms = [f"{x:.{digits}f}" if abs(x) < 1e6 else f"{x:.{digits}e}" for x in pair]
        if forms[0] != forms[1]:
            break
    return forms[0], forms[1]


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Sheet:
    """An exercise's trials for one seed, and what each misconception makes of them; made once, used for everyone."""

    exercise: Exercise
    seed: int
    trials: list[Trial]
    _observed: dict[tuple[str, int, bool], Observation] = field(default_factory=dict, repr=False)
    _facets: dict[tuple[str, int, bool], frozenset[str]] = field(default_factory=dict, repr=False)

    def run(self, solution: Callable) -> list[Observation]:
        """Observations of a solution in this process."""
        return [self._observe(solution, trial, trial.cotangents, trial.train_too) for trial in self.trials]

    def misconception(self, key: str) -> list[Observation]:
        """Observations of a misconception of the exercise."""
        return [self.misconception_at(key, trial) for trial in self.trials]

    def misconception_at(self, key: str, trial: Trial, *, values_only: bool = False) -> Observation:
        """What a misconception makes of one trial; run when first asked for.

        Args:
            key: of the misconception.
            trial: one of this sheet's.
            values_only: leave out gradients and train mode, which take longer than the call itself.
        """
        cheaper = values_only and bool(trial.cotangents or trial.train_too)
        with _ONE_AT_A_TIME:
            if (key, trial.number, False) in self._observed:
                cheaper = False
            place = (key, trial.number, cheaper)
            if place not in self._observed:
                (solution,) = (m.solution for m in self.exercise.misconceptions if m.key == key)
                cotangents, train_too = ((), False) if cheaper else (trial.cotangents, trial.train_too)
                self._observed[place] = self._observe(solution, trial, cotangents, train_too, watch=False)
        return self._observed[place]

    def misconception_facets(self, key: str, trial: Trial, *, values_only: bool = False) -> frozenset[str]:
        """The facets in which a misconception fails one trial: judged once, as it is the same for every solution.

        Args:
            key: of the misconception.
            trial: one of this sheet's.
            values_only: see `misconception_at`.
        """
        seen = self.misconception_at(key, trial, values_only=values_only)
        place = (key, trial.number, seen is not self._observed.get((key, trial.number, False)))
        if place not in self._facets:
            self._facets[place] = frozenset(finding.facet for finding in findings_of(self.exercise, trial, seen))
        return self._facets[place]

    def _observe(
        self, solution: Callable, trial: Trial, cotangents: tuple, train_too: bool, *, watch: bool = True
    ) -> Observation:
        # What draws numbers (a dropout, say) draws the same ones every time, or its diagnosis would be left to chance.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(trial.number)
            return observe(solution, self.exercise, trial.case, cotangents, train_too=train_too, watch=watch)


# An observation looks at state that all threads share: the random generator, the filters of warnings.
_ONE_AT_A_TIME = RLock()


def sheet_of(exercise: Exercise, seed: int) -> Sheet:
    """The exercise's sheet for this seed."""
    with _ONE_AT_A_TIME:
        return _sheet_of(exercise, seed)


@lru_cache(maxsize=64)
def _sheet_of(exercise: Exercise, seed: int) -> Sheet:
    return Sheet(exercise, seed, trials_of(exercise, seed))
