"""What an exercise is made of: its text, its cases, and the mistakes that it knows by name."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_kit.exercises._clauses import breaches_in
from course_kit.exercises._draw import Draw
from course_kit.exercises._language_model import NextLogProbs
from course_kit.exercises._mistakes import Part, built, mistakes_in, parts_in, patched, written_out
from course_kit.exercises._solution import imports_of, learners_code

__all__ = ["Breach", "Case", "Exercise", "Misconception", "Property", "Remark"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call of a solution: what goes in, and how strictly the result is compared.

    Args:
        args: positional arguments of the function, or of a class's `forward`: tensors, numbers, None,
            lists and tuples of these; a function is described by a `NextLogProbs`.
        init: a class's constructor arguments.
        state: a class's parameters by name, loaded before the call.
        raises: the error that the contract asks for; the call must end in it.
        note: what is special about the case, shown when it fails ("scores of ±1e4").
        tolerance: factor on the tolerance of the dtype, for extremes where a careful computation is that inexact.
        gradients: whether gradients are compared too, where the exercise is differentiable.
        degenerate_because: why axes may be equal or values of one sign here; the linter looks at all other cases.
        max_numel: where memory has to be spared, how many numbers a tensor may have that is computed from the first two
            arguments, see `checker.tensor_limit`; a larger one ends the call in a MemoryError. None for any number.
    """

    args: tuple = ()
    init: tuple = ()
    state: dict[str, Tensor] = field(default_factory=dict)
    raises: type[Exception] | None = None
    note: str = ""
    tolerance: float = 1.0
    gradients: bool = True
    degenerate_because: str = ""
    max_numel: int | None = None

    @cached_property
    def size(self) -> int:
        """Numbers in all arguments and weights; a small failing case is the one that is shown."""
        return _size([*self.args, *self.init, *self.state.values()])

    @cached_property
    def dtype(self) -> torch.dtype | None:
        """The floating dtype of the arguments, None where there is no floating tensor."""
        floating = [x.dtype for x in _tensors([*self.args, *self.state.values()]) if x.is_floating_point()]
        return floating[0] if floating else None

    def to(self, dtype: torch.dtype) -> Case:
        """The same case with all floating tensors in another dtype; what is computed lies apart from what came in."""

        def cast(x: Any) -> Any:
            if isinstance(x, NextLogProbs):
                return dataclasses.replace(x, log_probs=cast(x.log_probs))
            if isinstance(x, list | tuple):
                return type(x)(map(cast, x))
            return x.to(dtype, copy=True) if isinstance(x, Tensor) and x.is_floating_point() else x

        state = {name: cast(parameter) for name, parameter in self.state.items()}
        return dataclasses.replace(self, args=tuple(map(cast, self.args)), state=state)


def _size(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    tensors = list(_tensors(value))
    return tensors[0].numel() if tensors else 1


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, NextLogProbs):
        yield value.log_probs
    elif isinstance(value, Tensor):
        yield value


@dataclass(frozen=True)
class Property:
    """One line of a report: a statement that holds for every right solution, and the cases that show it.

    Args:
        message: the line, in the words of the contract.
        cases: makes the cases from random draws.
        weight: share of the exercise's points.
        fault: for a result that is not unique, judges it instead of a comparison with the reference's: from the
            arguments and a result (numbers, tensors, None, tuples and lists of them, or a `Foreign`; it may be
            anything, so nothing is taken for granted) it tells what is wrong, "" where nothing is.
    """

    message: str
    cases: Callable[[Draw], Iterator[Case]]
    weight: float = 1.0
    fault: Callable[[tuple, Any], str] | None = None


@dataclass(frozen=True)
class Misconception:
    """A wrong variant of the exercise as code, with what to tell someone who computes the same.

    Args:
        key: short name, unique in the exercise.
        message: which mistake it is, pointing to the idea without giving the code away.
        solution: the function or class.
        read_next: what to look at next, if other than the exercise's own.
        inherited_from: for an inherited mistake, the parts in which it lies, innermost first ("softmax", "attention").
    """

    key: str
    message: str
    solution: Callable
    read_next: str = ""
    inherited_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class Breach:
    """A solution that was written to break one clause of the statement and nothing else.

    Args:
        clause: which.
        solution: the function or class.
    """

    clause: str
    solution: Callable


@dataclass(frozen=True)
class Remark:
    """Something to know about a right solution that is written in a certain way; it costs nothing.

    Args:
        message: "It passes, but …".
        applies: whether it applies, from the names of the functions and methods that the solution calls.
    """

    message: str
    applies: Callable[[frozenset[str]], bool]


