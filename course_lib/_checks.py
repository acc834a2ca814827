"""The annotation is the check: `@checked` compares the arguments of every call with the signature.

Each error says what was expected, what came, and what to do. What no annotation can say, a function of the chapter's
own checks; its name begins with `check_` or `_check_`, and the course leaves such calls out where it shows solutions.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Any, get_args, get_origin

import torch
from torch import Tensor, nn

from course_lib._typing import Bounds, Shape

__all__ = ["check_finite", "check_number", "check_sequence", "check_whole", "checked", "got"]

_LARGEST = 2**63 - 1  # what PyTorch takes for a size
_NO_IDS = (torch.bool, torch.uint8, torch.complex32, torch.complex64, torch.complex128)
_ADVICE = {
    "floating-point": "pass {}.float()",
    "integer": "pass {}.long()",
    "bool": "True where a query may attend; for a mask of ones and zeros pass mask.bool(), for one of zeros and -inf "
    "mask == 0",
}


def checked(function: Callable | type | None = None, **advice: str):
    """Compare all arguments with their annotations, before a function or any public method of a class runs.

    Tensors: dtype, number of axes, and that axes of one name have one length. In a class, the whole numbers that its
    constructor took are lengths too: `d_model` in a method is the `d_model` of the instance. Floating-point tensors of
    a call have one dtype, except under autocast. Numbers: type and bounds. Further arguments: their class.

    Args:
        function: what is decorated.
        advice: for the name of an axis or an argument, what to do if it does not fit.
    """
    if function is None:
        return lambda function: checked(function, **advice)
    if not inspect.isclass(function):
        return _with_checks(function, advice)
    for name, method in vars(function).copy().items():
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(function, name, _with_checks(method, advice))
    return function


def got(value: object) -> str:
    """What came, for the end of a message: dtype and shape of a tensor, the type of anything else."""
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def check_whole(*, least: float = 1, most: float = _LARGEST, hint: str = "", **numbers: int) -> None:
    """Refuse what is not a whole number between `least` and `most`.

    Raises:
        TypeError: it is of another type, a float such as 2.0 and a bool included.
        ValueError: it is out of these bounds.
    """
    for name, number in numbers.items():
        try:
            operator.index(None if number is True or number is False else number)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a whole number, got {number!r}; pass an int{hint}") from None
        if number < least:
            raise ValueError(f"{name} must be at least {least}, got {number}{hint}")
        if number > most:
            raise ValueError(f"{name} must be at most {most}, got {number}{hint}")


def check_number(name: str, number: float) -> None:
    """Refuse what is not a number.

    Raises:
        TypeError: it is something else, a bool included.
    """
    try:
        math.isfinite(None if number is True or number is False else number)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {number!r}; pass a float") from None
    except OverflowError:  # an int beyond all floats
        raise ValueError(f"{name} must be in the range of a float, got {number}; pass a smaller one") from None


def check_finite(name: str, number: float, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse what is not a finite number between two bounds.

    Raises:
        TypeError: it is not a number.
        ValueError: it is NaN, infinite or out of the bounds.
    """
    check_number(name, number)
    if not (math.isfinite(number) and low <= number <= high):
        bounds = "" if math.isinf(low) and math.isinf(high) else f" between {low:g} and {high:g}"
        raise ValueError(f"{name} must be a finite number{bounds}, got {number}; pass a number in that range")


def check_sequence(**sequences: Sequence) -> None:
    """Refuse what is not a list, a tuple or another sequence; a text is not meant as one.

    Raises:
        TypeError: it is something else.
    """
    for name, sequence in sequences.items():
        if isinstance(sequence, str | bytes) or not isinstance(sequence, Sequence):
            raise TypeError(f"{name} must be a list, got {sequence!r:.40}; pass [{name}] for a single one")


