"""Grading on a Dask cluster, here of two processes on this machine: the same results as without."""

import functools
import json
import os
from pathlib import Path

import pytest
from handed_in import CAUSAL, IMPORT

from course_grade.command import main
from course_grade.grading import dask as dask_cluster
from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.dask import ClusterGrader
from course_grade.grading.grade import grade_all
from course_grade.grading.store import Store
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submissions

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork"),
]

CODE = {
    "ada": IMPORT + CAUSAL,
    "bob": IMPORT + CAUSAL.replace(".tril()", ".triu()"),
    "cy": "def causal_mask(length):\n    while True:\n        pass\n",
    "dora": "import os\ndef causal_mask(length):\n    os._exit(0)\n",
    "eve": "def causal_mask(length:\n",
    "finn": IMPORT + CAUSAL + "def softmax(scores, dim=-1):\n    raise ValueError('Übung 😀')\n",
}
ASSIGNMENT = Assignment(
    tasks=(AssignedExercise("softmax", 2.0), AssignedExercise("causal_mask")),
    seed=11,
    limits=Limits(seconds=1, load_seconds=10, total_seconds=15, memory_mb=512),
)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("class")
    for name, code in CODE.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def submissions(handed_in):
    return list(read_submissions([handed_in]))


@pytest.fixture(scope="module")
def expected(submissions):
    return grade_all(submissions, ASSIGNMENT, None)


def on_cluster(cluster, *arguments, **options):
    start = functools.partial(ClusterGrader, cluster.scheduler_address)
    return grade_all(*arguments, start=start, **options)


def test_the_results_are_those_without_a_cluster_told_once_and_kept(cluster, submissions, expected, tmp_path):
    assert [(result.student, result.points) for result in expected] == list(zip(CODE, (1, 0, 0, 0, 0, 1), strict=True))
    told, walls = [], []

    def on_result(submission, result, again):
        assert result.student == submission.student
        told.append((submission.student, again))

    for kept, number in ((0, 3), (3, 6)):
        store = Store(tmp_path / "kept", ASSIGNMENT)
        more = {"on_start": walls.append, "on_result": on_result}
        assert on_cluster(cluster, submissions[:number], ASSIGNMENT, store, **more) == expected[:number]
        assert sorted(told) == [(name, place < kept) for place, name in enumerate(CODE)][:number]
        told.clear()
    assert {str(one) for one in walls} == {expected[0].walls}
    assert len(walls) == 2  # once per run, since both workers have the same
    assert all(store.load(submission) == result for submission, result in zip(submissions, expected, strict=True))


def test_both_workers_grade_and_leave_no_fork_server_behind(cluster, submissions):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        futures = client.map(_where, submissions, assignment=ASSIGNMENT, pure=False)
        assert len(set(client.gather(futures))) == 2
        client.run(dask_cluster.close_here)
        assert set(client.run(_graders_left).values()) == {0}


def _where(submission, assignment):
    dask_cluster.grade_here(submission, assignment)
    return os.getpid()


def _graders_left():
    return len(dask_cluster._GRADERS)


def test_the_command_writes_the_same_bytes_with_and_without_a_cluster(cluster, handed_in, tmp_path, capsys):
    week = tmp_path / "week.yaml"
    week.write_text("seed: 11\nexercises: {softmax: 2, causal_mask: 1}\nlimits: {seconds: 1}\n")
    files = {}
    for name, options in {"here": ["-j", "2"], "there": ["--dask", cluster.scheduler_address]}.items():
        out = tmp_path / name
        assert main(["grade", str(handed_in), "-a", str(week), "--out", str(out), *options]) == 0
        files[name] = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert files["here"] == files["there"]
    assert len(files["here"]) == 2 + 2 * len(CODE)
    points = [s["points"] for s in json.loads((tmp_path / "there" / "results.json").read_text())["submissions"]]
    assert points == [1, 0, 0, 0, 0, 1]
    assert capsys.readouterr().out.count("Sandbox: ") == 2


def test_a_cluster_that_does_not_answer_is_said(handed_in, capsys):
    arguments = ["grade", str(handed_in / "ada.py"), "--dask", "tcp://127.0.0.1:9", "--quiet"]
    assert main(arguments) == 2
    assert "127.0.0.1:9" in capsys.readouterr().err
