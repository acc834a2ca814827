"""Whether a solution calls what is the whole exercise: seen while it runs, and by reading its code."""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys

from torch.overrides import TorchFunctionMode

from course_lib.exercises import Exercise

__all__ = ["Watcher", "forbidden_in"]

# While it runs


class Watcher(TorchFunctionMode):
    """Notes calls of functions that are the whole exercise: PyTorch's, by name, and the package's, by code."""

    def __init__(self, exercise: Exercise):
        super().__init__()
        self.twins = set(exercise.twins)
        self.name = exercise.name
        self.reference = _codes(_packages_own(exercise))
        self.used: set[str] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in self.twins:
            self.used.add(f"torch's {name}")
        return function(*args, **(kwargs or {}))

    def _profile(self, frame, event, _argument):
        if event == "call" and frame.f_code in self.reference:
            self.used.add(f"course_lib.{self.name}")

    def __enter__(self):
        self.previous = sys.getprofile()
        if self.reference:
            sys.setprofile(self._profile)
        return super().__enter__()

    def __exit__(self, *error):
        if self.reference:
            sys.setprofile(self.previous)
        return super().__exit__(*error)


def _packages_own(exercise: Exercise) -> tuple:
    import course_lib

    own = getattr(course_lib, exercise.name, None)
    return tuple(thing for thing in {own, exercise.reference} if thing is not None)


def _codes(things: tuple) -> set:
    codes = set()
    for thing in things:
        members = vars(thing).values() if inspect.isclass(thing) else (thing,)
        for member in members:
            function = inspect.unwrap(member) if callable(member) else None
            if inspect.isfunction(function):
                codes.add(function.__code__)
    return codes


# By reading


def forbidden_in(pieces: list, exercise: Exercise) -> set[str]:
    """Forbidden functions that the code names through its imports: `F.softmax`, `torch.softmax`, `course_lib.softmax`.

    Calls are noticed while the code runs, too; this cannot be switched off from inside.
    """
    known: dict[str, str] = {}
    trees = []
    for piece in pieces:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            trees.append(ast.parse(piece.code))
    for node in (n for tree in trees for n in ast.walk(tree)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    used = set()
    for node in (n for tree in trees for n in ast.walk(tree)):
        dotted = _dotted(node, known)
        root, _, last = dotted.rpartition(".")
        if root.split(".")[0] == "torch" and last in exercise.twins:
            used.add(f"torch's {last}")
        if root.split(".")[0] == "course_lib" and last == exercise.name:
            used.add(f"course_lib.{last}")
    return used


def _dotted(node: ast.AST, known: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *reversed(parts)])
