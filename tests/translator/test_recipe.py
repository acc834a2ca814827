"""A recipe: its file, its schedule, and what it refuses."""

import dataclasses
import json
import math

import pytest
import torch
import yaml

from benchmarks import ablations
from course_kit.nn import Transformer
from course_kit.translator.recipe import Recipe
from course_lib.training import warmup_rate


def test_the_rate_rises_in_a_straight_line_and_falls_along_a_cosine():
    """By hand, with a peak of 0.5 at step 10 of 110; a step after the last is as the last."""
    recipe = Recipe(learning_rate=0.5, warmup_steps=10)
    rates = [recipe.rate(step, 110) for step in (1, 5, 10, 35, 60, 110, 500)]
    quarter, half = (0.01 + 0.99 * share for share in ((2 + math.sqrt(2)) / 4, 1 / 2))
    assert rates == pytest.approx([0.05, 0.25, 0.5, 0.5 * quarter, 0.5 * half, 0.005, 0.005])


def test_the_runs_on_the_page_are_of_todays_recipes_though_a_setting_was_added_since(capsys, tmp_path):
    kept = json.loads(ablations.RESULTS.read_text())
    assert "embedding_rate" not in kept[0]["recipe"]
    assert Recipe().embedding_rate != ablations.BASE.embedding_rate == 1  # it had the base's value, not today's default
    assert ablations.read_results(ablations.RESULTS) == kept
    kept[0]["recipe"]["dropout"] = 0.7
    (tmp_path / "changed.json").write_text(json.dumps(kept))
    assert ablations.read_results(tmp_path / "changed.json") == kept[1:]
    assert "left out, of another recipe: paper or BERT, the paper's recipe, seed 0" in capsys.readouterr().out


def test_inverse_sqrt_is_the_papers_schedule_scaled_to_the_peak_and_constant_stays_there():
    recipe = Recipe(schedule="inverse_sqrt", learning_rate=0.7, warmup_steps=19, d_model=256)
    for step in (1, 7, 19, 20, 300):
        assert recipe.rate(step, 300) == pytest.approx(0.7 * warmup_rate(step, 512, 19) / warmup_rate(19, 512, 19))
    recipe = Recipe(schedule="constant", learning_rate=0.2, warmup_steps=2)
    assert [recipe.rate(step, 50) for step in (1, 2, 3, 30, 50)] == [0.1, 0.2, 0.2, 0.2, 0.2]


def test_the_committed_recipe_is_small_enough():
    """6 million parameters at most: 12 MB in half precision."""
    with torch.device("meta"):
        parameters = sum(p.numel() for p in Transformer(Recipe().model_config()).parameters())
    assert 2 * parameters <= 12e6


RECIPE = Recipe(seed=7, learning_rate=1e-3, betas=(0.8, 0.99), positions="alibi")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (yaml.safe_dump(RECIPE.to_dict()), RECIPE),
        ("learning_rate: 1e-3\nclip_norm: 2\n", Recipe(learning_rate=1e-3, clip_norm=2.0)),  # as people write numbers
        ("betas: [0, 98e-2]\n", Recipe(betas=(0.0, 0.98))),
        ("", Recipe()),
    ],
)
def test_a_file_is_read_and_what_it_leaves_out_has_its_default(tmp_path, text, expected):
    (tmp_path / "r.yaml").write_text(text)
    assert Recipe.read(tmp_path / "r.yaml") == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"epoch: 3", "a recipe has the settings vocab_size, .*; got epoch"),
        (b"epochs: many", "epochs must be of type int, like 42, got 'many'"),
        (b"tie_embeddings: 1", "tie_embeddings must be of type bool, like True, got 1"),
        (b"learning_rate: fast", "learning_rate must be of type float"),
        (b"learning_rate: true", "learning_rate must be of type float, .*, got True"),
        (b"betas: [fast, 0.9]", r"betas must be numbers, like \[0.9, 0.98\], got \['fast', 0.9\]"),
        (b"betas: 0.9", "betas must be of type tuple"),
        (b"[1, 2]", "must hold lines of the form `name: value`, got list"),
        (b"a: b: c", "is not YAML"),
        (b"num_heads: 3", "num_heads must divide d_model"),
        (b"epochs: 3\nd_ff: 8\nepochs: 5\n", "must give each name once, got epochs more than once"),
        (b"epochs: \xff\n", "must be UTF-8"),
        (b"[" * 3000, "is not YAML: maximum recursion depth exceeded"),
        (b"seed: 2026-13-45\n", "is not YAML: month must be in 1..12"),
        (b"[a, b]: 3\n", r"is not YAML: while constructing a mapping [^\n]*$"),
        (b"<<: 5\n", r"is not YAML: while constructing a mapping [^\n]*$"),
    ],
)
def test_a_wrong_file_says_which_and_why(tmp_path, content, message):
    (tmp_path / "r.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=rf"r\.yaml.* {message}"):
        Recipe.read(tmp_path / "r.yaml")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
        ({"label_smoothing": 1.0}, ValueError, r"label_smoothing must lie in \[0, 1\), got 1.0"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number, got 'fast'"),
        ({"learning_rate": math.nan}, ValueError, "learning_rate must be positive and finite, got nan"),
        ({"eps": 0.0}, ValueError, "eps must be positive"),
        ({"clip_norm": math.inf}, ValueError, "clip_norm must be finite and not negative"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay must be finite and not negative"),
        ({"betas": 0.9}, TypeError, "betas must be two numbers, got 0.9"),
        ({"betas": (0.9, 1.0)}, ValueError, r"betas must be two numbers in \[0, 1\), got \(0.9, 1.0\)"),
        ({"betas": (0.9,)}, ValueError, "betas must be two numbers"),
        ({"schedule": "linear"}, ValueError, "schedule must be one of cosine, inverse_sqrt, constant, got 'linear'"),
    ],
)
def test_a_setting_of_another_type_or_out_of_range_is_refused(unchecked, change, error, message):
    """Each setting by itself is in the table of `test_arguments`; these are the edges."""
    with pytest.raises(error, match=message):
        dataclasses.replace(Recipe(), **change)
