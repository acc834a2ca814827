"""How a batch is passed to a model, which of its tensors are tokens, and where the logits are in what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from course_kit._checks import got

__all__ = ["Batch", "find_logits", "read_batch"]

_NO_TOKENS = ("mask", "type", "segment", "position", "length", "label")  # in the names of other integer inputs
_OF_THE_TARGET = ("decoder", "target", "tgt", "trg")
_ANSWERS = ("targets", "y")  # names of the right answers, where `forward` can do without them


@dataclass(frozen=True)
class Batch:
    """The inputs of one call.

    Args:
        inputs: name to value, in the order of the call.
        by_name: whether they are passed by name (from a dict) or in order.
        streams: the names of the inputs that are tokens `(B, L)`; the last one is what is predicted from.
        labels: of a dict, not passed on where `forward` does not insist on them; targets that `forward` can do without,
            passed on, since some models return all logits only with them; or None.
    """

    inputs: dict[str, Any]
    by_name: bool
    streams: tuple[str, ...]
    labels: Tensor | None = None

    @property
    def tokens(self) -> Tensor:
        """The tokens `(B, L)` that the logits belong to: the only ones, or the target's."""
        return self.inputs[self.streams[-1]]

    def output(self, model: nn.Module) -> Any:
        """What the model returns for copies of the inputs."""
        return self.passed({name: _clone(value) for name, value in self.inputs.items()}, model)

    def passed(self, inputs: dict[str, Any], model: nn.Module) -> Any:
        """What the model returns for these very inputs."""
        return model(**inputs) if self.by_name else model(*inputs.values())

    def logits(self, model: nn.Module) -> Tensor:
        """`(B, L, V)`."""
        return find_logits(self.output(model), self.tokens)

    def changed(self, **values: Any) -> Batch:
        """The same batch with other values for some inputs."""
        return replace(self, inputs={**self.inputs, **values})

    def with_tokens(self, tokens: Tensor) -> Batch:
        """The same batch with other tokens to predict from."""
        return self.changed(**{self.streams[-1]: tokens})

    def rows(self, index: list[int]) -> Batch:
        """Some rows of the batch; tensors without a batch axis stay as they are."""
        size = len(self.tokens)
        chosen = {
            name: value[index] if isinstance(value, Tensor) and value.dim() and len(value) == size else value
            for name, value in self.inputs.items()
        }
        return replace(self, inputs=chosen)

    def to(self, target: torch.dtype | str) -> Batch:
        """On another device, or with floating-point inputs in another dtype."""
        moved = {}
        for name, value in self.inputs.items():
            keeps = not isinstance(value, Tensor) or (isinstance(target, torch.dtype) and not value.is_floating_point())
            moved[name] = value if keeps else value.to(target)
        return replace(self, inputs=moved)

    def companions(self, stream: str) -> list[str]:
        """Names of the other inputs `(B, L)` that go with a token input, such as its mask."""
        shape = self.inputs[stream].shape
        others = [
            name
            for name, value in self.inputs.items()
            if name not in self.streams and isinstance(value, Tensor) and value.shape == shape
        ]
        if len(self.streams) == 1:
            return others
        target = stream == self.streams[-1]
        return [name for name in others if any(part in name.lower() for part in _OF_THE_TARGET) == target]

    def real(self, stream: str, pad_id: int | None) -> Tensor:
        """Bool `(B, L)`: which tokens are no padding, by the batch's own mask and by `pad_id`."""
        tokens = self.inputs[stream]
        real = torch.ones_like(tokens, dtype=torch.bool) if pad_id is None else tokens != pad_id
        for name in self.companions(stream):
            if "mask" in name.lower() and not self.inputs[name].is_floating_point():
                kept = self.inputs[name].bool()
                real = real & (~kept if self._drops(name, stream, pad_id) else kept)
        return real

    def longer(self, stream: str, pad_id: int, extra: int) -> Batch:
        """The same batch with padding tokens appended to one token input, and to the masks that go with it."""
        tokens = self.inputs[stream]
        values = {stream: _append(tokens, pad_id, extra)}
        for name in self.companions(stream):
            value = self.inputs[name]
            if "mask" in name.lower():
                values[name] = _append(value, 1 if self._drops(name, stream, pad_id) else 0, extra)
            elif "position" in name.lower():
                more = value[:, -1:] + torch.arange(1, extra + 1, device=value.device)
                values[name] = torch.cat([value, more.to(value)], dim=1)
            else:
                values[name] = _append(value, 0, extra)
        return self.changed(**values)

    def _drops(self, name: str, stream: str, pad_id: int | None) -> bool:
        """Whether True stands for padding: as the batch's own padding has it, else as PyTorch's names do."""
        padding = self.inputs[stream] == pad_id
        if pad_id is not None and padding.any() and not padding.all():
            mask = self.inputs[name].bool()
            if mask[padding].all() != mask[padding].any() or mask[~padding].all() != mask[~padding].any():
                return "padding_mask" in name.lower()
            if mask[padding].all() != mask[~padding].all():
                return bool(mask[padding].all())
        return "padding_mask" in name.lower()

    def shorter(self, stream: str, length: int) -> Batch:
        """The same batch with one token input, and what goes with it, cut to a length."""
        names = (stream, *self.companions(stream))
        return self.changed(**{name: self.inputs[name][:, :length] for name in names})


