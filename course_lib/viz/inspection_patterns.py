"""What an attention head does, as numbers: how much of its weight follows one of five plain patterns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.viz.inspection_inputs import DELIMITERS, Attention
from course_lib.viz.view import fixed

__all__ = ["Patterns", "patterns_of"]

STRONG = 0.5  # of its weight: enough to say that a head follows a pattern
BROAD = 0.8  # of the largest possible entropy
SIGNS = {"previous token": "←", "next token": "→", "same word": "=", "delimiter": "▪", "broad": "≈"}


@dataclass(frozen=True)
class Patterns:
    """How far every head follows each pattern.

    Args:
        names: of the patterns.
        scores: `(num_layers · H, len(names))`, each in [0, 1].
    """

    names: list[str]
    scores: Tensor

    def main(self, head: int) -> str:
        """The pattern that a head follows most, or "" if it follows none of them."""
        plain = [
            (score, name)
            for name, score in zip(self.names, self.scores[head].tolist(), strict=True)
            if name != "broad" and score >= STRONG
        ]
        if plain:
            return max(plain)[1]
        return "broad" if self.scores[head, self.names.index("broad")] >= BROAD else ""

    def told(self, head: int) -> str:
        """The main pattern with its score."""
        name = self.main(head)
        return f"{name} {fixed(self.scores[head, self.names.index(name)].item())}" if name else "no plain pattern"

    def first(self) -> int:
        """The head to begin with: the one that follows a pattern between words most, or else the sharpest."""
        told = [i for i, name in enumerate(self.names) if name in ("previous token", "next token", "same word")]
        if told:
            return int(self.scores[:, told].max(1).values.argmax())
        return int(self.scores[:, self.names.index("broad")].argmin())


def patterns_of(attention: Attention) -> Patterns:
    """Score every head by five patterns; in cross-attention only by the last two.

    - previous token: the mean weight on the key just before the query, over queries that have one.
    - next token: the mean weight on the key just after it.
    - same word: the mean weight on all keys with the query's own token, itself included, over ordinary tokens.
    - delimiter: the mean weight on [CLS], [SEP] and their like.
    - broad: the mean entropy of a row divided by ln L_k, so that 1 means equal weights.
    """
    flat = attention.weights.flatten(0, 1)  # (N, L_q, L_k)
    queries, keys = attention.queries, attention.keys
    found: dict[str, Tensor] = {}
    if attention.own:
        if len(queries) > 1:
            found["previous token"] = flat.diagonal(-1, 1, 2).mean(-1)
            found["next token"] = flat.diagonal(1, 1, 2).mean(-1)
        ordinary = [i for i, token in enumerate(queries) if token not in DELIMITERS]
        if ordinary:
            alike = torch.tensor([[float(queries[i] == key) for key in keys] for i in ordinary], dtype=flat.dtype)
            found["same word"] = (flat[:, ordinary] * alike).sum(-1).mean(-1)
    marks = torch.tensor([float(key in DELIMITERS) for key in keys], dtype=flat.dtype)
    if marks.any():
        found["delimiter"] = (flat @ marks).mean(-1)
    entropy = torch.special.entr(flat.clamp(min=0.0)).sum(-1).mean(-1)
    found["broad"] = entropy / math.log(len(keys)) if len(keys) > 1 else torch.zeros(len(flat), dtype=flat.dtype)
    return Patterns(list(found), torch.stack([scores.clamp(0, 1) for scores in found.values()], 1))
