"""What an attention head does, as numbers: how much of its weight follows one of five plain patterns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from course_kit.viz.inspection_inputs import DELIMITERS, Attention
from course_kit.viz.view_numbers import fixed

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
    """Score every head by five patterns, as `course_lib.head_scores` does; in cross-attention only by the last two.

    All are means over the queries that are ordinary tokens, delimiters such as [CLS] and [SEP] left out:

    - previous token, next token: the weight on the key just before or after the query, over queries that have one;
    - same word: the weight on all keys with the query's own token, itself included;
    - delimiter: the weight on delimiters;
    - broad: the entropy divided by that of equal weights, ln(number of keys that the query may attend to).

    Later keys count as masked where no head of any layer gives them weight.
    """
    flat = attention.weights.flatten(0, 1)  # (N, L_q, L_k)
    queries, keys = attention.queries, attention.keys
    causal = attention.own and not flat.triu(1).any()
    may_attend = torch.ones(flat.shape[1:], dtype=torch.bool)  # (L_q, L_k)
    may_attend = may_attend.tril() if causal else may_attend
    words = torch.tensor([query not in DELIMITERS for query in queries])
    if not words.any():
        words = ~words
    marks = torch.tensor([key in DELIMITERS for key in keys])
    of_interest: dict[str, Tensor] = {}
    if attention.own:
        back = torch.arange(len(queries))[:, None] - torch.arange(len(keys))
        if len(queries) > 1:
            of_interest |= {"previous token": back == 1, "next token": back == -1}
        of_interest["same word"] = torch.tensor([[query == key for key in keys] for query in queries])
    if marks.any():
        of_interest["delimiter"] = marks.expand(len(queries), -1)
    found = {}
    for name, wanted in of_interest.items():
        wanted = wanted & may_attend
        found[name] = _mean_over((flat * wanted).sum(-1), words & wanted.any(-1))
    number = may_attend.sum(-1)  # (L_q,)
    entropy = torch.special.entr(flat.clamp(min=0.0)).sum(-1) / number.clamp(min=2).log()
    found["broad"] = _mean_over(entropy, words & (number > 1))
    return Patterns(list(found), torch.stack([scores.clamp(0, 1) for scores in found.values()], 1))


def _mean_over(values: Tensor, counted: Tensor) -> Tensor:
    """Mean of `(N, L_q)` over the queries that count; 0 where there are none."""
    return values[:, counted].mean(-1) if counted.any() else values.new_zeros(len(values))
