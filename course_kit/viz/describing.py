"""Attention weights in words: what a picture of them shows, for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from course_kit._checks import check_instance
from course_kit.viz.labels import readable_labels
from course_kit.viz.view_elements import labels_for

__all__ = ["describe"]

MOST_CHARACTERS = 600  # longer alternative texts are hard to listen to
MOST_LISTED = 8  # queries that are named one by one
MOST_HEADS = 12  # heads of one pattern that are named one by one
LONGEST_LABEL = 16
ENOUGH = 0.8  # share of the queries that makes a pattern


def describe(
    weights: Tensor, queries: Sequence[str] | None = None, keys: Sequence[str] | None = None, *, title: str = ""
) -> str:
    """Say in plain words what a map of attention weights shows: the text twin of `attention_map`.

    It names the size, a pattern where there is one (a diagonal, one key that attracts all, equal weights, no later
    keys), rows that do not sum to one, where each query looks most, and how sharp the rows are. Sharpness is given as
    a number of keys, exp(−Σ w ln w): 1 is a hard choice, L_k are equal weights. Numbers are rounded to two decimals.
    Heads count from 1, as the text does: head 1 is `weights[0]`. Positions without a label count from 0.

    Args:
        weights: `(L_q, L_k)`, or `(H, L_q, L_k)` for several heads.
        queries: a label a row; positions from 0 if not given.
        keys: a label a column; positions from 0 if not given.
        title: what the map is called; comes first.

    Returns:
        At most 600 characters.

    Raises:
        TypeError: weights is not a tensor: None (the fused path computes none), or a pair (output, weights).
        ValueError: weights has another shape, no entries, NaN, or entries outside [0, 1], or the labels do not fit it.
    """
    check_instance(str, title=title)
    return joined(sentences(weights, queries, keys), title)


def sentences(weights: Tensor, queries: Sequence[str] | None, keys: Sequence[str] | None) -> list[str]:
    """All that can be said, the most important first."""
    several = isinstance(weights, Tensor) and weights.dim() == 3
    array = checked(weights, queries, keys, heads=several)
    return _of_heads(array, keys) if several else _of_one(array, queries, keys, _tolerance(weights))


def joined(said: Sequence[str], title: str = "", most: int = MOST_CHARACTERS) -> str:
    """The title, the first sentence, and as many of the others as fit into the characters."""
    text = (f"{cut(title, 60).rstrip('.:')}: " if title else "") + said[0]
    for sentence in said[1:]:
        if len(text) + 1 + len(sentence) <= most:
            text += " " + sentence
    return text


def checked(
    weights: Tensor, queries: Sequence[str] | None, keys: Sequence[str] | None, *, heads: bool = False
) -> np.ndarray:
    """The weights as an array of doubles, after everything that could be wrong with them was looked at."""
    wanted = "(H, L_q, L_k)" if heads else "(L_q, L_k)"
    if weights is None:
        raise TypeError(
            f"weights must be a tensor {wanted}, got None; the fused path computes no weights: call the attention with "
            f"need_weights=True, or run the model inside record_attention(model)"
        )
    if not isinstance(weights, Tensor):
        hint = (
            "attention returns (output, weights), take the second"
            if isinstance(weights, tuple)
            else "torch.as_tensor makes one of an array"
        )
        raise TypeError(f"weights must be a tensor {wanted}, got {type(weights).__name__}; {hint}")
    if weights.is_complex():
        raise TypeError(f"weights must be real numbers, got {weights.dtype}; take the softmax of real scores")
    if weights.dim() != 2 + heads or 0 in weights.shape:
        kind = "a stack of matrices" if heads else "a matrix"
        choose = "one sentence, weights[batch]" if heads else "one sentence and one head, weights[batch, head]"
        raise ValueError(
            f"weights must be {kind} {wanted} with at least one entry, got {tuple(weights.shape)}; choose {choose}"
        )
    len_q, len_k = weights.shape[-2:]
    labels_for(queries, len_q, "queries"), labels_for(keys, len_k, "keys")  # refuses what does not fit
    array = weights.detach().cpu().double().numpy()
    if np.isnan(array).any():
        *head, row = (int(i) for i in np.argwhere(np.isnan(array).any(-1))[0])
        where = f"row {row} ({_names(queries, len_q, 'query')[row]})"
        where += f" of head {head[0] + 1} (index {head[0]})" if head else ""
        raise ValueError(
            f"weights must be numbers, got NaN in {where}; the usual cause is a fully masked row, all of whose scores "
            f"are -inf, through a softmax: use masked_softmax, or leave the row at least one key"
        )
    slack = 1e-3  # of half precision, whose rounded weights may pass 1 a little
    if not ((array >= -slack) & (array <= 1 + slack)).all():
        raise ValueError(
            f"weights must lie in [0, 1], got {array.min():.3f} … {array.max():.3f}; are these scores? "
            f"Apply a softmax. Dropout scales weights up, too: call model.eval() first"
        )
    return array


def _of_one(array: np.ndarray, queries, keys, tolerance: float) -> list[str]:
    len_q, len_k = array.shape
    query_names, key_names = _names(queries, len_q, "query"), _names(keys, len_k, "key")
    said = [f"Attention weights of {_size(len_q, len_k)}."]
    pattern = _pattern(array, key_names)
    if pattern:
        said.append(f"{pattern[0].upper()}{pattern[1:]}.")
    if _no_later_keys(array):
        said.append("Every weight above the diagonal is 0: no query looks at a later key.")
    said += _about_sums(array, query_names, tolerance)
    leaders = [_leaders(row, key_names) for row in array]
    listed = "; ".join(f"{name}: {leader}" for name, leader in zip(query_names, leaders, strict=True))
    short = len_q <= MOST_LISTED and len(listed) <= MOST_CHARACTERS // 2
    if short and "nearly equal" not in pattern:
        said.append(f"Largest weight of each query: {listed}.")
    used = _keys_used(array)
    looking = np.flatnonzero(array.sum(-1) > 0)
    if len_k > 1 and looking.size:
        sharp, flat = looking[used[looking].argmin()], looking[used[looking].argmax()]
        said.append(f"A query spreads over {used[looking].mean():.2f} keys on average (1 to {len_k} are possible).")
        if len_q > 1 and f"{used[sharp]:.2f}" != f"{used[flat]:.2f}":
            said.append(
                f"Sharpest: {query_names[sharp]}, {used[sharp]:.2f} keys, most on {leaders[sharp]}; "
                f"flattest: {query_names[flat]}, {used[flat]:.2f} keys."
            )
        if not short:
            leader = _leaders(array.mean(0), key_names)
            if "alike" not in leader:
                said.append(f"Largest on average: {leader}.")
    return said


def _of_heads(array: np.ndarray, keys) -> list[str]:
    num_heads, len_q, len_k = array.shape
    names = _names(keys, len_k, "key")
    said = [f"Attention weights of {count(num_heads, 'head')}, each {_size(len_q, len_k)}."]
    found: dict[str, list[int]] = {}
    for head in range(num_heads):
        found.setdefault(_pattern(array[head], names) or "no plain pattern", []).append(head)
    used = np.array([_keys_used(matrix)[matrix.sum(-1) > 0].mean() if matrix.any() else 0.0 for matrix in array])
    if len_k > 1 and used.all():
        sharp, flat = int(used.argmin()), int(used.argmax())
        if f"{used[sharp]:.2f}" == f"{used[flat]:.2f}":
            said.append(f"A query spreads over {used[sharp]:.2f} keys on average in every head.")
        else:
            said.append(
                f"Sharpest is head {sharp + 1}: a query spreads over {used[sharp]:.2f} keys on average; flattest is "
                f"head {flat + 1}: over {used[flat]:.2f}."
            )
    if all(_no_later_keys(matrix) for matrix in array):
        said.append("No query looks at a later key in any head.")
    said += [f"{_heads(heads, num_heads)}: {pattern}." for pattern, heads in found.items()]
    return said


def _pattern(array: np.ndarray, key_names: list[str]) -> str:
    """The first plain pattern that holds for four queries of five, or ""."""
    len_q, len_k = array.shape
    if not array.any():
        return "all weights are 0"
    if len_k > 1 and array.max() - array.min() <= 0.05 * array.max():
        part = f" (one in {len_k})" if round(1 / array.mean()) == len_k else ""
        return f"all weights are nearly equal, {array.mean():.2f} each{part}"
    first = np.array([_first_key(row) for row in array])  # -1 where no key leads alone
    rows = np.arange(len_q)
    if len_q == 1:
        return ""
    for offset, words in (
        (0, "the same position (the diagonal)"),
        (-1, "the position before it (one below the diagonal)"),
        (1, "the position after it (one above the diagonal)"),
    ):
        there = (rows + offset >= 0) & (rows + offset < len_k)
        hits = int(((first == rows + offset) & there).sum())
        # Three at least, since two rows lie on some diagonal by chance.
        if hits >= max(3, ENOUGH * there.sum()) and there.sum() >= ENOUGH * (len_q - 1):
            having = " that have one" if there.sum() < len_q else ""
            return f"{_share(hits, int(there.sum()))}{having} look most at {words}"
    hits = int((first == len_k - 1 - rows).sum())
    if hits >= max(3, ENOUGH * len_q):
        return f"{_share(hits, len_q)} look most along the other diagonal: the first at the last key, and so on"
    leader = int(np.bincount(first[first >= 0], minlength=len_k).argmax())
    hits = int((first == leader).sum())
    if len_k > 1 and hits >= max(2, ENOUGH * len_q):
        mean = array[:, leader].mean()
        return f"{_share(hits, len_q)} look most at {key_names[leader]}, with {mean:.2f} on average"
    return ""


def _about_sums(array: np.ndarray, names: list[str], tolerance: float) -> list[str]:
    sums = array.sum(-1)
    said = []
    empty = np.flatnonzero(~array.any(-1))
    if 0 < empty.size < len(array):
        verb = "is" if empty.size == 1 else "are"
        said.append(f"Of the rows, {_listed(empty, names)} {verb} all zeros, as fully masked rows are.")
    off = np.flatnonzero((abs(sums - 1) > tolerance) & array.any(-1))
    if off.size:
        low, high = f"{sums[off].min():.2f}", f"{sums[off].max():.2f}"
        total = low if low == high else f"{low} … {high}"
        said.append(f"The weights of {_listed(off, names)} sum to {total}, not to 1.")
    return said


def _listed(rows: np.ndarray, names: list[str]) -> str:
    return ", ".join(names[row] for row in rows) if rows.size <= 3 else f"{rows.size} of {len(names)}"


def _leaders(row: np.ndarray, names: list[str]) -> str:
    """The largest weight of a row and whose it is; keys whose weights print alike are said to be alike."""
    if not row.any():
        return "none"
    shown = np.array([f"{weight:.2f}" for weight in row])
    alike = np.flatnonzero(shown == shown[row.argmax()])
    weight = shown[row.argmax()]
    if alike.size == 1:
        return f"{names[alike[0]]} ({weight})"
    if alike.size == 2:
        return f"{names[alike[0]]} and {names[alike[1]]} ({weight} each)"
    return f"{'all' if alike.size == row.size else alike.size} keys alike ({weight} each)"


def _first_key(row: np.ndarray) -> int:
    """The key that leads alone, by more than a hundredth of its weight; -1 where none does."""
    order = np.argsort(row)
    leader = int(order[-1])
    if row[leader] <= 0:
        return -1
    return leader if row.size == 1 or row[leader] - row[order[-2]] > 0.01 * row[leader] else -1


def _keys_used(array: np.ndarray) -> np.ndarray:
    """exp of the entropy of each row, made to sum to one first; 1.0 for a row of zeros."""
    positive = array.clip(min=0.0)
    shares = positive / np.maximum(positive.sum(-1, keepdims=True), np.finfo(float).tiny)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.exp(-(shares * logs).sum(-1))


def _no_later_keys(array: np.ndarray) -> bool:
    len_q, len_k = array.shape
    return len_q == len_k > 1 and not np.triu(array, 1).any()


def _tolerance(weights: Tensor) -> float:
    """By how much a sum of rounded weights may miss one."""
    return max(1e-3, 2 * torch.finfo(weights.dtype).eps) if weights.is_floating_point() else 1e-3


def _names(labels: Sequence[str] | None, length: int, role: str) -> list[str]:
    """What tokens are called in a text: their label in quotes, with the position where two have the same."""
    if labels is None:
        return [f"{role} {position}" for position in range(length)]
    short = [shortened(label) for label in readable_labels(labels)]
    return [f"“{s}”" + (f" ({role} {i})" if short.count(s) > 1 else "") for i, s in enumerate(short)]


def shortened(label: object) -> str:
    """A label that fits: blanks and line breaks made one space, the end cut off."""
    return cut(" ".join(str(label).split()), LONGEST_LABEL)


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text of so many characters at most, the end cut off."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _size(len_q: int, len_k: int) -> str:
    return f"{count(len_q, 'query', 'queries')} ({'row' if len_q == 1 else 'rows'}) over {count(len_k, 'key')}"


def count(number: int, one: str, several: str = "") -> str:
    """So many of them, in the singular or the plural."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def _share(hits: int, of: int) -> str:
    return f"all {of} queries" if hits == of else f"{hits} of {of} queries"


def _heads(heads: list[int], of: int) -> str:
    """Heads by their number, which is one more than their index."""
    if len(heads) == of > 1:
        return "All heads"
    if len(heads) == 1:
        return f"Head {heads[0] + 1}"
    if len(heads) > MOST_HEADS:
        return f"{len(heads)} heads"
    *before, last = (head + 1 for head in heads)
    return f"Heads {', '.join(map(str, before))} and {last}"
