"""Whether a solution calls what is the whole exercise: seen while it is loaded and while it runs, and by reading it.

The forbidden functions are in `Exercise.forbidden`: a bare name is a function of PyTorch, wherever it lies there
("layer_norm"); with an option in parentheses, it is forbidden only where that is on ("f(option=True)"), which is seen
while it runs; a dotted one is a package or module and a function or class in it ("sacrebleu.corpus_bleu"). The
package's own function of the exercise's name is always forbidden.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import CodeType

import torch
from torch.overrides import TorchFunctionMode

from course_kit._packages import OURS
from course_kit.exercises import Exercise

__all__ = ["CallWatcher", "forbidden_in", "names_of", "suspicious_in"]

# What no solution needs: the grader, the exercises, and means to look at or change what runs around a solution.
_SUSPICIOUS = re.compile(
    r"\bcourse_grade\b|course_kit(?:\.| import .*?\b)(?:checker|exercises)\b"
    r"|\b(?:_getframe|setprofile|settrace|get_objects|ctypes|torch\._C)\b"
)
_OPTION = re.compile(r"(\w+)\((\w+)=True\)")

# PyTorch takes derivatives itself, in a checkpoint for instance, and so does the grader: only a call from a solution's
# own lines is the solution's.
DERIVATIVES = ("torch.autograd.", "torch.func.")
LIBRARIES = (str(Path(torch.__file__).parent), *OURS)


def names_of(exercise: Exercise) -> set[str]:
    """Everything that may be said to be in use for this exercise."""
    return {_shown(twin) for twin in exercise.forbidden} | {f"course_lib.{exercise.name}"}


def _shown(twin: str) -> str:
    return twin if "." in twin else f"torch's {twin}"


# While it is loaded and while it runs


class CallWatcher(TorchFunctionMode):
    """Notes calls of functions that are the whole exercise.

    PyTorch's are seen by the function mode, which also sees operators of `torch.ops`, and by the profiler where that
    mode is off (inside PyTorch's own functions, in threads). Python functions of other packages, of PyTorch and of this
    one are seen by the profiler.

    Args:
        exercises: all whose functions are looked for; `names_of` tells them apart afterwards.
    """

    def __init__(self, *exercises: Exercise):
        super().__init__()
        forbidden = {twin for exercise in exercises for twin in exercise.forbidden}
        self.torchs = {twin for twin in forbidden if "." not in twin and "(" not in twin}
        self.options = [(*_OPTION.fullmatch(twin).groups(), _shown(twin)) for twin in sorted(forbidden) if "(" in twin]
        self.elsewhere = [(*twin.rpartition(".")[::2], twin) for twin in sorted(forbidden) if "." in twin]
        self.roots = {module.split(".")[0] for module, *_ in self.elsewhere}
        self.known: dict[CodeType, str] = {}
        for exercise in exercises:
            self.known |= dict.fromkeys(_codes(_packages_own(exercise)), f"course_lib.{exercise.name}")
        self.used: set[str] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if not torch.compiler.is_compiling():  # the compiler reads this method along with the solution, and errs in it
            # Operators are called `softmax.int` where they have several forms.
            name = getattr(function, "__name__", "").split(".")[0]
            if name in self.torchs:
                self.used.add(_shown(name))
            self.used |= {shown for twin, option, shown in self.options if twin == name and (kwargs or {}).get(option)}
        return function(*args, **(kwargs or {}))

    def _profile(self, frame, event, argument):
        if event == "call":
            code = frame.f_code
            if code not in self.known:
                self.known[code] = self._twin_of(frame)
            if (twin := self.known[code]) and not (twin.startswith(DERIVATIVES) and _by_library(frame.f_back)):
                self.used.add(twin)
        elif event == "c_call" and argument.__name__ in self.torchs and _is_torchs(argument):
            self.used.add(_shown(argument.__name__))

    def _twin_of(self, frame) -> str:
        """The twin that a frame runs, "" if none: by name for a function, by its class for a method."""
        module = frame.f_globals.get("__name__") or ""
        if not isinstance(module, str) or module.split(".")[0] not in self.roots:
            return ""
        module = module.replace("torch._functorch", "torch.func")  # where PyTorch keeps it
        names = {frame.f_code.co_name}
        owner = getattr(frame.f_code, "co_qualname", "").rpartition(".")[0]  # Python 3.11 and later
        names |= {owner} if owner else {type(frame.f_locals["self"]).__name__} if "self" in frame.f_locals else set()
        for inside, name, twin in self.elsewhere:
            if name in names and (module == inside or module.startswith(inside + ".")):
                return twin
        return ""

    def __enter__(self):
        self.previous = sys.getprofile(), threading.getprofile()
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)
        return super().__enter__()

    def __exit__(self, *error):
        sys.setprofile(self.previous[0])
        threading.setprofile(self.previous[1])
        return super().__exit__(*error)


def _by_library(frame) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(LIBRARIES)


def _is_torchs(function) -> bool:
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    return str(module).split(".")[0] == "torch" or "torch" in type(owner).__module__.split(".")


def _packages_own(exercise: Exercise) -> tuple:
    """The package's function, and the reference, which a submission's process does not have."""
    own = getattr(importlib.import_module("course_lib"), exercise.name, None)
    return tuple(thing for thing in {own, getattr(exercise, "reference", None)} if thing is not None)


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
        module, _, last = dotted.rpartition(".")
        root = module.split(".")[0]
        if root == "torch" and last in exercise.forbidden:
            used.add(_shown(last))
        if root == "course_lib" and last == exercise.name:
            used.add(f"course_lib.{last}")
        for twin in exercise.forbidden:
            inside, _, name = twin.rpartition(".")
            if inside and name == last and (module == inside or module.startswith(inside + ".")):
                used.add(twin)
    return used


def suspicious_in(texts: Iterable[str]) -> list[str]:
    """What a person should look at in the code, although it is no proof of anything."""
    return sorted({found for text in texts for found in _SUSPICIOUS.findall(text)})


def _dotted(node: ast.AST, known: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *reversed(parts)])
