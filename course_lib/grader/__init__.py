"""The autograder: self-checks in a notebook, and grading that a submission cannot forge."""

from course_lib.grader.notebook import check, hint, progress, solution

__all__ = ["check", "hint", "progress", "solution"]
