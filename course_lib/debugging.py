"""Chapter `debugging`: measurements that tell a healthy model from one that trains although something is wrong.

A *model* here maps tokens `(B, L)` to logits `(B, L, V)`; it may be a function where nothing is trained or copied. (Of
an encoder–decoder, take `lambda target: model(source, target)`.) `course_kit.diagnosing.diagnose` takes all
measurements on any module and explains them. A model that was passed is never changed: what needs training or another
dtype works on a copy, and train or eval mode and the random state are restored. ValueError is raised for a module whose
weights do not exist yet, for one that has to be copied and cannot be, and for results that are not such logits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib._checks import check_that, check_whole, checked, got
from course_lib._typing import Count, Float, Int, NotNegative, Size

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


@checked(batch="one target per position")
def start_loss(
    logits: Float[Tensor, "*batch vocab"], targets: Int[Tensor, "*batch"], pad_id: int | None = None
) -> tuple[float, float]:
    """Cross-entropy per target in nats, and log V, which a model that knows nothing yet should be close to.

    `loss = mean of (log Σ_v exp(logit_v) − logit_target)` over the targets that count: those that are neither `pad_id`
    nor −100. Logits with standard deviation s start at about log V + s² / 2.

    Raises:
        ValueError: there is not one target per position, one is not in the vocabulary, or none counts.
    """
    _check_positions(logits, targets)
    counted = _counted(targets, logits.shape[-1], pad_id)
    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), counted)
    return loss.item(), math.log(logits.shape[-1])


@checked(batch="one target per token", length="one target per token")
def fit_one_batch(
    model: nn.Module,
    tokens: Int[Tensor, "batch length"],
    targets: Int[Tensor, "batch length"],
    *,
    steps: Size = 100,
    learning_rate: NotNegative = 1e-3,
    pad_id: int | None = None,
) -> list[float]:
    """The loss of a copy of the model before each step of Adam on this one batch; a healthy model memorises it.

    Targets that are `pad_id` or −100 do not count. The copy is in train mode, so dropout is active, and its random
    draws are the same in every call. A model in float16 gives NaN, since the 1e-8 in Adam's denominator is zero there;
    pass a copy in float32.

    Raises:
        ValueError: no parameter can be trained, a target is not in the vocabulary, or none counts.
    """
    model = _copied(model).train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("model must have parameters to train, got none with requires_grad; unfreeze some of them")
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    losses = []
    with _same_random_numbers(parameters), torch.enable_grad():
        for _ in range(steps):
            logits = _logits(model, tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), _counted(targets, logits.shape[-1], pad_id))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@checked
@torch.no_grad()
def token_influence(
    model: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch length"], columns: Sequence[int] | None = None
) -> Float[Tensor, "length columns"]:
    """Entry ij is the largest change of the logits at position i when token j is replaced by the next id.

    `influence_ij = max over b, v of |logits(x with x_j + 1 mod V)_biv − logits(x)_biv|`. Above the diagonal, a model
    that predicts the next token must have zeros. `columns` are the positions j to change, by default all. A module is
    run in eval mode.

    Raises:
        ValueError: there are no tokens or columns, or a column is not a position.
    """
    check_that(tokens.numel() > 0, "tokens must contain at least one token", tokens, "pass a batch")
    columns = range(tokens.shape[1]) if columns is None else columns
    _check_columns(columns, tokens.shape[1])
    with _silent(model):
        logits = _logits(model, tokens)  # (B, L, V)
        changes = []
        for j in columns:
            changed = tokens.clone()
            changed[:, j] = (changed[:, j] + 1) % logits.shape[-1]
            changes.append((_logits(model, changed) - logits).abs().amax(dim=(0, 2)))  # (L,)
    return torch.stack(changes, dim=-1)  # (L, columns)


@checked
@torch.no_grad()
def padding_effect(
    model: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch length"], pad_id: Count, extra: Size = 3
) -> float:
    """The largest change of the logits at the given tokens when `extra` padding tokens are appended.

    `max |logits(tokens, padding) − logits(tokens)|` over the tokens that are not padding; 0 if all are. A module is run
    in eval mode.
    """
    padding = tokens.new_full((tokens.shape[0], extra), pad_id)
    with _silent(model):
        logits = _logits(model, tokens)  # (B, L, V)
        longer = _logits(model, torch.cat([tokens, padding], dim=1))[:, : tokens.shape[1]]
        change = (longer - logits).abs().amax(dim=-1)  # (B, L)
    return torch.where(tokens == pad_id, torch.zeros_like(change), change).max().item()


@checked(loss="take its mean")
def idle_parameters(model: nn.Module, loss: Float[Tensor, ""]) -> dict[str, str]:
    """Parameters that this loss does not train: "unused" (no path to the loss) or "zero" (a gradient of zeros).

    The result is empty where everything is trained; frozen parameters are left out. Gradients that the parameters have
    collected are left alone, and `loss.backward()` can still be called.

    Raises:
        ValueError: the loss has no gradient at all.
    """
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


@checked
@torch.no_grad()
def order_effect(model: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch length"]) -> float:
    """The largest change of a token's logits when the tokens are reversed; about 0 where their order is ignored.

    `max |reversed(logits(reversed(tokens))) − logits(tokens)|`. A causal mask makes a model depend on the order, too,
    so this finds a missing position code in an encoder only. A module is run in eval mode.
    """
    with _silent(model):
        return (_logits(model, tokens.flip(1)).flip(1) - _logits(model, tokens)).abs().max().item()


@checked
@torch.no_grad()
def precision_gap(model: nn.Module, tokens: Int[Tensor, "batch length"]) -> float:
    """The largest difference between the logits in float32 and in float64, relative to the largest absolute logit.

    `max |logits_32 − logits_64| / max |logits_64|`, about 1e-6 for a healthy model; 0 if all logits are 0. Copies of
    the model are run in eval mode.
    """
    exact, rough = _copied(model).double().eval(), _copied(model).float().eval()
    with _same_random_numbers(model.parameters()):
        exact, rough = _logits(exact, tokens), _logits(rough, tokens)
    largest = exact.abs().max()
    return ((rough - exact).abs().max() / largest).item() if largest else 0.0


def _logits(model: Callable[[Tensor], Tensor], tokens: Tensor) -> Tensor:
    if isinstance(model, type):
        raise TypeError(f"model must be a module or a function, got the class {model.__name__}; build a model from it")
    check_that(tokens.numel() > 0, "tokens must contain at least one token", tokens, "pass a batch")
    logits = model(tokens)
    if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != tokens.shape:
        raise ValueError(
            f"model must return logits {(*tokens.shape, 'V')}, got {got(logits)}; pass a function that returns them, "
            f"such as lambda tokens: model(tokens)[0]"
        )
    return logits


def _counted(targets: Tensor, vocab: int, pad_id: int | None) -> Tensor:
    """Targets in one row, −100 where none counts."""
    flat = targets.flatten().long()
    if pad_id is not None:
        flat = flat.masked_fill(flat == pad_id, _NO_TARGET)
    real = flat[flat != _NO_TARGET]
    if not len(real):
        raise ValueError("targets must include at least one that counts, got padding only; pass other targets")
    if real.min() < 0 or real.max() >= vocab:
        raise ValueError(
            f"targets must be in the vocabulary, 0 … {vocab - 1}, got {int(real.min())} … {int(real.max())}; does the "
            f"model have a logit for each token?"
        )
    return flat


def _copied(model: nn.Module) -> nn.Module:
    check_built(model)
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise ValueError(
            f"model must be copyable, got {type(error).__name__}: {error}; remove what copy.deepcopy refuses, such as "
            f"outputs that were kept"
        ) from error


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


def check_built(model: nn.Module) -> None:
    """Refuse, with a ValueError, a module that is lazy and was never called, or that is on the device "meta"."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            raise ValueError(f"model must have weights, got a lazy module without `{name}`; call the model once before")
        if tensor.is_meta:
            raise ValueError(f"model must have weights, got `{name}` on the device 'meta'; load the weights before")


def _check_positions(logits: Tensor, targets: Tensor) -> None:
    if not logits.shape[-1]:
        raise ValueError(f"logits must be (..., V) with V ≥ 1, got {tuple(logits.shape)}; pass the scores of a model")
    if targets.shape != logits.shape[:-1]:
        raise ValueError(
            f"targets must have the shape of the logits without the vocabulary, {tuple(logits.shape[:-1])}, got "
            f"{tuple(targets.shape)}; one target per position"
        )


def _check_columns(columns: Sequence[int], length: int) -> None:
    if not len(columns):
        raise ValueError("columns must have at least one position, got none; leave it out to change every token")
    for number, column in enumerate(columns):
        check_whole(**{f"columns[{number}]": column}, least=0, most=length - 1, hint="; pass positions of tokens")
