"""From observations to a verdict: which properties hold, and what they are worth."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from fractions import Fraction

import torch
from torch import Tensor

from course_kit.checker.observing import Observation, leaves, unwrapped
from course_kit.checker.points import exact
from course_kit.checker.shortening import listed
from course_kit.checker.verdict.compare import Finding, as_shown, compare, differs, worst_of
from course_kit.checker.verdict.trials import Trial
from course_kit.exercises import Case, Exercise

__all__ = ["CONDUCT", "Line", "Verdict", "findings_of", "judge", "unfinished"]

# What is checked of every exercise: facet of a finding, and the line of the report.
CONDUCT = {
    "parameters": "It has the named parameters, and no others",
    "dtype": "The result has the right dtype",
    "gradient": "Gradients flow, and are right",
    "manners": "Arguments stay as they are",
    "mode": "Train and eval mode give the same",
}


@dataclass
class Line:
    """A property and whether it holds: True, False, or None if nothing could be observed.

    Args:
        message: the property.
        holds: whether it does.
        weight: in the score.
        conduct: whether it is about how a solution behaves, not about its values.
        findings: what is wrong.
        refusal: whether it only requires an error.
    """

    message: str
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

        Properties count by their weight. Its conduct (dtype, gradients, side effects) and the errors that it must raise
        count in proportion to the values that it gets right, because a solution that does nothing has no side effects,
        and one that always raises an error raises the right ones too.
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
        return Verdict(exercise, "not attempted", [Line(p.message, None, p.weight) for p in exercise.properties])
    lines = []
    for number, prop in enumerate(exercise.properties):
        line = Line(prop.message, True, prop.weight)
        line.refusal = all(trial.case.raises is not None for trial in trials if trial.line == number)
        for trial in trials:
            if trial.line == number:
                line.findings += [(trial, f) for f in findings[trial.number] if f.facet not in CONDUCT]
        line.holds = not line.findings
        lines.append(line)
    for facet, message in CONDUCT.items():
        if not _applies(exercise, facet, trials):
            continue
        line = Line(message, True, 0.5, conduct=True)
        for trial in trials:
            line.findings += [(trial, f) for f in findings[trial.number] if f.facet == facet]
        looked_at = any(
            _looked_at(facet, trial, seen, findings[trial.number])
            for trial, seen in zip(trials, observations, strict=True)
        )
        # Most cases of a repair are right from the beginning: that their gradients are says nothing of the faulty ones.
        unknown = facet == "gradient" and exercise.repair and any(map(_wrong_result, findings.values()))
        line.holds = False if line.findings else (True if looked_at and not unknown else None)
        lines.append(line)
    right = all(line.holds for line in lines)
    status = "passed" if right else "failed"
    if used and not allow_twins:
        status = "not counted"
    return Verdict(exercise, status, lines, used, {k: v for k, v in findings.items() if v})


def _looked_at(facet: str, trial: Trial, seen: Observation, found: list[Finding]) -> bool:
    """Whether this trial provides evidence about a facet of conduct; one with wrong values does not."""
    if trial.case.raises is not None or seen.stage in {"build", "load"}:
        return False
    facets = {finding.facet for finding in found}
    if facet == "gradient":
        return bool(trial.cotangents) and not _wrong_result(found)
    if facet == "mode":
        return trial.train_too and not _wrong_result(found)
    if facet == "dtype":
        return not facets & {"structure", "problem"}
    return seen.problem is None


def _wrong_result(found: list[Finding]) -> bool:
    return any(finding.facet in {"structure", "shape", "value", "problem"} for finding in found)


def unfinished(observation: Observation) -> bool:
    """Whether the solution declares itself unwritten."""
    problem = observation.problem
    # PyTorch raises the same for a dtype that an operation does not know, and for a container that is called.
    return (
        problem is not None
        and problem.type == "NotImplementedError"
        and not any(text in problem.message for text in ("not implemented for", 'missing the required "forward"'))
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
    """Everything that is wrong in one observation."""
    case, expected = trial.case, trial.expected
    if case.raises is not None:
        return _about_the_error(case, seen)
    found = []
    if seen.stage == "load" and seen.problem is not None:
        texts = _about_parameters(case, seen)
        why = f"not called, because its parameters are not those that the exercise asks for ({'; '.join(texts)})"
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


def _about_gradients(exercise: Exercise, trial: Trial, seen: Observation) -> list[Finding]:
    if seen.stage == "gradients" and seen.problem is not None:
        text = f"with gradients, the call raises {seen.problem.type}: {seen.problem.message}"
        return [Finding("gradient", text)]
    found = []
    for name, wanted in trial.expected.gradients.items():
        got = seen.gradients.get(name)
        if wanted is None or name in exercise.no_gradient_for or not wanted.any():
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
            index = worst_of(wanted, got, wrong)
            right, wrong_one = as_shown(wanted[index], got[index])
            text = f"the gradient of {name} is {wrong_one} at {list(index)}, expected {right}"
            found.append(Finding("gradient", text, f"gradient of {name}", index))
    return found


def _along_the_rows(gradient: Tensor) -> Tensor:
    """A gradient without the component that changes the sum of a row."""
    return (gradient.double() - gradient.double().mean(-1, keepdim=True)).to(gradient.dtype)


def _slack(case: Case) -> float:
    """Gradients add up more roundings than values do; in half precision there is less room for that."""
    return case.tolerance * (4 if case.dtype in (torch.float16, torch.bfloat16) else 20)
