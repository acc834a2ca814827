"""A recipe: its file, its schedule, and what it refuses."""

import dataclasses
import math

import pytest
import torch

from course_kit.nn import Transformer
from course_kit.translator.recipe import Recipe
from course_lib.training import warmup_rate


def test_the_rate_rises_in_a_straight_line_and_falls_along_a_cosine():
    """By hand, with a peak of 0.5 at step 10 of 110."""
    recipe = Recipe(learning_rate=0.5, warmup_steps=10)
    rates = [recipe.rate(step, 110) for step in (1, 5, 10, 60, 110)]
    half_way = 0.5 * (0.01 + 0.99 * 0.5)
    assert rates == pytest.approx([0.05, 0.25, 0.5, half_way, 0.005])
    assert recipe.rate(500, 110) == pytest.approx(0.005)  # a few steps more than planned


def test_inverse_sqrt_is_the_papers_schedule_scaled_to_the_peak():
    recipe = Recipe(schedule="inverse_sqrt", learning_rate=0.7, warmup_steps=19, d_model=256)
    for step in (1, 7, 19, 20, 300):
        expected = 0.7 * warmup_rate(step, 512, 19) / warmup_rate(19, 512, 19)
        assert recipe.rate(step, 300) == pytest.approx(expected)
    assert recipe.rate(19, 300) == pytest.approx(0.7)


def test_constant_stays_after_its_warm_up():
    recipe = Recipe(schedule="constant", learning_rate=0.2, warmup_steps=1)
    assert {recipe.rate(step, 50) for step in (1, 2, 30, 50)} == {0.2}


def test_the_cosine_is_pytorchs():
    recipe = Recipe(learning_rate=1.0, warmup_steps=1)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40, eta_min=0.01)
    for step in range(1, 42):
        assert recipe.rate(step, 41) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()


def test_the_committed_recipe_is_small_enough():
    """9.04 million parameters at most; half precision in 12 MB."""
    model = Transformer(Recipe().model_config())
    parameters = sum(p.numel() for p in model.parameters())
    assert parameters <= 9_040_000
    assert 2 * parameters <= 12e6


def test_it_is_written_and_read(tmp_path):
    import yaml

    recipe = Recipe(seed=7, learning_rate=1e-3, betas=(0.8, 0.99), positions="rotary")
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(recipe.to_dict()))
    assert Recipe.read(tmp_path / "r.yaml") == recipe


def test_what_is_not_given_has_its_default_and_numbers_may_be_written_as_people_do(tmp_path):
    (tmp_path / "r.yaml").write_text("learning_rate: 1e-3\nclip_norm: 2\n")
    assert Recipe.read(tmp_path / "r.yaml") == Recipe(learning_rate=1e-3, clip_norm=2.0)
    (tmp_path / "betas.yaml").write_text("betas: [0, 98e-2]\n")
    assert Recipe.read(tmp_path / "betas.yaml") == Recipe(betas=(0.0, 0.98))
    (tmp_path / "empty.yaml").write_text("")
    assert Recipe.read(tmp_path / "empty.yaml") == Recipe()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: 3", "a recipe has the settings vocab_size, .*; got epoch"),
        ("epochs: many", "epochs must be of type int, like 26, got 'many'"),
        ("tie_embeddings: 1", "tie_embeddings must be of type bool"),
        ("learning_rate: fast", "learning_rate must be of type float"),
        ("betas: [fast, 0.9]", r"betas must be numbers, like \[0.9, 0.98\], got \['fast', 0.9\]"),
        ("betas: 0.9", "betas must be of type tuple"),
        ("[1, 2]", "must hold lines of the form `name: value`, got list"),
        ("a: b: c", "is not YAML"),
        ("num_heads: 3", "num_heads must divide d_model"),
    ],
)
def test_a_wrong_file_says_which_and_why(tmp_path, text, message):
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        Recipe.read(tmp_path / "r.yaml")
    assert "r.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"warmup_steps": 0}, "warmup_steps must be at least 1"),
        ({"label_smoothing": 1.0}, r"label_smoothing must lie in \[0, 1\), got 1.0"),
        ({"bpe_dropout": -0.1}, r"bpe_dropout must lie in \[0, 1\)"),
        ({"learning_rate": math.nan}, "learning_rate must be positive and finite, got nan"),
        ({"learning_rate": math.inf}, "learning_rate must be positive and finite, got inf"),
        ({"eps": -1.0}, "eps must be positive"),
        ({"clip_norm": -1.0}, "clip_norm must be finite and not negative"),
        ({"clip_norm": math.nan}, "clip_norm must be finite and not negative"),
        ({"betas": (0.9, 1.5)}, r"betas must be two numbers in \[0, 1\), got \(0.9, 1.5\)"),
        ({"betas": (0.9,)}, "betas must be two numbers"),
        ({"schedule": "linear"}, "schedule must be one of cosine, inverse_sqrt, constant, got 'linear'"),
        ({"positions": "binary"}, "positions must be one of"),
    ],
)
def test_a_number_out_of_range_is_refused(unchecked, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(Recipe(), **change)
