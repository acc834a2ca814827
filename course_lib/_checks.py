"""The annotation is the check: `@checked` compares the arguments of every call with the signature.

Each error says what was expected, what came, and what to do. What no annotation can say is checked by a function of
the chapter whose name begins with `check_` or `_check_`; such calls are left out where the course shows solutions.

How it works: at the first call of a function, `_planned` reads its annotations into a list, one `_Check` per argument.
Each call goes through that list with a fresh `_Call`, which keeps what the arguments so far have agreed on: the length
of each named axis, the shape of the batch, the dtype. The first argument that does not fit them ends in `_Call.fail`.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Annotated, Any, NamedTuple, NoReturn, get_args, get_origin

import torch
from torch import Tensor, nn

from course_lib._typing import Bounds, Shape

__all__ = ["check_finite", "check_number", "check_sequence", "check_that", "check_whole", "checked", "got"]

_LARGEST = 2**63 - 1  # what PyTorch takes for a size
_OF_INSTANCE = "_checked_lengths"  # the attribute with the lengths that a constructor took
_ALL = {dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
_NO_IDS = {torch.bool, torch.uint8, *(dtype for dtype in _ALL if dtype.is_complex)}
_FLOATS = {dtype for dtype in _ALL if dtype.is_floating_point}
_DTYPES = {"floating-point": _FLOATS, "integer": _ALL - _FLOATS - _NO_IDS, "bool": {torch.bool}, "": _ALL}
_ADVICE = {
    "floating-point": "pass {}.float()",
    "integer": "pass {}.long()",
    "": "pass {}",
    "bool": "True where a query may attend; for a mask of ones and zeros pass mask.bool(), for one of zeros and -inf "
    "mask == 0",
}
_MASK_ADVICE = "a padding mask is (B, 1, 1, L_k) for scores with heads and (B, 1, L_k) without, a causal one (L_q, L_k)"


def checked(function: Callable | type | None = None, **advice: str):
    """Compare all arguments with their annotations, before a function, a constructor or a public method runs.

    Tensors: dtype, number of axes, and that axes of one name have one length. In a class, the whole numbers that its
    constructor took are lengths too: `d_model` in a method is the `d_model` of the instance. Floating-point tensors of
    a call have one dtype, except under autocast. Numbers: type and bounds. Functions, modules and sequences: their
    kind. What a decorated function returns is not checked. But an argument that is annotated as a function returning a
    tensor, `Callable[..., Float[Tensor, "…"]]`, is wrapped, so that each of its results is compared.

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
    """Refuse what is not a whole number between `least` and `most`: ValueError, and TypeError for 2.0 or True."""
    for name, number in numbers.items():
        try:
            operator.index(None if number is True or number is False else number)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a whole number, got {number!r}; pass an int{hint}") from None
        if not least <= number <= most:
            bound = f"least {least}" if number < least else f"most {most}"
            raise ValueError(f"{name} must be at {bound}, got {number}{hint}")


def check_number(name: str, number: float) -> None:
    """Refuse what is not a number: TypeError, for a bool, too, and ValueError for an int too large for a float."""
    try:
        math.isfinite(None if number is True or number is False else number)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {number!r}; pass a float") from None
    except OverflowError:
        raise ValueError(f"{name} must be in the range of a float, got {number}; pass a smaller one") from None