@dataclass(frozen=True)
class _Tensor:
    """What is asked of a tensor: `before`, any number of axes if there is a `star`, and `after`."""

    kind: str
    shown: str
    before: tuple[str, ...]
    star: str | None
    after: tuple[str, ...]
    broadcast: bool

    @classmethod
    def of(cls, shape: Shape) -> _Tensor:
        names = shape.axes.split()
        stars = [i for i, name in enumerate(names) if name == "..." or name.startswith("*")]
        first = stars[0] if stars else len(names)
        written = ", ".join("..." if i in stars else name for i, name in enumerate(names))
        shown = f"({written},)" if len(names) == 1 and not stars else f"({written})"
        star = names[first].lstrip("*") if stars else None
        return cls(shape.kind, shown, tuple(names[:first]), star, tuple(names[first + 1 :]), shape.broadcast)


class _Call:
    """The lengths that the tensors of a call have agreed on so far."""

    def __init__(self, advice: dict[str, str], lengths: dict[str, int]):
        self.advice = advice
        self.lengths = {"1": 1, **lengths}  # by the name of an axis
        self.tensors: dict[str, tuple[Tensor, _Tensor]] = {}  # by the name of the argument
        self.batches: dict[str, tuple[int, ...]] = {}  # by the name after the star
        self.dtype: torch.dtype | None = None

    def take(self, name: str, value: object, wanted: _Tensor) -> None:
        """Compare an argument with its annotation and with the arguments before it."""
        if not isinstance(value, Tensor) or not _is_kind(value, wanted.kind):
            what = {"bool": "a bool tensor"}.get(wanted.kind, f"a {wanted.kind} tensor".replace("a int", "an int"))
            came = name if isinstance(value, Tensor) else f"torch.as_tensor({name})"
            advice = self.advice.get(name) or _ADVICE[wanted.kind].format(came)
            raise TypeError(f"{name} must be {what}, got {got(value)}; {advice}")
        if wanted.broadcast:
            self._broadcast(name, value, wanted)
            return
        shape, before, after = value.shape, len(wanted.before), len(wanted.after)
        rank = len(shape)
        if rank < before + after or (wanted.star is None and rank > before + after):
            advice = self.advice.get(name) or (
                f"add the axis that is missing, for example with {name}[None]"
                if rank < before + after
                else "take away an axis, or call it for each entry of the first axis"
            )
            raise ValueError(f"{name} must be {wanted.shown}, got {tuple(shape)}; {advice}")
        self.tensors[name] = value, wanted
        lengths = self.lengths
        for axis, length in zip(wanted.before, shape):  # noqa: B905 -- the shape may go on
            if lengths.setdefault(axis, length) != length:
                self._disagree(name, axis)
        if after:
            for axis, length in zip(wanted.after, shape[rank - after :], strict=True):
                if lengths.setdefault(axis, length) != length:
                    self._disagree(name, axis)
        if wanted.star:
            self._batch(name, wanted.star, tuple(shape[before : rank - after]))
        if wanted.kind == "floating-point":
            if self.dtype is None:
                self.dtype = value.dtype
            elif self.dtype != value.dtype:
                self._dtypes_differ(value)

    def _batch(self, name: str, star: str, shape: tuple[int, ...]) -> None:
        known = self.batches.setdefault(star, shape)
        if known == shape:
            return
        pairs = list(zip_longest(reversed(known), reversed(shape), fillvalue=1))
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            others = [other for other, (_, wanted) in self.tensors.items() if wanted.star == star]
            raise ValueError(
                f"{_all_of(others)} must have the same axes in place of the dots, got {self._shapes(others)}; "
                f"{self.advice.get(star, 'take all of them from the same batch')}"
            )
        self.batches[star] = tuple(b if a == 1 else a for a, b in reversed(pairs))

    def _disagree(self, name: str, axis: str) -> None:
        value, wanted = self.tensors[name]
        others = [
            other for other, (_, asked) in self.tensors.items() if axis in asked.before + asked.after and other != name
        ]
        if others and (wanted.before + wanted.after).count(axis) == 1:
            advice = self.advice.get(axis, "reshape, cut or project one of them")
            both = [*others[:1], name]
            raise ValueError(f"{_all_of(both)} must agree in {axis}, got {self._shapes(both, True)}; {advice}")
        advice = self.advice.get(name) or self.advice.get(axis)
        if (wanted.before + wanted.after).count(axis) > 1:
            advice, known = advice or f"both axes are {axis}", ""
        elif axis.isdigit():
            advice, known = advice or "its length there is fixed", ""
        else:
            advice, known = (
                advice or "build the module with the sizes of its input",
                f" with {axis} = {self.lengths[axis]}",
            )
        raise ValueError(f"{name} must be {wanted.shown}{known}, got {tuple(value.shape)}; {advice}")

    def _broadcast(self, name: str, value: Tensor, wanted: _Tensor) -> None:
        batch = self.batches.get(wanted.star, ()) if wanted.star else ()
        names = (*wanted.before, *("" for _ in batch), *wanted.after)
        target = (*(self.lengths.get(a) for a in wanted.before), *batch, *(self.lengths.get(a) for a in wanted.after))
        if len(value.shape) <= len(target) or (wanted.star is not None and wanted.star not in self.batches):
            pairs = zip(reversed(value.shape), reversed(target))  # noqa: B905 -- it may have fewer axes
            if all(length == 1 or known is None or length == known for length, known in pairs):
                return
        shown = tuple(axis if known is None else known for axis, known in zip(names, target, strict=True))
        advice = self.advice.get(name) or (
            "a padding mask is (B, 1, 1, L_k) for scores with heads and (B, 1, L_k) without, a causal one (L_q, L_k)"
            if wanted.kind == "bool"
            else "take away or insert axes of length 1"
        )
        raise ValueError(f"{name} must broadcast to {wanted.shown} = {shown}, got {tuple(value.shape)}; {advice}")

    def _dtypes_differ(self, value: Tensor) -> None:
        if torch.is_autocast_enabled(value.device.type):
            return
        floats = [name for name, (_, wanted) in self.tensors.items() if wanted.kind == "floating-point"]
        each = ", ".join(f"{name} {self.tensors[name][0].dtype}" for name in floats)
        raise TypeError(
            f"{_all_of(floats)} must have the same dtype, got {each}; convert them, for example with .float()"
        )

    def _shapes(self, names: Iterable[str], annotated: bool = False) -> str:
        def one(name: str) -> str:
            value, wanted = self.tensors[name]
            return f"{name} {tuple(value.shape)}" + (f" as {wanted.shown}" if annotated else "")

        return " and ".join(map(one, names))


