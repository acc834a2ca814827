"""How long checks and grading take: `python -m benchmarks.grading [NUMBER]`.

A class is made of right solutions, wrong ones and stubs, five exercises a student. Printed: time of a check in a
notebook, and of grading that class with all walls, one and two jobs.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from course_lib.exercises import all_exercises, find
from course_lib.grader._assignment import Assignment, Task
from course_lib.grader._grading import Grader, grade_all
from course_lib.grader._submissions import read_submissions
from course_lib.grader.notebook import self_check

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


def grading(number: int) -> None:
    """A class, with one job and with two."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        a_class(folder, number)
        assignment = Assignment(tasks=tuple(map(Task, NAMES)), seed=1)
        submissions = list(read_submissions([folder]))
        with Grader(assignment) as grader:
            grader.grade(submissions[0])
            times = []
            for submission in submissions[1:41]:
                start = time.perf_counter()
                grader.grade(submission)
                times.append(1000 * (time.perf_counter() - start))
            median = statistics.median(times)
            print(f"one submission of {len(NAMES)} exercises: median {median:.0f} ms; {grader.server.walls}")
        for jobs in (1, 2):
            start = time.perf_counter()
            grade_all(submissions, assignment, None, jobs=jobs)
            seconds = time.perf_counter() - start
            print(f"{number} submissions, {jobs} job(s): {seconds:.0f} s, start of the grader included")


if __name__ == "__main__":
    torch.set_num_threads(1)
    checks()
    grading(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
