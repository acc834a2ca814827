"""What a part of a model does: switch heads off, or put in what they computed in another run.

A map shows where a head looks. What depends on it shows only when it is changed and the model runs again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from course_kit._checks import check_instance, check_whole
from course_kit.nn import MultiHeadAttention, named_attentions
from course_lib.multi_head import merge_heads, split_heads

__all__ = ["heads_off", "patch_heads", "patch_outputs", "record_heads", "record_outputs"]


@contextmanager
def heads_off(model: nn.Module, heads: Mapping[str, Iterable[int]]) -> Iterator[None]:
    """Switch heads off while the block runs: they add nothing to the output of their attention.

    output = Σ_{h not in heads} W_O^h head_h + b_O. The weights are still computed and recorded.

        with heads_off(model, {"encoder.layers.0.self_attention": [1, 2]}):
            model(source, target)

    Args:
        model: any module with `MultiHeadAttention` somewhere inside.
        heads: name of the attention in the model (the names are those of `record_attention`) to its heads.

    Raises:
        KeyError: the model has no attention of that name.
        ValueError: the attention has no such head.

    Source: Michel, Levy & Neubig (2019), section 2.3.
    """
    check_instance(Mapping, heads=heads)
    with ExitStack() as stack:
        for name, numbers in heads.items():
            attention = _attention(model, name)
            silent = _head_numbers(name, attention, numbers)

            def silence(together: Tensor, attention=attention, silent=silent) -> Tensor:
                keep = together.new_ones(attention.num_heads)
                keep[silent] = 0
                return merge_heads(split_heads(together, attention.num_heads) * keep[:, None, None])

            stack.enter_context(_changed_heads(attention, silence))
        yield


@contextmanager
def record_heads(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what each head computes, before the output projection mixes the heads.

    Yields:
        A dictionary from the name of each `MultiHeadAttention` to `(B, H, L_q, d_head)`, detached.

    Raises:
        ValueError: there is no `MultiHeadAttention` in the model.
    """
    attentions = named_attentions(model)
    outputs: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for name, attention in attentions.items():

            def keep(together: Tensor, name=name, attention=attention) -> Tensor:
                outputs[name] = split_heads(together.detach(), attention.num_heads)
                return together

            stack.enter_context(_changed_heads(attention, keep))
        yield outputs


@contextmanager
def patch_heads(
    model: nn.Module, patches: Mapping[tuple[str, int], Tensor], *, positions: Any = slice(None)
) -> Iterator[None]:
    """While the block runs, single heads compute what they computed in another run.

        with record_heads(model) as other:
            model(other_source, target)
        name = "decoder.layers.0.cross_attention"
        with patch_heads(model, {(name, 2): other[name][:, 2]}):
            model(source, target)

    Args:
        model: any module with `MultiHeadAttention` somewhere inside.
        patches: (name of the attention, head) to the head's output, `(B, L_q, d_head)`.
        positions: index of the positions that are patched: a number, a slice, a list; all if not given.

    Raises:
        KeyError: the model has no attention of that name.
        ValueError: the attention has no such head, or a patch is not of the shape of what it replaces.

    Source: Vig et al. (2020); Wang et al. (2023).
    """
    check_instance(Mapping, patches=patches)
    for key in patches:
        check_instance(tuple, **{"each key of patches": key})
    with ExitStack() as stack:
        for (name, head), patch in patches.items():
            attention = _attention(model, name)
            _head_numbers(name, attention, [head])

            def replace(together: Tensor, name=name, head=head, patch=patch, attention=attention) -> Tensor:
                heads = split_heads(together, attention.num_heads).clone()
                _check_patch(f"head {head} of {name}", patch, heads[:, head])
                heads[:, head, positions] = patch[:, positions]
                return merge_heads(heads)

            stack.enter_context(_changed_heads(attention, replace))
        yield


