"""What PyTorch's error messages mean, in terms of the axes of the exercise at hand."""

from __future__ import annotations

import re
from collections.abc import Callable

from torch import Tensor

from course_lib.exercises import Case, Exercise
from course_lib.grader._observing import Observation

__all__ = ["axis_names", "explain_problem", "shape_in_words"]


def axis_names(exercise: Exercise, case: Case) -> dict[int | tuple[int, ...], str | tuple[str, ...]]:
    """Which axis has which length in this case; lengths that two axes share are left out.

    Results whose axes the exercise names in `shapes` are there too, all axes by the whole shape: it is known where a
    length alone would say nothing, because two axes share it or because it is one.
    """
    lengths: dict[str, int] = {}
    for name, arg in zip(exercise.arguments, case.args, strict=False):
        axes = exercise.shapes.get(name, "").split()
        if isinstance(arg, Tensor) and axes and axes != ["#"]:
            named = axes[1:] if axes[0] == "..." else axes
            if len(named) <= arg.dim():
                lengths |= {
                    axis: length
                    for axis, length in zip(named, arg.shape[arg.dim() - len(named) :], strict=True)
                    if not axis.isdigit()
                }
                if axes[0] == "...":
                    batch = arg.shape[: arg.dim() - len(named)]
                    lengths |= {f"batch {i}" if len(batch) > 1 else "batch": n for i, n in enumerate(batch)}
        elif type(arg) is int and not isinstance(arg, bool):
            lengths[name] = arg
    init = {n: v for n, v in zip(exercise.init_arguments, case.init, strict=False) if type(v) is int}
    lengths |= init
    if init.get("num_heads") and "d_model" in init:
        lengths.setdefault("d_head = d_model / num_heads", init["d_model"] // init["num_heads"])
    names: dict[int, list[str]] = {}
    for name, length in lengths.items():
        names.setdefault(length, []).append(name)
    known = {length: axes[0] for length, axes in names.items() if len(axes) == 1 and length > 1}
    results: dict[tuple[int, ...], set[tuple[str, ...]]] = {}
    for name in exercise.returns:
        axes = tuple(exercise.shapes.get(name, "").split())
        if axes and all(axis in lengths for axis in axes):
            results.setdefault(tuple(lengths[axis] for axis in axes), set()).add(axes)
    return known | {shape: axes.pop() for shape, axes in results.items() if len(axes) == 1}


def shape_in_words(shape: tuple[int, ...], axes: dict) -> str:
    """`(3, 5)` as `(3 = len_q, 5 = len_k)`, with the names that `axis_names` gives."""
    names = axes.get(shape) or [axes.get(n) for n in shape]
    return "(" + ", ".join(f"{n} = {name}" if name else str(n) for n, name in zip(shape, names, strict=True)) + ")"


def explain_problem(exercise: Exercise, case: Case, seen: Observation) -> str:
    """Why the call ended in this exception, or "" where the message says it best itself."""
    problem = seen.problem
    axes = axis_names(exercise, case)
    for pattern, explain in EXPLANATIONS:
        match = re.search(pattern, f"{problem.type}: {problem.message}", re.DOTALL)
        if match:
            return explain(match, axes)
    return ""


def _named(n: str, axes: dict[int, str]) -> str:
    return f"{n} ({axes[int(n)]})" if int(n) in axes else n


def _sizes(text: str, axes: dict[int, str]) -> str:
    return shape_in_words(tuple(int(n) for n in re.findall(r"\d+", text)), axes)


def _say(text: str) -> Callable:
    return lambda match, axes: text


EXPLANATIONS: tuple[tuple[str, Callable[[re.Match, dict[int, str]], str]], ...] = (
    (
        r"next_log_probs\(.*\): expected a list of ints",
        _say(
            "The model is asked with something else than a list of ids. A tensor with one number becomes an int with "
            "`int(...)` or `.item()`."
        ),
    ),
    (
        r"next_log_probs\(.*\): expected bos first",
        _say("The model is asked with a part of the sequence. It wants all tokens so far, each time, and bos first."),
    ),
    (
        r"next_log_probs\(.*\): expected ids from",
        _say("There is no token of this id. Is it the number of a candidate, or of a hypothesis?"),
    ),
    (
        r"next_log_probs\(.*\): expected a sequence that goes on",
        _say("The model is asked for what follows eos. Nothing does: what has ended is not extended."),
    ),
    (
        r"next_log_probs\(.*\): expected at most",
        _say("The loop goes on after `max_length` tokens, where no eos ends it."),
    ),
    (
        r"next_log_probs was called more than",
        _say("The model is asked again and again. Does the loop end, and do only survivors go on?"),
    ),
    (
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
        lambda m, axes: (
            f"A matrix product of {_sizes(m[1] + 'x' + m[2], axes)} with {_sizes(m[3] + 'x' + m[4], axes)}: the last "
            f"axis of the first "
            f"and the first axis of the second have to be the same. Is one of them transposed, or not yet?"
        ),
    ),
    (
        r"Expected size for first two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]",
        lambda m, axes: (
            f"A batched matrix product sums over an axis of {_named(m[2], axes)} on its left side and finds "
            f"{_named(m[4], axes)} on its "
            f"right. Which two axes of the right one should change places, or which tensor is it meant to be?"
        ),
    ),
    (
        r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)",
        lambda m, axes: (
            f"Two tensors are combined entry by entry, and along axis {m[3]} one has length {_named(m[1], axes)}, the "
            f"other "
            f"{_named(m[2], axes)}. Axes are lined up from the right; `keepdim=True` or `unsqueeze` keeps them in "
            f"their place."
        ),
    ),
    (
        r"inconsistent tensor size|size mismatch, got input \((\d+)\)",
        _say("A product of a matrix and a vector whose lengths do not fit: write the shape of both beside the line."),
    ),
    (
        r"Boolean value of Tensor with more than one value is ambiguous",
        _say(
            "A whole tensor stands where one truth value is needed: `if mask:` or `mask and …`. To ask whether there "
            "is one at all, "
            "compare with None; to choose entry by entry, use `torch.where` or `masked_fill`."
        ),
    ),
    (
        r"view size is not compatible",
        _say(
            "`view` never copies, so it cannot put axes together that a transpose has taken apart in memory. "
            "`reshape` copies where it "
            "has to; so does `contiguous()` before the view."
        ),
    ),
    (
        r"shape '\[([^\]]*)\]' is invalid for input of size (\d+)",
        lambda m, axes: (
            f"A tensor of {m[2]} numbers is asked for in the shape [{m[1]}], which holds another number. Which axes "
            f"does the input "
            f"have? With a batch, or without one, there may be one more or less than you think."
        ),
    ),
    (
        r"masked_fill_? only supports boolean masks|expected condition to be a boolean tensor",
        _say("The condition has to be bool. Ones and zeros become one with `.bool()`."),
    ),
    (
        r"value cannot be converted to type (.*?) without overflow",
        _say(
            "The number that you fill in does not fit this dtype: float16 ends at 65504. Which value is smallest in "
            "every dtype?"
        ),
    ),
    (
        r"cannot assign (module|parameters?) before Module\.__init__\(\) call",
        _say(
            "A module is put on `self` before `nn.Module` was set up: `super().__init__()` has to come first in "
            "`__init__`."
        ),
    ),
    (
        r"super\(type, obj\): obj must be an instance",
        _say(
            "`super(Name, self)` names another class. In Python 3 it is `super().__init__()`, without a name to get "
            "wrong."
        ),
    ),
    (
        r"AttributeError: '(\w+)' object has no attribute '(\w+)'",
        lambda m, axes: (
            f"`{m[2]}` is used, but no {m[1]} has it. Is it spelt as in `__init__`, and was it put on `self` there?"
            if m[1] not in {"Tensor", "NoneType"}
            else (
                f"Something is None where you expect a tensor, so it has no `{m[2]}`. Which argument may be None, or "
                f"which function lacks its "
                f"`return`?"
                if m[1] == "NoneType"
                else f"Tensors have no `{m[2]}`. Look for the name in PyTorch's documentation of `torch.Tensor`."
            )
        ),
    ),
    (
        r"'NoneType' object is not (?:subscriptable|iterable)|cannot unpack non-iterable NoneType",
        _say(
            "Something is None and is taken apart like a tuple. Which argument may be None, and which function lacks "
            "its `return`?"
        ),
    ),
    (
        r"NameError: name '(\w+)' is not defined",
        lambda m, axes: (
            f"`{m[1]}` has no value here: a typing slip, a missing import, or a name from a cell that was not run. "
            f"Attributes of a module "
            f"need `self.` before them."
        ),
    ),
    (
        r"expected (?:m1 and m2|scalar type|mat1 and mat2)[^\n]*(?:dtype|Double|Float|Half|BFloat16)",
        _say(
            "Two tensors of different dtypes meet. One that you make inside is float32 unless you say otherwise: make "
            "it like the input, "
            "with `dtype=x.dtype` or `torch.zeros_like`."
        ),
    ),
    (
        r"Can't call numpy\(\) on Tensor that requires grad",
        _say("NumPy knows no gradients, so the way through it is cut. The same operation exists in torch."),
    ),
    (
        r"a leaf Variable that requires grad is being used in an in-place operation|modified by an inplace operation",
        _say(
            "Something is changed in place that the gradient still needs, or that belongs to the caller. Operations "
            "whose names end in "
            "`_`, and assignments to parts of a tensor, do that; there is a form without the underscore that gives a "
            "new tensor."
        ),
    ),
    (
        r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)",
        lambda m, axes: (
            f"There is no axis {m[3]}: this tensor has axes {m[1]} to {m[2]}. Counted from the right, −1 and −2 exist "
            f"with and without a "
            f"batch."
        ),
    ),
    (
        r"not enough values to unpack|too many values to unpack",
        _say(
            "A shape or a result is unpacked into a fixed number of names, and this input has another number of axes. "
            "`x.shape[-1]` works "
            "for any."
        ),
    ),
    (
        r"missing (\d+) required positional arguments?: (.*)",
        lambda m, axes: (
            f"A call lacks {m[2]}. Compare the signature with the one in the exercise: names, order and defaults are "
            f"fixed."
        ),
    ),
    (
        r"takes (?:from )?\d+ (?:to \d+ )?positional arguments? but \d+ (?:was|were) given|unexpected keyword argument",
        _say(
            "A function is called with other arguments than it takes. Compare the signature with the one in the "
            "exercise."
        ),
    ),
    (
        r"element 0 of tensors does not require grad",
        _say("What comes out does not depend on what went in, as far as autograd knows: the graph was cut on the way."),
    ),
    (
        r"maximum recursion depth exceeded",
        _say("The function calls itself without end. Does a helper have the same name as the exercise?"),
    ),
    (
        r"The shape of the mask \[([^\]]*)\] at index \d+ does not match the shape of the indexed tensor",
        _say(
            "`x[mask] = …` wants a mask of the shape of x; a mask that broadcasts does not fit. `masked_fill` and "
            "`torch.where` "
            "broadcast, and leave the original as it is."
        ),
    ),
    (
        r"must be Tensor, not (int|float)",
        _say("A function for tensors is called with a plain number. Numbers have functions of their own, in `math`."),
    ),
    (
        r"failed to unpack the object at pos|must be tuple of ints, not|'float' object cannot be interpreted as an "
        r"integer",
        _say("A size has to be an int, and `/` always gives a float. `//` divides ints to an int."),
    ),
    (
        r"einsum\(\)",
        _say("The letters of `einsum` do not fit the tensors: one letter an axis, `...` for any number of batch axes."),
    ),
    (
        r"IndexError: (index|too many indices|tuple index)",
        _say(
            "An index goes past the end of an axis, or there are more indices than axes. Without a batch there is one "
            "axis less."
        ),
    ),
    (
        r"UnboundLocalError|referenced before assignment",
        _say("A name gets its value in one branch only, and this input takes the other one."),
    ),
    (
        r"Stopped: .*reading its code",
        _say(
            "No case was run: the imports, constants and helpers that the definition uses did not get ready. Does one "
            "of them "
            "train, read files or wait?"
        ),
    ),
    (
        r"Stopped: .*took longer",
        _say(
            "A loop that does not end, or work that grows far too fast with the size of the input, which is tiny here."
        ),
    ),
    (
        r"Stopped: .*ended the process",
        _say(
            "The code ends its own process, or crashes it. A solution returns its result, and leaves the process alone."
        ),
    ),
    (
        r"MemoryError|can't allocate memory|not enough memory",
        _say("More memory is asked for than a solution may have. The inputs are tiny: which axis grew?"),
    ),
    (
        r"PermissionError|Operation not permitted|Network is unreachable",
        _say(
            "Processes, network and files outside its folder are closed to a submission. A solution needs none of them."
        ),
    ),
    (
        r"File too large",
        _say("More is printed or written than a submission may. Leave the prints out."),
    ),
    (
        r"ZeroDivisionError",
        _say("A division by zero: which argument can be 0 here, and is it an integer division that rounds down to it?"),
    ),
)
