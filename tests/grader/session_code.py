"""Code as the grader hands it to a submission's process, for tests that start one themselves."""

import textwrap

from course_grade.sandbox.session import ForkServer, Session
from course_kit.checker.observing import Problem

__all__ = ["code_of", "problem_in"]


def code_of(code: str, *names: str) -> dict:
    """The message for one file, whose code may define `causal_mask` and those names, `it` by default."""
    names = (*(names or ("it",)), "causal_mask")
    code = textwrap.dedent(code)
    piece = {"path": "s.py", "file": "s.py", "line": 1, "code": code, "names": list(names), "exercises": list(names)}
    exercises = [{"name": name, "arguments": ["length"], "is_class": False, "forbidden": []} for name in names]
    return {"files": {"s.py": code}, "siblings": {}, "pieces": [piece], "exercises": exercises}


def problem_in(server: ForkServer, code: str, *, lenient: bool = False) -> Problem | None:
    """The exception that the code ends in inside of a session, or None."""
    with Session(server, lenient=lenient) as session:
        return session.load(code_of(code)).get("it", {}).get("it")
