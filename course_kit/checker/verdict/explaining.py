"""Why a call ended in an exception, in terms of the axes of the exercise at hand."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from torch import Tensor

from course_kit.checker.observing import Observation
from course_kit.checker.verdict.code_line import CodeLine
from course_kit.checker.verdict.exceptions import EXPLANATIONS, Context
from course_kit.exercises import Case, Exercise

__all__ = ["Explained", "axis_names", "explain_problem", "shape_in_words"]


ORDINALS = ("first", "second", "third", "fourth")


def axis_names(exercise: Exercise, case: Case) -> dict[int | tuple[int, ...], str | tuple[str, ...]]:
    """The axis of each length in this case, or the only product of two axes that has it; where there are several
    possibilities, the length is left out.

    Results whose axes the exercise names in `shapes` are included by their whole shape: it identifies the axes even
    where a single length would not, because two axes share it or because it is one.
    """
    lengths: dict[str, int] = {}
    for name, arg in zip(exercise.arguments, case.args, strict=False):
        axes = exercise.shapes.get(name, "").split()
        if isinstance(arg, Tensor) and axes and axes != ["#"]:
            named = axes[1:] if axes[0] == "..." else axes
            if len(named) <= arg.dim():
                lengths |= {
                    axis: length
                    for axis, length in zip(named, arg.shape[arg.dim() - len(named) :], strict=True)
                    if not axis.isdigit()
                }
                if axes[0] == "...":
                    batch = arg.shape[: arg.dim() - len(named)]
                    order = [f"{word} batch axis" for word in ORDINALS] if len(batch) > 1 else ["batch"]
                    lengths |= dict(zip(order, batch, strict=False))
        elif type(arg) is int and not isinstance(arg, bool):
            lengths[name] = arg
    lengths |= {n: v for n, v in zip(exercise.init_arguments, case.init, strict=False) if type(v) is int}
    heads, width = lengths.get("num_heads"), lengths.get("d_model")
    if heads and width and width % heads == 0:
        lengths.setdefault("d_model / num_heads", width // heads)
    names: dict[float, list[str]] = {}
    for name, length in lengths.items():
        names.setdefault(length, []).append(name)
    # A length may also come from merging two axes; num_heads · d_head is d_model itself.
    for (a, m), (b, n) in itertools.combinations(lengths.items(), 2):
        if m > 1 < n and not {a, b} <= {"num_heads", "d_head", "d_model / num_heads", "d_model"}:
            names.setdefault(m * n, []).append(f"{a} · {b}")
    for name in {"d", "d_model"} & lengths.keys():  # features in pairs
        names.setdefault(lengths[name] / 2, []).append(f"half of {name}")
    known = {length: found[0] for length, found in names.items() if len(found) == 1 and length > 1}
    results: dict[tuple[int, ...], set[tuple[str, ...]]] = {}
    for name in exercise.returns:
        axes = tuple(exercise.shapes.get(name, "").split())
        if axes and all(axis in lengths for axis in axes):
            results.setdefault(tuple(lengths[axis] for axis in axes), set()).add(axes)
    return known | {shape: axes.pop() for shape, axes in results.items() if len(axes) == 1}


def shape_in_words(shape: tuple[int, ...], axes: dict) -> str:
    """`(3, 5)` as `(3 = len_q, 5 = len_k)`, with the names that `axis_names` gives; "" if there are
    none."""
    names = axes.get(shape) or [axes.get(n) if shape.count(n) == 1 else None for n in shape]
    if not any(names):
        return ""
    return "(" + ", ".join(f"{n} = {name}" if name else str(n) for n, name in zip(shape, names, strict=True)) + ")"


@dataclass(frozen=True)
class Explained:
    """Why a call ended in an exception.

    Args:
        message: the explanation.
        all_named: whether the axis of every length in it is known.
    """

    message: str
    all_named: bool


def explain_problem(
    exercise: Exercise, case: Case, seen: Observation, sources: tuple[str, ...] = ()
) -> Explained | None:
    """Why the call ended in this exception, or None if the message itself is the best explanation."""
    problem = seen.problem
    context = Context(exercise, case, axis_names(exercise, case), CodeLine(problem.code), sources)
    for pattern, explain in EXPLANATIONS.items():
        match = re.search(pattern, f"{problem.type}: {problem.message}", re.DOTALL)
        message = match and (match.expand(explain) if isinstance(explain, str) else explain(match, context))
        if message:
            return Explained(message, not context.unnamed)
    return None
