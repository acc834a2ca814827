"""The code of a submission inside its process: one module per file, and imports between the files.

Each file that defines an exercise gets a module of its own, in which only the statements run that its definitions need.
When another file imports it, it is run whole, as Python would.
"""

from __future__ import annotations
import __future__

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from course_kit.checker.forbidden_calls import CallWatcher, names_of
from course_kit.checker.observing import Problem, Signature, problem_of

__all__ = ["Code"]

PACKAGE = "submission"  # in which the files lie as modules
# The rooms of the package that know right answers. Here they cannot be imported: a submission has no use for them.
ANSWERS = ("course_kit.exercises.", "course_kit.checker.", "course_grade.")
NOTEBOOK = "course_kit.checker.notebook"


class Code:
    """What was loaded of a submission.

    Attributes:
        failed: by exercise, the problems of the statements that failed, by the names that they would have defined.
        used: by exercise, the forbidden functions that were called meanwhile.
    """

    def __init__(self, message: dict[str, Any], exercises: dict[str, Signature], place: Callable[[Problem], Problem]):
        self.failed: dict[str, dict[str, Problem]] = {}
        self.used: dict[str, set[str]] = {}
        self._modules: dict[str, ModuleType] = {}
        self._home: dict[str, ModuleType] = {}  # of each exercise
        files = _Files(message["siblings"])
        _without_answers()
        sys.modules[PACKAGE] = _package(PACKAGE)
        sys.meta_path[:0] = [_Refusing(), files]
        for name, text in message["files"].items():
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        for piece in message["pieces"]:
            module = self._module(piece["path"])
            signatures = [exercises[name] for name in piece["exercises"]]
            self._home |= {signature.name: module for signature in signatures}
            watcher = CallWatcher(*signatures)
            try:
                # Blank lines in front keep the line numbers of the file.
                text = "\n" * (piece["line"] - 1) + piece["code"]
                code = files.compiled(text, piece["file"], piece["path"])
                with watcher:  # a table may be filled by what a solution may not call
                    exec(code, module.__dict__)
            except (Exception, SystemExit) as error:
                problem = place(problem_of(error))
                for signature in signatures:
                    self.failed.setdefault(signature.name, {}).update(dict.fromkeys(piece["names"], problem))
            for signature in signatures:
                self.used.setdefault(signature.name, set()).update(watcher.used & names_of(signature))

    def solution(self, name: str) -> Any:
        """What the submission defines under the name of an exercise, None if nothing."""
        return vars(self._home[name]).get(name) if name in self._home else None

    def _module(self, path: str) -> ModuleType:
        if path not in self._modules:
            module = ModuleType(f"{PACKAGE}_{len(self._modules) + 1}")
            module.__package__ = ".".join((PACKAGE, *PurePosixPath(path).parts[:-1]))
            self._modules[path] = sys.modules[module.__name__] = module
        return self._modules[path]


class _Files(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the other files of the same submission, from memory.

    Args:
        texts: path of each Python file below the student's folder, with the name that tracebacks use, and its text.
    """

    def __init__(self, texts: dict[str, tuple[str, str]]):
        self.files: dict[tuple[str, ...], str] = {}  # parts of a module's name to the path of its file
        for path in texts:
            parts = PurePosixPath(path).with_suffix("").parts
            self.files[parts[:-1] if parts[-1] == "__init__" else parts] = path
        self.folders = {parts[:depth] for parts in self.files for depth in range(1, len(parts))}
        self.texts = texts

    def compiled(self, text: str, place: str, path: str) -> Any:
        """The code of a file or of a part of it, in which imports look into the file's own folder first.

        Args:
            text: the code.
            place: its name in tracebacks.
            path: of the file below the student's folder.
        """
        tree = ast.parse(text, place)
        folder = PurePosixPath(path).parts[:-1]
        for node in ast.walk(tree):
            for _, part in ast.iter_fields(node):
                if isinstance(part, list):
                    part[:] = [new for old in part for new in self._relative(old, folder)]
        # Annotations are never evaluated: they may name types that are not installed here.
        return compile(tree, place, "exec", __future__.annotations.compiler_flag, dont_inherit=True)

    def _relative(self, node: Any, folder: tuple[str, ...]) -> list:
        """A statement whose imports of the submission's own files are relative: `from helpers import f` becomes
        `from .helpers import f`, since two folders may each have their own `helpers`."""
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            node.level = self._level(node.module, folder)
        if not isinstance(node, ast.Import):
            return [node]
        new = []
        for alias in node.names:
            level = 0 if "." in alias.name else self._level(alias.name, folder)
            new.append(ast.ImportFrom(None, [alias], level) if level else ast.Import([alias]))
        return [ast.copy_location(one, node) for one in new]

    def _level(self, name: str, folder: tuple[str, ...]) -> int:
        """How many dots make an import of `name` in a folder one of the submission's own files; 0 if it is none."""
        first = name.split(".")[0]
        for up in range(len(folder) + 1):
            inside = (*folder[: len(folder) - up], first)
            if inside in self.files or inside in self.folders:
                # Python, too, looks into a file's own folder before its libraries, but for folders without code.
                own = up == 0 and inside in self.files
                return up + 1 if own or not _is_installed(first) else 0
        return 0

    def find_spec(self, fullname, path=None, target=None):
        parts = tuple(fullname.split("."))
        if parts[0] == PACKAGE:
            found = [place for place in ({*self.files} | self.folders) if place == parts[1:]]
        else:  # from somewhere else in the submission: `importlib.import_module("helpers")`, or another folder's file
            found = [place for place in ({*self.files} | self.folders) if place[-len(parts) :] == parts]
        if not found or (parts[0] != PACKAGE and _is_installed(parts[0])):
            return None
        place = min(found, key=lambda place: (len(place), place))
        is_package = place in self.folders or self.files[place].endswith("__init__.py")
        return importlib.util.spec_from_loader(fullname, self, origin="/".join(place), is_package=is_package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        path = self.files.get(tuple(module.__spec__.origin.split("/")))
        if path is not None:  # else a folder
            shown, text = self.texts[path]
            linecache.cache[shown] = (len(text), None, text.splitlines(keepends=True), shown)
            exec(self.compiled(text, shown, path), module.__dict__)


class _Refusing(importlib.abc.MetaPathFinder):
    """Refuses to import the rooms that know right answers; what is loaded already stays."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith(ANSWERS):
            raise ModuleNotFoundError(f"{fullname} is not available to a submission", name=fullname)
        return None


def _without_answers() -> None:
    """Replace what a notebook imports for self-checks by functions that do nothing."""
    notebook = ModuleType(NOTEBOOK)
    for name in ("check", "hint", "progress", "solution"):
        setattr(notebook, name, _nothing)
        setattr(sys.modules["course_kit"], name, _nothing)
    sys.modules[NOTEBOOK] = notebook
    sys.modules[NOTEBOOK.rpartition(".")[0]].notebook = notebook


def _nothing(*args: Any, **kwargs: Any) -> None:
    """In place of `check`, `hint`, `progress` and `solution`: a submission is graded, not checked."""


def _package(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    return module


def _is_installed(name: str) -> bool:
    """Whether a module of that name is there without the submission."""
    finders: Iterable[Any] = (importlib.machinery.BuiltinImporter, importlib.machinery.PathFinder)
    return name in sys.stdlib_module_names or any(finder.find_spec(name) for finder in finders)
