"""A key–value cache of fixed size: the last tokens in a ring buffer, and, if wanted, the first ones."""

from __future__ import annotations

from torch import Tensor

from course_kit._checks import check_floats, check_whole
from course_lib._typing import Float

__all__ = ["SlidingWindowCache"]


class SlidingWindowCache:
    """Keys and values of the last `window` tokens and the first `sinks` tokens, in memory of fixed size.

    The buffer is a ring: token t ≥ sinks takes place `sinks + (t − sinks) mod window`, where the oldest token of the
    window was. So the keys are not in their order, which does not matter to attention without a mask. In a
    `GroupedQueryAttention` that decodes one token at a time, it takes the place of a `KeyValueCache`. Use it without
    gradients, because it keeps writing to the same memory.

    Args:
        window: how many of the last tokens are kept, the newest included.
        sinks: how many of the first tokens are kept in addition.

    Raises:
        TypeError: window or sinks is not a whole number.
        ValueError: window is less than 1, or sinks is negative.

    Source: Beltagy, Peters & Cohan (2020), section 3.1, for the window; Xiao et al. (2024), section 3.2, for the sinks.
    """

    def __init__(self, window: int, *, sinks: int = 0):
        check_whole(window=window)
        check_whole(sinks=sinks, least=0)
        self.window = window
        self.sinks = sinks
        self._seen = 0
        self._keys: Tensor | None = None  # (B, H, sinks + window, d_head)
        self._values: Tensor | None = None

    def __len__(self) -> int:
        return min(self._seen, self.sinks + self.window)

    @property
    def keys(self) -> Float[Tensor, "batch heads kept d_head"]:
        """`(B, H, kept, d_head)`, a view, in the order of the buffer."""
        return self._keys[:, :, : len(self)]

    @property
    def values(self) -> Float[Tensor, "batch heads kept d_head"]:
        """`(B, H, kept, d_head)`, a view, in the order of the buffer."""
        return self._values[:, :, : len(self)]

    def append(
        self, keys: Float[Tensor, "batch heads 1 d_head"], values: Float[Tensor, "batch heads 1 d_head"]
    ) -> tuple[Float[Tensor, "batch heads kept d_head"], Float[Tensor, "batch heads kept d_head"]]:
        """Add the key and value of one token, `(B, H, 1, d_head)`, and return all that are kept.

        Raises:
            TypeError: keys or values are not a floating-point tensor.
            ValueError: they are not those of a single token, or of another batch than those that are kept.
        """
        check_floats(keys=keys, values=values)
        if keys.dim() != 4 or keys.shape[2] != 1 or keys.shape != values.shape:
            raise ValueError(
                f"keys and values must be (B, H, 1, d_head), got {tuple(keys.shape)} and {tuple(values.shape)}; a "
                f"window moves with every token, so add one at a time"
            )
        if self._keys is None:
            room = (*keys.shape[:2], self.sinks + self.window, keys.shape[3])
            self._keys, self._values = keys.new_empty(room), values.new_empty(room)
        if self._keys[:, :, :1].shape != keys.shape:
            raise ValueError(
                f"expected keys {tuple(self._keys[:, :, :1].shape)}, as in the calls before, got {tuple(keys.shape)}; "
                f"for another batch create a new cache"
            )
        t = self._seen
        place = t if t < self.sinks else self.sinks + (t - self.sinks) % self.window
        self._keys[:, :, place : place + 1] = keys
        self._values[:, :, place : place + 1] = values
        self._seen += 1
        return self.keys, self.values