def _is_kind(tensor: Tensor, kind: str) -> bool:
    if kind == "floating-point":
        return tensor.is_floating_point()
    if kind == "integer":
        return not tensor.is_floating_point() and tensor.dtype not in _NO_IDS
    return tensor.dtype == torch.bool


def _all_of(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _with_checks(function: Callable, advice: dict[str, str]) -> Callable:
    """The function, with checks before it that are planned at its first call, when all names in its module exist."""
    plan: list[tuple[int, str, Callable]] = []
    parameters = list(inspect.signature(function).parameters.values())
    is_method = bool(parameters) and parameters[0].name == "self"
    is_constructor = function.__name__ == "__init__"

    @functools.wraps(function)
    def call(*args, **kwargs):
        if torch.compiler.is_compiling():  # the compiler's own guards compare shapes
            return function(*args, **kwargs)
        if not plan:
            plan.extend(_planned(function, parameters))
        current = _Call(advice, args[0].__dict__.get("_lengths", {}) if is_method and args else {})
        for place, name, check in plan:
            if place < len(args):
                if (new := check(current, args[place])) is not None:
                    args = (*args[:place], new, *args[place + 1 :])
            elif name in kwargs and (new := check(current, kwargs[name])) is not None:
                kwargs[name] = new
        result = function(*args, **kwargs)
        if is_constructor:
            given = inspect.signature(function).bind(*args, **kwargs).arguments
            lengths = {name: n for name, n in given.items() if isinstance(n, int) and not isinstance(n, bool)}
            args[0].__dict__["_lengths"] = {**args[0].__dict__.get("_lengths", {}), **lengths}
        return result

    return call


def _planned(function: Callable, parameters: list[inspect.Parameter]) -> list[tuple[int, str, Callable]]:
    hints = typing.get_type_hints(function, include_extras=True)
    found = []
    for place, parameter in enumerate(parameters):
        if parameter.kind is parameter.KEYWORD_ONLY:
            place = 1_000
        check = _check_of(parameter.name, hints.get(parameter.name), parameter.default is None)
        if check is not None:
            found.append((place, parameter.name, check))
    # A mask is compared with lengths that the others have.
    return sorted(found, key=lambda entry: getattr(entry[2], "broadcast", False))


def _check_of(name: str, hint: Any, or_none: bool = False) -> Callable[[_Call, Any], Any] | None:
    """A function that refuses what the annotation does not admit; None where it admits everything."""
    if get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        or_none |= len(kinds) < len(get_args(hint))
        hint = kinds[0] if len(kinds) == 1 else None
    check = _check_of_kind(name, hint)
    if check is None or not or_none:
        return check

    def unless_none(call: _Call, value: Any) -> Any:
        return None if value is None else check(call, value)

    unless_none.broadcast = getattr(check, "broadcast", False)
    return unless_none


def _check_of_kind(name: str, hint: Any) -> Callable[[_Call, Any], Any] | None:
    notes = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Shape | Bounds)]
    if notes and isinstance(notes[-1], Shape):
        wanted = _Tensor.of(notes[-1])

        def tensor(call: _Call, value: Any) -> None:
            call.take(name, value, wanted)

        tensor.broadcast = wanted.broadcast
        return tensor
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if kind in (int, float):
        bounds = notes[-1] if notes else None
        return lambda call, value: _check_bounds(call, name, value, kind, bounds)
    origin = get_origin(kind) or kind
    if origin is Callable:
        returned = get_args(kind)[1] if get_args(kind) else None
        return lambda call, value: _callable(call, name, value, returned)
    if origin is Sequence:
        return lambda call, value: check_sequence(**{name: value})
    if inspect.isclass(origin) and issubclass(origin, nn.Module):
        return lambda call, value: _check_module(name, value, origin)
    return None


