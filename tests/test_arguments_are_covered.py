"""Every public function and class has a row in a table of wrong arguments, or a reason why not."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from wrong_arguments import public_names

TABLES = (
    "test_arguments_of_chapters.py",
    "test_arguments_of_models.py",
    *(f"{room}/test_arguments.py" for room in ("bert", "translator", "viz")),
    "costs/test_arguments_of_costs.py",
    "diagnosing/test_arguments_of_diagnosing.py",
)
ROOMS = (
    "course_lib",
    *(
        f"course_lib.{chapter}"
        for chapter in (
            *("attention", "scaled_dot_product", "multi_head", "masking", "positional_encoding"),
            *("transformer", "training", "decoding", "inspection", "efficiency", "debugging", "language_model"),
        )
    ),
    "course_kit",
    "course_kit.nn",
    *(f"course_kit.nn.{part}" for part in ("cache", "layers", "models", "multi_head", "positions", "recording")),
    "course_kit.nn.attention",
    *(
        f"course_kit.{room}"
        for room in ("recurrent", "flash_attention", "beam_trace", "stats", "measuring", "speculative")
    ),
    "course_kit.chunked_linear_attention",
    *(f"course_kit.{room}" for room in ("shared_key_attention", "window_cache", "data", "bert", "viz", "diagnosing")),
    "course_kit.language_model",
    *(f"course_kit.costs.{part}" for part in ("activations", "counting", "formulas", "layers", "training")),
    *(f"course_kit.translator{part}" for part in ("", ".search", ".recipe", ".trainer")),
)
RETURNED = "is what a function returns; readers do not make one"
BY_EXAMPLE = "works on files or for seconds, so wrong arguments are tried one by one: "
ELSEWHERE = {
    **dict.fromkeys(
        ("Scores", "SplitFigures", "Translation", "Hypotheses", "EncoderOutput", "TokenBatch", "Candidate", "Interval"),
        RETURNED,
    ),
    **dict.fromkeys(("SpeculativeSample", "Finding", "Report", "TrainingMemory"), RETURNED),
    **dict.fromkeys(("check", "hint", "progress", "solution"), BY_EXAMPLE + "tests/grader/test_check.py"),
    "yours": "checks its argument as check does, which is tried in tests/grader/test_check.py",
    "HubModel": BY_EXAMPLE + "tests/bert/test_finding.py",
    "BertEncoder": BY_EXAMPLE + "tests/bert/test_encoder.py",
    "SentenceTokenizer": "is built by load_encoder; tests/bert/test_checkpoint.py damages its file",
    "counted_steps": "takes a graph of autograd, which is no value to copy: tests/costs/test_formulas.py",
    **dict.fromkeys(("EncoderUnavailable", "LanguageModelUnavailable"), "is an error"),
    **dict.fromkeys(
        ("find_language_model", "load_language_model"), BY_EXAMPLE + "tests/language_model/test_loading.py"
    ),
    "CausalLM": BY_EXAMPLE + "tests/language_model/test_causal_lm.py",
    "LanguageModelConfig": BY_EXAMPLE + "tests/language_model/test_loading.py",
    "use_style": "takes no arguments",
    "AttentionPosition": "is a base class; RotaryPosition and AlibiPosition have rows",
    "broadcasts_to": "compares two shapes for check_mask, which has a row",
    "ParallelCorpus": "is a record, which the functions that load a corpus make",
    "multi30k": BY_EXAMPLE + "tests/data/test_multi30k.py",
    "check_shares": "is the check of Recipe and TranslationTask, which have rows",
}


def _covered(source: str) -> set[str]:
    """Names of a table's rows, without the method, and what a row says that it covers."""
    (table,) = (
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CALLS"
    )
    rows = {key.value.partition(".")[0] for key in table.keys}
    covers = [
        keyword.value
        for node in ast.walk(table)
        for keyword in getattr(node, "keywords", ())
        if keyword.arg == "covers"
    ]
    inside = [node for value in covers for node in ast.walk(value)]
    return rows | {getattr(node, "attr", getattr(node, "id", "")) for node in inside}


def test_every_public_name_has_a_row_of_wrong_arguments():
    tests = Path(__file__).parent
    covered = set().union(*(_covered((tests / table).read_text()) for table in TABLES))
    public = {name for room in ROOMS for name in public_names(importlib.import_module(room))}
    assert len(public) > 100
    assert public - covered - set(ELSEWHERE) == set(), "add a row to a table of CALLS, or a reason to ELSEWHERE"
    assert set(ELSEWHERE) - public == set(), "these are not public any more"
    assert set(ELSEWHERE) & covered == set(), "these have a row; take them out of ELSEWHERE"


def test_what_is_tried_elsewhere_is_named_there():
    root = Path(__file__).parents[1]
    for name, reason in ELSEWHERE.items():
        if reason.startswith(BY_EXAMPLE):
            assert name in (root / reason.removeprefix(BY_EXAMPLE)).read_text(), name
