"""What the error messages of PyTorch and Python mean. An explanation states what is certain: which operation, which
lengths, which axes; advice is added only if the learner's own line shows that it applies."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from course_kit.checker.verdict.code_line import CodeLine
from course_kit.checker.verdict.in_source import in_place
from course_kit.checker.verdict.wrong_calls import WRONG_CALLS
from course_kit.exercises import Case, Exercise

__all__ = ["EXPLANATIONS", "Context", "Explanation"]


@dataclass(frozen=True)
class Context:
    """Where an exception was raised.

    Args:
        exercise: the exercise.
        case: what went in.
        axes: names of lengths, and of whole shapes.
        line: the solution's own line.
        sources: the solution's code, as far as it is known.
        unnamed: lengths quoted without a name, because no axis, or several, have them.
    """

    exercise: Exercise
    case: Case
    axes: dict
    line: CodeLine
    sources: tuple[str, ...] = ()
    unnamed: list[str] = field(default_factory=list)

    def named(self, length: str) -> str:
        """A length with the name of its axis, if only one axis has it."""
        name = self.axes.get(int(length))
        if not name:
            self.unnamed.append(length)
        return f"{length} ({name})" if name else length

    def arguments_that_are(self, wanted: Callable[[object], bool]) -> list[str]:
        """Names of the arguments in this case for which something holds."""
        names, args = self.exercise.arguments, self.case.args
        given = [*args, *[None] * (len(names) - len(args))]  # what a call leaves out is None in all exercises
        return [f"`{name}`" for name, value in zip(names, given, strict=True) if wanted(value)]


Explanation = Callable[[re.Match, Context], str]  # "" where it does not apply; a plain text may quote groups


def _sizes_differ(m: re.Match, at: Context) -> str:
    """Broadcasting failed. The operator is known only if the line contains a single kind."""
    line = at.line
    if line.has_matrix_product or line.layers:
        met = "This line combines two tensors whose lengths do not fit"
    else:
        met = "This line combines two tensors entry by entry"
    facts = (
        f"{met}. With the axes lined up from the right, one has length {at.named(m[1])} at axis {m[3]}, the other "
        f"{at.named(m[2])}."
    )
    if line.multiplies_a_turned_tensor:
        return f"{facts} `*` multiplies entry by entry; a matrix product is `@`."
    if ".T" in line.code or "np.transpose" in line.code:
        return f"{facts} `.T` and `np.transpose` reverse all axes; `transpose(-2, -1)` exchanges only the last two."
    if line.drops_an_axis and m[3] != "0":  # a tensor that lacks an axis does not reach the first one
        return f"{facts} `{line.drops_an_axis}` drops the axis that it reduces, unless it has `keepdim=True`."
    if line.inserts_an_axis:
        return (
            f"{facts} The line inserts an axis with `{line.inserts_an_axis}`: is it needed, and is it in the right "
            f"place?"
        )
    return f"{facts} Write the shape of each tensor beside the line."


def _product_of_two(m: re.Match, at: Context) -> str:
    left, right = (m[1], m[2]), (m[3], m[4])
    if at.line.layers and not at.line.has_matrix_product:
        return (
            f"A linear layer in this line takes vectors of length {at.named(right[0])}, but its input has vectors of "
            f"length {at.named(left[1])}."
        )
    return (
        f"A matrix product sums over the last axis of its first tensor, of length {at.named(left[1])}, and the first "
        f"axis of its second one, of length {at.named(right[0])}. These two lengths must be equal."
    )


def _batched_product(m: re.Match, at: Context) -> str:
    if m[1] != m[3]:
        return (
            f"A batched matrix product multiplies matrices in pairs, but there are {at.named(m[1])} on its left side "
            f"and {at.named(m[3])} on its right."
        )
    return (
        f"A batched matrix product sums over the last axis of its first tensor, of length {at.named(m[2])}, and the "
        f"second-to-last axis of its second one, of length {at.named(m[4])}. These two lengths must be equal."
    )


def _reshaped(m: re.Match, at: Context) -> str:
    lengths = [int(n) for n in re.findall(r"-?\d+", m[1])]
    shape = f"({', '.join(map(str, lengths))})"
    if -1 in lengths:
        return f"A tensor of {m[2]} numbers cannot take the shape {shape}: the other lengths do not divide {m[2]}."
    return (
        f"A tensor of {m[2]} numbers cannot take the shape {shape}, because the product of these lengths is not {m[2]}."
    )


def _no_axis(m: re.Match, at: Context) -> str:
    count = int(m[2]) + 1
    has = "one axis" if count == 1 else f"{count} axes"
    facts = f"This line uses axis {m[3]} of a tensor that has {has} in this case."
    if int(m[3]) >= count:
        return f"{facts} Counted from the right, −1 and −2 name the same axes with and without a batch dimension."
    return facts


def _none(m: re.Match, at: Context) -> str:
    absent = at.arguments_that_are(lambda value: value is None)
    if absent:
        is_none = f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} None"
        return f"This line uses a value that is None. In this case {is_none}."
    return (
        "This line uses a value that is None, although no argument is None in this case. A function without `return` "
        "gives None, and so do `sort` and `append` of a list."
    )


def _no_attribute(m: re.Match, at: Context) -> str:
    owner, name = m[1], m[2]
    if owner == "NoneType":
        return _none(m, at)
    if at.exercise.is_class and f"self.{name}" in at.line.code:
        return f"`self.{name}` is used but never assigned. Is it spelt as in `__init__`?"
    article = "An" if owner[:1] in "AEIOUaeiou" else "A"
    return f"{article} `{owner}` has no `{name}`."


def _dtypes_meet(m: re.Match, at: Context) -> str:
    dtype = str(at.case.dtype).removeprefix("torch.")
    given = f"The arguments are {dtype} in this case. " if at.case.dtype is not None else ""
    return (
        f"This line combines two tensors of different dtypes. {given}A tensor that you create is float32 unless you "
        f"pass `dtype=`, or use `torch.zeros_like` or a similar function."
    )


def _unpacked(m: re.Match, at: Context) -> str:
    count = f"{m[2]} value{'' if m[2] == '1' else 's'}" if m[2] else "more values"
    facts = f"{m[1]} names are on the left of `=`, but the right side has {count}."
    if at.line.reads_a_shape:
        return f"{facts} The number of axes differs from case to case; `x.shape[-1]` works for any number."
    return facts


def _divided_by_zero(m: re.Match, at: Context) -> str:
    zeros = at.arguments_that_are(lambda value: type(value) in (int, float) and value == 0)
    empty = at.arguments_that_are(lambda value: isinstance(value, list | tuple) and len(value) == 0)
    if zeros or empty:
        found = [f"{name} is 0" for name in zeros] + [f"{name} is empty" for name in empty]
        return f"A division by zero. In this case {' and '.join(found)}."
    if at.line.has_operator(ast.FloorDiv):
        return "A division by zero. `//` rounds down, so it may have turned the divisor into 0."
    return "A division by zero: print the divisor in the case shown."


def _index_too_large(m: re.Match, at: Context) -> str:
    return f"Index {m[1]} is past the end of an axis of length {at.named(m[2])}: indices start at 0."


def _wrong_dtype_filled(m: re.Match, at: Context) -> str:
    dtype = str(at.case.dtype).removeprefix("torch.")
    ends = ", whose largest value is 65504" if dtype == "float16" else ""
    return (
        f"The number that this line fills in cannot be represented in {dtype}{ends}. Which value is the smallest "
        f"in every dtype?"
    )


def _changed_in_place(m: re.Match, at: Context) -> str:
    places = [at.line.code] if at.line.code else in_place(at.sources)
    where = f" In place here: {', '.join(f'`{code}`' for code in places[:3])}." if places else ""
    return (
        f"A tensor is changed in place although the gradient still needs its old value.{where} Operations whose names "
        f"end in `_`, `+=` and assignments to parts of a tensor work in place; `x = x + y` makes a new tensor."
    )


EXPLANATIONS: dict[str, str | Explanation] = {
    r"next_log_probs\(None\): expected a list": (
        "The model is called with None in place of the tokens. `append` and `extend` change a list and return None."
    ),
    r"next_log_probs\(.*\): expected a list of ints, got int$": (
        "The model is called with a single token. It needs the list of all tokens so far, with bos as the first."
    ),
    r"next_log_probs\(.*\): expected a list of ints": (
        "The model takes a list of Python ints, not a tensor or a list of tensors. `int(...)` or `.item()` "
        "converts a tensor with one number to an int."
    ),
    r"next_log_probs\(.*\): expected bos first": (
        "The model needs all tokens so far at every call, with bos as the first."
    ),
    r"next_log_probs\(.*\): expected ids from": (
        "The vocabulary has no token with this id. Is it the index of a candidate or a hypothesis?"
    ),
    r"next_log_probs\(.*\): expected a sequence that goes on": (
        "The model was called with a sequence that has already ended with eos. Do not extend a finished one."
    ),
    r"next_log_probs\(.*\): expected at most": (
        "The loop calls the model after `max_length` tokens have been generated."
    ),
    r"next_log_probs was called more than": (
        "The model is called again and again. Does the loop end, and are only the survivors extended?"
    ),
    r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)": _product_of_two,
    r"Expected size for first two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]": (
        _batched_product
    ),
    r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)": (
        _sizes_differ
    ),
    r"inconsistent tensor size|size mismatch, got input \((\d+)\)": (
        "The lengths in this product do not match. Write the shapes of both tensors beside the line."
    ),
    r"Boolean value of Tensor with more than one value is ambiguous": (
        "`if`, `and`, `or`, `not` and Python's own `max` and `min` need one truth value, and this tensor has several. "
        "To see whether an argument was given, compare it with `is None`; to choose entry by entry, use `torch.where` "
        "or `masked_fill`."
    ),
    r"view size is not compatible": (
        "`view` never copies, so it cannot merge axes that a transpose has separated in memory. `reshape` copies "
        "where it has to, and `contiguous()` before the view does so, too."
    ),
    r"shape '\[([^\]]*)\]' is invalid for input of size (\d+)": _reshaped,
    r"masked_fill_? only supports boolean masks|expected condition to be a boolean tensor": (
        "The condition has to be a bool tensor. `.bool()` converts zeros and ones."
    ),
    r"value cannot be converted to type (.*?) without overflow": _wrong_dtype_filled,
    r"cannot assign (module|parameters?) before Module\.__init__\(\) call": (
        "`super().__init__()` has to come first in `__init__`, before anything is assigned to `self`."
    ),
    r"super\(type, obj\): obj must be an instance": (
        "`super(Name, self)` names another class. `super().__init__()` needs no name."
    ),
    **WRONG_CALLS,
    r"Index tensor must have the same number of dimensions as": (
        "`gather` and `scatter` need an index with as many axes as the tensor; `unsqueeze` inserts one."
    ),
    r"1D tensors expected": "`dot` multiplies two vectors only. A matrix product is `@`.",
    r"tensors used as indices must be|indices must be integers|only integer tensors|only integers, slices": (
        "An index has to be an int, and this one is not. `//` gives an int where `/` gives a float."
    ),
    r"number of dimensions in the tensor input does not match .* input\.dim\(\) = (\d+) .* len\(dims\) = (\d+)": (
        r"`permute` takes one number per axis: the tensor has \1 axes in this case, and the call has \2 numbers."
    ),
    (
        r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at non-singleton dimension "
        r"(\d+)"
    ): (
        lambda m, at: (
            f"This line puts values of length {at.named(m[2])} at axis {m[3]} where the length is {at.named(m[1])}. "
            f"Only an axis of length 1 is repeated."
        )
    ),
    r"shape mismatch: value tensor of shape \[(.*?)\] cannot be broadcast to indexing result of shape \[(.*?)\]": (
        r"The right side has the shape (\1), but the part that is assigned has the shape (\2)."
    ),
    r"zero-dimensional tensor \(at position \d+\) cannot be concatenated": (
        "`cat` joins tensors along an axis, and one of these has no axis. `stack` joins single numbers."
    ),
    r"'(Tensor|list|tuple|int|float)' object is not callable": (
        r"Parentheses after a value of type \1 call it. Square brackets index it, and `*` multiplies."
    ),
    r"AttributeError: '(\w+)' object has no attribute '(\w+)'": _no_attribute,
    r"'NoneType' object is not (?:subscriptable|iterable)|cannot unpack non-iterable NoneType": _none,
    r"NameError: name '(\w+)' is not defined": (
        lambda m, at: (
            f"`{m[1]}` has no value here: is it a typing slip, a missing import, or a name from a cell that was not "
            f"run?" + (" Attributes of a module need `self.` before them." if at.exercise.is_class else "")
        )
    ),
    r"expected (?:m1 and m2|scalar type|mat1 and mat2)[^\n]*(?:dtype|Double|Float|Half|BFloat16)": _dtypes_meet,
    r"expected both vectors to have same dtype": _dtypes_meet,
    r"a leaf Variable that requires grad is being used in an in-place operation|modified by an inplace operation": (
        _changed_in_place
    ),
    r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)": _no_axis,
    r"(?:not enough|too many) values to unpack \(expected (\d+)(?:, got (\d+))?\)": _unpacked,
    r"element 0 of tensors does not require grad": (
        "Autograd finds no path from the result back to the arguments: part of the computation is detached from "
        "the graph."
    ),
    r"maximum recursion depth exceeded": (
        "The function calls itself without end. Does a helper have the same name as the exercise?"
    ),
    r"The shape of the mask \[([^\]]*)\] at index \d+ does not match the shape of the indexed tensor": (
        "In `x[mask]`, the mask applies to the first axes of x and must have their lengths; `x[..., mask]` applies "
        "it to the last one. `masked_fill` and `torch.where` broadcast a mask, and leave the original unchanged."
    ),
    (
        r"failed to unpack the object at pos|must be tuple of ints, not|'float' object cannot be interpreted as an "
        r"integer"
    ): "A size has to be an int, but `/` always gives a float. `//` gives an int.",
    r"einsum\(\)": (
        "The letters of `einsum` do not fit the tensors: one letter per axis, and `...` for batch dimensions."
    ),
    r"index (\d+) is out of bounds for (?:dimension|axis) \d+ with size (\d+)": _index_too_large,
    r"too many indices for tensor of dimension (\d+)": (
        r"There are more indices than axes: the tensor has \1 in this case."
    ),
    r"IndexError: tuple index": "An index goes past the end of a tuple, such as a shape with fewer axes.",
    r"IndexError: list index|IndexError: list assignment": "An index goes past the end of a list.",
    r"UnboundLocalError|referenced before assignment": (
        "A name is used before the function gives it a value: it is assigned later, or only in a branch that this "
        "case does not take."
    ),
    r"Stopped: .*reading its code": (
        "No case was run, because the imports, constants and helpers that the definition uses did not finish. Does "
        "one of them train, read files or wait?"
    ),
    r"Stopped: .*took longer": (
        "There is a loop that does not end, or a computation that is far too slow even for these tiny inputs."
    ),
    r"Stopped: .*ended the process": (
        "The code ends its own process, or crashes it. A solution should only return its result."
    ),
    r"numbers in a tensor that is computed from (\w+) and (\w+) in this case": (
        r"This line computes a tensor from `\1` and `\2` that is larger than the exercise allows. Which part of it is "
        "needed at a time?"
    ),
    r"MemoryError|can't allocate memory|not enough memory": (
        "The solution uses more memory than it is allowed. The inputs are tiny: which axis has grown?"
    ),
    r"PermissionError|Operation not permitted|Read-only file system|Network is unreachable": (
        "A submission has no access to processes, the network or other files. A solution needs none of them."
    ),
    r"File too large": "The submission prints or writes more than it is allowed. Remove the print statements.",
    r"ZeroDivisionError": _divided_by_zero,
}
