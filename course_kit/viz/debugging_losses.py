"""A view of the chapter `debugging`: loss curves, and the measurements that tell the models behind them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_kit._checks import check_finite, check_sequence, check_texts, got
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, choice, controls, drawing, element, panels, slider, words
from course_kit.viz.view_numbers import fixed, rounded

__all__ = ["loss_curves"]

_LETTERS = "ABCD"
_LEFT, _RIGHT, _TOP, _BOTTOM = 18, 190, 34, 124  # of each diagram; three of them fit side by side into a page
_MOST_STEPS, _LARGEST = 500, 1e6  # numbers beyond this would not fit beside their names
_NOTHING = "nothing yet"


def loss_curves(
    curves: Mapping[str, Sequence[float]],
    tests: Mapping[str, Mapping[str, float]],
    *,
    baseline: float,
    floor: float | None = None,
) -> View:
    """Loss curves of two to four models without their names, a measurement to choose, and the names at the push of a
    button: which model is healthy?

    A slider goes through the steps of training. The dashed line is the loss of a guess that knows nothing, and the
    dotted one the lowest loss to be expected without a leak.

    Args:
        curves: loss at each step, by the model's name; as many steps for each, from 2 to 500.
        tests: for each measurement, by its name ("change of logits by a later token"), its number for each model.
        baseline: log V, the loss of equal probabilities for V tokens.
        floor: lowest expected loss of a model that sees only earlier tokens, where it is known.

    Raises:
        TypeError: curves or tests is not a mapping of names, or holds something that is not a number.
        ValueError: fewer than two or more than four models, curves of different lengths or too long, numbers that are
            not finite, losses below zero, a measurement that lacks a model, or a floor above the baseline.
    """
    names, losses = _checked_curves(curves)
    measured = _checked_tests(tests, names)
    check_finite("baseline", baseline, low=0, high=_LARGEST)
    levels = {"log V": float(baseline)}
    if floor is not None:
        check_finite("floor", floor, low=0, high=baseline)
        levels["floor"] = float(floor)
    top = 1.05 * max(baseline, *(loss for curve in losses for loss in curve))
    steps = len(losses[0])
    pictures = [_picture(i, curve, levels, top) for i, curve in enumerate(losses)]
    letters = _LETTERS[: len(names)]
    lines = "; ".join(f"{name} is {fixed(level)}" for name, level in levels.items())
    said = _said(steps - 1, [curve[-1] for curve in losses], lines)
    listed = "; ".join(
        f"{letter} is the {name} model, with a last loss of {fixed(curve[-1])}"
        + "".join(f", {test}: {fixed(row[i])}" for test, row in measured.items())
        for i, (letter, name, curve) in enumerate(zip(letters, names, losses, strict=True))
    )
    return View(
        kind="loss_curves",
        title="Which of these models is healthy?",
        description=f"Loss curves of {len(names)} models over {steps - 1} steps; {lines}. {listed}.",
        body=controls(
            slider("step", "step", 0, steps - 1, steps - 1),
            choice("test", "measurement", [(_NOTHING, _NOTHING), *((name, name) for name in measured)], _NOTHING),
            button("names", "show which is which", pressed=False),
        )
        + panels(*pictures),
        data={
            "curves": [[rounded(loss) for loss in curve] for curve in losses],
            "tests": {name: [fixed(x) for x in row] for name, row in measured.items()},
            "names": names,
            "lines": lines,
            "box": [_LEFT, _RIGHT, _TOP, _BOTTOM, top],
        },
        hint="Decide from the curves alone which model you would trust. Then choose a measurement: which do you trust "
        "now?",
        status=said,
        note="All curves have the same axes: the steps of training, and the loss in nats per token. The dashed line is "
        "log V, the loss of a model that gives every token the same probability."
        + ("" if floor is None else " The dotted line is the lowest loss to be expected from earlier tokens alone."),
    )


def _picture(i: int, curve: Sequence[float], levels: Mapping[str, float], top: float) -> str:
    last = len(curve) - 1
    marks = []
    for (name, level), dashes in zip(levels.items(), ("4 4", "1.5 3"), strict=False):
        y = _y(level, top)
        marks.append(element("path", d=f"M{_LEFT} {y:.1f}H{_RIGHT}", class_="line", stroke_dasharray=dashes))
        marks.append(words(_RIGHT, y - 8, name, class_="end small"))
    return drawing(
        196, 164,
        words(_LEFT, 12, _LETTERS[i], key=f"name{i}", class_="start"),
        words(_RIGHT, 12, fixed(curve[-1]), key=f"loss{i}", class_="end"),
        element("path", d=f"M{_LEFT} {_TOP - 8}V{_BOTTOM}H{_RIGHT}", class_="line"),
        *marks,
        words(_LEFT - 4, _BOTTOM, "0", class_="end small"),
        words(_LEFT, _BOTTOM + 13, "0", class_="start small"),
        words(_RIGHT, _BOTTOM + 13, f"step {last}", class_="end small"),
        element(
            "polyline", points=_points(curve, top), fill="none", stroke="var(--weight)", stroke_width=2.5,
            data_k=f"curve{i}",
        ),
        words(_LEFT, _BOTTOM + 33, "", key=f"test{i}", class_="start output"),
        label=f"Loss of model {_LETTERS[i]} at each step",
    )  # fmt: skip


def _points(curve: Sequence[float], top: float) -> str:
    """Corners of the curve; the script writes the same."""
    width, last = _RIGHT - _LEFT, len(curve) - 1
    return " ".join(f"{_LEFT + width * t / last:.1f},{_y(rounded(loss), top):.1f}" for t, loss in enumerate(curve))


def _y(loss: float, top: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * loss / top


def _said(step: int, losses: Sequence[float], lines: str) -> str:
    listed = ", ".join(f"{letter} {fixed(loss)}" for letter, loss in zip(_LETTERS, losses, strict=False))
    return f"Loss at step {step}: {listed}; {lines}."


def _checked_curves(curves: Mapping[str, Sequence[float]]) -> tuple[list[str], list[list[float]]]:
    if not isinstance(curves, Mapping):
        raise TypeError(f"curves must map names of models to losses, got {got(curves)}; pass {{'healthy': [...]}}")
    names = check_texts(curves=list(curves))
    if not 2 <= len(names) <= len(_LETTERS):
        raise ValueError(f"curves must have two to four models, got {len(names)}; pass the ones to be told apart")
    for name, curve in curves.items():
        check_sequence(**{f"curves[{name!r}]": curve})
        for step, loss in enumerate(curve):
            check_finite(f"curves[{name!r}][{step}]", loss, 0, _LARGEST)
    losses = [[float(loss) for loss in curve] for curve in curves.values()]
    lengths = {len(curve) for curve in losses}
    if len(lengths) > 1 or not 2 <= max(lengths) <= _MOST_STEPS:
        raise ValueError(
            f"curves must have one length from 2 to {_MOST_STEPS}, got {sorted(lengths)}; cut them, or take every tenth"
        )
    return names, losses


def _checked_tests(tests: Mapping[str, Mapping[str, float]], names: list[str]) -> dict[str, list[float]]:
    if not isinstance(tests, Mapping):
        raise TypeError(
            f"tests must map names of measurements to numbers by model, got {got(tests)}; pass {{}} for none"
        )
    check_texts(tests=list(tests))
    for test, row in tests.items():
        if not isinstance(row, Mapping):
            raise TypeError(f"tests[{test!r}] must map names of models to numbers, got {got(row)}; name the models")
        if missing := sorted(set(names) - set(row)):
            raise ValueError(f"tests[{test!r}] must have a number for each model, it lacks {missing}; add it")
        for name in names:
            check_finite(f"tests[{test!r}][{name!r}]", row[name], -_LARGEST, _LARGEST)
    return {test: [float(row[name]) for name in names] for test, row in tests.items()}
