"""What the tests of the batched search share: small models, ways of decoding, and a model that says what it is told."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from oracles import randomise

from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator.search import Hypotheses, beam, greedy, sample

BOS, PAD, EOS = 0, 1, 2
IDS = {"bos_id": BOS, "eos_id": EOS}
SMALL = TransformerConfig(
    vocab_size=11, d_model=20, num_heads=2, num_layers=2, d_ff=13, dropout=0.0, max_length=11, pad_id=PAD
)
SOURCE = torch.tensor([[3, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, PAD, PAD], [10, 3, PAD, PAD, PAD, PAD, PAD]])
POSITIONS = pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
TIED = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
WAYS = {
    "greedy": greedy,
    "beam": lambda *args, **options: beam(*args, beam_size=3, num_best=3, length_penalty=1.0, **options),
    "sample": lambda *args, **options: sample(
        *args, num_samples=3, temperature=0.8, generator=torch.Generator().manual_seed(5), **options
    ),
}
EACH_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def build(seed=0, **changes):
    """A tiny model with large weights, above all in attention: peaked distributions that change from step to step."""
    torch.manual_seed(seed)
    model = randomise(Transformer(dataclasses.replace(SMALL, **changes))).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.mul_(0.2).add_(name.endswith("weight"))  # gains about 1, biases about 0
            elif "attention" in name:
                parameter.mul_(2.0)
    return model


# With these sentences end, at all lengths; the others mostly go on to the limit.
ENDING = {"norm": "pre", "tie_embeddings": False}


def alone(row):
    """A row of a batch as a batch of its own, without its padding."""
    return row[row != PAD][None]


def assert_same(ours: Hypotheses, theirs: Hypotheses, tolerance=1e-10):
    assert ours.tokens == theirs.tokens
    assert ours.finished == theirs.finished
    for mine, other in ((ours.log_probs, theirs.log_probs), (ours.scores, theirs.scores)):
        for a, b in zip(mine, other, strict=True):
            assert a == pytest.approx(b, rel=0, abs=tolerance)


def each_with_its_source(result: Hypotheses, source=SOURCE):
    """`(source row, tokens, log-probability, finished)` of every hypothesis."""
    for row, *of_row in zip(source, result.tokens, result.log_probs, result.finished, strict=True):
        for hypothesis in zip(*of_row, strict=True):
            yield row, *hypothesis


def log_probs_of(model, source, text, finished):
    """Sum of log-probabilities by one call of the whole model."""
    target = torch.tensor([[BOS, *text, EOS] if finished else [BOS, *text]])
    steps = model(source, target[:, :-1]).log_softmax(-1)
    return steps.gather(-1, target[:, 1:, None]).sum().item()


class Told(Transformer):
    """A transformer whose next-token probabilities are told by a table: a row for each last token."""

    def __init__(self, table):
        super().__init__(
            TransformerConfig(vocab_size=len(table), d_model=2, num_heads=1, num_layers=1, d_ff=3, pad_id=PAD)
        )
        self.logits = torch.tensor(table, dtype=torch.float64).log()

    def decode(self, target, memory, source):
        return self.logits[target]


#            bos  pad  eos   a    b
TABLE = [
    [0.00, 0.00, 0.10, 0.60, 0.30],  # after bos
    [0.20, 0.20, 0.20, 0.20, 0.20],
    [0.20, 0.20, 0.20, 0.20, 0.20],
    [0.05, 0.05, 0.30, 0.35, 0.25],  # after a
    [0.00, 0.00, 0.90, 0.05, 0.05],  # after b
]
A, B = 3, 4
ONE = torch.tensor([[A]])
