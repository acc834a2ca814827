"""course_lib._checks.checked: each kind of argument and each way in which it can be wrong, by its message."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import re
import runpy
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import course_lib
from course_lib._checks import checked, got
from course_lib._typing import Bool, Bounds, Count, Float, Int, Mask, NotNegative, Positive, Probability, Shape, Size

pytestmark = pytest.mark.usefixtures("unchecked")  # jaxtyping would come before the checks of numbers
ANY = "reshape, cut or project one of them"
MASK_HINT = "a padding mask is (B, 1, 1, L_k) for scores with heads and (B, 1, L_k) without, a causal one (L_q, L_k)"
Bias = Annotated[Float[Tensor, "..."], Shape("floating-point", "*batch len_q len_k", broadcast=True)]


def refused(error: type[Exception], message: str, function: Callable, *args, **kwargs) -> None:
    """The call ends in this error, with this message from its first to its last letter."""
    with pytest.raises(error) as raised:
        function(*args, **kwargs)
    assert str(raised.value) == message


# --- a single tensor --------------------------------------------------------------------------------------------------


@checked(features="pass a table of words")
def norm(x: Float[Tensor, "rows features"]) -> Float[Tensor, " rows"]:
    """The length of each row."""
    return x.norm(dim=-1)


@checked
def any_rank(x: Float[Tensor, "*batch length d"], ids: Int[Tensor, "..."] | None = None) -> int:
    """How many axes."""
    return x.dim()


@checked
def counts(ids: Int[Tensor, " length"]) -> int:
    """How many."""
    return len(ids)


@checked
def hidden(mask: Bool[Tensor, "rows columns"]) -> int:
    """How many are hidden."""
    return int((~mask).sum())


def test_what_fits_is_computed():
    assert norm(torch.tensor([[3.0, 4.0]])).tolist() == [5.0]
    assert counts(torch.tensor([1, 2, 3])) == counts(torch.tensor([1, 2, 3], dtype=torch.int32)) == 3
    assert hidden(torch.tensor([[True, False]])) == 1
    assert [any_rank(torch.zeros(*[2] * axes)) for axes in (2, 3, 5)] == [2, 3, 5]
    assert norm(nn.Parameter(torch.zeros(0, 3))).shape == (0,)  # no rows are rows, too


@pytest.mark.parametrize(
    ("function", "name", "kind", "cast"),
    [(norm, "x", "a floating-point", ".float()"), (counts, "ids", "an integer", ".long()")],
)
def test_another_dtype_and_what_is_no_tensor_are_refused(function, name, kind, cast):
    values = [torch.tensor([[True]]), torch.zeros(1, 1, dtype=torch.complex64)]
    values += [torch.zeros(1, dtype=torch.long)] if function is norm else [torch.zeros(1), torch.zeros(1).byte()]
    for value in (*values, [[1.0]], None, "text", np.zeros((1, 1))):
        shown = name if isinstance(value, Tensor) else f"torch.as_tensor({name})"
        message = f"{name} must be {kind} tensor, got {got(value)}; pass {shown}{cast}"
        refused(TypeError, message, function, value)


def test_a_mask_of_another_dtype_is_refused():
    ones = torch.ones(2, 3, dtype=torch.long)
    message = (
        "mask must be a bool tensor, got torch.int64 (2, 3); True where a query may attend; for a mask of ones and "
        "zeros pass mask.bool(), for one of zeros and -inf mask == 0"
    )
    refused(TypeError, message, hidden, ones)
    refused(TypeError, message, attention, QUERY, KEY, ones)
    message = "bias must be a floating-point tensor, got torch.bool (3, 5); pass bias.float()"
    refused(TypeError, message, attention, QUERY, KEY, bias=yes(3, 5))


def test_too_few_and_too_many_axes_are_refused():
    few = "add the axis that is missing, for example with {}[None]"
    many = "take away an axis, or call it for each entry of the first axis"
    refused(ValueError, f"x must be (rows, features), got (3,); {few.format('x')}", norm, torch.zeros(3))
    refused(ValueError, f"x must be (rows, features), got (2, 3, 4); {many}", norm, torch.zeros(2, 3, 4))
    refused(ValueError, f"ids must be (length,), got (); {few.format('ids')}", counts, torch.tensor(3))
    refused(ValueError, f"ids must be (length,), got (1, 1); {many}", counts, torch.tensor([[3]]))
    refused(ValueError, f"x must be (..., length, d), got (3,); {few.format('x')}", any_rank, torch.zeros(3))


# --- lengths that agree -----------------------------------------------------------------------------------------------


@checked(d="project one of them", square="pass weights of self-attention")
def pairs(
    query: Float[Tensor, "len_q d"],
    key: Float[Tensor, "len_k d"],
    square: Float[Tensor, "n n"] | None = None,
    value: Float[Tensor, "len_k d_v"] | None = None,
) -> Float[Tensor, "len_q len_k"]:
    """All products."""
    return query @ key.T


@checked
def rows(x: Float[Tensor, "1 d"], y: Float[Tensor, "1 2 d"] | None = None, mask: Mask["1 d"] | None = None) -> None:
    """One row each."""


def test_axes_of_one_name_must_agree():
    assert pairs(torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(5, 5), torch.zeros(4, 1)).shape == (2, 4)
    message = "query and key must agree in d, got query (2, 3) as (len_q, d) and key (4, 5) as (len_k, d); project one"
    refused(ValueError, message + " of them", pairs, torch.zeros(2, 3), torch.zeros(4, 5))
    message = "key and value must agree in len_k, got key (4, 3) as (len_k, d) and value (5, 3) as (len_k, d_v); " + ANY
    refused(ValueError, message, pairs, torch.zeros(2, 3), torch.zeros(4, 3), value=torch.zeros(5, 3))


def test_axes_of_one_name_within_a_tensor_must_agree():
    @checked
    def square_and_rows(square: Float[Tensor, "n n"], x: Float[Tensor, "n d"] | None = None) -> None:
        pass

    @checked
    def rows_and_square(x: Float[Tensor, "n d"], square: Float[Tensor, "n n"]) -> None:
        pass

    x = torch.zeros(4, 5)
    message = "square must be (n, n), got (2, 3); pass weights of self-attention"
    refused(ValueError, message, pairs, torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(2, 3))
    refused(ValueError, "square must be (n, n), got (2, 3); both axes are n", square_and_rows, torch.zeros(2, 3))
    refused(ValueError, "square must be (n, n), got (4, 3); both axes are n", rows_and_square, x, torch.zeros(4, 3))
    message = "square and x must agree in n, got square (3, 3) as (n, n) and x (4, 5) as (n, d); " + ANY
    refused(ValueError, message, square_and_rows, torch.zeros(3, 3), x)
    message = "x and square must agree in n, got x (4, 5) as (n, d) and square (3, 3) as (n, n); " + ANY
    refused(ValueError, message, rows_and_square, x, torch.zeros(3, 3))


def test_a_number_as_the_name_of_an_axis_is_its_length():
    one = torch.zeros(1, 3)
    rows(one, torch.zeros(1, 2, 3), yes(1, 3))
    refused(ValueError, "x must be (1, d), got (2, 3); its length there is fixed", rows, torch.zeros(2, 3))
    message = "y must be (1, 2, d), got (1, 3, 3); its length there is fixed"
    refused(ValueError, message, rows, one, torch.zeros(1, 3, 3))
    refused(ValueError, f"mask must broadcast to (1, d) = (1, 3), got (2, 3); {MASK_HINT}", rows, one, mask=yes(2, 3))


# --- batches ----------------------------------------------------------------------------------------------------------


@checked(batch="expand one of them")
def product(x: Float[Tensor, "*batch n d"], y: Float[Tensor, "*batch d m"], z: Float[Tensor, "*batch m"] | None = None):
    """A product."""
    return x @ y


@checked
def two(x: Float[Tensor, "first *batch"], y: Float[Tensor, "... d"], z: Float[Tensor, "... d"]) -> None:
    """The star comes last, or has no name."""


def test_batches_that_broadcast_are_taken():
    for x, y in (((), ()), ((5,), ()), ((), (5,)), ((2, 5), (5,)), ((2, 1), (2, 5)), ((1, 5), (2, 1)), ((0,), (1,))):
        assert product(torch.zeros(*x, 3, 4), torch.zeros(*y, 4, 6)).shape[-2:] == (3, 6)
    product(torch.zeros(2, 1, 3, 4), torch.zeros(5, 4, 6), torch.zeros(2, 5, 6))


def test_batches_that_do_not_broadcast_are_refused():
    message = (
        "x and y must have the same axes in place of the dots, got x (2, 3, 4) and y (5, 4, 6); expand one of them"
    )
    refused(ValueError, message, product, torch.zeros(2, 3, 4), torch.zeros(5, 4, 6))
    three = torch.zeros(2, 1, 3, 4), torch.zeros(5, 4, 6), torch.zeros(4, 6)  # of which no two would be wrong
    message = "x, y and z must have the same axes in place of the dots, got x (2, 1, 3, 4) and y (5, 4, 6) and z (4, 6)"
    refused(ValueError, message + "; expand one of them", product, *three)


def test_dots_without_a_name_need_not_agree():
    two(torch.zeros(2, 3, 4), torch.zeros(5, 7), torch.zeros(6, 2, 7))
    two(torch.zeros(2), torch.zeros(7), torch.zeros(7))
    with pytest.raises(ValueError, match=r"y and z must agree in d, got y \(5, 7\) as \(..., d\)"):
        two(torch.zeros(2), torch.zeros(5, 7), torch.zeros(5, 6))


# --- masks ------------------------------------------------------------------------------------------------------------


@checked
def attention(
    query: Float[Tensor, "*batch len_q d"],
    key: Float[Tensor, "*batch len_k d"],
    mask: Mask["*batch len_q len_k"] | None = None,
    bias: Bias | None = None,
) -> Float[Tensor, "*batch len_q len_k"]:
    """Scores."""
    return query @ key.mT


@checked(mask="one number per pair")
def mask_first(mask: Mask["len_q len_k"], query: Float[Tensor, " len_q"], key: Float[Tensor, " len_k"] | None = None):
    """The mask is compared with what follows."""


def yes(*shape: int) -> Tensor:
    """A mask."""
    return torch.ones(shape, dtype=torch.bool)


QUERY, KEY = torch.zeros(2, 4, 3, 8), torch.zeros(2, 4, 5, 8)


@pytest.mark.parametrize("shape", [(), (5,), (3, 1), (3, 5), (1, 1, 3, 5), (2, 1, 1, 5), (4, 3, 5), (2, 4, 3, 5)])
def test_a_mask_that_broadcasts_is_taken(shape):
    attention(QUERY, KEY, yes(*shape), torch.zeros(shape, dtype=torch.float64))
    attention(QUERY, KEY, mask=yes(*shape))


@pytest.mark.parametrize("shape", [(3,), (5, 3), (3, 4), (3, 3, 5), (2, 3, 5), (1, 2, 4, 3, 5), (1, 1, 1, 1, 1)])
def test_a_mask_that_does_not_fit_or_would_enlarge_is_refused(shape):
    wanted = f"must broadcast to (..., len_q, len_k) = (2, 4, 3, 5), got {shape}"
    refused(ValueError, f"mask {wanted}; {MASK_HINT}", attention, QUERY, KEY, yes(*shape))
    message = f"bias {wanted}; take away or insert axes of length 1"
    refused(ValueError, message, attention, QUERY, KEY, bias=torch.zeros(shape))


def test_a_mask_before_the_tensors_is_compared_with_them():
    mask_first(yes(3, 5), torch.zeros(3), torch.zeros(5))
    mask_first(yes(3, 5), torch.zeros(3))
    for mask, known, shown in (((3, 4), [torch.zeros(5)], 5), ((2, 4), [], "len_k"), ((1, 3, 4), [], "len_k")):
        message = f"mask must broadcast to (len_q, len_k) = (3, {shown}), got {mask}; one number per pair"
        refused(ValueError, message, mask_first, yes(*mask), torch.zeros(3), *known)


# --- dtypes of a call -------------------------------------------------------------------------------------------------


def test_floating_point_tensors_have_one_dtype():
    message = (
        "x, y and z must have the same dtype, got x torch.float32, y torch.float32, z torch.float64; convert them, for "
        "example with .float()"
    )
    refused(TypeError, message, product, torch.zeros(2, 3), torch.zeros(3, 4), torch.zeros(4).double())
    product(*(torch.zeros(3, 3).bfloat16() for _ in range(2)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert product(torch.zeros(2, 3), torch.zeros(3, 4).bfloat16()).dtype == torch.bfloat16


# --- numbers ----------------------------------------------------------------------------------------------------------


@checked(size="it counts words", share="0 switches it off")
def numbers(
    size: Size = 1,
    count: Count = 0,
    whole: int = 0,
    share: Probability = 0.0,
    positive: Positive = 1.0,
    most: NotNegative = 1.0,
    weight: Annotated[float, Bounds(-1, 1)] = 0.0,
    any_number: float = 0.0,
) -> None:
    """Numbers."""


def test_numbers_within_their_bounds_are_taken():
    numbers(size=1, count=0, whole=-5, share=0, positive=1e-300, most=0, weight=-1, any_number=math.nan)
    numbers(size=2**63 - 1, count=np.int64(3), whole=-(2**63), share=0.999, positive=3, most=2.5, weight=1.0)
    numbers(share=np.float32(0.5), any_number=np.float64(0.5)), numbers(any_number=-math.inf)


def test_numbers_out_of_their_bounds_are_refused():
    for name, value, says in (
        ("size", 0, "at least 1, got 0; it counts words"),
        ("size", 2**63, f"at most {2**63 - 1}, got {2**63}; it counts words"),
        ("count", -1, "at least 0, got -1"),
        ("whole", -(2**63) - 1, f"at least {-(2**63)}, got {-(2**63) - 1}"),
        ("share", 1.0, "in [0, 1), got 1.0; 0 switches it off"),
        ("share", -0.1, "in [0, 1), got -0.1; 0 switches it off"),
        ("share", math.nan, "in [0, 1), got nan; 0 switches it off"),
        ("positive", 0.0, "positive and finite, got 0.0; pass a number in that range"),
        ("positive", math.inf, "positive and finite, got inf; pass a number in that range"),
        ("positive", 10**400, f"in the range of a float, got {10**400}; pass a smaller one"),
        ("most", -1e-9, "in [0, inf), got -1e-09; pass a number in that range"),
        ("most", math.inf, "in [0, inf), got inf; pass a number in that range"),
        ("weight", 1.01, "in [-1, 1], got 1.01; pass a number in that range"),
        ("weight", -2, "in [-1, 1], got -2; pass a number in that range"),
    ):
        refused(ValueError, f"{name} must be {says}", numbers, **{name: value})


def test_what_is_no_number_is_refused():
    for value in (True, False, 2.0, "2", None, [2], math.nan, torch.tensor(2.0)):
        for name, advice in (("size", "; it counts words"), ("count", ""), ("whole", "")):
            message = f"{name} must be a whole number, got {value!r}; pass an int{advice}"
            refused(TypeError, message, numbers, **{name: value})
    for value in (True, False, "0.5", None, [0.5], 1j):
        for name in ("share", "positive", "weight", "any_number"):
            message = f"{name} must be a number, got {value!r}; pass a float"
            refused(TypeError, message, numbers, **{name: value})


# --- functions, modules, sequences ------------------------------------------------------------------------------------


@checked(score="pass a function of two tensors", step="it returns one logit per word of the vocabulary")
def search(
    step: Callable[[list[int]], Float[Tensor, " vocab"]],
    score: Callable[[Tensor, Tensor], Tensor] | None = None,
    *,
    after: Callable | None = None,
) -> list[float]:
    """Calls `step` once."""
    return step([1]).tolist()


@checked
def layers(model: nn.Module, linear: nn.Linear | None = None, words: Sequence[int] = ()) -> int:
    """How many."""
    return len(words)


def test_what_a_function_returns_is_compared_with_the_annotation():
    assert search(lambda ids: torch.tensor([0.0, ids[0]])) == [0.0, 1.0]
    hint = "it returns one logit per word of the vocabulary"
    for returned, came in (
        (torch.zeros(1, 2), "torch.float32 (1, 2)"),
        (torch.zeros(0), "torch.float32 (0,)"),
        (torch.tensor([1]), "torch.int64 (1,)"),
        (torch.tensor([0.0, math.nan]), "torch.float32 (2,) with NaN"),
        (None, "NoneType"),
        ([0.5], "list"),
    ):
        message = f"step must return a floating-point tensor (vocab,), not empty and without NaN, got {came}; {hint}"
        refused(ValueError, message, search, lambda ids, returned=returned: returned)
        refused(ValueError, message, search, step=lambda ids, returned=returned: returned)


def test_what_cannot_be_called_is_refused():
    step = torch.ones
    message = "score must be a function, got 'dot'; pass a function of two tensors"
    refused(TypeError, message, search, step, "dot")
    refused(TypeError, "after must be a function, got 3; pass the function itself", search, step, after=3)
    message = "step must be a function, got None; it returns one logit per word of the vocabulary"
    refused(TypeError, message, search, None)
    assert search(lambda ids: torch.zeros(1), torch.dot, after=len) == [0.0]


def test_another_module_and_what_is_no_sequence_are_refused():
    assert [layers(nn.ReLU(), words=words) for words in ([1, 2], (1, 2), range(2))] == [2, 2, 2]
    assert layers(nn.ReLU(), nn.Linear(1, 2)) == 0
    message = f"model must be of type Module, got {nn.Linear!r} of type type; pass such a module"
    refused(TypeError, message, layers, nn.Linear)
    message = "linear must be of type Linear, got ReLU() of type ReLU; pass such a module"
    refused(TypeError, message, layers, nn.ReLU(), nn.ReLU())
    for words, shown in (("text", "'text'"), (3, "3"), ({1}, "{1}"), (None, "None")):
        message = f"words must be a list, got {shown}; pass [words] for a single one"
        refused(TypeError, message, layers, nn.ReLU(), words=words)


# --- None, defaults, missing arguments --------------------------------------------------------------------------------


@checked
def options(
    x: Float[Tensor, " n"], size: Size = None, *, y: Float[Tensor, " n"] | None = None, free=3, **rest
) -> tuple:
    """What came."""
    return size, y, free, rest


@checked
def several(x: Float[Tensor, " n"] | int, *others: Float[Tensor, " n"], key: Size) -> int:
    """A union of two is open; so is a number of arguments."""
    return len(others)


@checked
def perhaps(x: Float[Tensor, " n"] | None) -> bool:
    """Whether there is one."""
    return x is not None


def test_none_is_taken_where_the_annotation_or_the_default_says_so():
    assert (perhaps(None), perhaps(torch.zeros(1))) == (False, True)
    assert options(torch.zeros(2), None, y=None) == (None, None, 3, {})
    assert options(torch.zeros(2), 4, y=torch.zeros(2), free="x", more=1)[0] == 4
    with pytest.raises(TypeError, match="x must be a floating-point tensor, got NoneType"):
        options(None)


def test_arguments_by_keyword_are_checked_like_those_in_place():
    with pytest.raises(ValueError, match="x and y must agree in n"):
        options(y=torch.zeros(3), x=torch.zeros(2))
    refused(ValueError, "size must be at least 1, got 0", options, torch.zeros(2), size=0)
    refused(ValueError, "key must be at least 1, got 0", several, 1, 2, 3, key=0)
    assert several("anything", None, 3, key=1) == 2


def test_missing_and_unknown_arguments_are_pythons_own_error():
    for call, words in (
        (lambda: norm(), "norm() missing 1 required positional argument: 'x'"),
        (lambda: norm(torch.zeros(1, 1), 2), "norm() takes 1 positional argument but 2 were given"),
        (lambda: norm(torch.zeros(1, 1), y=2), "norm() got an unexpected keyword argument 'y'"),
        (lambda: norm(torch.zeros(1, 1), x=2), "norm() got multiple values for argument 'x'"),
        (lambda: Scale(), "missing 1 required positional argument: 'd_model'"),
        (lambda: Scale.forward(), "missing 2 required positional arguments: 'self' and 'x'"),
    ):
        with pytest.raises(TypeError, match=re.escape(words)):
            call()


# --- classes ----------------------------------------------------------------------------------------------------------


@checked(d_model="build it for the width of x")
class Scale(nn.Module):
    """Scales each feature."""

    def __init__(self, d_model: Size, heads: Size = 2, name: str = "scale"):
        super().__init__()
        self.gain = nn.Parameter(torch.full((d_model,), 2.0))

    def forward(self, x: Float[Tensor, "*batch length d_model"]) -> Float[Tensor, "*batch length d_model"]:
        """`gain` times `x`."""
        return self._scaled(x)

    def split(self, x: Float[Tensor, "heads d_model"], y: Float[Tensor, "heads n"] | None = None) -> Tensor:
        """As it is."""
        return x

    def _scaled(self, x: Float[Tensor, " n"]) -> Tensor:
        return self.gain * x

    @staticmethod
    def plain(x: Float[Tensor, " d_model"]) -> int:
        """Not looked at."""
        return 1

    @property
    def width(self) -> int:
        """Of the gain."""
        return len(self.gain)


class Twice(Scale):
    """A subclass with a constructor and a method of its own."""

    def __init__(self, width: int):
        super().__init__(width, heads=3)

    def forward(self, x):
        return 2 * super().forward(x)


def test_numbers_of_the_constructor_are_lengths():
    for module in (Scale(3), Scale(np.int64(3))):
        assert module(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2
        message = "x must be (..., length, d_model) with d_model = 3, got (2, 4); build it for the width of x"
        refused(ValueError, message, module, torch.zeros(2, 4))
        message = "x must be (heads, d_model) with heads = 2, got (3, 3); build the module with the sizes of its input"
        refused(ValueError, message, module.split, torch.zeros(3, 3))  # a default
        message = "x and y must agree in heads, got x (2, 3) as (heads, d_model) and y (4, 1) as (heads, n); " + ANY
        refused(ValueError, message, module.split, torch.zeros(2, 3), torch.zeros(4, 1))
    assert (Scale.plain("no tensor"), module.width) == (1, 3)
    assert Scale(5)(torch.zeros(1, 5)).shape == (1, 5)  # each instance has lengths of its own
    assert (list(module.state_dict()), repr(module)) == (["gain"], "Scale()")


def test_the_constructor_is_checked():
    refused(TypeError, "d_model must be a whole number, got 2.0; pass an int; build it for the width of x", Scale, 2.0)
    refused(ValueError, "heads must be at least 1, got 0", Scale, 3, heads=0)


def test_a_subclass_is_checked_by_what_it_inherits():
    module = Twice(3)
    assert module(torch.ones(1, 3)).tolist() == [[4.0] * 3]
    assert module.split(torch.zeros(3, 3)).shape == (3, 3)
    with pytest.raises(ValueError, match="d_model = 3"):
        module(torch.zeros(1, 4))
    with pytest.raises(ValueError, match="d_model must be at least 1"):
        Twice(0)


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_knows_its_lengths(again):
    module = again(Scale(3))
    assert module(torch.ones(1, 3)).tolist() == [[2.0] * 3]
    with pytest.raises(ValueError, match="d_model = 3"):
        module(torch.zeros(1, 4))


# --- what the decorator leaves alone ----------------------------------------------------------------------------------


def test_names_signatures_and_docstrings_stay():
    assert norm.__name__ == "norm"
    assert norm.__doc__ == "The length of each row."
    assert norm.__module__ == Scale.forward.__module__ == __name__
    assert list(inspect.signature(pairs).parameters) == ["query", "key", "square", "value"]
    assert list(inspect.signature(Scale).parameters) == ["d_model", "heads", "name"]
    assert Scale.forward.__doc__ == "`gain` times `x`."
    assert "return self._scaled(x)" in inspect.getsource(inspect.unwrap(Scale.forward))


def test_arguments_are_handed_over_as_they_are():
    @checked
    def same(x: Float[Tensor, "n d"], *, y: Float[Tensor, "n d"]) -> tuple:
        return x, y

    x = torch.zeros(2, 3)
    assert all(given is x for given in same(x, y=x))


def test_annotations_are_read_at_the_first_call_and_once(monkeypatch):
    calls = []
    original = typing.get_type_hints
    monkeypatch.setattr(typing, "get_type_hints", lambda *args, **kw: calls.append(args) or original(*args, **kw))

    @checked
    def nothing_to_check(x, y: str = "") -> None:
        pass

    assert calls == []
    for _ in range(3):
        nothing_to_check(1)
    assert len(calls) == 1


def test_a_compiled_function_is_not_checked(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert any_rank(torch.zeros(3)) == 1
    assert Scale(3)(torch.ones(3)).tolist() == [2.0] * 3


def test_it_compiles_to_one_graph():
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    assert torch.equal(compiled(QUERY + 1, KEY + 1, yes(3, 5)), attention(QUERY + 1, KEY + 1))


# --- annotations ------------------------------------------------------------------------------------------------------


def test_without_jaxtyping_an_annotation_is_a_tensor_with_a_note(monkeypatch):
    monkeypatch.delitem(sys.modules, "jaxtyping")
    names = runpy.run_path(str(Path(course_lib.__file__).with_name("_typing.py")))
    for name, kind in (("Bool", "bool"), ("Float", "floating-point"), ("Int", "integer")):
        tensor, note = get_args(names[name][Tensor, "... n"])
        assert tensor is Tensor
        assert note == names["Shape"](kind, "... n")


@pytest.mark.parametrize(
    ("axes", "shown", "names", "star"),
    [
        ("", "()", (), ""),
        (" n", "(n,)", ("n",), ""),
        ("n d_k", "(n, d_k)", ("n", "d_k"), ""),
        ("...", "(...)", (), "..."),
        ("*batch n d", "(..., n, d)", ("n", "d"), "*batch"),
        ("first *batch last", "(first, ..., last)", ("first", "last"), "*batch"),
    ],
)
def test_shapes_are_read_from_their_axes(axes, shown, names, star):
    shape = Shape("bool", axes)
    assert (shape.shown, shape.names, shape.star) == (shown, names, star)
    assert shape == Shape("bool", axes) != Shape("integer", axes)


def test_axes_that_nobody_understands_are_refused():
    for axes in ("*a *b", "n+1", "#n", "*a ..."):
        with pytest.raises((AttributeError, ValueError)):
            Shape("bool", axes)