def read_batch(model: nn.Module, batch: object) -> Batch:
    """A batch as it was passed to `diagnose`, understood.

    Raises:
        TypeError: it is not a tensor, a tuple of tensors or a dict, or has no integer tensor `(B, L)`.
        ValueError: there are no tokens in it.
    """
    parameters = _parameters(model)
    labels = None
    if isinstance(batch, Mapping):
        by_name, inputs = True, {str(name): value for name, value in batch.items() if value is not None}
        labels = inputs.get("labels")
        wanted = parameters.get("labels")
        if labels is not None:
            if "decoder_input_ids" not in inputs and hasattr(model, "prepare_decoder_input_ids_from_labels"):
                inputs["decoder_input_ids"] = _shifted(model, labels)
            if wanted is None or wanted.default is not inspect.Parameter.empty:
                del inputs["labels"]
    elif isinstance(batch, Tensor | tuple | list):
        values = [batch] if isinstance(batch, Tensor) else list(batch)
        by_name = False
        known = [*parameters, *(f"input {number}" for number in range(len(parameters), len(values)))]
        inputs = dict(zip(known, values, strict=False))
    else:
        raise TypeError(
            f"batch must be a tensor of tokens, a tuple of tensors or a dict of them, got {got(batch)}; pass tensors, "
            f"as the model takes them"
        )
    streams = [name for name, value in inputs.items() if _is_tokens(name, value)]
    for name in streams[1:]:
        optional = name in parameters and parameters[name].default is None
        if optional and name.lower() in _ANSWERS and inputs[name].shape == inputs[streams[0]].shape:
            streams.remove(name)
            labels = inputs[name]
    if "decoder_input_ids" in streams:
        streams = [name for name in streams if name != "decoder_input_ids"] + ["decoder_input_ids"]
    if not streams:
        found = ", ".join(f"{name} {got(value)}" for name, value in inputs.items()) or "nothing"
        raise TypeError(
            f"batch must have tokens, an int64 or int32 tensor (B, L), got {found}; {_remedy(inputs.values())}"
        )
    for name in streams:
        if not inputs[name].numel():
            raise ValueError(
                f"batch must contain at least one token, got {name} of shape {tuple(inputs[name].shape)}; "
                f"pass a batch from the training data"
            )
    return Batch(inputs, by_name, tuple(streams), labels)


def find_logits(output: object, tokens: Tensor) -> Tensor:
    """The logits `(B, L, V)` in what a model returned.

    Raises:
        TypeError: there is no floating-point tensor where logits may be.
        ValueError: it is not `(B, L, V)` for these tokens.
    """
    found: object = output
    if not isinstance(output, Tensor):
        if getattr(output, "logits", None) is not None:
            found = output.logits
        elif isinstance(output, Mapping):
            found = output.get("logits")
        elif isinstance(output, Iterable):
            tensors = [each for each in output if isinstance(each, Tensor)]
            found = next((each for each in tensors if _fits(each, tokens)), tensors[0] if tensors else None)
    if not isinstance(found, Tensor) or not found.is_floating_point():
        raise TypeError(
            f"the model must return logits (B, L, V), a tuple that contains them, or an object with .logits, got "
            f"{got(output)}; wrap it in a module that returns its logits"
        )
    if not _fits(found, tokens):
        remedy = "wrap it in a module that returns the scores of every position"
        if found.dim() == 3 and found.shape[1] == 1:
            remedy = "if it returns the last position only because it was given no targets, put them into the batch"
        elif found.dim() == 3 and {*tokens.shape} <= {*found.shape}:
            remedy = "wrap it in a module that puts the axes in the order (B, L, V)"
        raise ValueError(
            f"the model must return one row of logits per token, {(*tokens.shape, 'V')}, got {tuple(found.shape)}; "
            f"{remedy}"
        )
    return found


def _fits(found: Tensor, tokens: Tensor) -> bool:
    """Whether this may be logits of the tokens."""
    return found.is_floating_point() and found.dim() == 3 and found.shape[:2] == tokens.shape and found.shape[-1] > 0


def _shifted(model: nn.Module, labels: Tensor) -> Tensor:
    """What a model of Hugging Face makes of the labels if it is given no tokens for its decoder."""
    try:
        return model.prepare_decoder_input_ids_from_labels(labels=labels)
    except Exception as error:
        raise ValueError(
            f"the model must be able to shift the labels, got {type(error).__name__}: {error}; put decoder_input_ids "
            f"into the batch"
        ) from error


def _parameters(model: nn.Module) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return {}
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: each for name, each in parameters.items() if each.kind in named}


def _is_tokens(name: str, value: object) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dtype in (torch.int32, torch.int64)
        and value.dim() == 2
        and not any(part in name.lower() for part in _NO_TOKENS)
    )


def _remedy(values: Iterable[object]) -> str:
    """What to pass in place of a batch without tokens."""
    for value in values:
        if isinstance(value, list | tuple) and value:
            return "pass torch.tensor(…) of the lists"
        if isinstance(value, Tensor) and not value.is_complex() and value.dim() == 2 and value.shape[1]:
            return "convert token ids with .long(); embeddings and one-hot vectors are not token ids"
        if isinstance(value, Tensor) and value.dtype in (torch.int32, torch.int64) and value.dim() == 1:
            return "add the axis of the batch with [None]"
    return "pass token ids, not embeddings or one-hot vectors"


def _append(tensor: Tensor, value: float, extra: int) -> Tensor:
    return torch.cat([tensor, tensor.new_full((len(tensor), extra), value)], dim=1)


def _clone(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
