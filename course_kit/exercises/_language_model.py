"""A language model that is a table: what cases have for an argument that is a function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["NextLogProbs"]

MOST_CALLS = 2000  # of one function; the cases are so small that only a loop without end needs more
SHOWN_ROWS = 12


@dataclass(frozen=True, eq=False)
class NextLogProbs:
    """A function from the ids so far to log-probabilities of the next one, described by data alone.

    A case has the description, which can be sent to another process. A solution gets `function()`, made where it runs.

    Sequences are nodes of a tree. The row of bos alone is 0, and token v leads from row n to row (n · V + v + 1) mod N.
    With rows enough, every sequence has a row of its own; with fewer, sequences far apart share one, and the model goes
    on for ever.

    Args:
        log_probs: `(N, V)`.
        bos_id: the first token of every sequence.
        eos_id: the last one.
        max_length: tokens that are generated at most.
    """

    log_probs: Tensor
    bos_id: int
    eos_id: int
    max_length: int

    @classmethod
    def of(
        cls, table: dict[tuple[int, ...], list[float]], rest: list[float], bos_id: int, eos_id: int, max_length: int
    ) -> NextLogProbs:
        """A model from probabilities by prefix (without bos), with one more row for all other prefixes."""
        vocab = len(rest)
        rows = torch.tensor(rest, dtype=torch.float64).repeat(sum(vocab**n for n in range(max_length)), 1)
        model = cls(rows, bos_id, eos_id, max_length)
        for prefix, probs in table.items():
            rows[model.row(prefix)] = torch.tensor(probs, dtype=torch.float64)
        return dataclasses.replace(model, log_probs=rows.log().float())

    def row(self, tokens: tuple[int, ...] | list[int]) -> int:
        """The row that follows these tokens, bos left out."""
        rows, vocab = self.log_probs.shape
        number = 0
        for token in tokens:
            number = (number * vocab + token + 1) % rows
        return number

    def function(self) -> Callable[[list[int]], Tensor]:
        """What a solution calls. It refuses what a model must not be asked, in words that a learner understands."""
        calls = 0

        def next_log_probs(tokens: list[int]) -> Tensor:
            nonlocal calls
            calls += 1
            if fault := self._fault(tokens):
                error, text = fault
                raise error(f"next_log_probs({str(tokens)[:80]}): {text}")
            if calls > MOST_CALLS:
                raise RuntimeError(f"next_log_probs was called more than {MOST_CALLS} times")
            return self.log_probs[self.row(tokens[1:])].clone()

        return next_log_probs

    def _fault(self, tokens: list[int]) -> tuple[type[Exception], str] | None:
        """What is wrong with a question; None if nothing is."""
        vocab = self.log_probs.shape[1]
        if not isinstance(tokens, list | tuple):
            return TypeError, f"expected a list of ints, got {type(tokens).__name__}"
        for token in tokens:
            if type(token) is not int:
                return TypeError, f"expected a list of ints, got one with an item of type {type(token).__name__}"
        if not tokens or tokens[0] != self.bos_id:
            return ValueError, f"expected bos first, which is {self.bos_id} here"
        if min(tokens) < 0 or max(tokens) >= vocab:
            return ValueError, f"expected ids from 0 to {vocab - 1}"
        if self.eos_id in tokens[1:]:
            return ValueError, f"expected a sequence that goes on, this one has ended with eos, {self.eos_id}"
        if len(tokens) > 1 + self.max_length:
            return ValueError, f"expected at most {self.max_length} tokens after bos, the max_length"
        return None

    def shown(self) -> Iterator[str]:
        """Probabilities as lines of a table: what a beam of two goes through, so far as it has room."""
        names = {self.bos_id: "bos", self.eos_id: "eos"}
        heads = [f"{v} {names[v]}" if v in names else str(v) for v in range(self.log_probs.shape[1])]
        asked = list(self._likely())[:SHOWN_ROWS]
        left = max(len("after"), *(len(str([self.bos_id, *tokens])) for tokens in asked))
        yield "probabilities of the next token"
        yield f"  {'after':<{left}}" + "".join(f"{head:>7}" for head in heads)
        for tokens in asked:
            probs = self.log_probs[self.row(tokens)].exp().tolist()
            yield f"  {[self.bos_id, *tokens]!s:<{left}}" + "".join(f"{p:7.3f}" for p in probs)

    def _likely(self) -> Iterator[tuple[int, ...]]:
        """Prefixes that a search asks for, the shortest first; of each length the two most probable ones."""
        prefixes = [((), 0.0)]
        for _ in range(self.max_length):
            yield from sorted(tokens for tokens, _ in prefixes)
            longer = [
                ((*tokens, token), total + log_prob)
                for tokens, total in prefixes
                for token, log_prob in enumerate(self.log_probs[self.row(tokens)].tolist())
                if token != self.eos_id
            ]
            prefixes = sorted(longer, key=lambda pair: pair[1], reverse=True)[:2]
