"""How long checks and grading take: `python -m benchmarks.grading [NUMBER]`.

A class is made of right solutions, wrong ones and stubs, five exercises per student. Printed: the time of a check in a
notebook; of one submission of one exercise behind all walls, beside an idle process of the same kind; and of grading a
class with two jobs by the command, with the memory of the grader. Times of the wall clock need a quiet machine; the
time on a processor, printed beside them, depends on it less.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.sandbox.session import Session
from course_grade.submission.submissions import read_submission
from course_kit.checker.notebook import self_check
from course_kit.exercises import all_exercises, find

NAMES = ("softmax", "attend", "scaled_dot_product_attention", "causal_mask", "layer_norm")


def checks() -> None:
    """Median over all exercises of a check of the right solution and of the first and second wrong one."""
    for title, pick in (("right", lambda e: e.reference), ("wrong", lambda e: e.misconceptions[0].solution)):
        first, again = [], []
        for exercise in all_exercises().values():
            for times in (first, again):
                start = time.perf_counter()
                self_check(exercise, pick(exercise))
                times.append(1000 * (time.perf_counter() - start))
        print(
            f"check of a {title} solution, {len(first)} exercises: median {statistics.median(first):.0f} ms "
            f"(largest {max(first):.0f}) at first, {statistics.median(again):.0f} ms (largest {max(again):.0f}) again"
        )


def a_class(folder: Path, number: int) -> None:
    """Files of `number` students."""
    chance = random.Random(0)
    for student in range(number):
        parts = ["import math", "import torch", "from torch import nn"]
        for name in NAMES:
            exercise = find(name)
            kind = chance.random()
            source = (
                exercise.stub if kind < 0.2 else SOLUTIONS[name] if kind < 0.7 else SOLUTIONS[name].replace("-1", "0")
            )
            parts.append(source)
        (folder / f"student_{student:04d}.py").write_text("\n\n".join(parts))


SOLUTIONS = {
    "softmax": """def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)""",
    "attend": """def attend(scores, value):
    weights = scores.softmax(-1)
    return weights @ value, weights""",
    "scaled_dot_product_attention": """def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights""",
    "causal_mask": """def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()""",
    "layer_norm": """def layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain + bias""",
}


def one() -> None:
    """A submission of one exercise, and for scale a process that loads nothing."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "student.py"
        path.write_text("import math\nimport torch\n\n" + SOLUTIONS["attend"])
        submission = read_submission("student", [path])
        with Grader(Assignment(tasks=(AssignedExercise("attend"),), seed=1)) as grader:
            grader.grade(submission)

            def idle() -> None:
                Session(grader.server).close()

            for title, act in (
                ("an idle process", idle),
                ("a submission of one exercise", lambda: grader.grade(submission)),
            ):
                times = []
                for _ in range(60):
                    start = time.perf_counter()
                    act()
                    times.append(1000 * (time.perf_counter() - start))
                shown = f"median {statistics.median(times):.1f} ms, fastest {min(times):.1f} ms"
                print(f"{title}: {shown}; {grader.server.walls.level} walls")


GRADE = """
import resource, sys, time
from course_grade.command import main
start = time.perf_counter()
status = main(sys.argv[1:])
seconds = time.perf_counter() - start
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(status, seconds, own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime, own.ru_maxrss / 1024)
"""


def grading(number: int) -> None:
    """A class, with two jobs, by the command: everything counts, from reading the files to the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "class").mkdir()
        a_class(folder / "class", number)
        chosen = [part for exercise in NAMES for part in ("-e", exercise)]
        options = ["--jobs", "2", "--quiet", "--seed", "1", "--out", str(folder / "out")]
        command = [sys.executable, "-c", GRADE, "grade", str(folder / "class"), *chosen, *options]
        for title in ("graded", "from the earlier run"):
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            status, seconds, own, others, memory = map(float, done.stdout.split())
            assert status == 0, done.stderr
            print(
                f"{number} submissions of {len(NAMES)} exercises, two jobs, {title}: {seconds:.0f} s; on a processor "
                f"{own:.0f} s by the grader and {others:.0f} s by others; peak memory of the grader {memory:.0f} MB"
            )


if __name__ == "__main__":
    torch.set_num_threads(1)
    checks()
    one()
    grading(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
