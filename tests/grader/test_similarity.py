"""Submissions that are nearly the same are found whatever their names and comments; independent ones are not."""

import ast
import csv
import io
from pathlib import Path

import pytest
from solutions_by_others import cells

from course_grade.command import main
from course_grade.grading.similarity import script_from, script_of, similar_pairs
from course_grade.output.similarity_page import similarity_csv, similarity_page
from course_grade.submission.submissions import read_submission
from course_kit.exercises import find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

NAMES = ["softmax", "scaled_dot_product_attention", "causal_mask"]
ONE = """
import math
import torch

def softmax(scores, dim=-1):
    largest = torch.amax(scores, dim=dim, keepdim=True)
    shifted = scores - largest
    powers = torch.pow(math.e, shifted)
    total = powers.sum(dim=dim).unsqueeze(dim)
    return torch.div(powers, total)

def scaled_dot_product_attention(query, key, value, mask=None):
    width = float(query.size(-1))
    scores = torch.einsum("...id,...jd->...ij", query * width ** -0.25, key * width ** -0.25)
    if mask is not None:
        hidden = torch.logical_not(mask).expand_as(scores)
        scores = torch.where(hidden, torch.full_like(scores, -math.inf), scores)
    weights = softmax(scores)
    output = torch.einsum("...ij,...jd->...id", weights, value)
    return output, weights

def causal_mask(length):
    rows = torch.arange(length).reshape(length, 1)
    columns = torch.arange(length).reshape(1, length)
    return torch.ge(rows, columns)
"""
OTHER = """
import torch

def softmax(scores, dim=-1):
    "By exp and log."
    return (scores - scores.logsumexp(dim, keepdim=True)).exp()

def scaled_dot_product_attention(query, key, value, mask=None):
    s = query.matmul(key.mT)
    s /= query.shape[-1] ** 0.5
    if mask is None:
        w = softmax(s)
    else:
        w = softmax(s + torch.zeros_like(s).masked_fill(mask.logical_not(), float("-inf")))
    return w.matmul(value), w

def causal_mask(length):
    return torch.tensor([[j <= i for j in range(length)] for i in range(length)], dtype=torch.bool)
"""
RENAMED = {"largest": "m", "shifted": "t", "powers": "e", "total": "z", "width": "dd", "hidden": "no", "rows": "i"}


def disguised(code: str) -> str:
    """With other names, comments, docstrings, blank lines and order."""
    for before, after in RENAMED.items():
        code = code.replace(before, after)
    head, *functions = code.split("\ndef ")
    functions = [f"{f.partition(chr(10))[0]}\n    '''Mine.'''\n\n{f.partition(chr(10))[2]}" for f in functions]
    functions = [f.replace("\n    return", "\n\n    # the result\n    return") for f in reversed(functions)]
    return head + "".join(f"\ndef {f}" for f in functions)


@pytest.fixture
def scripts(tmp_path):
    def make(codes: dict[str, str]):
        found = []
        for student, code in codes.items():
            path = tmp_path / f"{student}.py"
            path.write_text(code)
            found.append(script_of(read_submission(student, [path]), NAMES))
        return found

    return make


def names_of(pairs):
    return [(pair.one.student, pair.other.student) for pair in pairs]


def test_other_names_comments_and_order_hide_nothing_whatever_the_order_of_submissions(scripts):
    assert disguised(ONE) != ONE
    codes = {"ada": ONE, "bob": OTHER, "cy": disguised(ONE)}
    (pair,) = similar_pairs(scripts(codes))
    assert names_of([pair]) == [("ada", "cy")]
    assert pair.share > 0.9
    (again,) = similar_pairs(sorted(scripts(dict(reversed(codes.items()))), key=lambda script: script.student))
    assert again == pair


def test_one_exercise_of_three_that_is_the_same_is_not_a_pair(scripts):
    mixed = OTHER[: OTHER.index("def causal_mask")] + ONE[ONE.index("def causal_mask") :]
    assert similar_pairs(scripts({"ada": ONE, "bob": mixed})) == []


def test_a_short_submission_inside_a_long_one_is_not_a_pair():
    """Most of the long one is its author's own."""
    short, long = script_from("ada", [ONE]), script_from("bob", [ONE, OTHER])
    assert short.fingerprints.keys() < long.fingerprints.keys()
    assert similar_pairs([short, long]) == []


def test_what_the_course_gives_does_not_count(scripts):
    given = "import math\nimport torch\n" + "\n".join(find(name).solution for name in NAMES)
    stubs = "\n".join(find(name).stub for name in NAMES)
    assert similar_pairs(scripts({"ada": given, "bob": given, "cy": stubs, "dora": stubs})) == []


def test_what_many_share_does_not_count(scripts):
    codes = {f"s{number:02}": ONE for number in range(20)}
    assert similar_pairs(scripts(codes)) == []
    codes |= {f"o{number:02}": OTHER.replace("0.5", f"0.{number}5") for number in range(40)}
    codes = dict(list(codes.items())[17:])  # three of sixty: unusual
    assert set(names_of(similar_pairs(scripts(codes)))) >= {("s17", "s18"), ("s17", "s19"), ("s18", "s19")}


def test_any_code_can_be_compared(scripts):
    for code in ("", "def softmax(", "def softmax(scores, dim=-1):\n  '''\n", "x = 1\n" * 50_000):
        assert similar_pairs(scripts({"ada": code, "bob": ONE})) == []


def test_independent_right_solutions_are_not_pairs():
    """The right solutions of the tests, each of which was written in a way of its own."""
    statements: dict[str, list[str]] = {}
    for cell in cells("right"):
        own = [ast.get_source_segment(cell.code, node) for node in ast.parse(cell.code).body]
        statements.setdefault(cell.stem, []).extend(own)
    found = [script_from(stem, of_chapter) for stem, of_chapter in statements.items()]
    assert len(found) > 5
    assert names_of(similar_pairs(found)) == []


def test_the_report_accuses_nobody_and_shows_the_code(scripts):
    pairs = similar_pairs(scripts({"=ada<b>": ONE, "cy": disguised(ONE)}))
    page = similarity_page(pairs, 2)
    assert "=ada&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<mark>    powers = torch.pow(math.e, shifted)</mark>" in page
    assert not any(word in page.lower() for word in ("plagiar", "cheat", "copied", "suspicio", "misconduct"))
    (row,) = csv.DictReader(io.StringIO(similarity_csv(pairs).removeprefix("\ufeff")))
    assert row["student"] == "'=ada<b>"
    assert "No pair is nearly the same." in similarity_page([], 2)


def test_the_command_writes_the_report_beside_the_results(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("class").mkdir()
    for name, code in {"ada": ONE, "bob": OTHER, "cy": disguised(ONE)}.items():
        Path("class", f"{name}.py").write_text(code)
    command = [part for name in NAMES for part in ("-e", name)]
    assert main(["grade", "class", *command, "--similarity", "--out", "out"]) == 0
    assert "1 pair(s) of submissions are nearly the same" in capsys.readouterr().out
    assert {"similarity.html", "similarity.csv"} <= {path.name for path in Path("out").iterdir()}