@contextmanager
def record_outputs(model: nn.Module, names: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """Collect what sub-modules return, such as the layers of a stack, the embedding or an attention.

    Args:
        model: any module.
        names: of sub-modules, as `model.named_modules()` has them, each of which returns a tensor, or a tuple that
            begins with one.

    Yields:
        A dictionary from name to the latest output, detached; of a tuple its first entry.

    Raises:
        KeyError: the model has no sub-module of that name.
    """
    check_instance(nn.Module, model=model)
    check_instance(Iterable, names=names)
    outputs: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for name in names:

            def keep(_module, _args, output, name=name):
                outputs[name] = _tensor(output).detach()

            stack.enter_context(_submodule(model, name).register_forward_hook(keep))
        yield outputs


@contextmanager
def patch_outputs(model: nn.Module, patches: Mapping[str, Tensor], *, positions: Any = slice(None)) -> Iterator[None]:
    """While the block runs, sub-modules return what they returned in another run: activation patching.

        with record_outputs(model, ["encoder.layers.1"]) as other:
            model(other_source, target)
        with patch_outputs(model, other, positions=3):
            model(source, target)

    Args:
        model: any module.
        patches: name of a sub-module to its output in the other run, `(B, L, d)`.
        positions: index of the positions that are patched: a number, a slice, a list; all if not given.

    Raises:
        KeyError: the model has no sub-module of that name.
        ValueError: a patch is not of the shape of what it replaces, or a sub-module was not called inside the block, so
            that nothing was replaced. With gradients, the query, key and value projections are not called where an
            attention computes them as one product.

    Source: Vig et al. (2020); Meng et al. (2022), section 2.1.
    """
    check_instance(nn.Module, model=model)
    check_instance(Mapping, patches=patches)
    called: set[str] = set()

    with ExitStack() as stack:
        for name, patch in patches.items():

            def replace(_module, _args, output, name=name, patch=patch):
                called.add(name)
                own = _tensor(output)
                _check_patch(name, patch, own)
                changed = own.clone()
                changed[:, positions] = patch[:, positions]
                return (changed, *output[1:]) if isinstance(output, tuple) else changed

            stack.enter_context(_submodule(model, name).register_forward_hook(replace))
        yield
    if idle := patches.keys() - called:
        raise ValueError(
            f"expected every patched sub-module to be called while the block runs, but {type(model).__name__} did not "
            f"call {', '.join(sorted(idle))}, so nothing was patched there; patch a module that contains it"
        )


def _changed_heads(attention: MultiHeadAttention, change: Callable[[Tensor], Tensor]) -> RemovableHandle:
    """Send the heads' outputs, `(B, L_q, d_model)` as the output projection reads them, through `change`."""
    return attention.out_proj.register_forward_pre_hook(lambda _module, args: (change(args[0]),))


def _submodule(model: nn.Module, name: str) -> nn.Module:
    modules = dict(model.named_modules())
    if not isinstance(name, str) or name not in modules:
        raise KeyError(f"{type(model).__name__} has no sub-module {name!r}; print(model) lists them")
    return modules[name]


def _attention(model: nn.Module, name: str) -> MultiHeadAttention:
    attentions = named_attentions(model)
    if name not in attentions:
        raise KeyError(f"expected the name of an attention, one of {', '.join(attentions)}, got {name!r}")
    return attentions[name]


def _head_numbers(name: str, attention: MultiHeadAttention, heads: Iterable[int]) -> list[int]:
    check_instance(Iterable, **{f"the heads of {name}": heads})
    numbers = list(heads)
    for number in numbers:
        check_whole(least=-math.inf, **{f"a head of {name}": number})
    wrong = [number for number in numbers if not 0 <= number < attention.num_heads]
    if wrong:
        raise ValueError(f"{name} has the heads 0 … {attention.num_heads - 1}, got {wrong}")
    return numbers


def _tensor(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _check_patch(what: str, patch: Tensor, own: Tensor) -> None:
    check_instance(Tensor, **{f"the patch of {what}": patch})
    if patch.shape != own.shape:
        raise ValueError(
            f"the patch of {what} must have the shape of what it replaces, {tuple(own.shape)}, got "
            f"{tuple(patch.shape)}; both runs need the same batch size and length"
        )
