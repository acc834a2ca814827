"""Chapter `debugging`: measurements that tell a healthy model from one that trains although something is wrong.

A *model* here is anything that maps tokens `(B, L)` to logits `(B, L, V)`; `course_kit.diagnosing.diagnose` takes all
measurements on any module and explains them. A model that was passed is never changed: what needs training or another
dtype works on a copy, and train or eval mode and the random state are restored.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit._checks import (
    check_callable,
    check_finite,
    check_floats,
    check_ids,
    check_instance,
    check_sequence,
    check_whole,
    got,
)
from course_lib._typing import Float, Int

__all__ = [
    "fit_one_batch",
    "idle_parameters",
    "order_effect",
    "padding_effect",
    "precision_gap",
    "start_loss",
    "token_influence",
]

_NO_TARGET = -100  # what PyTorch's cross-entropy leaves out


def start_loss(
    logits: Float[Tensor, "*batch vocab"], targets: Int[Tensor, "*batch"], pad_id: int | None = None
) -> tuple[float, float]:
    """Cross-entropy per target in nats, and log V, which a model that knows nothing yet should be close to.

    `loss = mean of log Σ_v exp(logit_v) − logit_target` over the targets that count. Logits with standard deviation s
    start at about log V + s² / 2.

    Args:
        logits: `(..., V)`.
        targets: int `(...)`; −100 where there is none.
        pad_id: of targets that do not count either.

    Returns:
        `(loss, log V)`.

    Raises:
        TypeError: logits are not floating-point numbers, or targets or pad_id are not integers.
        ValueError: the shapes do not fit together, a target is not in the vocabulary, or no target counts.
    """
    check_floats(axes=1, logits=logits)
    if not logits.shape[-1]:
        raise ValueError(f"logits must be (..., V) with V ≥ 1, got {tuple(logits.shape)}; pass the scores of a model")
    flat = _counted(targets, logits.shape, pad_id)
    return F.cross_entropy(logits.flatten(0, -2) if logits.dim() > 1 else logits[None], flat).item(), math.log(
        logits.shape[-1]
    )


def fit_one_batch(
    model: nn.Module,
    tokens: Int[Tensor, "batch length"],
    targets: Int[Tensor, "batch length"],
    *,
    steps: int = 100,
    learning_rate: float = 1e-3,
    pad_id: int | None = None,
) -> list[float]:
    """The loss of a copy of the model at each step of Adam on this one batch; a healthy model learns it by heart.

    The copy is in train mode, so dropout is active, and its random draws are the same in every call. A model in float16
    gives NaN, since the 1e-8 in Adam's denominator is zero there; pass a copy in float32.

    Args:
        model: from tokens `(B, L)` to logits `(B, L, V)`.
        tokens: int `(B, L)`.
        targets: int `(B, L)`; −100 where there is none.
        steps: how often the copy is updated.
        learning_rate: of Adam.
        pad_id: of targets that do not count either.

    Returns:
        One number per step: the loss before its update.

    Raises:
        TypeError: model is not a module, tokens, targets, steps or pad_id are not integers, or learning_rate is not a
            number.
        ValueError: a shape or a number does not fit, no parameter can be trained, the logits are not `(B, L, V)`, or
            the model has no weights yet or cannot be copied.
    """
    check_instance(nn.Module, model=model)
    _check_tokens(tokens)
    check_whole(steps=steps)
    check_finite("learning_rate", learning_rate, 0)
    model = _copied(model).train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("model must have parameters to train, got none with requires_grad; unfreeze some of them")
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    losses = []
    with _same_random_numbers(parameters), torch.enable_grad():
        for _ in range(steps):
            logits = _logits(model, tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), _counted(targets, logits.shape, pad_id))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@torch.no_grad()
def token_influence(
    model: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch length"], columns: Sequence[int] | None = None
) -> Float[Tensor, "length columns"]:
    """Entry ij is the largest change of the logits at position i when token j is replaced by another one.

    `influence_ij = max over b, v of |logits(x with x_j + 1 mod V)_biv − logits(x)_biv|`. Above the diagonal, a model
    that predicts the next token must have zeros.

    Args:
        model: from tokens `(B, L)` to logits `(B, L, V)`; a module is run in eval mode.
        tokens: int `(B, L)`.
        columns: the positions j to be changed, all of them if not given.

    Returns:
        `(L, L)`, or `(L, len(columns))`.

    Raises:
        TypeError: model cannot be called, or tokens or columns are not integers.
        ValueError: there are no tokens or columns, a column is not a position, the logits are not `(B, L, V)`, or the
            model has no weights yet.
    """
    _check_tokens(tokens)
    length = tokens.shape[1]
    places = range(length) if columns is None else columns
    check_sequence(columns=places)
    for number, column in enumerate(places):
        check_whole(**{f"columns[{number}]": column}, least=0, most=length - 1, hint="; pass positions of tokens")
    if not len(places):
        raise ValueError("columns must have at least one position, got none; leave it out to change every token")
    with _silent(model):
        logits = _logits(model, tokens)  # (B, L, V)
        changes = []
        for j in places:
            changed = tokens.clone()
            changed[:, j] = (changed[:, j] + 1) % logits.shape[-1]
            changes.append((_logits(model, changed) - logits).abs().amax(dim=(0, 2)))  # (L,)
    return torch.stack(changes, dim=-1)  # (L, columns)


@torch.no_grad()
def padding_effect(
    model: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch length"], pad_id: int, extra: int = 3
) -> float:
    """The largest change of the logits at the given tokens when `extra` padding tokens are appended.

    Args:
        model: from tokens `(B, L)` to logits `(B, L, V)`; a module is run in eval mode.
        tokens: int `(B, L)`; the logits at padding among them do not count.
        pad_id: the padding token.
        extra: how many are appended.

    Returns:
        `max |logits(tokens, padding) − logits(tokens)|` over the tokens that are not padding; 0 if all are.

    Raises:
        TypeError: model cannot be called, or tokens, pad_id or extra are not integers.
        ValueError: there are no tokens, extra is less than 1, the logits are not `(B, L, V)`, or the model has no
            weights yet.
    """
    _check_tokens(tokens)
    check_whole(pad_id=pad_id, least=0)
    check_whole(extra=extra)
    padding = tokens.new_full((tokens.shape[0], extra), pad_id)
    with _silent(model):
        longer = _logits(model, torch.cat([tokens, padding], dim=1))[:, : tokens.shape[1]]  # (B, L, V)
        change = (longer - _logits(model, tokens)).abs().amax(dim=-1)  # (B, L)
    return torch.where(tokens == pad_id, torch.zeros_like(change), change).max().item()


def idle_parameters(model: nn.Module, loss: Float[Tensor, ""]) -> dict[str, str]:
    """Parameters that this loss does not train: "unused" (no path to the loss) or "zero" (a gradient of zeros).

    Gradients that the parameters have collected are left alone, and `loss.backward()` can still be called.

    Args:
        model: whose parameters are looked at; frozen ones are left out.
        loss: a single number, computed with the model.

    Returns:
        Name to "unused" or "zero", empty where everything is trained.

    Raises:
        TypeError: model is not a module, or loss is not a floating-point tensor.
        ValueError: loss is not a single number, or has no gradient at all.
    """
    check_instance(nn.Module, model=model)
    check_floats(loss=loss)
    if loss.numel() != 1:
        raise ValueError(f"loss must be a single number, got {tuple(loss.shape)}; take its mean")
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        return {}
    if not loss.requires_grad:
        raise ValueError(
            "loss must depend on a parameter, got one without a gradient; compute it outside of torch.no_grad() and "
            "without .detach() or .item()"
        )
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True, retain_graph=True)
    pairs = zip(named, found, strict=True)
    return {name: "unused" if grad is None else "zero" for name, grad in pairs if grad is None or not grad.any()}


@torch.no_grad()
def order_effect(model: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch length"]) -> float:
    """The largest change of a token's logits when the tokens are put into reverse order; 0 where order is ignored.

    A causal mask makes a model depend on the order, too, so this finds a missing position code in an encoder only.

    Args:
        model: from tokens `(B, L)` to logits `(B, L, V)`; a module is run in eval mode.
        tokens: int `(B, L)`.

    Returns:
        `max |reversed(logits(reversed(tokens))) − logits(tokens)|`.

    Raises:
        TypeError: model cannot be called, or tokens are not integers.
        ValueError: there are no tokens, the logits are not `(B, L, V)`, or the model has no weights yet.
    """
    _check_tokens(tokens)
    with _silent(model):
        return (_logits(model, tokens.flip(1)).flip(1) - _logits(model, tokens)).abs().max().item()


@torch.no_grad()
def precision_gap(model: nn.Module, tokens: Int[Tensor, "batch length"]) -> float:
    """The largest difference between the logits in float32 and in float64, relative to the largest logit.

    Args:
        model: from tokens `(B, L)` to logits `(B, L, V)`; copies of it are run in eval mode.
        tokens: int `(B, L)`.

    Returns:
        `max |logits_32 − logits_64| / max |logits_64|`, about 1e-6 for a healthy model; 0 if all logits are 0.

    Raises:
        TypeError: model is not a module, or tokens are not integers.
        ValueError: there are no tokens, the logits are not `(B, L, V)`, or the model has no weights yet or cannot
            be copied.
    """
    check_instance(nn.Module, model=model)
    _check_tokens(tokens)
    exact, rough = _copied(model).double().eval(), _copied(model).float().eval()
    with _same_random_numbers(model.parameters()):
        exact, rough = _logits(exact, tokens), _logits(rough, tokens)
    largest = exact.abs().max()
    return ((rough - exact).abs().max() / largest).item() if largest else 0.0


def check_built(model: nn.Module) -> None:
    """Refuse a module whose weights do not exist yet.

    Raises:
        ValueError: it is lazy and was never called, or it is on the device "meta".
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            raise ValueError(f"model must have weights, got a lazy module without `{name}`; call the model once before")
        if tensor.is_meta:
            raise ValueError(f"model must have weights, got `{name}` on the device 'meta'; load the weights before")


