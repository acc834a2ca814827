"""One wrong argument in each measurement of a model, and in `diagnose`: refused by name, or computed as it may be."""

from __future__ import annotations

import torch
from wrong_arguments import Call, floats, right_and_wrong

from course_kit.diagnosing import diagnose
from course_kit.nn import LanguageModel, TransformerConfig
from course_lib import debugging

IDS = torch.tensor([[3, 4, 1], [3, 2, 4]])


def model():
    """A language model that is the same in each run."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = TransformerConfig(vocab_size=9, d_model=4, num_heads=2, num_layers=1, d_ff=8, dropout=0.0)
        return LanguageModel(config)


LOSS = torch.ones((), requires_grad=True)
BY_THE_MODEL = {"tokens": "token ids"}  # ids outside the vocabulary are refused by the model itself

CALLS = {
    "start_loss": Call(debugging.start_loss, {"logits": floats(2, 3, 9), "targets": IDS, "pad_id": 0}),
    "fit_one_batch": Call(
        debugging.fit_one_batch,
        {"model": model(), "tokens": IDS, "targets": IDS, "steps": 2, "learning_rate": 1e-3, "pad_id": 0},
        called={"tokens": "token ids|targets"},
    ),
    "token_influence": Call(
        debugging.token_influence, {"model": model(), "tokens": IDS, "columns": [0, 2]}, called=BY_THE_MODEL
    ),
    "padding_effect": Call(
        debugging.padding_effect, {"model": model(), "tokens": IDS, "pad_id": 0, "extra": 2}, called=BY_THE_MODEL
    ),
    "idle_parameters": Call(  # wrong losses are in tests/test_debugging.py
        lambda model: debugging.idle_parameters(model, LOSS), {"model": model()}, covers=(debugging.idle_parameters,)
    ),
    "order_effect": Call(debugging.order_effect, {"model": model(), "tokens": IDS}, called=BY_THE_MODEL),
    "precision_gap": Call(debugging.precision_gap, {"model": model(), "tokens": IDS}, called=BY_THE_MODEL),
    "diagnose": Call(
        diagnose,
        {"model": model(), "batch": IDS, "targets": IDS, "pad_id": 0, "causal": True},
        called={"batch": "targets"},
    ),
}

test_right_arguments_are_taken, test_a_wrong_argument_is_refused_or_computed = right_and_wrong(CALLS)
