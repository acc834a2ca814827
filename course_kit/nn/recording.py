"""The attention weights of every layer of a model, collected while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from course_kit._checks import got
from course_kit.nn.multi_head import MultiHeadAttention

__all__ = ["named_attentions", "record_attention"]


def named_attentions(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """Every `MultiHeadAttention` in a model by its name, in the order of the modules; "" is the model itself.

    Raises:
        TypeError: model is not an `nn.Module`.
        ValueError: there is none.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {got(model)}; pass the module itself")
    attentions = {name: m for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if not attentions:
        raise ValueError(
            f"model must contain at least one course_kit.nn.MultiHeadAttention, got {type(model).__name__} with none; "
            f"build it from course_kit.nn (an nn.MultiheadAttention is converted by MultiHeadAttention.from_torch)"
        )
    return attentions


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every `MultiHeadAttention` in a model while the block runs.

    Layers do not request the weights, so that they can run on the fused kernel; inside the block the weights are
    computed all the same.

        with record_attention(model) as maps:
            model(source, target)
        maps["encoder.layers.0.self_attention"]  # (B, H, L_q, L_k)

    Args:
        model: any module with `MultiHeadAttention` somewhere inside.

    Yields:
        A dictionary from the module's name to its latest weights, detached; "" is the name of the model itself.

    Raises:
        ValueError: there is no `MultiHeadAttention` in the model, so nothing could ever be recorded.
    """
    attentions = named_attentions(model)
    maps: dict[str, Tensor] = {}

    def ask_for_weights(_module, args, kwargs):
        return args, {**kwargs, "need_weights": True}

    def keep(name):
        def hook(_module, _args, result):
            maps[name] = result[1].detach()

        return hook

    handles = []
    try:
        for name, attention in attentions.items():
            handles.append(attention.register_forward_pre_hook(ask_for_weights, with_kwargs=True))
            handles.append(attention.register_forward_hook(keep(name)))
        yield maps
    finally:
        for handle in handles:
            handle.remove()
