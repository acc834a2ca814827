"""How much an output depends on each token: leave the token out, or take the gradient at its vector.

Neither looks at attention weights, so both can contradict them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_kit._checks import check_callable, check_instance, check_whole
from course_lib._typing import Bool, Float

__all__ = ["gradient_times_input", "leave_one_out"]


@torch.no_grad()
def leave_one_out(output: Callable[[Bool[Tensor, "variants length"]], Tensor], length: int) -> Float[Tensor, " length"]:
    """How much an output changes when one token is left out, for each token.

    I_j = ‖f(all tokens) − f(all tokens but j)‖.

    Args:
        output: takes bool `(length + 1, length)`, True = the token is there, and returns one output per row,
            `(length + 1, ...)`. The first row has all tokens.
        length: number of tokens.

    Returns:
        `(length,)`.

    Raises:
        TypeError: output is not a function that returns a tensor, or length is not a whole number.
        ValueError: `output` does not return one output per row.

    Source: Li, Monroe & Jurafsky (2016).
    """
    check_callable(output=output)
    check_whole(length=length)
    everything = torch.ones(1, length, dtype=torch.bool)
    present = torch.cat((everything, ~torch.eye(length, dtype=torch.bool)))  # (length + 1, length)
    outputs = output(present)
    check_instance(Tensor, **{"what output returns": outputs})
    if outputs.shape[:1] != (length + 1,):
        raise ValueError(
            f"output must return one row per variant of the sentence, {length + 1} of them, got {tuple(outputs.shape)}"
        )
    outputs = outputs.reshape(length + 1, -1)
    return (outputs[0] - outputs[1:]).norm(dim=-1)


def gradient_times_input(embedding: nn.Module, score: Callable[[], Tensor]) -> Float[Tensor, "batch length"]:
    """How much a score depends on each token to first order: the gradient at the token's vector, times that vector.

    I_j = |Σ_d x_jd ∂s/∂x_jd|.

    Args:
        embedding: the sub-module that returns the tokens' vectors x, `(B, L, d)`, called once by `score`.
        score: runs the model and returns a number (for a batch: the sum of one number per sentence).

    Returns:
        `(B, L)`. No parameter's `.grad` is changed.

    Raises:
        TypeError: embedding is not a module, or score is not a function that returns a tensor.
        ValueError: `score` does not return a single number, or does not depend on what the embedding returns.

    Source: Shrikumar et al. (2016).
    """
    check_instance(nn.Module, embedding=embedding)
    check_callable(score=score)
    vectors: list[Tensor] = []

    def keep(_module: nn.Module, _args: tuple, output: Tensor) -> Tensor:
        vectors.append(output.detach().requires_grad_())
        return vectors[-1]

    with embedding.register_forward_hook(keep), torch.enable_grad():
        number = score()
    check_instance(Tensor, **{"what score returns": number})
    if number.numel() != 1:
        raise ValueError(
            f"score must return a single number, got a tensor {tuple(number.shape)}; sum it, or choose one"
        )
    if len(vectors) != 1 or not number.requires_grad:
        raise ValueError(
            f"score must call the embedding once and compute with gradients, got {len(vectors)} calls and a result "
            f"{'with' if number.requires_grad else 'without'} a gradient"
        )
    (gradient,) = torch.autograd.grad(number, vectors, allow_unused=True)
    if gradient is None:
        raise ValueError("score must depend on what the embedding returns, got a result that does not")
    return (gradient * vectors[0].detach()).sum(-1).abs()
