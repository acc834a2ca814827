"""Exercise `fix_cached_attention`: metadata, stub and cases."""

import torch
from torch import nn

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.debugging.attention_inputs import queries_keys_values

__all__ = ["exercise", "fix_cached_attention"]


def fix_cached_attention(query, key, value):
    len_q, len_k = query.shape[-2], key.shape[-2]
    past = torch.ones(len_q, len_k, dtype=torch.bool, device=query.device).tril(len_k - len_q)  # (L_q, L_k)
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=past)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=2,
    minutes=7,
    stub='''\
def fix_cached_attention(query, key, value):
    """Causal attention, (..., L_q, d_v), of the last L_q of L_k positions."""
    raise NotImplementedError  # delete this line once you have decided
    return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
''',
    reference=fix_cached_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v"},
    read_next="mask_bugs: A causal mask with a cache",
    forbidden=("course_lib.cached_attention",),
)


def _last_queries(draw: Draw, batch=(), dtype=torch.float32, *, len_q: int, len_k: int, scale=1.0):
    d_k, d_v = draw.sizes(2, 2, 9, but=(*batch, len_q, len_k))
    return queries_keys_values(draw, batch, dtype, scale=scale, sizes=(len_q, len_k, d_k, d_v))


@exercise.holds("One new token attends to all keys of the cache and to its own", weight=2)
def _(draw):
    query, key = torch.tensor([[1.0, -1]]), torch.tensor([[1.0, 0], [0, 2], [-1, 1]])
    yield Case(
        args=(query, key, torch.tensor([[4.0], [8], [-6]])),
        note="one query at the last of three positions",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        for dtype, len_k in ((torch.float64, 11), (torch.float32, 12)):
            args = _last_queries(draw, batch, dtype, len_q=1, len_k=len_k)
            yield Case(args=args, note=f"1 query, {len_k} keys", degenerate_because="one new token")


@exercise.holds("Several new tokens attend to the cache and causally among themselves", weight=2)
def _(draw):
    yield Case(args=queries_keys_values(draw, sizes=(2, 4, 3, 5)), note="2 queries, 4 keys")
    for batch in draw.batches():
        for dtype, len_q, len_k in ((torch.float64, 10, 13), (torch.float32, 11, 12), (torch.float64, 10, 21)):
            args = _last_queries(draw, batch, dtype, len_q=len_q, len_k=len_k)
            yield Case(args=args, note=f"{len_q} queries, {len_k} keys")
    for len_q, len_k in ((2, 3), (2, 6), (5, 6)):
        args = queries_keys_values(draw, (4,), sizes=(len_q, len_k, 7, 8))
        yield Case(args=args, note=f"{len_q} queries, {len_k} keys")


@exercise.holds("Without a cache, with as many queries as keys, no query attends to a later position")
def _(draw):
    for batch in draw.batches():
        for dtype, length in ((torch.float64, 11), (torch.float32, 12)):
            args = _last_queries(draw, batch, dtype, len_q=length, len_k=length)
            yield Case(args=args, note=f"{length} queries and keys", degenerate_because="as many queries as keys")
    args = _last_queries(draw, len_q=1, len_k=1)
    yield Case(args=args, note="the first token of a text", degenerate_because="one position")


@exercise.holds("It works with any number of batch dimensions, short axes and large scores")
def _(draw):
    args = _last_queries(draw, (2, 1, 3), len_q=10, len_k=13)
    yield Case(args=args, note="batch dimensions: 3", degenerate_because="one of them is short")
    turned = tuple(x.mT.contiguous().mT for x in _last_queries(draw, (3,), len_q=10, len_k=13))
    yield Case(args=turned, note="tensors that are transposed in memory")
    for sizes in ((3, 5, 1, 2), (3, 5, 2, 1), (4, 6, 4, 6)):
        args = queries_keys_values(draw, (2,), sizes=sizes)
        yield Case(
            args=args,
            note="L_q, L_k, d_k, d_v = {}, {}, {}, {}".format(*sizes),
            degenerate_because="short or equal axes",
        )
    args = _last_queries(draw, (2,), torch.float64, len_q=10, len_k=13, scale=50.0)
    yield Case(args=args, note="scores of some thousands", tolerance=50, gradients=False)