def _check_bounds(call: _Call, name: str, number: float, kind: type, bounds: Bounds | None) -> None:
    hint = f"; {call.advice[name]}" if name in call.advice else ""
    if kind is int:
        low, high = (bounds.low, bounds.high) if bounds else (-(2**63), _LARGEST)
        check_whole(**{name: number}, least=low, most=min(high, _LARGEST), hint=hint)
        return
    check_number(name, number)
    if bounds is None:
        return
    too_low = number <= bounds.low if bounds.without_low else number < bounds.low
    too_high = number >= bounds.high if bounds.without_high else number > bounds.high
    if math.isnan(number) or too_low or too_high:
        left, right = "(" if bounds.without_low else "[", ")" if bounds.without_high else "]"
        what = f"in {left}{bounds.low:g}, {bounds.high:g}{right}"
        if bounds == Bounds(0, without_low=True, without_high=True):
            what = "positive and finite"
        raise ValueError(f"{name} must be {what}, got {number}{hint or '; pass a number in that range'}")


def _check_module(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, got {value!r:.60} of type {type(value).__name__}")


def _callable(call: _Call, name: str, function: Any, returned: Any) -> Callable | None:
    """Refuse what cannot be called; where the annotation says what it returns, every result is compared with that."""
    if not callable(function):
        advice = call.advice.get(name, "pass the function itself")
        raise TypeError(f"{name} must be a function, got {function!r:.60}; {advice}")
    notes = [note for note in getattr(returned, "__metadata__", ()) if isinstance(note, Shape)]
    if not notes:
        return None
    wanted = _Tensor.of(notes[-1])

    def with_check(*args, **kwargs):
        result = function(*args, **kwargs)
        fits = isinstance(result, Tensor) and _is_kind(result, wanted.kind) and result.dim() == len(wanted.before)
        if not fits or result.isnan().any():
            came = got(result) + (" with NaN" if fits else "")
            raise ValueError(
                f"{name} must return a {wanted.kind} tensor {wanted.shown} without NaN, got {came}; "
                f"{call.advice.get(name, 'look at what the function returns')}"
            )
        return result

    return with_check
