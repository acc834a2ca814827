"""Grading of classes: `course-lib grade`. Submissions run behind walls, and verdicts are computed outside of them."""
