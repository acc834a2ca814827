"""Exercise `fix_padding_mask`: metadata, stub and cases."""

import torch
from torch import nn

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.debugging.attention_inputs import queries_keys_values

__all__ = ["exercise", "fix_padding_mask"]


def fix_padding_mask(query, key, value, real):
    keep = real.bool()[:, None, None, :]  # (B, 1, 1, L_k), True = may attend
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=keep)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_padding_mask(query, key, value, real):
    """Attention to the keys whose number in `real` is 1; those with 0 are padding."""
    raise NotImplementedError  # delete this line once you have decided
    keep = real.to(query.dtype)[:, None, None, :]  # (B, 1, 1, L_k)
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=keep)
''',
    reference=fix_padding_mask,
    shapes={
        "query": "batch heads len_q d_k",
        "key": "batch heads len_k d_k",
        "value": "batch heads len_k d_v",
        "real": "batch len_k",
    },
    read_next="mask_bugs: A mask of zeros and ones",
    forbidden=("course_lib.padding_mask",),
    single_sign_args=("real",),
    no_gradient_for=("real",),
)


def _padded(lengths, len_k: int, dtype=torch.int64):
    """`(B, L_k)`: ones up to each length, then zeros."""
    return (torch.arange(len_k) < torch.tensor(lengths)[:, None]).to(dtype)


def _padded_sequences(draw: Draw, kind=torch.int64, dtype=torch.float32, scale=1.0):
    """Padded sequences of different lengths; the key sequence is longer than any of them."""
    len_k = draw.integer(4, 9)
    batch, heads, len_q, d_k, d_v = draw.sizes(5, 2, 9, but=(len_k,))
    args = queries_keys_values(draw, (batch, heads), dtype, scale=scale, sizes=(len_q, len_k, d_k, d_v))
    first = draw.integer(1, len_k - 2)
    lengths = [first, first + 1, *(draw.integer(1, len_k - 1) for _ in range(batch - 2))]
    return (*args, _padded(lengths, len_k, kind))


def _by_eye(kind):
    query, key = torch.tensor([[[[1.0, -1]]]]), torch.tensor([[[[1.0, 0], [0, 2], [-1, 1]]]])
    return Case(
        args=(query, key, torch.tensor([[[[4.0], [8], [-6]]]]), torch.tensor([[1, 1, 0]], dtype=kind)),
        note="one query, and the last of three keys is padding",
        degenerate_because="the smallest case, to be read by eye",
    )


@exercise.holds("With integers in `real`, padded keys get no weight, and the real ones share all of it", weight=2)
def _(draw):
    yield _by_eye(torch.int64)
    for kind, dtype in ((torch.int64, torch.float32), (torch.int64, torch.float64), (torch.int32, torch.float32)):
        yield Case(args=_padded_sequences(draw, kind, dtype), note=f"`real` in {str(kind).removeprefix('torch.')}")
    query, key, value, real = _padded_sequences(draw)
    yield Case(args=(query, key, value, torch.ones_like(real)), note="no padding")
    real = real.clone()
    real[1] = 1
    yield Case(args=(query, key, value, real), note="one sequence without padding")


@exercise.holds("With numbers of the query's dtype in `real`, padded keys get no weight either", weight=2)
def _(draw):
    yield _by_eye(torch.float32)
    for dtype in (torch.float32, torch.float64, torch.float32):
        yield Case(args=_padded_sequences(draw, dtype, dtype), note="`real` in the dtype of the query")


@exercise.holds("The contents of the padding make no difference, wherever the padding is")
def _(draw):
    for kind in (torch.int64, torch.float32):
        query, key, value, real = _padded_sequences(draw, kind)
        real = real.flip(-1)
        yield Case(args=(query, key, value, real), note="padding on the left")
        key, value = (x.masked_fill(real[:, None, :, None] == 0, 1e4) for x in (key, value))
        yield Case(args=(query, key, value, real), note="keys and values of 10000 in the padding", gradients=False)
    query, key, value, _ = _padded_sequences(draw)
    real = draw.mask(len(key), key.shape[-2]).long()
    yield Case(args=(query, key, value, real), note="padding between real tokens")


@exercise.holds("It does not depend on how many sequences, heads, queries or real keys there are")
def _(draw):
    for batch, heads, len_q, len_k in ((1, 2, 3, 4), (2, 1, 4, 3), (2, 3, 1, 4), (3, 3, 3, 3), (2, 2, 4, 4)):
        args = queries_keys_values(draw, (batch, heads), sizes=(len_q, len_k, 5, 6))
        real = _padded([len_k, *[2] * (batch - 1)] if batch > 1 else [2], len_k)
        note = f"B, H, L_q, L_k = {batch}, {heads}, {len_q}, {len_k}"
        yield Case(args=(*args, real), note=note, degenerate_because="short or equal axes")
    query, key, value, real = _padded_sequences(draw, torch.float32)
    yield Case(args=(query, key, value, _padded([1] * len(real), real.shape[-1])), note="one real key per sequence")
    for dtype in (torch.float32, torch.float64):
        args = _padded_sequences(draw, dtype, dtype, scale=50.0)
        yield Case(args=args, note="scores of some thousands", tolerance=50, gradients=False)
