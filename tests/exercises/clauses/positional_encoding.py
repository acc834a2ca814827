"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import torch
from contract_clauses import breaks
from torch import nn

import clauses._positions_by_formula  # noqa: F401 - the exercises that take numbers only
from course_lib.exercises.positional_encoding.apply_rotary import apply_rotary
from course_lib.exercises.positional_encoding.learned_positional_embedding import LearnedPositionalEmbedding

# LearnedPositionalEmbedding


def learned(forward=None, **parts):
    """The module with another forward, which has the right one as `self.right`, or with other parts."""

    class Solution(LearnedPositionalEmbedding):
        def __init__(self, max_length, d_model):
            super().__init__(max_length, d_model)
            for name, make in parts.items():
                setattr(self, name, make(max_length, d_model))

        def right(self, x):
            return super().forward(x)

    if forward is not None:
        Solution.forward = forward
    return Solution


def first(self, x):
    return self.embedding.weight[: x.shape[1]]


def last_rows(self, x):
    return self.right(x) - first(self, x) + self.embedding.weight[-x.shape[1] :]


def twice_in_later_sequences(self, x):
    return self.right(x) + (torch.arange(len(x)) > 0)[:, None, None] * first(self, x)


def refusing(fits):
    """Raises where it does not fit, and adds what rows there are otherwise."""

    def forward(self, x):
        if not fits(x, *self.embedding.weight.shape):
            raise ValueError("too long")
        rows = self.embedding.weight[torch.arange(x.shape[1]).clamp(max=self.embedding.num_embeddings - 1)]
        return x + rows

    return forward


for says, forward in (
    ("x plus the embeddings", lambda self, x: first(self, x).expand_as(self.right(x))),
    ("x plus the embeddings: nothing is scaled", lambda self, x: self.right(x) + x * (x.shape[-1] ** 0.5 - 1)),
    ("the embeddings of 0 to L - 1", lambda self, x: self.right(x) + first(self, x).roll(1, 0) - first(self, x)),
    (
        "the embeddings of 0 to L - 1: the first L",
        last_rows,
    ),
    (
        "the same in every sequence",
        twice_in_later_sequences,
    ),
    ("returns (B, L, d_model), for one position too", lambda self, x: self.right(x).squeeze(1)),
    ("returns (B, L, d_model), for one sequence too", lambda self, x: self.right(x).squeeze(0)),
    ("keeps the dtype", lambda self, x: self.right(x).float()),
    ("keeps the dtype", lambda self, x: self.right(x).double()),
    ("right to 1e-10 in float64", lambda self, x: self.right(x).float().to(x.dtype)),
    ("leaves x unchanged", lambda self, x: x.copy_(self.right(x))),
    ("lets gradients through, to x", lambda self, x: self.right(x.detach())),
    ("lets gradients through, to its weights", lambda self, x: self.right(x).detach() + x - x.detach()),
    ("train and eval are the same", lambda self, x: nn.functional.dropout(self.right(x), 0.1, self.training)),
    ("ValueError where L > max_length", lambda self, x: x + self.embedding(torch.arange(x.shape[1]))),
    ("ValueError where L > max_length, by one", refusing(lambda x, longest, width: x.shape[1] <= longest + 1)),
    ("no error where L = max_length", refusing(lambda x, longest, width: x.shape[1] < longest)),
    ("the error depends on L, not on B", refusing(lambda x, longest, width: max(x.shape[:2]) <= longest)),
    ("the error depends on L, not on d_model", refusing(lambda x, longest, width: max(x.shape[1:]) <= longest)),
    ("max_length is any number", refusing(lambda x, longest, width: x.shape[1] <= min(longest, 512))),
):
    breaks("LearnedPositionalEmbedding", says)(learned(forward))


class Renamed(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.positions = nn.Embedding(max_length, d_model)

    def forward(self, x):
        if x.shape[1] > self.positions.num_embeddings:
            raise ValueError("too long")
        return x + self.positions.weight[: x.shape[1]]


class KeptFromTheStart(LearnedPositionalEmbedding):
    def __init__(self, max_length, d_model):
        super().__init__(max_length, d_model)
        self.table = self.embedding.weight.detach().clone()

    def forward(self, x):
        super().forward(x)
        return x + self.table[: x.shape[1]].to(x.dtype) + 0 * self.embedding.weight.sum()


breaks("LearnedPositionalEmbedding", "`embedding` is its name")(Renamed)
breaks("LearnedPositionalEmbedding", "weights can be loaded into it")(KeptFromTheStart)
breaks("LearnedPositionalEmbedding", "no other parameters")(
    learned(None, scale=lambda longest, width: nn.Parameter(torch.ones(())))
)
breaks("LearnedPositionalEmbedding", "`embedding` has max_length rows")(
    learned(None, embedding=lambda longest, width: nn.Embedding(longest + 1, width))
)

# apply_rotary


def rotary(change):
    """A solution that hands the right one other arguments, or changes its result."""

    def solution(x, positions, base=10000.0):
        return change(x, positions, base)

    return solution


def by_pairs(angle, x, split=lambda x: (x[..., 0::2], x[..., 1::2])):
    first, second = split(x)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2)


