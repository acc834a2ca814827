"""Read GGUF, the file format of the library ggml: metadata, and tensors of which most are quantised in blocks.

    "GGUF", version, number of tensors, number of metadata
    metadata: name, type, value; then per tensor: name, axes, kind, where it begins; then the tensors themselves

Nothing of the file is believed before it is compared with the file's size, and nothing is copied before it is needed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_kit._files import why
from course_lib._typing import Float
from course_lib.language_model import dequantise

__all__ = ["GGUFFile", "GGUFTensor"]

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_OTHER_KINDS = {
    6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 20: "IQ4_NL", 23: "IQ4_XS", 28: "F64",
}  # fmt: skip


def _floats(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda blocks: blocks.view(dtype).float()


def _q4_1(blocks: Tensor) -> Tensor:
    """A scale and a smallest value, float16 both, then halves of bytes as in Q4_0: `s · q + m`."""
    scale, least = blocks[:, :4].contiguous().view(torch.float16).float().split(1, dim=1)  # (n, 1) each
    halves = torch.cat((blocks[:, 4:] & 15, blocks[:, 4:] >> 4), dim=1)  # (n, 32)
    return halves.float().mul_(scale).add_(least)


# The number of each kind: its name, the numbers of a block, its bytes, and how they become float32.
_KINDS: dict[int, tuple[str, int, int, Callable[[Tensor], Tensor]]] = {
    0: ("F32", 1, 4, lambda blocks: blocks.view(torch.float32).clone()),
    1: ("F16", 1, 2, _floats(torch.float16)),
    2: ("Q4_0", 32, 18, lambda blocks: dequantise(blocks, "Q4_0")),
    3: ("Q4_1", 32, 20, _q4_1),
    8: ("Q8_0", 32, 34, lambda blocks: dequantise(blocks, "Q8_0")),
    30: ("BF16", 1, 2, _floats(torch.bfloat16)),
}


@dataclass(frozen=True)
class GGUFTensor:
    """A tensor of a file that has not been read yet."""

    shape: tuple[int, ...]  # as PyTorch has it: rows first
    kind: int
    start: int  # of its bytes in the file
    num_bytes: int


class GGUFFile:
    """A GGUF file, mapped into memory: its metadata, and its tensors one at a time.

    Args:
        path: of the file, version 2 or 3.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such a file, is damaged, or has a tensor of an unknown kind.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self._bytes = np.memmap(path, dtype=np.uint8, mode="c") if path.stat().st_size else np.zeros(0, np.uint8)
        except OSError as error:
            raise type(error)(why(error)) from None
        self._at = 0
        try:
            if bytes(self._take(4)) != b"GGUF":
                raise ValueError("expected it to begin with GGUF")
            version, num_tensors, num_metadata = *self._numbers("I", 1), *self._numbers("Q", 2)
            if version not in (2, 3):
                raise ValueError(f"expected version 2 or 3, got {version}")
            self._check_count(num_metadata, 13)
            self._check_count(num_tensors, 32)
            self.metadata: dict[str, Any] = dict(self._entry() for _ in range(num_metadata))
            self.tensors: dict[str, GGUFTensor] = self._read_tensors(num_tensors)
        except (ValueError, struct.error) as error:
            raise ValueError(f"{path} is not a GGUF file that can be read here: {error}; fetch it again") from None

    def read(self, name: str) -> Float[Tensor, "..."]:
        """A tensor of the file in float32."""
        tensor = self.tensors[name]
        _, numbers, size, convert = _KINDS[tensor.kind]
        part = torch.from_numpy(self._bytes[tensor.start : tensor.start + tensor.num_bytes])
        return convert(part.view(-1, size) if numbers > 1 else part).view(tensor.shape)

    def _take(self, count: int) -> memoryview:
        if count > len(self._bytes) - self._at:
            raise ValueError(f"it ends after {len(self._bytes)} bytes, in the middle of something longer")
        self._at += count
        return self._bytes[self._at - count : self._at].data

    def _numbers(self, code: str, count: int) -> tuple:
        size = struct.calcsize(f"<{code}")
        return struct.unpack(f"<{count}{code}", self._take(count * size))  # the bytes are there: they were taken first

    def _text(self) -> str:
        return bytes(self._take(self._numbers("Q", 1)[0])).decode("utf-8")

    def _check_count(self, count: int, least: int) -> None:
        """Each of `count` things takes so many bytes at least; and no list of a model is longer than ten millions."""
        if count > min((len(self._bytes) - self._at) // least, 10_000_000):
            raise ValueError(f"it announces {count} entries, more than its {len(self._bytes)} bytes can hold")

    def _entry(self) -> tuple[str, Any]:
        return self._text(), self._value(self._numbers("I", 1)[0])

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._numbers(_NUMBERS[kind], 1)[0]
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            raise ValueError(f"it has a value of the unknown type {kind}")
        inner, count = self._numbers("I", 1)[0], self._numbers("Q", 1)[0]
        self._check_count(count, 8 if inner == _TEXT else 1)
        if inner in _NUMBERS:
            return list(self._numbers(_NUMBERS[inner], count))
        if inner != _TEXT:
            raise ValueError(f"it has a list of the unknown type {inner}")
        return [self._text() for _ in range(count)]

    def _read_tensors(self, count: int) -> dict[str, GGUFTensor]:
        described = []
        for _ in range(count):
            name, num_axes = self._text(), self._numbers("I", 1)[0]
            self._check_count(num_axes, 8)
            described.append((name, self._numbers("Q", num_axes), *self._numbers("I", 1), *self._numbers("Q", 1)))
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1:
            raise ValueError(f"general.alignment must be at least 1, got {alignment!r:.60}")
        begin = -(-self._at // alignment) * alignment
        found = {name: self._tensor(name, axes, kind, begin + offset) for name, axes, kind, offset in described}
        if len(found) < count:
            raise ValueError("it has two tensors of one name")
        return found

    def _tensor(self, name: str, axes: tuple[int, ...], kind: int, start: int) -> GGUFTensor:
        if kind not in _KINDS:
            known = ", ".join(each for each, *_ in _KINDS.values())
            came = _OTHER_KINDS.get(kind, f"number {kind}")
            raise ValueError(f"the tensor {name} must be of the kind {known}, got {came}, which is unknown here")
        _, numbers, size, _ = _KINDS[kind]
        num_bytes = math.prod(axes) // numbers * size
        if not axes or axes[0] % numbers or start + num_bytes > len(self._bytes):
            raise ValueError(f"the tensor {name} of the axes {axes} does not fit {len(self._bytes)} bytes")
        return GGUFTensor(tuple(reversed(axes)), kind, start, num_bytes)
