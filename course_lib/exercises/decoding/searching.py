"""Greedy decoding and beam search with parts exchanged."""

from __future__ import annotations

__all__ = ["beam", "best_first", "greedy", "search"]


def greedy(
    *,
    asked=lambda tokens, bos: tokens,
    choose=lambda log_probs, bos, eos: int(log_probs.argmax()),
    stop=lambda token, bos, eos: token == eos,
    steps=lambda max_length: max_length,
    result=lambda tokens, ended, eos: tokens[1:],
):
    """Greedy search with one part exchanged."""

    def solution(next_log_probs, bos_id, eos_id, max_length):
        tokens, ended = [bos_id], False
        for _ in range(steps(max_length)):
            token = choose(next_log_probs(asked(tokens, bos_id)), bos_id, eos_id)
            if stop(token, bos_id, eos_id):
                ended = True
                break
            tokens.append(token)
        return result(tokens, ended, eos_id)

    return solution


def search(
    next_log_probs,
    bos_id,
    eos_id,
    beam_size,
    max_length,
    length_penalty=0.0,
    *,
    asked=lambda tokens, bos: [bos, *tokens],
    add=lambda total, log_prob, n, penalty: total + log_prob,
    survivors=lambda candidates, beam_size, finished: best_first(candidates)[:beam_size],
    split=None,
    score=lambda total, n, penalty: total / n**penalty,
    count=lambda tokens, eos: len(tokens),
    steps=lambda max_length: max_length,
    over=lambda finished, still_open, beam_size: not still_open,
    competing=lambda finished, still_open: finished + still_open,
    choose=max,
    result=lambda tokens, total, bos, eos: tokens[:-1] if tokens[-1:] == [eos] else tokens,
):
    """Beam search whose parts can be exchanged; as it stands, it is right. A hypothesis is (tokens with eos, sum)."""
    still_open, finished = [([], 0.0)], []
    for _ in range(steps(max_length)):
        candidates = [
            ([*tokens, token], add(total, log_prob, len(tokens) + 1, length_penalty))
            for tokens, total in still_open
            for token, log_prob in enumerate(next_log_probs(asked(tokens, bos_id)).tolist())
        ]
        if split is not None:
            still_open, new = split(candidates, still_open, finished, beam_size, eos_id)
        else:
            kept = survivors(candidates, beam_size, finished)
            new = [h for h in kept if h[0][-1] == eos_id]
            still_open = [h for h in kept if h[0][-1] != eos_id]
        finished += new
        if over(finished, still_open, beam_size):
            break
    hypotheses = competing(finished, still_open)
    winner = choose(hypotheses, key=lambda h: score(h[1], count(h[0], eos_id), length_penalty))
    return result(*winner, bos_id, eos_id)


def best_first(candidates):
    return sorted(candidates, key=lambda candidate: candidate[1], reverse=True)


def beam(**parts):
    """Beam search with parts exchanged, under the signature of the exercise."""

    def solution(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
        return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, **parts)

    return solution