def check_finite(name: str, number: float, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse what is not a number (TypeError), or is NaN, infinite or out of two bounds (ValueError)."""
    check_number(name, number)
    if not (math.isfinite(number) and low <= number <= high):
        bounds = "" if math.isinf(low) and math.isinf(high) else f" between {low:g} and {high:g}"
        raise ValueError(f"{name} must be a finite number{bounds}, got {number}; pass a number in that range")


def check_sequence(**sequences: Sequence) -> None:
    """Refuse what is not a list, a tuple or another sequence, with a TypeError; strings are refused."""
    for name, sequence in sequences.items():
        if isinstance(sequence, str | bytes) or not isinstance(sequence, Sequence):
            raise TypeError(f"{name} must be a list, got {sequence!r:.40}; pass [{name}] for a single one")


def check_that(holds: bool | Tensor, must: str, came: object, advice: str = "") -> None:
    """Refuse, with a ValueError, arguments for which a condition does not hold; of a tensor, the shape is shown."""
    if not holds:
        came = tuple(came.shape) if isinstance(came, Tensor) else came
        raise ValueError(f"{must}, got {came}" + (f"; {advice}" if advice else ""))


class _Call:
    """What the arguments of a call have agreed on so far. Each check returns what the function is to be given."""

    __slots__ = ("advice", "batches", "dtype", "lengths", "tensors")

    def __init__(self, advice: dict[str, str], lengths: dict[str, int]):
        self.advice = advice
        self.lengths = lengths.copy()  # by the name of an axis
        self.tensors: dict[str, tuple[Tensor, Shape]] = {}  # by the name of the argument
        self.batches: dict[str, tuple[int, ...]] = {}  # by the star
        self.dtype: torch.dtype | None = None  # of the floating-point tensors

    def fail(self, kind: type[Exception], name: str, must: str, came: object, default: str, *axes: str) -> NoReturn:
        """Raise the error; what to do is the advice on the argument or on one of the axes, otherwise the default."""
        advice = next((self.advice[known] for known in (name, *axes) if known in self.advice), default)
        raise kind(f"{name} must {must}, got {came}; {advice}")

    def tensor(self, name: str, value: object, wanted: Shape) -> Tensor:
        """Compare a tensor with its annotation and with the tensors before it."""
        if not isinstance(value, Tensor) or (dtype := value.dtype) not in _DTYPES[wanted.kind]:
            advice = _ADVICE[wanted.kind].format(name if isinstance(value, Tensor) else f"torch.as_tensor({name})")
            what = f"a {wanted.kind} tensor".replace("a  ", "a ").replace("a int", "an int")
            self.fail(TypeError, name, f"be {what}", got(value), advice)
        shape, lengths = tuple(value.shape), self.lengths
        if wanted.fixed:
            lengths.update(wanted.fixed)
        if wanted.broadcast:
            self._broadcast(name, shape, wanted)
            return value
        batch, named, names = (), shape, wanted.names
        if free := len(shape) - len(names):  # how many axes the star stands for
            if free < 0 or not wanted.star:
                missing = f"add the axis that is missing, for example with {name}[None]"
                advice = missing if free < 0 else "take away an axis, or call it for each entry of the first axis"
                self.fail(ValueError, name, f"be {wanted.shown}", shape, advice)
            before, after = wanted.num_before, wanted.num_before + free
            batch, named = shape[before:after], shape[:before] + shape[after:]
        self.tensors[name] = value, wanted
        for axis, length in zip(names, named):  # noqa: B905 -- of one length, and strict=True would slow down every call
            if lengths.setdefault(axis, length) != length:
                self._disagree(name, axis, {n for a, n in zip(names, named, strict=True) if a == axis})
        if wanted.is_batched and self.batches.setdefault(wanted.star, batch) != batch:
            self._join(wanted.star, batch)
        if dtype is not self.dtype and wanted.kind == "floating-point":
            if self.dtype is not None and not torch.is_autocast_enabled(value.device.type):
                self._disagree_in_dtype()
            self.dtype = self.dtype or dtype
        return value

    def _disagree(self, name: str, axis: str, lengths: set[int]) -> NoReturn:
        """An axis of this tensor has `lengths`, and another one is known: from the call, the instance or a number."""
        value, wanted = self.tensors[name]
        other = next((known for known, (_, shape) in self.tensors.items() if axis in shape.names and known != name), "")
        must, came, advice = f"be {wanted.shown}", tuple(value.shape), f"both axes are {axis}"
        if axis in wanted.fixed:
            advice = "its length there is fixed"
        elif other and len(lengths) == 1:
            first, shape = self.tensors[other]
            came = f"{other} {tuple(first.shape)} as {shape.shown} and {name} {came} as {wanted.shown}"
            name, must, advice = f"{other} and {name}", f"agree in {axis}", "reshape, cut or project one of them"
        elif len(lengths) == 1:
            must, advice = f"{must} with {axis} = {self.lengths[axis]}", "build the module with the sizes of its input"
        self.fail(ValueError, name, must, came, advice, axis)

    def _join(self, star: str, batch: tuple[int, ...]) -> None:
        """The axes in place of a star broadcast."""
        pairs = list(zip_longest(reversed(self.batches[star]), reversed(batch), fillvalue=1))
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            several = {n: tuple(value.shape) for n, (value, wanted) in self.tensors.items() if wanted.star == star}
            came = " and ".join(f"{name} {shape}" for name, shape in several.items())
            must, advice = "have the same axes in place of the dots", "take all of them from the same batch"
            self.fail(ValueError, _all_of(list(several)), must, came, advice, star[1:])
        self.batches[star] = tuple(b if a == 1 else a for a, b in reversed(pairs))

    def _disagree_in_dtype(self) -> NoReturn:
        floats = {n: value.dtype for n, (value, wanted) in self.tensors.items() if wanted.kind == "floating-point"}
        each = ", ".join(f"{name} {dtype}" for name, dtype in floats.items())
        advice = "convert them, for example with .float()"
        self.fail(TypeError, _all_of(list(floats)), "have the same dtype", each, advice)

    def _broadcast(self, name: str, shape: tuple[int, ...], wanted: Shape) -> None:
        """A mask may leave out axes or have length 1, and does not enlarge what it is for."""
        batch = self.batches.get(wanted.star, ())
        target = (*batch, *map(self.lengths.get, wanted.names))
        if len(shape) <= len(target) or (wanted.star and wanted.star not in self.batches):
            pairs = zip(reversed(shape), reversed(target))  # noqa: B905 -- it may have fewer axes
            if all(length == 1 or known is None or length == known for length, known in pairs):
                return
        fitting = ", ".join(str(self.lengths.get(axis, axis)) for axis in (*batch, *wanted.names))
        advice = _MASK_ADVICE if wanted.kind == "bool" else "take away or insert axes of length 1"
        self.fail(ValueError, name, f"broadcast to {wanted.shown} = ({fitting})", shape, advice)

    def whole(self, name: str, number: int, bounds: Bounds) -> int:
        """A whole number within bounds."""
        most = min(bounds.high, _LARGEST)
        if type(number) is not int or not bounds.low <= number <= most:
            hint = f"; {self.advice[name]}" if name in self.advice else ""
            check_whole(**{name: number}, least=bounds.low, most=most, hint=hint)
        return number

    def number(self, name: str, number: float, bounds: Bounds | None) -> float:
        """A number, and within bounds if there are some."""
        check_number(name, number)
        if bounds and not bounds.hold(number):
            self.fail(ValueError, name, f"be {bounds.shown}", number, "pass a number in that range")
        return number

    def sequence(self, name: str, value: Sequence, _: None) -> Sequence:
        """A list, a tuple or another sequence."""
        check_sequence(**{name: value})
        return value

    def module(self, name: str, value: object, kind: type) -> nn.Module:
        """A module of this class."""
        if not isinstance(value, kind):
            came = f"{value!r:.60} of type {type(value).__name__}"
            self.fail(TypeError, name, f"be of type {kind.__name__}", came, "pass such a module")
        return value

    def function(self, name: str, function: object, returned: Shape | None) -> Callable:
        """What can be called; where the annotation says what it returns, every result is compared with that."""
        if not callable(function):
            self.fail(TypeError, name, "be a function", f"{function!r:.60}", "pass the function itself")
        if returned is None:
            return function

        def with_check(*args, **kwargs):
            result = function(*args, **kwargs)
            fits = isinstance(result, Tensor) and result.dtype in _DTYPES[returned.kind]
            fits = fits and result.dim() == len(returned.names) and result.numel() > 0
            if not fits or result.isnan().any():
                must = f"return a {returned.kind} tensor {returned.shown}, not empty and without NaN"
                came = got(result) + " with NaN" * fits
                self.fail(ValueError, name, must, came, "look at what the function returns")
            return result

        return with_check


def _all_of(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _with_checks(function: Callable, advice: dict[str, str]) -> Callable:
    """The function with its checks, planned at the first call: an annotation may name what its module defines later."""
    signature = inspect.signature(function)
    is_method = "self" in list(signature.parameters)[:1]
    plan: list[_Check] | None = None

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal plan
        if torch.compiler.is_compiling():  # the compiler's own guards compare shapes
            return function(*args, **kwargs)
        if plan is None:
            plan = _planned(function, signature)
        args, lengths = list(args), args[0].__dict__.get(_OF_INSTANCE, {}) if is_method and args else {}
        current = _Call(advice, lengths)
        for place, name, or_none, check, wanted in plan:
            if place < len(args):
                given, key = args, place
            elif name in kwargs:
                given, key = kwargs, name
            else:
                continue
            value = given[key]
            if value is not None or not or_none:
                given[key] = check(current, name, value, wanted)
        result = function(*args, **kwargs)
        if is_method and function.__name__ == "__init__":
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            whole = {n: v for n, v in bound.arguments.items() if hasattr(v, "__index__")}  # those of NumPy, too
            whole = {n: operator.index(v) for n, v in whole.items() if not isinstance(v, bool | Tensor)}
            args[0].__dict__[_OF_INSTANCE] = lengths | whole
        return result

    return call


class _Check(NamedTuple):
    """How one argument is checked."""

    place: int
    name: str
    or_none: bool  # whether it may be None
    check: Callable[[_Call, str, Any, Any], Any]  # a method of `_Call`
    wanted: Any  # its last argument


def _planned(function: Callable, signature: inspect.Signature) -> list[_Check]:
    """The checks of all arguments whose annotation says something; masks last, compared with all other lengths."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = []
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        hint, or_none = hints.get(name), parameter.default is None
        if get_origin(hint) in (types.UnionType, typing.Union):
            kinds = [kind for kind in get_args(hint) if kind is not type(None)]
            or_none |= len(kinds) < len(get_args(hint))
            hint = kinds[0] if len(kinds) == 1 else None
        check, wanted = _check_of(hint)
        if check and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            place = 1_000 if parameter.kind is parameter.KEYWORD_ONLY else place  # it never comes by place
            found.append(_Check(place, name, or_none, check, wanted))
    return sorted(found, key=lambda each: getattr(each.wanted, "broadcast", False))


def _check_of(hint: Any) -> tuple[Callable | None, Any]:
    """What refuses the values that the annotation does not admit; None where it admits everything."""
    note, kind = _note(hint), get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin = get_origin(kind) or kind
    if isinstance(note, Shape):
        return _Call.tensor, note
    if kind is int:
        return _Call.whole, note or Bounds(-(2**63))
    if kind is float:
        return _Call.number, note
    if origin is Callable:
        return _Call.function, _note(get_args(kind)[1]) if get_args(kind) else None
    if origin is Sequence:
        return _Call.sequence, None
    if inspect.isclass(origin) and issubclass(origin, nn.Module):
        return _Call.module, origin
    return None, None


def _note(hint: Any) -> Shape | Bounds | None:
    """The last note of ours on an annotation."""
    notes = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Shape | Bounds)]
    return notes[-1] if notes else None
