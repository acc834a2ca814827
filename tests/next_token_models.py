"""Models that the tests of the searches ask for the next token, small enough to go through by hand."""

from __future__ import annotations

import torch

BOS, EOS = 0, 1


def model_of(table: dict[tuple[int, ...], list[float]]):
    """A model from probabilities after each prefix (without bos); what is not in the table ends soon."""

    def next_log_probs(tokens: list[int]) -> torch.Tensor:
        assert tokens[0] == BOS
        return torch.tensor(table.get(tuple(tokens[1:]), [0.0, 0.4, 0.3, 0.3]), dtype=torch.float64).log()

    return next_log_probs


def random_model(vocab: int, seed: int, spread: float = 1.5):
    """A model whose answer depends on every token so far, in their order."""
    weight = spread * torch.randn(97, vocab, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def next_log_probs(tokens: list[int]) -> torch.Tensor:
        assert type(tokens) is list
        assert all(type(token) is int for token in tokens)
        assert tokens[0] == BOS
        assert EOS not in tokens
        state = 0
        for token in tokens:
            state = (state * 31 + token + 1) % 97
        return weight[state].log_softmax(-1)

    return next_log_probs


# Greedy takes 2 (0.5), after which nothing is likely; 3 (0.4) is followed by eos for certain.
TRAP = model_of(
    {
        (): [0.0, 0.1, 0.5, 0.4],
        (2,): [0.0, 0.3, 0.4, 0.3],
        (3,): [0.0, 0.9, 0.05, 0.05],
        (2, 2): [0.0, 0.4, 0.3, 0.3],
        (2, 3): [0.0, 0.4, 0.3, 0.3],
        (3, 2): [0.0, 0.4, 0.3, 0.3],
        (3, 3): [0.0, 0.4, 0.3, 0.3],
    }
)
