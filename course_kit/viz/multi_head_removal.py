"""What becomes of the output when one head is removed: numbers, words and a table."""

from __future__ import annotations

import torch
from torch import Tensor

from course_kit._checks import got
from course_kit.viz.map_axes import WIDTH, short
from course_kit.viz.view_elements import drawing, element, words
from course_kit.viz.view_numbers import check_drawable, fixed

__all__ = ["moved_outputs", "output_table", "told"]

SMALL = 16  # heads, and tokens, up to which all maps are drawn in Python


def moved_outputs(contributions: Tensor, bias: Tensor | None, layered: bool, num_heads: int, len_q: int) -> Tensor:
    """How long the output is and how far it has moved: with all heads, and without each: `(1 + H, L_q, 2)`."""
    if layered:
        raise ValueError("contributions belong to one layer, got weights of several; pass weights[layer] with them")
    if (
        not isinstance(contributions, Tensor)
        or contributions.dim() != 3
        or contributions.shape[:2] != (num_heads, len_q)
    ):
        raise ValueError(
            f"contributions must be (H = {num_heads}, L_q = {len_q}, d_model), what each head adds to the output, got "
            f"{got(contributions)}; with the heads' outputs (H, L_q, d_head) it is "
            f"heads @ out_proj.weight.T.unflatten(0, (H, -1))"
        )
    if num_heads > SMALL or len_q > SMALL:
        raise ValueError(
            f"the output can be shown for at most {SMALL} heads and {SMALL} tokens, got {num_heads} and {len_q}; "
            f"leave contributions out, or take fewer tokens"
        )
    if bias is not None and (not isinstance(bias, Tensor) or bias.shape != contributions.shape[2:]):
        raise ValueError(f"bias must be ({contributions.shape[2]},), as out_proj.bias is, got {got(bias)}")
    bias = torch.zeros(contributions.shape[2]) if bias is None else bias
    check_drawable(contributions=contributions, bias=bias)
    parts = contributions.detach().cpu().double()
    whole = parts.sum(0) + bias.detach().cpu().double()  # (L_q, d_model)
    outputs = torch.cat([whole[None], whole - parts])  # (1 + H, L_q, d_model)
    return torch.stack([outputs.norm(dim=-1), (outputs - whole).norm(dim=-1)], -1)


def told(number: int, table: list[list[float]], titles: list[str]) -> str:
    """In words, how far the outputs move without a head: `number` counts heads from 1; 0 is the whole layer, of which
    nothing is said."""
    if number == 0:
        return ""
    distances = sorted(distance for _, distance in table)
    few = distances[:1] if fixed(distances[0]) == fixed(distances[-1]) else [distances[0], distances[-1]]
    who = "the output moves" if len(table) == 1 else f"the {len(table)} outputs move"
    return f"Without {titles[number - 1]} {who} by {' to '.join(map(fixed, few))}."


def output_table(moved: Tensor, queries: list[str], titles: list[str]) -> str:
    """How long each output is and how far it moved, with all heads and without each; one of these is shown."""
    top, row = 70, 22
    longest = max(1e-9, moved.max().item())
    pictures = []
    for n, table in enumerate(moved.tolist()):
        what = f"output without {titles[n - 1]}" if n else "output of all heads"
        columns = "length of each query's output" + ("; how far it has moved" if n else "")
        drawn = [
            words(2, 9, what, class_="start"),
            words(2, 29, columns, class_="start small"),
            words(2, top - 12, "output of", class_="start small"),
            words(190, top - 12, "length", class_="end small output"),
            *([words(338, top - 12, "moves by", class_="end small")] if n else []),
        ]
        for i, (length, distance) in enumerate(table):
            y = top + row * (i + 0.5)
            drawn += [
                words(2, y, short(queries[i]), class_="start small query"),
                element(
                    "rect", x=70.0, y=y - 7, width=70 * length / longest, height=14.0, class_="output", fill_opacity=0.5
                ),
                words(190, y, fixed(length), key=f"length{n}.{i}", class_="end small"),
            ]
            if n:
                drawn += [
                    element("rect", x=204.0, y=y - 7, width=84 * distance / longest, height=14.0, class_="output"),
                    words(338, y, fixed(distance), key=f"moved{n}.{i}", class_="end small"),
                ]
        picture = drawing(WIDTH, top + row * len(queries) + 4, *drawn, label=f"The {what}: {columns}")
        pictures.append(element("div", picture, class_="part", hidden="" if n else None))
    return element("div", *pictures)
