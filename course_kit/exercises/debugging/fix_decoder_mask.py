"""Exercise `fix_decoder_mask`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.masking.padded_tokens import padded_tokens

__all__ = ["exercise", "fix_decoder_mask"]


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
    past = ones.tril()  # (L, L)
    real = (tokens != pad_id)[:, None, None, :]  # (B, 1, 1, L)
    return past & real  # (B, 1, L, L)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_decoder_mask(tokens, pad_id):
    """Bool (B, 1, L, L), True = may attend: no future, no padding."""
    raise NotImplementedError  # delete this line once you have decided
    length = tokens.shape[1]
    ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
    future = ones.triu(diagonal=1)  # (L, L)
    padding = (tokens == pad_id)[:, None, None, :]  # (B, 1, 1, L)
    return future | padding  # (B, 1, L, L)
''',
    reference=fix_decoder_mask,
    shapes={"tokens": "batch length"},
    read_next="debugging: Changing one token",
    forbidden=("course_lib.decoder_mask",),
    returns=("mask",),
    differentiable=False,
)


def _about_pairs(wrong, text):
    """A fault of one line: the text with the first pair (b, h, i, j) that is wrong, whatever the other pairs are."""

    def fault(args, mask):
        tokens, pad_id = args
        batch, length = tokens.shape
        wanted = (batch, 1, length, length)
        if not isinstance(mask, torch.Tensor) or mask.shape != wanted or mask.dtype != torch.bool:
            return f"expected a bool tensor of shape {wanted}"
        if mask.all() or not mask.any():
            return f"all entries of the mask are {bool(mask.all())}"
        pairs = wrong(mask, (tokens == pad_id)[:, None]).nonzero().tolist()
        return text.format(*pairs[0]) if pairs else ""

    return fault


padding_allowed = _about_pairs(
    lambda mask, padded: mask & padded[:, :, None, :],
    "in sequence {0}, query {2} attends to key {3}, which is padding",
)
# The first sequence of each case has no padding, so it shows which rule real queries follow.
another_rule = _about_pairs(
    lambda mask, padded: (mask ^ mask[:1]) & padded[:, :, :, None] & ~padded[:, :, None, :],
    "in sequence {0}, query {2} is padding, and its entry for key {3} differs from that of a real query in its place",
)


@exercise.holds("Without padding, a query attends to itself and to the past, and to nothing later", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([[5, 8, 3]]), 0),
        note="no padding",
        degenerate_because="the smallest case, to be read by eye",
    )
    for _ in range(2):
        yield Case(args=(padded_tokens(draw, 0), 11), note="no padding")
    yield Case(args=(torch.tensor([[4], [7], [2], [5]]), 0), note="one token", degenerate_because="one token")


@exercise.holds("No query attends to a padded key, wherever the padding is", fault=padding_allowed)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 3, 0]]), 0), note="one padded token", degenerate_because="to be read by eye")
    for where in ("end", "start", "middle"):
        yield Case(args=(padded_tokens(draw, 3, where), 3), note=f"padding at the {where}, pad_id 3")


@exercise.holds("The rows of padded queries follow the same rule as those of real ones", fault=another_rule)
def _(draw):
    tokens = torch.tensor([[5, 8, 3, 6], [7, 0, 4, 9]])
    yield Case(args=(tokens, 0), note="a padded query between real ones", degenerate_because="to be read by eye")
    for where in ("end", "start", "middle"):
        yield Case(args=(padded_tokens(draw, 2, where), 2), note=f"padding at the {where}, pad_id 2")


@exercise.holds("Together: True exactly for real keys that are not in the future, whatever pad_id is", weight=3)
def _(draw):
    for where in ("end", "start", "middle"):
        yield Case(args=(padded_tokens(draw, 0, where), 0), note=f"padding at the {where}, pad_id 0")
    for pad_id in (1, 4, -1):
        yield Case(args=(padded_tokens(draw, pad_id), pad_id), note=f"pad_id {pad_id}")
    yield Case(args=(padded_tokens(draw, 3).int(), 3), note="int32 tokens, pad_id 3")
    tokens = padded_tokens(draw, 0)
    tokens[1] = 0
    yield Case(args=(tokens, 0), note="a sequence of padding only")
    yield Case(args=(padded_tokens(draw, 0).T.contiguous().T, 0), note="tokens that are transposed in memory")
