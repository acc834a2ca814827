"""What the tests of outputs share: an assignment and results with awkward names and texts."""

import csv
import io

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.results import Result, TaskResult
from course_grade.output.result_files import csv_text

NASTY = "Zoë “<b>&amp;</b>” {title} %s ; ‘x’, 名前"
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
WALLS = "partial (limits, seccomp; not available: landlock: <kernel> too old)"
ASSIGNMENT = Assignment(
    tasks=(AssignedExercise("softmax", 2.0), AssignedExercise("attend", 3.0), AssignedExercise("causal_mask")),
    seed=7,
    title="Week <3>",
)


def line(message, holds=True, weight=1.0):
    return {"says": message, "holds": holds, "weight": weight}


def passed(name="softmax", of=2.0):
    return TaskResult(
        name, "passed", of, of, [line("Rows sum to one"), line("Large scores")], text=f"{name}: all holds"
    )


def half(name="attend", of=3.0):
    lines = [line("The <output>"), line("The weights", False)]
    message = "It looks like `a < b` & no more"
    return TaskResult(name, "failed", of / 2, of, lines, {"key": "k", "says": message}, text=f"{name}: <no>")


def untouched(name="causal_mask", of=1.0):
    return TaskResult(name, "not attempted", 0.0, of, text=f"{name}: not attempted")


def result(*tasks, student="ada", **more):
    return Result(student, list(tasks or (passed(), half(), untouched())), walls=WALLS, **more)


def rows(results, assignment=ASSIGNMENT):
    return list(csv.DictReader(io.StringIO(csv_text(results, assignment).removeprefix("\ufeff"))))
