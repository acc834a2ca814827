"""Mistakes in `teacher_forcing_pair`: what is shifted and what is dropped."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.teacher_forcing_pair import EOS, PAD

mistake = Mistakes()


def _pair(inputs, targets):
    """A pair of two other slices."""
    return lambda tokens: (inputs(tokens), targets(tokens))


def _all(tokens):
    return tokens.clone()


def _without_last(tokens):
    return tokens[:, :-1]


def _without_first(tokens):
    return tokens[:, 1:]


@mistake
def not_shifted(tokens):
    """Inputs and targets are the same tokens. A model solves that by copying: at each position the input is already the
    target."""
    return _pair(_without_last, _without_last)(tokens)


@mistake
def not_shifted_start_dropped(tokens):
    """Inputs and targets are the same tokens, both without the start. What does the decoder read before it writes
    its first word?"""
    return _pair(_without_first, _without_first)(tokens)


@mistake
def shifted_the_wrong_way(tokens):
    """The two are exchanged, so the target of each position is the token *before* it, which a causal model has seen.
    Which of the two begins with the start token?"""
    return _pair(_without_first, _without_last)(tokens)


@mistake
def start_in_targets(tokens):
    """The targets still begin with the start token. It never has to be predicted: every sentence begins with it."""
    return _pair(_without_last, _all)(tokens)


@mistake
def inputs_keep_the_end(tokens):
    """The inputs are the whole sentence. Nothing comes after the last token, so there is nothing to predict."""
    return _pair(_all, _without_first)(tokens)


@mistake
def nothing_dropped(tokens):
    """Both are the whole sentence. Input and target of a position have to differ by one step."""
    return _pair(_all, _all)(tokens)


@mistake
def start_added_again(tokens):
    """Another token is put before the sentence and the whole sentence is the target. The start token is in
    `tokens` already."""
    return _pair(lambda tokens: torch.cat([torch.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1), _all)(tokens)


@mistake
def start_token_repeated(tokens):
    """The start token is put before the sentence once more and the whole sentence is the target. It is in `tokens`
    already."""
    return _pair(lambda tokens: torch.cat([tokens[:, :1], tokens[:, :-1]], 1), _all)(tokens)


@mistake
def rolled(tokens):
    """`roll` wraps round: the start token becomes the last target. It should be dropped."""
    return _pair(_all, lambda tokens: tokens.roll(-1, 1))(tokens)


@mistake
def rolled_backwards(tokens):
    """The targets are moved by one position in the other direction: the target of each position is the token before
    it."""
    return _pair(_without_last, lambda tokens: tokens.roll(1, 1)[:, :-1])(tokens)


@mistake
def rolled_over_the_batch(tokens):
    """`roll` without an axis flattens the batch first, so a sentence gets a token of its neighbour."""
    return _pair(_without_last, lambda tokens: tokens.roll(1)[:, :-1])(tokens)


@mistake
def sentences_shifted(tokens):
    """The slices run along the batch: a sentence is paired with the next *sentence*. Positions are the other axis."""
    return _pair(lambda tokens: tokens[:-1], lambda tokens: tokens[1:])(tokens)


@mistake
def two_steps(tokens):
    """The targets are two positions ahead. The target is the next token."""
    return _pair(lambda tokens: tokens[:, :-2], lambda tokens: tokens[:, 2:])(tokens)


@mistake
def both_ends_dropped(tokens):
    """Start and end token are missing in both. The decoder needs the start token as its first input, and has to learn
    to predict the end."""
    return _pair(lambda tokens: tokens[:, 1:-1], lambda tokens: tokens[:, 1:-1])(tokens)


@mistake
def end_never_predicted(tokens):
    """The last token is never a target. A model that is never asked for the end never stops."""
    return _pair(lambda tokens: tokens[:, :-2], lambda tokens: tokens[:, 1:-1])(tokens)


@mistake
def only_the_last_token(tokens):
    """There is one target per sentence, its last token. With a causal mask, every position has its own target."""
    return _pair(_without_last, lambda tokens: tokens[:, -1:])(tokens)


@mistake
def only_the_last_token_flat(tokens):
    """There is one target per sentence, its last token, as in classification. With a causal mask, every position has
    its own target."""
    return _pair(_without_last, lambda tokens: tokens[:, -1])(tokens)


@mistake
def first_token_given(tokens):
    """Only the start token is read. That is how generating begins; in training the whole sentence before a position
    is given."""
    return _pair(lambda tokens: tokens[:, :1], _without_first)(tokens)


@mistake
def next_number(tokens):
    """The ids are increased by one. The next token is the next one in the sentence, not in the vocabulary."""
    return _pair(_without_last, lambda tokens: tokens[:, :-1] + 1)(tokens)


@mistake
def reversed(tokens):
    """The targets are in reverse order."""
    return _pair(_without_last, lambda tokens: tokens.flip(1)[:, :-1])(tokens)


@mistake
def floats(tokens):
    """The tokens have been converted to floats. They are ids, and an embedding needs ints."""
    return _pair(lambda tokens: tokens[:, :-1].float(), lambda tokens: tokens[:, 1:].float())(tokens)


@mistake
def float_targets(tokens):
    """The targets are floats. They are class ids and should stay ints."""
    return _pair(_without_last, lambda tokens: tokens[:, 1:].float())(tokens)


@mistake
def flattened(tokens):
    """The batch axis is lost: all tokens are in one row. The loss may flatten them; here each sentence keeps its
    own."""
    return _pair(lambda tokens: tokens[:, :-1].flatten(), lambda tokens: tokens[:, 1:].flatten())(tokens)


@mistake
def targets_flattened(tokens):
    """The targets are in one row. The loss may flatten them; here each sentence keeps its own."""
    return _pair(_without_last, lambda tokens: tokens[:, 1:].flatten())(tokens)


@mistake
def turned(tokens):
    """Positions and sentences are exchanged: the result is `(L − 1, B)`."""
    return _pair(lambda tokens: tokens[:, :-1].T, lambda tokens: tokens[:, 1:].T)(tokens)


@mistake
def only_targets(tokens):
    """Only the targets are returned. The contract asks for `(inputs, targets)`."""
    return _without_first(tokens)


@mistake
def only_inputs(tokens):
    """Only the inputs are returned. The contract asks for `(inputs, targets)`."""
    return _without_last(tokens)


@mistake
def ends_removed_by_value(tokens):
    """The token to drop is found by its id. It should be found by its place: drop the last column, whatever it
    holds."""
    return _pair(lambda tokens: tokens.masked_fill(tokens == EOS, PAD)[:, :-1], _without_first)(tokens)


@mistake
def overwritten(tokens):
    """The result is right, but the tokens are moved inside `tokens` itself, which belongs to the caller: an assignment
    to a part of a tensor works in place."""
    inputs = tokens[:, :-1].clone()
    tokens[:, :-1] = tokens[:, 1:].clone()
    return inputs, tokens[:, :-1]
