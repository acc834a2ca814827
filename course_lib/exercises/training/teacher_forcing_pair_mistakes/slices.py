"""Mistakes in `teacher_forcing_pair`: slices along another axis or with other bounds."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def pair(inputs, targets):
    return lambda tokens: (inputs(tokens), targets(tokens))


def read(tokens):
    return tokens[:, :-1]


def predicted(tokens):
    return tokens[:, 1:]


def without_padding(tokens):
    keep = (tokens[:, :-1] != 0).all(0) & (tokens[:, 1:] != 0).all(0)
    return tokens[:, :-1][:, keep], tokens[:, 1:][:, keep]


@mistake
def inputs_cut_along_the_batch(tokens):
    """The inputs lose the last *sentence* instead of the last token of each. Which axis counts positions?"""
    return pair(lambda t: t[:-1], predicted)(tokens)


@mistake
def targets_cut_along_the_batch(tokens):
    """The targets lose the first *sentence* instead of the first token of each. Which axis counts positions?"""
    return pair(read, lambda t: t[1:])(tokens)


@mistake
def targets_two_ahead(tokens):
    """The targets begin with the third token, so there is one fewer than inputs, and each is two positions ahead."""
    return pair(read, lambda t: t[:, 2:])(tokens)


@mistake
def start_never_read(tokens):
    """The start token is missing in the inputs, and so is the target for the first word. The decoder begins with
    nothing but the start token."""
    return pair(lambda t: t[:, 1:-1], lambda t: t[:, 2:])(tokens)


@mistake
def only_the_last_token_read(tokens):
    """The inputs are only the last token. An index selects one place; a slice can leave one out."""
    return pair(lambda t: t[:, -1], predicted)(tokens)


@mistake
def only_the_last_column_read(tokens):
    """The inputs are only the last column. `-1:` begins at the last token; `:-1` ends before it."""
    return pair(lambda t: t[:, -1:], predicted)(tokens)


@mistake
def pairs_of_sentences(t):
    """A list with a pair for each sentence is returned. The contract asks for two tensors, each with the whole
    batch."""
    return list(zip(t[:, :-1], t[:, 1:], strict=True))


@mistake
def lists(tokens):
    """Lists of numbers are returned. The contract asks for tensors."""
    return pair(lambda t: t[:, :-1].tolist(), lambda t: t[:, 1:].tolist())(tokens)


@mistake
def one_hot_targets(tokens):
    """The targets are one-hot vectors. Here they are ids of classes, `(B, L − 1)`."""
    return pair(read, lambda t: torch.nn.functional.one_hot(t[:, 1:]))(tokens)


@mistake
def padding_marked(tokens):
    """Padding has become −100 in the targets. Leave it unchanged: the loss handles `pad_id`."""
    return pair(read, lambda t: t[:, 1:].masked_fill(t[:, 1:] == 0, -100))(tokens)


@mistake
def padding_cut_off(tokens):
    """Columns with padding are cut off, and with them words of the longer sentences. Leave the padding where it is."""
    return without_padding(tokens)


@mistake
def targets_filled_up(tokens):
    """The inputs are the whole sentence, and the targets are filled up with padding. What comes after the last token
    has no next token to predict: both are one token shorter than the sentence."""
    return pair(lambda t: t, lambda t: torch.cat([t[:, 1:], torch.zeros_like(t[:, :1])], 1))(tokens)


@mistake
def rolled_backwards_whole(tokens):
    """The targets are the sentence rotated in the wrong direction: the target of each position is the token *before*
    it, and that of the first position is the last token."""
    return pair(lambda t: t, lambda t: t.roll(1, 1))(tokens)


@mistake
def inputs_rolled(tokens):
    """The inputs are the rotated sentence, so the decoder begins with the last token, and the start token
    is a target."""
    return pair(lambda t: t.roll(1, 1), lambda t: t)(tokens)


@mistake
def rolled_over_sentences(tokens):
    """The targets are those of the next *sentence*: they are shifted along the batch."""
    return pair(read, lambda t: t.roll(-1, 0)[:, :-1])(tokens)


@mistake
def reversed_without_start(tokens):
    """The targets run backwards from the second-last token."""
    return pair(read, lambda t: t.flip(1)[:, 1:])(tokens)


@mistake
def first_sentence_only(tokens):
    """Only the first sentence is returned, without the batch axis."""
    return pair(lambda t: t[0, :-1], lambda t: t[0, 1:])(tokens)


@mistake
def squeezed(tokens):
    """`squeeze()` removes every axis of length one, including that of a single sentence or a single target."""
    return pair(lambda t: t[:, :-1].squeeze(), lambda t: t[:, 1:].squeeze())(tokens)


@mistake
def positions_squeezed(tokens):
    """`squeeze(1)` removes the axis of the positions if there is only one target."""
    return pair(lambda t: t[:, :-1].squeeze(1), lambda t: t[:, 1:].squeeze(1))(tokens)


@mistake
def every_second_token(tokens):
    """Every second token is an input, and those in between are targets. Each token but the last should be an input, and
    each but the first a target."""
    return pair(lambda t: t[:, ::2], lambda t: t[:, 1::2])(tokens)


@mistake
def halves(tokens):
    """The first half of a sentence is the input and the second half the target. Every position should have its own
    target."""
    return pair(lambda t: t[:, : t.shape[1] // 2], lambda t: t[:, t.shape[1] // 2 :])(tokens)


@mistake
def small_ints(tokens):
    """The ids have been converted to `int32`. They should keep their dtype."""
    return pair(lambda t: t[:, :-1].int(), lambda t: t[:, 1:].int())(tokens)


@mistake
def mask_for_targets(tokens):
    """A mask is returned instead of the targets: True where there is a token. The contract asks for the tokens
    themselves."""
    return pair(read, lambda t: t[:, 1:] != 0)(tokens)