@dataclass(eq=False, kw_only=True)
class Exercise:
    """Everything about one exercise; page, stub, checks and solution come from here.

    Args:
        name: of the function or class, as the page has it; the reference's if left out.
        title: heading in the page.
        statement: what to write, Markdown with `$…$`.
        difficulty: 1 (a line) to 5 (an evening).
        minutes: for someone who has read the chapter.
        stub: code to start from; raises NotImplementedError.
        hints: from a nudge to nearly the answer, shown one at a time.
        reference: the right function or class; its source is the solution that the page folds away.
        shapes: axes of each tensor argument, `"... len_q d_k"`; the names are used to explain errors, and axes of
            different names have different lengths in every case. An axis `1` has length one; "#" leaves the argument
            unchecked (it broadcasts). A name of `returns` names the axes of that result.
        returns: names of what is returned, `("output", "weights")`.
        read_next: the section of the book to read again, as "page: heading".
        single_sign_args: arguments whose values have one sign by their meaning (weights, a bandwidth).
        differentiable: whether gradients are checked.
        no_gradient_for: arguments whose gradient is left open, since right formulas differ in it.
        sum_to_one: arguments whose last axis sums to one by their meaning. Their gradients are compared up to one
            number per row, because a formula may also divide by that sum.
        forbidden: functions that are the whole exercise; one in use does not count as one's own. A bare name is one
            of PyTorch's ("softmax"), or one that is forbidden with an option only ("f(option=True)"), a dotted one a
            module and a function or class in it ("sacrebleu.corpus_bleu").
        chapter: stem of the chapter that it belongs to, which its folder is named after.
        repair: whether the stub is code to repair rather than to write. It runs once its line with NotImplementedError
            is deleted; deleting that line is how a learner says that the code is right as it stands.
        mistakes: file of its mistakes, see `_mistakes`; None for none.
        clauses: file of solutions that break one clause of the statement each, see `_clauses`; there may be none.
        canonical_form: a result without what the contract leaves open, such as an order; wrong answers that are equal
            in this form show the same mistake. None for a result that has no such form.
    """

    name: str = ""
    title: str
    statement: str
    difficulty: int
    minutes: int
    stub: str
    hints: tuple[str, ...]
    reference: Callable
    shapes: dict[str, str] = field(default_factory=dict)
    returns: tuple[str, ...] = ("output",)
    read_next: str = ""
    single_sign_args: tuple[str, ...] = ()
    differentiable: bool = True
    no_gradient_for: tuple[str, ...] = ()
    sum_to_one: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    chapter: str = ""
    repair: bool = False
    mistakes: Path | None = None
    clauses: Path | None = None
    canonical_form: Callable[[Any], Any] | None = None
    properties: list[Property] = field(default_factory=list, init=False)
    remarks: list[Remark] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.name = self.name or self.reference.__name__

    @property
    def stem(self) -> str:
        """The chapter."""
        return self.chapter

    @cached_property
    def misconceptions(self) -> list[Misconception]:
        """The mistakes that it knows by name, inherited ones last; their file is read when they are first asked for."""
        if self.mistakes is None:
            return []
        text, file = self.mistakes.read_text(encoding="utf-8"), self.mistakes.name
        module = inspect.unwrap(self.reference).__module__
        found = [
            Misconception(mistake.key, mistake.message, built(code, self.name, module), mistake.see)
            for mistake, code in mistakes_in(text, file, self.written_out).items()
        ]
        for part in parts_in(text, file):
            code = patched(self.written_out, part.changes, f"{file}: {part.prefix}")

            def build(wrong: Callable, part: Part = part, code: str = code) -> Callable:
                return wrong if part.whole else built(code, self.name, module, **{part.known_as: wrong})

            inner = _find(part.exercise)
            keys = [mistake.key for mistake in inner.misconceptions]
            if useless := part.useless(keys, code):
                raise ValueError(f"{file}: {part.prefix}: {useless}")
            without = tuple(key for key in keys if not part.takes(key))
            found += inner.inherited(build, called=part.called, prefix=part.prefix, without=without)
        return found

    @cached_property
    def breaches(self) -> list[Breach]:
        """Solutions that break one clause of the statement each, in the order of the clauses."""
        if self.clauses is None or not self.clauses.exists():
            return []
        module = inspect.unwrap(self.reference).__module__
        text = self.clauses.read_text(encoding="utf-8")
        return [
            Breach(clause, self.mistake(key).solution if key else built(code, self.name, module))
            for clause, key, code in breaches_in(text, self.clauses.name, self.written_out)
        ]

    def mistake(self, key: str) -> Misconception:
        """The mistake of that key.

        Raises:
            KeyError: there is none.
        """
        for mistake in self.misconceptions:
            if mistake.key == key:
                return mistake
        raise KeyError(f"{self.name} knows no mistake {key!r}")

    @property
    def is_class(self) -> bool:
        """Whether the solution is a class."""
        return inspect.isclass(self.reference)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Names of the positional arguments, of `forward` for a class."""
        function = self.reference.forward if self.is_class else self.reference
        return _positional(function, skip_self=self.is_class)

    @cached_property
    def init_arguments(self) -> tuple[str, ...]:
        """Names of a class's constructor arguments; none for a function."""
        return _positional(self.reference.__init__, skip_self=True) if self.is_class else ()

    @cached_property
    def code(self) -> str:
        """Source of the reference without docstrings, annotations, checks of arguments and imports."""
        return learners_code(inspect.getsource(inspect.unwrap(self.reference)))

    @cached_property
    def solution(self) -> str:
        """The code as the page shows it, after the lines that import what it takes from the library."""
        return imports_of(self.code, vars(sys.modules[inspect.unwrap(self.reference).__module__])) + self.code

    @cached_property
    def written_out(self) -> str:
        """The code with calls of other chapters' functions written out: what mistakes are changes to."""
        if self.mistakes is None:
            return self.code
        return written_out(self.mistakes.read_text(encoding="utf-8"), self.mistakes.name, self.code)

    @cached_property
    def code_to_repair(self) -> str:
        """The stub of a repair without the line that stops it: code that runs, with its faults."""
        return "".join(line for line in self.stub.splitlines(keepends=True) if "NotImplementedError" not in line)

    def holds(self, message: str, *, weight: float = 1.0, fault: Callable[[tuple, Any], str] | None = None) -> Callable:
        """Decorator of a generator of cases that show what `message` says."""

        def add(cases):
            self.properties.append(Property(message, cases, weight, fault))
            return cases

        return add

    def remark(self, message: str) -> Callable:
        """Decorator of a function that tells from the names of all that a solution calls whether `message` applies."""

        def add(applies):
            self.remarks.append(Remark(" ".join(message.split()), applies))
            return applies

        return add

    def inherited(
        self,
        build: Callable[[Callable], Callable],
        *,
        called: str = "",
        prefix: str = "",
        without: tuple[str, ...] = (),
    ) -> list[Misconception]:
        """The mistakes as an exercise has them that contains this one, under keys such as `layer_norm/unbiased`.

        A mistake that cannot show in the other exercise does no harm: it is never named.

        Args:
            build: from a wrong variant of this exercise, the other one with that part in it.
            called: this exercise in a learner's words, without an article ("attention"); its name if left out.
            prefix: of the keys, if other than the name; for a part that is contained twice.
            without: keys of mistakes that make no sense in the other exercise.

        Raises:
            ValueError: there are no mistakes (yet), or none of a key in `without`.
        """
        keys = {mistake.key for mistake in self.misconceptions}
        if not keys or not set(without) <= keys:
            missing = ", ".join(sorted(set(without) - keys)) or "any"
            raise ValueError(f"expected {self.name} to have its mistakes before this call; it lacks {missing}")
        found = []
        for mistake in self.misconceptions:
            if mistake.key in without:
                continue
            inherited_from = (*mistake.inherited_from, called or f"`{self.name}`")
            inner = mistake.message.removeprefix(f"In {_the_parts(mistake.inherited_from)}: ")
            message = f"In {_the_parts(inherited_from)}: {inner}"
            key = f"{prefix or self.name}/{mistake.key}"
            read_next = mistake.read_next or self.read_next
            found.append(Misconception(key, message, build(mistake.solution), read_next, inherited_from))
        return found

    def draw_state(self, draw: Draw, *init, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
        """Random parameters for a class built with `init`: both signs, no symmetry, gains away from 1."""
        module: nn.Module = self.reference(*init)
        return {
            name: draw.normal(*parameter.shape, dtype=dtype) / max(1, parameter.shape[-1]) ** 0.5
            for name, parameter in module.state_dict().items()
        }


def _find(name: str) -> Exercise:
    # The package imports this module.
    return importlib.import_module(__package__).find(name)


def _the_parts(inherited_from: tuple[str, ...]) -> str:
    """("softmax", "attention") as "the softmax of your attention"."""
    return " of ".join(
        [*(f"the {name}" for name in inherited_from[:-1]), *(f"your {name}" for name in inherited_from[-1:])]
    )


def _positional(function: Callable, *, skip_self: bool) -> tuple[str, ...]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, p in inspect.signature(function).parameters.items() if p.kind in kinds]
    return tuple(names[1:] if skip_self else names)
