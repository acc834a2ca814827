"""A view of activation patching: how far one activation from another run moves the output."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from course_kit._checks import check_finite, check_instance, check_texts
from course_kit.viz.describing import joined
from course_kit.viz.inspection_cells import Cell, cell_map, check_cells
from course_kit.viz.view import View
from course_kit.viz.view_elements import drawing, element, labels_for, sentence, text_of, words
from course_kit.viz.view_numbers import check_drawable, check_pair, fixed

__all__ = ["patching_view"]

WIDTH, LEFT, LINE, AXIS = 340, 50, 240, 62  # of the scale from one run to the other: where it begins, length, height
NAMED = 3
ENOUGH = 0.5  # of the way: a cell that is counted
_LARGEST = 1e12  # output or share that is shown


def patching_view(
    patched: Tensor,
    clean: float | Tensor,
    other: float | Tensor,
    places: Sequence[str] | None = None,
    tokens: Sequence[str] | None = None,
    *,
    other_tokens: Sequence[str] | None = None,
    runs: tuple[str, str] | None = None,
    measure: str = "the measured output",
    chosen: tuple[int, int] | None = None,
) -> View:
    """How far the output moves from one run to another when one activation at one position comes from the other run.

    share = (patched − clean) / (other − clean): 0 where the patch changes nothing, 1 where the output is that of the
    other run. Shares below 0, which move it the other way, are green.

    Args:
        patched: `(num_places, L)`, the measured output with each patch, such as a difference of two logits.
        clean: the output of the run that is patched, without a patch.
        other: the output of the run from which the activations are taken.
        places: what was patched, from the bottom of the model up: "layer 1", "cross-attention 2"; their indices if not
            given.
        tokens: the L tokens of the run that is patched; positions if not given.
        other_tokens: those of the other run, where they differ.
        runs: names of the patched run and of the other run, such as the two sentences.
        measure: what was measured, such as "logit(dog) − logit(cat)".
        chosen: indices of place and position to begin with; the largest share if not given.

    Raises:
        TypeError: patched is not a tensor.
        ValueError: another shape, NaN or infinity, runs that give the same output, labels that do not fit, more than
            1,024 cells or 128 positions, or a cell to begin with that does not exist.
    """
    check_instance(str, measure=measure)
    patched, clean, other = _checked(patched, clean, other)
    rows = labels_for(places, patched.shape[0], "places", "place ")
    own = labels_for(tokens, patched.shape[1], "tokens")
    theirs = own if other_tokens is None else labels_for(other_tokens, patched.shape[1], "other_tokens")
    if runs is not None and len(check_texts(runs=runs)) != 2:
        raise ValueError(f"runs must be two names, of the patched run and of the other run, got {runs!r}")
    shares = (patched - clean) / (other - clean)
    if chosen is None:
        chosen = divmod(int(shares.argmax()), len(own))
    check_cells(rows, own)
    check_pair(chosen=chosen, most=(len(rows) - 1, len(own) - 1))
    row, column = chosen
    columns = [a if a == b else f"{a}\n{b}" for a, b in zip(own, theirs, strict=True)]
    named = [f"the run on “{run}”" for run in runs] if runs is not None else ["the patched run", "the other run"]
    cells = [[Cell(fixed(x), x, f"share {fixed(x)}") for x in line] for line in shares.tolist()]
    low, high = min(0.0, shares.min().item()), max(1.0, shares.max().item())
    data = {
        "patched": patched.tolist(), "clean": clean, "other": other, "places": rows, "tokens": own,
        "others": theirs, "runs": named, "measure": measure, "low": low, "high": high,
    }  # fmt: skip
    return View(
        kind="patching_view",
        title="Activation patching",
        description=_description(
            shares, rows, columns,
            f"In {named[0]}, {measure} is {fixed(clean)}; in {named[1]}, it is {fixed(other)}.",
        ),
        body=cell_map(cells, rows, columns, (row, column), label="Share of the way for each patch", below="position")
        + element("p", text_of(_told(data, row, column)), data_k="told")
        + _scale(data, patched[row, column].item(), shares[row, column].item()),
        data=data,
        hint="Choose a cell to see what was put where, and the numbers behind its share.",
        status=f"{sentence(rows[row])} at “{own[column]}”: {measure} is {fixed(clean)} without the patch, "
        f"{fixed(patched[row, column].item())} with it, and {fixed(other)} in the other run: share "
        f"{fixed(shares[row, column].item())}.",
        reset=False,
        note="A cell holds the share of the way from the run without a patch (0) to the other run (1): "
        "the further, the stronger the shade. Green cells move the output away. A wide map scrolls sideways. "
        "With the keyboard: Tab to the map, arrow keys between cells.",
    )  # fmt: skip


def _checked(patched: Tensor, clean: float | Tensor, other: float | Tensor) -> tuple[Tensor, float, float]:
    if not isinstance(patched, Tensor):
        raise TypeError(
            f"patched must be a tensor (num_places, L), got {type(patched).__name__}; torch.tensor makes one of nested "
            f"lists"
        )
    if patched.dim() != 2 or 0 in patched.shape:
        raise ValueError(
            f"patched must be (num_places, L), one measured output per place and position, got {tuple(patched.shape)}; "
            f"put parts and layers into one axis of places"
        )
    ends = []
    for name, end in (("clean", clean), ("other", other)):
        if isinstance(end, Tensor) and end.numel() != 1:
            raise ValueError(f"{name} must be one number, the output of that run, got {tuple(end.shape)}; choose one")
        end = end.item() if isinstance(end, Tensor) else end
        check_finite(name, end, -_LARGEST, _LARGEST)
        ends.append(float(end))
    check_drawable(patched=patched)
    patched = patched.detach().cpu().double()
    clean, other = ends
    if abs(other - clean) <= 1e-9 * max(abs(clean), abs(other), 1e-300):
        raise ValueError(
            f"clean and other must differ, got {clean:g} and {other:g}, so that there is no way to go "
            f"from one to the other; measure something in which the runs differ"
        )
    largest = max(patched.abs().max().item(), ((patched - clean) / (other - clean)).abs().max().item())
    if not largest < _LARGEST:
        raise ValueError(
            f"patched must have outputs and shares below {_LARGEST:g} in size, got {largest:g}; scale the measure down"
        )
    return patched, clean, other


def _told(data: dict, row: int, column: int) -> str:
    """What was put where."""
    own, theirs = (f"“{data[which][column]}”" for which in ("tokens", "others"))
    where = f"at {theirs}" if own != theirs else "there"
    first, second = data["runs"]
    return f"In {first}, the output of {data['places'][row]} at {own} is replaced by what {second} computes {where}."


def _scale(data: dict, value: float, share: float) -> str:
    """A line from the patched run to the other, with the output after the patch on it."""
    low, high = data["low"], data["high"]

    def at(x: float) -> float:
        return LEFT + LINE * (x - low) / (high - low)

    ends = ((0.0, "without a patch", data["clean"]), (1.0, "other run", data["other"]))
    parts = [words(2, 12, data["measure"], class_="start"), f'<path class="line" d="M{LEFT} {AXIS}h{LINE}"/>']
    for x, name, number in ends:
        parts += [
            f'<path class="line" d="M{at(x):.5g} {AXIS - 7}v14"/>',
            words(at(x), AXIS + 20, fixed(number)),
            words(at(x), AXIS + 38, name, class_="small"),
        ]
    marker = element(
        "g",
        f'<circle class="output" cx="0" cy="{AXIS}" r="7"/>',
        words(0, AXIS - 20, fixed(value), key="now", class_="output"),
        data_k="marker", style=f"transform:translate({at(share):.5g}px)",
    )  # fmt: skip
    return drawing(WIDTH, AXIS + 50, *parts, marker, label="The output with the patch, between those of the two runs")


def _description(shares: Tensor, rows: list[str], columns: list[str], ends: str) -> str:
    flat = shares.flatten()
    order = flat.argsort(descending=True, stable=True).tolist()
    names = [column.replace("\n", "/") for column in columns]

    def named(n: int) -> str:
        return f"{rows[n // len(columns)]} at {names[n % len(columns)]} {fixed(flat[n].item())}"

    best = ", ".join(named(n) for n in order[:NAMED])
    count = int((flat >= ENOUGH).sum())
    alone = [names[j] for j in range(len(names)) if (shares[:, j] >= ENOUGH).any()]
    return joined(
        [
            f"{len(rows)} place{'s' * (len(rows) > 1)} and {len(columns)} position{'s' * (len(columns) > 1)}. {ends}",
            f"Largest shares of the way: {best}.",
            f"Patches that go at least half of the way: {count} of {flat.numel()}"
            + (f", all at {', '.join(alone)}." if 0 < len(alone) <= NAMED else "."),
            f"Smallest: {named(order[-1])}.",
        ]
    )
