"""The building blocks of the mistakes in `token_batches`."""

from __future__ import annotations

from course_lib.exercises.training.token_batches import in_order

__all__ = ["checked", "greedy", "shortest_first"]


def shortest_first(lengths):
    return sorted(range(len(lengths)), key=lambda i: lengths[i])


def checked(batches):
    """A wrong way of batching that still rejects long sentences."""

    def solution(lengths, max_tokens):
        if max(lengths) > max_tokens:
            raise ValueError("a sentence is too long")
        return batches(lengths, max_tokens)

    return solution


def greedy(fits=None, order=shortest_first):
    """Greedy batches with another order, or another test: `fits(batch, length, longest, max_tokens, lengths)`."""

    def batches(lengths, max_tokens):
        def joins(batch, index):
            return fits(batch, lengths[index], max(lengths[i] for i in (*batch, index)), max_tokens, lengths)

        return in_order(lengths, max_tokens, order(lengths), joins if fits else None)

    return checked(batches)
