"""Tips that mean the same in every exercise. Each states only what is certain; otherwise it is None."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from course_kit.checker.observing import Foreign, Sequence, leaves
from course_kit.checker.shortening import listed
from course_kit.checker.verdict.compare import TOLERANCE, differs
from course_kit.checker.verdict.evidence import Diagnosis, Evidence, rank_of
from course_kit.checker.verdict.explaining import explain_problem
from course_kit.checker.verdict.in_source import calls_in, detaching, nodes_of
from course_kit.checker.verdict.simple_transforms import RELATIONS, relations
from course_kit.checker.verdict.trials import Trial
from course_kit.checker.verdict.wrong_calls import instead_of
from course_kit.exercises import Case

__all__ = ["PATTERNS", "Pattern"]

Pattern = Callable[[Evidence], Diagnosis | None]


def _returns_nothing(evidence: Evidence) -> Diagnosis | None:
    ended = [t for t in evidence.failing if evidence.seen(t).problem is None]
    if ended and all(evidence.seen(t).value is None for t in ended):
        where = "`forward`" if evidence.exercise.is_class else "the function"
        return evidence.diagnosis(
            "any/returns_nothing", f"Nothing is returned: {where} ends without a `return`.", ended
        )
    return None


def _numpy_result(evidence: Evidence) -> Diagnosis | None:
    arrays = [t for t in evidence.failing if any(_is_array(x) for x in leaves(evidence.seen(t).value))]
    if not arrays:
        return None
    called = sorted(set(calls_in(nodes_of(evidence.sources), "np", "numpy")))
    others = listed(list(filter(None, map(instead_of, called))))
    message = "The result is or holds a NumPy array, but a tensor is expected. Use PyTorch's functions throughout" + (
        f", here {others}." if others else "."
    )
    return evidence.diagnosis("any/numpy", message, arrays)


def _is_array(value: object) -> bool:
    return isinstance(value, Foreign) and value.type == "ndarray"


def _list_of_tensors(evidence: Evidence) -> Diagnosis | None:
    expected = evidence.sheet.trials[0].expected.value
    lists = [t for t in evidence.failing if _is_list_of_tensors(evidence.seen(t).value)]
    message = "A list of tensors is returned where one tensor is expected. `torch.stack` joins them along a new axis."
    return evidence.diagnosis("any/list", message, lists) if lists and isinstance(expected, Tensor) else None


def _is_list_of_tensors(value: object) -> bool:
    is_list = isinstance(value, Sequence) and value.type == "list" and bool(value.items)
    return is_list and all(isinstance(x, Tensor) for x in leaves(value))


def _parameters(evidence: Evidence) -> Diagnosis | None:
    with_them = _with_facet(evidence, "parameters")
    if not with_them:
        return None
    trial = with_them[0]
    seen, wanted = evidence.seen(trial).parameters, trial.case.state
    missing, extra = [n for n in wanted if n not in seen], [n for n in seen if n not in wanted]
    lacking, instead = ({name.split(".")[0] for name in names} for names in (missing, extra))
    if lacking and instead and not lacking & instead:
        lacking, instead = (", ".join(f"`{name}`" for name in sorted(names)) for names in (lacking, instead))
        message = f"The contract names {lacking}; you have {instead}. Weights are loaded by name."
    elif missing and not extra and all(name.endswith("bias") for name in missing):
        message = f"The contract's layers have biases; yours lack {listed(missing)}."
    elif missing and not extra:
        message = (
            f"These parameters are missing: {listed(missing)}. A layer has its parameters registered when `__init__` "
            f"assigns it to an attribute of `self`; a local variable or a plain list does not register it."
        )
    else:
        texts = [f.text for f in evidence.verdict.findings[trial.number] if f.facet == "parameters"]
        message = f"The parameters are not the ones that the contract names ({'; '.join(texts)})."
    return evidence.diagnosis("any/parameters", message, with_them)


def _with_facet(evidence: Evidence, *facets: str) -> list[Trial]:
    return [trial for trial in evidence.failing if evidence.facets(trial) & set(facets)]


def _only_conduct(evidence: Evidence) -> Diagnosis | None:
    """What is wrong with a solution that computes the right values."""
    if any(rank_of(evidence.facets(trial)) == 2 for trial in evidence.failing):
        return None
    for facet, tip in CONDUCT_TIPS:
        trials = _with_facet(evidence, facet)
        if trials:
            finding = next(f for f in evidence.verdict.findings[trials[0].number] if f.facet == facet)
            key, message = tip(evidence, trials[0], finding)
            return evidence.diagnosis(key, message, trials)
    return None


def _about_manners(evidence, trial, finding) -> tuple[str, str]:
    return "any/in_place", (
        f"The result is right, but the call changed `{finding.where}`, which belongs to the caller. Operations whose "
        f"name ends in `_`, assignments to a part of a tensor or a list, `+=` and a list's own `sort` work in place."
    )


def _about_dtype(evidence, trial, finding) -> tuple[str, str]:
    return "any/dtype", (
        f"The values are right, but the dtype is not: {finding.text}. A tensor created inside has its own dtype, and "
        f"so does the result of a cast."
    )


def _about_mode(evidence, trial, finding) -> tuple[str, str]:
    return "any/mode", (
        "Train mode and eval mode give different results. A layer that behaves differently in training, such as "
        "dropout, is not part of the contract."
    )


def _about_gradient(evidence, trial, finding) -> tuple[str, str]:
    if evidence.seen(trial).problem is not None:
        explained = explain_problem(evidence.exercise, trial.case, evidence.seen(trial), evidence.sources)
        reason = f" {explained.message}" if explained else ""
        return "any/gradient", f"The values are right, but the call fails when gradients are computed.{reason}"
    if finding.text.startswith("no gradient"):
        return "any/detached", (
            f"The values are right, but {finding.text}. `.detach()`, `.data`, `.item()`, `.tolist()`, `.numpy()`, "
            f"`torch.tensor(x)` and `torch.no_grad()` detach from the graph."
        )
    cut = "".join(f" No gradient passes `{code}` in your code." for code in detaching(evidence.sources)[:1])
    return "any/gradient", f"The values are right, but the gradients are not: {finding.text}.{cut}"


CONDUCT_TIPS = (
    ("manners", _about_manners),
    ("dtype", _about_dtype),
    ("mode", _about_mode),
    ("gradient", _about_gradient),
)


def _draws_random_numbers(evidence: Evidence) -> Diagnosis | None:
    drawing = [trial for trial in evidence.failing if evidence.seen(trial).random]
    if not drawing:
        return None
    message = "The call draws random numbers, so its result is random; it should be deterministic."
    return evidence.diagnosis("any/random", message, drawing)


def _not_finite(evidence: Evidence) -> Diagnosis | None:
    """NaN or infinity where a number is expected, and no other error."""
    wrong = [t for t in evidence.failing if rank_of(evidence.facets(t)) == 2]
    if not wrong or not all(_turns_infinite(evidence, trial) for trial in wrong):
        return None
    if all(_has_nan(evidence, trial) for trial in wrong):
        message = (
            "Every failing case has `nan` where a number is expected. Which step leaves the range of the dtype, or "
            "computes 0 / 0, ∞ − ∞ or 0 · ∞?"
        )
    else:
        message = "Every failing case has `inf`, `-inf` or `nan` where a number is expected."
    return evidence.diagnosis("any/not_finite", message, wrong)


def _has_nan(evidence: Evidence, trial: Trial) -> bool:
    got = [x for x in leaves(evidence.seen(trial).value) if isinstance(x, Tensor) and x.is_floating_point()]
    return any(bool(tensor.isnan().any()) for tensor in got)


def _comparable(wanted: object, got: object) -> bool:
    """Whether both are tensors of floats of the same shape."""
    both = isinstance(wanted, Tensor) and isinstance(got, Tensor) and wanted.shape == got.shape
    return both and wanted.is_floating_point() and got.is_floating_point()


def _turns_infinite(evidence: Evidence, trial: Trial) -> bool:
    wanted, got = leaves(trial.expected.value), leaves(evidence.seen(trial).value)
    return len(wanted) == len(got) and any(
        _comparable(a, b) and bool((a.isfinite() & ~b.isfinite()).any()) for a, b in zip(wanted, got, strict=True)
    )


def _number_of_values(evidence: Evidence) -> Diagnosis | None:
    wanted = len(evidence.exercise.returns)
    ended = [t for t in evidence.failing if evidence.seen(t).problem is None and t.case.raises is None]
    values = [evidence.seen(t).value for t in ended]
    got = {len(value.items) if isinstance(value, Sequence) else 1 for value in values}
    if wanted < 2 or len(got) != 1 or wanted in got:
        return None
    names, count = ", ".join(evidence.exercise.returns), got.pop()
    came = "one was returned" if count == 1 else f"{count} were returned"
    return evidence.diagnosis(
        "any/number_of_values", f"The contract asks for {wanted} values, ({names}); {came}.", ended
    )


def _transformed(evidence: Evidence) -> Diagnosis | None:
    """The same simple relation between actual and expected in every case that fails by value or shape."""
    common, wrong = None, [t for t in evidence.failing if rank_of(evidence.facets(t)) == 2]
    for trial in wrong:
        seen = evidence.seen(trial)
        if seen.problem is not None or trial.case.raises is not None:
            return None
        here = relations(trial.expected.value, seen.value)
        common = here if common is None else common & here
    for name, message in RELATIONS.items():
        if common and name in common:
            return evidence.diagnosis(f"any/{name}", message, wrong)
    return None


def _by_batch(evidence: Evidence) -> Diagnosis | None:
    """Right for some numbers of batch dimensions, wrong for the others."""
    failing: dict[int, list[Trial]] = {}
    passing: list[int] = []
    for trial in evidence.sheet.trials:
        axes = _batch_axes(evidence, trial.case)
        if axes is None or trial.case.raises is not None or trial.case.degenerate_because:
            continue
        if rank_of(evidence.facets(trial)) == 2:
            failing.setdefault(axes, []).append(trial)
        else:
            passing.append(axes)
    # One case may pass or fail for a reason of its own.
    if sum(map(len, failing.values())) < 2 or len(passing) < 2 or failing.keys() & set(passing):
        return None
    if set(passing) == {0}:
        message = (
            "Right without a batch dimension, wrong with one or more. Some step also mixes or counts the batch "
            "dimensions, although it should use only the last axes."
        )
    elif failing.keys() == {0}:
        message = (
            "Right with batch dimensions, wrong without one: some step relies on a batch axis that may be missing."
        )
    else:
        message = (
            f"Right with {_counted(set(passing))}, wrong with {_counted(failing)}: some step relies on how many axes "
            f"there are. Counted from the right, −1 and −2 name the same axes in every case."
        )
    return evidence.diagnosis("any/batch", message, [trial for trials in failing.values() for trial in trials])


def _batch_axes(evidence: Evidence, case: Case) -> int | None:
    """How many axes come before the named ones of the first tensor; None if the contract fixes them."""
    for name, arg in zip(evidence.exercise.arguments, case.args, strict=False):
        axes = evidence.exercise.shapes.get(name, "").split()
        if isinstance(arg, Tensor) and axes[:1] == ["..."]:
            return arg.dim() - (len(axes) - 1)
    return None


def _counted(numbers: Iterable[int]) -> str:
    words = [("no", "one", "two", "three", "four")[n] if n < 5 else str(n) for n in sorted(numbers)]
    return f"{' or '.join(words)} batch dimension{'' if words == ['one'] else 's'}"


def _by_dtype(evidence: Evidence) -> Diagnosis | None:
    failing, passing = {}, set()
    for trial in evidence.sheet.trials:
        ended = evidence.seen(trial).problem is not None and evidence.seen(trial).stage != "gradients"
        if trial.case.dtype is not None and trial.case.raises is None and not ended:
            if rank_of(evidence.facets(trial)) == 2:
                failing.setdefault(trial.case.dtype, []).append(trial)
            else:
                passing.add(trial.case.dtype)
    if not failing or not passing:
        return None
    if max(TOLERANCE[d] for d in failing) < min(TOLERANCE[d] for d in passing - failing.keys() or passing) and (
        not failing.keys() & passing or _right_in_float32(evidence, failing)
    ):
        coarsest = min(passing - failing.keys(), key=TOLERANCE.__getitem__)
        message = (
            f"Right only to the accuracy of {_name(coarsest)}: some step computes in a coarser dtype, for example with "
            f"a tensor created inside, or adds a small number that should not be there."
        )
    elif failing.keys() & passing:
        return None
    elif failing.keys() <= {torch.float16, torch.bfloat16}:
        names = " and ".join(sorted(map(_name, failing)))
        message = f"Right in other dtypes, wrong in {names}: which number inside does not fit that dtype?"
    else:
        return None
    return evidence.diagnosis("any/precision", message, [trial for trials in failing.values() for trial in trials])


def _right_in_float32(evidence: Evidence, failing: dict[torch.dtype, list[Trial]]) -> bool:
    """Whether all that is wrong is wrong in float64, by no more than the rounding of float32."""
    return failing.keys() == {torch.float64} and all(
        _as_close_as(evidence, trial, torch.float32) for trial in failing[torch.float64]
    )


def _as_close_as(evidence: Evidence, trial: Trial, dtype: torch.dtype) -> bool:
    wanted, got = leaves(trial.expected.value), leaves(evidence.seen(trial).value)
    return len(wanted) == len(got) and all(
        _comparable(a, b) and not differs(a, b, 1.0, dtype).any() for a, b in zip(wanted, got, strict=True)
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


PATTERNS: tuple[Pattern, ...] = (
    _returns_nothing,
    _numpy_result,
    _list_of_tensors,
    _parameters,
    _only_conduct,
    _draws_random_numbers,
    _not_finite,
    _number_of_values,
    _transformed,
    _by_batch,
    _by_dtype,
)