def angles(x, positions, base, dtype=torch.float64):
    two_i = torch.arange(0, x.shape[-1], 2, dtype=dtype)
    return positions[:, None].to(dtype) * base ** (-two_i / x.shape[-1])


def frequencies_in_half(x, positions, base):
    return by_pairs(positions[:, None] * angles(x, torch.tensor([1]), base).half(), x)


def no_batch(x, positions, base):
    return apply_rotary(x[None] if x.dim() == 2 else x, positions, base)


def at_most_two_batch_axes(x, positions, base):
    turned = apply_rotary(x, positions, base)
    return turned if x.dim() < 5 else turned.flatten(0, -4)


def one_batch_axis(x, positions, base):
    return apply_rotary(x.flatten(0, -3) if x.dim() > 3 else x, positions, base)


def table(longest):
    def solution(x, positions, base):
        return by_pairs(angles(x, torch.arange(longest), base)[positions], x)

    return solution


def distinct(x, positions, base):
    """Equal positions are counted on, as though no two tokens could stand at one."""
    seen: dict[int, int] = {}
    counted = [seen.setdefault(p, 0) for p in positions.tolist() if not seen.update({p: seen.get(p, -1) + 1})]
    return apply_rotary(x, positions + torch.tensor(counted), base)


def whole_base(x, positions, base):
    return apply_rotary(x, positions, float(int(base)))


def changing(what):
    def solution(x, positions, base):
        turned = apply_rotary(x, positions, base)
        (x if what == "x" else positions).add_(1)
        return turned

    return solution


for says, change in (
    ("the pair (x_2i, x_2i+1)", lambda x, p, base: by_pairs(angles(x, p, base), x, lambda x: x.chunk(2, -1))),
    ("rotates by the angle, not by its opposite", lambda x, p, base: apply_rotary(x, -p, base)),
    ("base^(-2i/d)", lambda x, p, base: apply_rotary(x, p, base**0.5)),
    ("base as it is given", lambda x, p, base: apply_rotary(x, p)),
    ("base as it is given, not rounded", whole_base),
    ("base as it is given, small ones too", lambda x, p, base: apply_rotary(x, p, max(base, 50.0))),
    ("positions as they are given", lambda x, p, base: apply_rotary(x, torch.arange(len(p)), base)),
    ("positions need not start at 0", lambda x, p, base: apply_rotary(x, p - p.min(), base)),
    ("positions in any order", lambda x, p, base: apply_rotary(x, p.sort().values, base)),
    ("positions may repeat", distinct),
    ("positions may be large", table(1024)),
    ("positions may be large", table(8192)),
    ("leading dimensions may be none", no_batch),
    ("leading dimensions may be many", one_batch_axis),
    ("leading dimensions may be many: three", at_most_two_batch_axes),
    ("keeps the dtype", lambda x, p, base: apply_rotary(x, p, base).float()),
    ("keeps the dtype", lambda x, p, base: apply_rotary(x.double(), p, base)),
    ("right to 1e-10 in float64", lambda x, p, base: by_pairs(angles(x, p, base, torch.float32), x)),
    ("right to 1e-3 in float32 at position 5,000", lambda x, p, base: by_pairs(angles(x, p, base, torch.bfloat16), x)),
    (
        "right to 1e-3 in float32 at position 5,000",
        frequencies_in_half,
    ),
    ("leaves x unchanged", changing("x")),
    ("leaves positions unchanged", changing("positions")),
    ("lets gradients through", lambda x, p, base: apply_rotary(x.detach(), p, base)),
    ("one position works", lambda x, p, base: apply_rotary(x, p, base).squeeze(-2)),
):
    breaks("apply_rotary", says)(rotary(change))


@breaks("apply_rotary", "the default of base is 10,000")
def another_default(x, positions, base=500_000.0):
    return apply_rotary(x, positions, base)
