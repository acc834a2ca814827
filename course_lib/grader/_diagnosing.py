"""Which mistake is it? The best explanation of what was observed, or none, but no guess.

First the exercise's misconceptions: a solution that computes what one of them computes, wherever the two can be told
from right, has made that mistake. Then what exceptions say. Then patterns that mean the same in every exercise.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.exercises import Exercise
from course_lib.grader._explaining import explain_problem
from course_lib.grader._judging import CONDUCT, TOLERANCE, Finding, Sheet, Trial, Verdict, differs, findings_of
from course_lib.grader._observing import Observation, Problem, Sequence, leaves, unwrapped

__all__ = ["Diagnosis", "diagnose"]

ENOUGH = 0.5  # share of the failing cases that a misconception has to explain
FIRST_LOOK = 3  # the smallest failing cases, of which it has to explain one


@dataclass(frozen=True)
class Diagnosis:
    """A mistake with a name.

    Args:
        key: of the misconception, or `"any/…"` for a pattern that every exercise can show.
        says: what to tell the learner.
        look: what to look at next.
    """

    key: str
    says: str
    look: str = ""


def diagnose(sheet: Sheet, verdict: Verdict, observations: list[Observation]) -> Diagnosis | None:
    """The one explanation that fits best, or None where nothing fits.

    Args:
        sheet: what was asked.
        verdict: what does not hold.
        observations: one for each trial.
    """
    if verdict.status in {"passed", "not attempted"} or not verdict.findings:
        return None
    exercise = sheet.exercise
    named = _best_misconception(sheet, verdict, observations)
    if named is not None:
        return named
    failing = [trial for trial in sheet.trials if trial.number in verdict.findings]
    in_call = _explained_exception(exercise, failing, observations, in_gradients=False)
    if in_call is not None:
        return in_call
    for pattern in PATTERNS:
        found = pattern(exercise, sheet.trials, verdict, observations)
        if found is not None:
            return found
    return _explained_exception(exercise, failing, observations, in_gradients=True)


def _explained_exception(exercise, failing, observations, *, in_gradients: bool) -> Diagnosis | None:
    for trial in sorted(failing, key=lambda t: t.case.size):
        seen = observations[trial.number]
        if seen.problem is not None and trial.case.raises is None and (seen.stage == "gradients") == in_gradients:
            says = explain_problem(exercise, trial.case, seen)
            if says:
                return Diagnosis(f"any/{seen.problem.type}", says, exercise.look)
    return None


# Misconceptions


def _best_misconception(sheet: Sheet, verdict: Verdict, observations: list[Observation]) -> Diagnosis | None:
    failing = sorted((t for t in sheet.trials if t.number in verdict.findings), key=lambda t: (t.case.size, t.number))
    passing = [t for t in sheet.trials if t.number not in verdict.findings]
    best, best_rank = None, None
    for misconception in sheet.exercise.misconceptions:
        rank = _fit(sheet, misconception.key, failing, passing, verdict, observations)
        if rank is None:
            continue
        rank = (*rank, len(misconception.within))  # where two explain the same, the exercise's own is the nearer one
        if best_rank is None or rank < best_rank:
            best, best_rank = misconception, rank
    if best is None:
        return None
    return Diagnosis(best.key, best.says, best.look or sheet.exercise.look)


def _fit(sheet, key, failing, passing, verdict, observations) -> tuple[int, int, int] | None:
    """How well a misconception explains what was observed, smaller is better; None where it does not."""
    explained = unexplained = raising = by_value = values = 0
    for position, trial in enumerate((*failing, *passing)):
        mine, its = observations[trial.number], sheet.misconception_at(key, trial)
        my_facets = _facets(verdict.findings.get(trial.number, ()))
        its_facets = _facets(findings_of(sheet.exercise, trial, its))
        mine, its = _essence(sheet.exercise, mine), _essence(sheet.exercise, its)
        if not my_facets and not its_facets:
            continue
        if mine.problem is not None and mine.stage != "gradients" and trial.case.raises is None:
            if its.problem is not None and _alike(mine, its):
                explained += 1
            elif its_facets:
                raising += 1
            else:
                unexplained += 1
        elif _explains(my_facets, its_facets, mine, its):
            values += 1
            explained += 1
            by_value += 1
        elif its_facets and _rank(my_facets) < _rank(its_facets):
            return None  # it would fail here, or worse: it is not this one
        else:
            unexplained += 1
            values += bool(my_facets)
        if position == FIRST_LOOK - 1 and not explained:
            return None  # most candidates are dropped after a few cases, which keeps a check fast
    enough = explained >= max(1, raising, ENOUGH * (explained + unexplained))
    if not enough or (unexplained and explained < 2):
        return None
    if values and not by_value:
        return None  # many mistakes end in the same exception; where there are numbers, they have to fit
    # Different mistakes end in the same exception; equal wrong numbers are the better evidence.
    return unexplained + raising, -by_value, -explained


def _essence(exercise: Exercise, seen: Observation) -> Observation:
    """The observation without what the exercise leaves open."""
    form = exercise.up_to(unwrapped(seen.value)) if exercise.up_to is not None else None
    return seen if form is None else dataclasses.replace(seen, value=form)


def _facets(findings) -> frozenset[str]:
    return frozenset(finding.facet for finding in findings)


def _rank(facets: frozenset[str]) -> int:
    """0 for a pass, 1 where only the conduct is at fault, 2 where the result is."""
    if not facets:
        return 0
    return 1 if facets <= CONDUCT.keys() else 2


def _explains(mine: frozenset[str], its: frozenset[str], a: Observation, b: Observation) -> bool:
    if not mine or _rank(mine) != _rank(its):
        return False
    if _rank(mine) == 2:
        if (a.problem is None) != (b.problem is None):
            return False
        return _alike(a, b)
    if mine != its:
        return False
    if "gradient" in mine:
        names = a.gradients.keys() | b.gradients.keys()
        if not all(_same_values(a.gradients.get(n), b.gradients.get(n)) for n in names):
            return False
    if "dtype" in mine and _dtypes(a.value) != _dtypes(b.value):
        return False
    if a.stage == "gradients" or b.stage == "gradients":
        return a.stage == b.stage and set(a.changed) == set(b.changed) and _alike_problems(a.problem, b.problem)
    return set(a.changed) == set(b.changed)


def _dtypes(value) -> list[torch.dtype]:
    return [t.dtype for t in leaves(value) if isinstance(t, Tensor)]


def _alike(a: Observation, b: Observation) -> bool:
    if a.problem is not None or b.problem is not None:
        if a.problem is None or b.problem is None:
            return False
        if a.stage == b.stage == "load" and a.parameters != b.parameters:
            return False
        return _alike_problems(a.problem, b.problem)
    return _same_values(a.value, b.value)


def _alike_problems(a: Problem | None, b: Problem | None) -> bool:
    if a is None or b is None or a.type != b.type:
        return a is b
    # A text of the learner's own is nobody else's.
    return a.code.startswith(("raise ", "assert ")) or _words(a.message) == _words(b.message)


def _words(message: str) -> str:
    return re.sub(r"\d+(\.\d+)?|0x[0-9a-f]+", "#", message)


def _same_values(a, b) -> bool:
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return len(a.items) == len(b.items) and all(map(_same_values, a.items, b.items))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.is_floating_point() != b.is_floating_point():
            return False
        if not a.is_floating_point():
            return torch.equal(a, b)
        wrong = differs(a, b, 10.0, a.dtype)
        return not (wrong & ~(a.isnan() & b.isnan())).any()
    if type(a) is type(b) is float:  # the same formula, written in another way
        return a == b or abs(a - b) <= 1e-5 * abs(b) + 1e-12 or (a != a and b != b)
    return (type(a) is type(b) or {type(a), type(b)} == {int, float}) and a == b


# Patterns that mean the same in every exercise. Each takes what is known and gives a diagnosis or None.

Pattern = Callable[[Exercise, list[Trial], Verdict, list[Observation]], Diagnosis | None]


def _all_findings(verdict: Verdict) -> list[Finding]:
    return [finding for findings in verdict.findings.values() for finding in findings]


def _returns_nothing(exercise, trials, verdict, observations):
    if all(o.value is None for o in observations if o.problem is None) and any(o.problem is None for o in observations):
        where = "forward" if exercise.is_class else "the function"
        return Diagnosis("any/returns_nothing", f"Nothing comes back: {where} ends without a `return`.")


def _parameters(exercise, trials, verdict, observations):
    texts = list(dict.fromkeys(f.text for f in _all_findings(verdict) if f.facet == "parameters"))
    if not texts:
        return None
    missing, extra = (
        next((t.removeprefix(start).split(", ") for t in texts if t.startswith(start)), [])
        for start in ("missing: ", "not asked for: ")
    )
    lacking, instead = ({name.split(".")[0] for name in names} for names in (missing, extra))
    if lacking and instead and not lacking & instead:
        lacking, instead = (", ".join(f"`{name}`" for name in sorted(names)) for names in (lacking, instead))
        says = f"The contract names {lacking}; you have {instead}. Weights are loaded by name."
        return Diagnosis("any/parameters", says)
    says = f"The parameters are not the ones that the contract names ({'; '.join(texts)[:200]})."
    if missing and all(name.endswith("bias") for name in missing):
        says += " The biases belong to it."
    elif missing and not any(t.startswith("not asked") for t in texts):
        says += " A layer in a local variable or in a plain list is not registered: it belongs on `self`."
    return Diagnosis("any/parameters", says)


def _only_conduct(exercise, trials, verdict, observations):
    findings = _all_findings(verdict)
    facets = {f.facet for f in findings}
    if not facets <= CONDUCT.keys():
        return None
    manners = [f for f in findings if f.facet == "manners"]
    if manners and manners[0].where:
        return Diagnosis(
            "any/in_place",
            f"The result is right, but the call changed `{manners[0].where}`, which belongs to the caller. An "
            f"operation whose name "
            f"ends in `_`, an assignment to a part of a tensor or a list, `+=`, or a list's own `sort` works in place.",
        )
    if manners:
        return Diagnosis(
            "any/random", "The result is right, but the call draws random numbers: nothing here depends on chance."
        )
    if "dtype" in facets:
        text = next(f.text for f in findings if f.facet == "dtype")
        return Diagnosis(
            "any/dtype",
            f"The values are right, the dtype is not: {text}. A tensor made inside has its own dtype unless it is "
            f"told the input's.",
        )
    if "mode" in facets:
        return Diagnosis(
            "any/mode",
            "Train mode gives something else than eval mode: is there a dropout that the contract does not ask for?",
        )
    if any("no gradient" in f.text for f in findings):
        return Diagnosis(
            "any/detached",
            "The values are right, but no gradient flows back. `.detach()`, `.data`, `.item()`, `.numpy()`, "
            "`torch.tensor(x)` and "
            "`torch.no_grad()` cut the graph.",
        )
    return Diagnosis("any/gradient", f"The values are right, the gradients are not: {findings[0].text}.")


def _draws_random_numbers(exercise, trials, verdict, observations):
    if any(observation.random for observation in observations):
        return Diagnosis(
            "any/random", "The call draws random numbers, so the result depends on chance; nothing here does."
        )


def _nan_for_large(exercise, trials, verdict, observations):
    hit = []
    for number in verdict.findings:
        value = observations[number].value
        tensors = [t for t in leaves(value) if isinstance(t, Tensor)]
        hit.append(any(t.is_floating_point() and not t.isfinite().all() for t in tensors))
    if hit and all(hit):
        notes = {trials[n].case.note for n in verdict.findings} - {""}
        where = f" ({', '.join(sorted(notes)[:2])})" if notes else ""
        return Diagnosis(
            "any/not_finite",
            f"`nan` or `inf` comes out, and only there it goes wrong{where}. Which step leaves the range of the "
            f"dtype, or divides zero by "
            f"zero?",
        )


def _number_of_values(exercise, trials, verdict, observations):
    wanted = len(exercise.returns)
    got = {len(o.value.items) if isinstance(o.value, Sequence) else 1 for o in observations if o.problem is None}
    if wanted > 1 and got and wanted not in got:
        names = ", ".join(exercise.returns)
        return Diagnosis(
            "any/number_of_values", f"The contract asks for {wanted} values, ({names}); {max(got)} came back."
        )


def _transformed(exercise, trials, verdict, observations):
    """The same simple relation between actual and expected in every case that fails by value or shape."""
    relations = None
    for number, findings in verdict.findings.items():
        if _rank(_facets(findings)) < 2:
            continue
        seen, wanted = observations[number], trials[number].expected
        if seen.problem is not None or trials[number].case.raises is not None:
            return None
        here = _relations(wanted.value, seen.value)
        relations = here if relations is None else relations & here
    for name in RELATIONS:
        if relations and name in relations:
            return Diagnosis(f"any/{name}", RELATIONS[name])


RELATIONS = {
    "swapped": "The returned values are right, but in another order than the contract names them.",
    "extra_values": "More comes back than the contract asks for.",
    "negated": "Everything has the wrong sign, and is right otherwise.",
    "transposed": "The result is right but for its last two axes, which are exchanged.",
    "inverted": "True and False are exchanged. Here True means *may attend*.",
    "shape_only": "The numbers are right; they come in another shape than the contract names.",
    "factor": "Everything is right but for one constant factor.",
    "offset": "Everything is off by the same constant.",
}


def _relations(wanted, got) -> set[str]:
    found = set()
    if isinstance(wanted, Sequence):
        if isinstance(got, Sequence) and len(got.items) == len(wanted.items) > 1:
            if all(map(_close, wanted.items, reversed(got.items))):
                found.add("swapped")
            return found
        return found
    if isinstance(got, Sequence) and any(_close(wanted, item) for item in got.items):
        return {"extra_values"}
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        return found
    if wanted.dim() >= 2 and _close(wanted.transpose(-2, -1), got):
        found.add("transposed")
    if got.shape != wanted.shape:
        if got.numel() == wanted.numel() and _close(wanted.reshape(-1), got.reshape(-1)):
            found.add("shape_only")
        return found
    if wanted.dtype == torch.bool:
        inverted = not got.is_floating_point() and torch.equal(wanted, ~got.bool())
        return found | ({"inverted"} if inverted else set())
    if not wanted.is_floating_point() or not got.is_floating_point():
        return found
    wanted, got = wanted.double(), got.double()
    if _close(wanted, -got):
        found.add("negated")
    big = wanted.abs() > 1e-3
    if big.sum() >= 2:
        ratio = (got / wanted)[big]
        constant = bool(((ratio - ratio[0]).abs() < 1e-4 * ratio[0].abs()).all())
        if constant and bool((ratio[0] - 1).abs() > 1e-3) and _close(wanted * ratio[0], got):
            found.add("factor")
    difference = got - wanted
    constant = (difference - difference.flatten()[0]).abs() < 1e-5
    if wanted.numel() >= 2 and bool(constant.all()) and bool(difference.flatten()[0].abs() > 1e-3):
        found.add("offset")
    return found


def _close(a, b) -> bool:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b.to(a.dtype))
    return bool(b.is_floating_point()) and not differs(a, b, 5.0, b.dtype).any()


def _by_batch(exercise, trials, verdict, observations):
    """Right for some numbers of batch dimensions, wrong for the others."""
    failing, passing = set(), set()
    for trial in trials:
        first = next((arg for arg in trial.case.args if isinstance(arg, Tensor)), None)
        if first is None or trial.case.raises is not None or trial.case.edge:
            continue
        (failing if _rank(_facets(verdict.findings.get(trial.number, ()))) == 2 else passing).add(first.dim())
    if failing and passing and not failing & passing:
        right, wrong = (" and ".join(f"{d}-dimensional" for d in sorted(dims)) for dims in (passing, failing))
        return Diagnosis(
            "any/batch",
            f"Right for {right} input, wrong for {wrong}. Count axes from the right: −1 and −2 mean the same whatever "
            f"stands before.",
        )


def _by_dtype(exercise, trials, verdict, observations):
    failing, passing = set(), set()
    for trial in trials:
        if trial.case.dtype is not None and trial.case.raises is None:
            bad = _rank(_facets(verdict.findings.get(trial.number, ()))) == 2
            (failing if bad else passing).add(trial.case.dtype)
    if not failing or not passing or failing & passing:
        return None
    if max(TOLERANCE[d] for d in failing) < min(TOLERANCE[d] for d in passing):
        coarsest = min(passing, key=TOLERANCE.__getitem__)
        says = (
            f"Right to the accuracy of {_name(coarsest)} only: somewhere inside, numbers lose their dtype or are cut."
        )
    elif failing <= {torch.float16, torch.bfloat16}:
        names = " and ".join(sorted(map(_name, failing)))
        says = f"Right in other dtypes, wrong in {names}: which number inside does not fit that dtype?"
    else:
        return None
    return Diagnosis("any/precision", says)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


PATTERNS: tuple[Pattern, ...] = (
    _returns_nothing,
    _parameters,
    _only_conduct,
    _draws_random_numbers,
    _nan_for_large,
    _number_of_values,
    _transformed,
    _by_batch,
    _by_dtype,
)
