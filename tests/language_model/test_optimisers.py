"""The comparison of Muon and AdamW: who trains what, runs that resume, and all runs that the page needs."""

import json
from collections import Counter

import pytest
import torch

from benchmarks import language_blocks as blocks
from benchmarks import optimisers as compared

TOKENS = torch.arange(3 * blocks.LENGTH) % 7


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    """Looking for the width of equal size takes longer than a few steps."""
    monkeypatch.setattr(blocks, "equal_width", lambda changes: 11)


@pytest.mark.parametrize("name", compared.OPTIMISERS)
def test_each_parameter_has_one_rule_and_only_the_matrices_of_the_blocks_have_the_chosen_one(name):
    model = blocks.Decoder(blocks.CHANGES, 11)
    first, last = (each[i] for each in [compared.optimisers_of(name, 0.5, 0.25)(model)] for i in (0, -1))
    matrices, others = first.param_groups[0], last.param_groups[-1]
    trained = Counter(id(p) for group in (matrices, others) for p in group["params"])
    assert trained == Counter(id(p) for p in model.parameters())
    assert type(first).__name__ == name
    assert (matrices["lr"], others["lr"]) == (0.5, 0.25)
    assert {p.ndim for p in matrices["params"]} == {2}
    assert any(p is model.embedding.weight for p in others["params"])


@pytest.mark.parametrize("name", compared.OPTIMISERS)
def test_a_few_steps_lower_the_loss(name):
    losses = [
        blocks.bits_per_byte(model, TOKENS, len(TOKENS))
        for model in blocks.training(blocks.CHANGES, 0, TOKENS, compared.optimisers_of(name, 8e-3, 8e-3), 5)
    ]
    assert losses[-1] < losses[0] - 0.1


def test_the_update_of_muon_has_nearly_equal_singular_values():
    weight = torch.nn.Parameter(torch.zeros(7, 5))
    weight.grad = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    torch.optim.Muon([weight], lr=1.0, adjust_lr_fn="match_rms_adamw").step()
    values = torch.linalg.svdvals(weight.detach()) / (0.2 * 7**0.5)
    assert values.min() > 0.5
    assert values.max() < 1.5


def test_a_stopped_series_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "packed_prose", lambda: (None, TOKENS, TOKENS, len(TOKENS)))
    monkeypatch.setattr(compared, "time_per_step", lambda tokens: {"ratio": 1.5})
    monkeypatch.setattr(compared, "MATRIX_RATES", (1e-3, 8e-3))
    monkeypatch.setattr(compared, "OTHER_RATES", (8e-3,))
    path = tmp_path / "optimisers.json"
    compared.run_missing(path, seeds=(0,), steps=2)
    whole = path.read_text()
    results = json.loads(whole)
    assert [(r["optimiser"], r["steps"]) for r in results["runs"]] == [("Muon", 2), ("AdamW", 2), ("AdamW", 3)]
    assert len(results["grid"]) == 4
    path.write_text(json.dumps({**results, "runs": results["runs"][:1]}))
    compared.run_missing(path, seeds=(0,), steps=2)
    assert path.read_text() == whole


def test_all_runs_of_the_page_are_there():
    results = json.loads(compared.RESULTS.read_text())
    longer = round(blocks.STEPS * results["time"]["ratio"])
    wanted = {("Muon", blocks.STEPS), ("AdamW", blocks.STEPS), ("AdamW", longer)}
    runs = Counter((r["optimiser"], r["steps"], r["seed"]) for r in results["runs"])
    assert runs == Counter((*kind, seed) for kind in wanted for seed in blocks.SEEDS)
    tries = Counter(r["optimiser"] for r in results["grid"])
    assert tries["Muon"] == tries["AdamW"] == len(compared.MATRIX_RATES) * len(compared.OTHER_RATES)
    for name in compared.OPTIMISERS:
        rates = {(r["matrix_rate"], r["other_rate"]) for r in results["runs"] if r["optimiser"] == name}
        assert rates == {compared.best_rates(results["grid"], name)}