def _copied(model: nn.Module) -> nn.Module:
    check_built(model)
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise ValueError(
            f"model must be copyable, got {type(error).__name__}: {error}; remove what copy.deepcopy refuses, such as "
            f"outputs that were kept"
        ) from error


def _check_tokens(tokens: Tensor) -> None:
    check_ids(axes=2, tokens=tokens)
    if not tokens.numel():
        raise ValueError(f"tokens must contain at least one token, got shape {tuple(tokens.shape)}; pass a batch")


def _logits(model: Callable[[Tensor], Tensor], tokens: Tensor) -> Tensor:
    check_callable(model=model)
    if isinstance(model, type):
        raise TypeError(f"model must be a module or a function, got the class {model.__name__}; build a model from it")
    logits = model(tokens)
    if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != tokens.shape:
        raise ValueError(
            f"model must return logits {(*tokens.shape, 'V')}, got {got(logits)}; pass a function that returns them, "
            f"such as lambda tokens: model(tokens)[0]"
        )
    return logits


def _counted(targets: Tensor, shape: torch.Size, pad_id: int | None) -> Tensor:
    """Targets in one row, −100 where none counts."""
    check_ids(targets=targets)
    if targets.shape != shape[:-1]:
        raise ValueError(
            f"targets must have the shape of the logits without the vocabulary, {tuple(shape[:-1])}, got "
            f"{tuple(targets.shape)}; one target per position"
        )
    flat = targets.flatten().long()
    if pad_id is not None:
        check_whole(pad_id=pad_id, least=_NO_TARGET)
        flat = flat.masked_fill(flat == pad_id, _NO_TARGET)
    real = flat[flat != _NO_TARGET]
    if not len(real):
        raise ValueError("targets must include at least one that counts, got padding only; pass other targets")
    if real.min() < 0 or real.max() >= shape[-1]:
        raise ValueError(
            f"targets must be in the vocabulary, 0 … {shape[-1] - 1}, got {int(real.min())} … {int(real.max())}; does "
            f"the model have a logit for each token?"
        )
    return flat


@contextmanager
def _silent(model: object) -> Iterator[None]:
    """A module is in eval mode inside; each of its modules gets its own mode back."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [module.training for module in modules]
    if modules:
        check_built(model)
        model.eval()
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


@contextmanager
def _same_random_numbers(tensors: object) -> Iterator[None]:
    """Draws inside start at the same seed each time, and draws outside are not disturbed."""
    devices = {tensor.device.index for tensor in tensors if tensor.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(0)
        yield
