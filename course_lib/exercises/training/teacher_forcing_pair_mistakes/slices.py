"""Mistakes in `teacher_forcing_pair`: slices along another axis or of other places."""

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
    """The inputs lose the last *sentence*, and not the last token of each. Which axis counts positions?"""
    return pair(lambda t: t[:-1], predicted)(tokens)


@mistake
def targets_cut_along_the_batch(tokens):
    """The targets lose the first *sentence*, and not the first token of each. Which axis counts positions?"""
    return pair(read, lambda t: t[1:])(tokens)


@mistake
def targets_two_ahead(tokens):
    """The targets begin with the third token, so they are one shorter than the inputs, and each lies two positions
    ahead."""
    return pair(read, lambda t: t[:, 2:])(tokens)


@mistake
def start_never_read(tokens):
    """The start token is missing in the inputs, and so is the question for the first word. The decoder begins with
    nothing but the start token."""
    return pair(lambda t: t[:, 1:-1], lambda t: t[:, 2:])(tokens)


@mistake
def only_the_last_token_read(tokens):
    """The inputs are the last token alone. An index picks one place; a slice leaves one out."""
    return pair(lambda t: t[:, -1], predicted)(tokens)


@mistake
def only_the_last_column_read(tokens):
    """The inputs are the last column alone. `-1:` begins at the last token; `:-1` ends before it."""
    return pair(lambda t: t[:, -1:], predicted)(tokens)


@mistake
def pairs_of_sentences(t):
    """A list with a pair for each sentence comes back. The contract asks for two tensors, each with the whole batch."""
    return list(zip(t[:, :-1], t[:, 1:], strict=True))


@mistake
def lists(tokens):
    """Lists of numbers come back. The contract asks for tensors."""
    return pair(lambda t: t[:, :-1].tolist(), lambda t: t[:, 1:].tolist())(tokens)


@mistake
def one_hot_targets(tokens):
    """The targets are one-hot vectors. Here they are ids of classes, `(B, L − 1)`."""
    return pair(read, lambda t: torch.nn.functional.one_hot(t[:, 1:]))(tokens)


@mistake
def padding_marked(tokens):
    """Padding has become −100 in the targets. It stays what it is here: the loss knows `pad_id`."""
    return pair(read, lambda t: t[:, 1:].masked_fill(t[:, 1:] == 0, -100))(tokens)


@mistake
def padding_cut_off(tokens):
    """Columns with padding are cut off, and with them words of the longer sentences. Padding stays where it is."""
    return without_padding(tokens)


@mistake
def targets_filled_up(tokens):
    """The inputs are the whole sentence, and the targets are filled up with padding. What comes after the last token
    has no next token to predict: both are one token shorter than the sentence."""
    return pair(lambda t: t, lambda t: torch.cat([t[:, 1:], torch.zeros_like(t[:, :1])], 1))(tokens)


@mistake
def rolled_backwards_whole(tokens):
    """The targets are the sentence moved round in the wrong direction: each position is asked for the token *before*
    it, the first one for the last."""
    return pair(lambda t: t, lambda t: t.roll(1, 1))(tokens)


@mistake
def inputs_rolled(tokens):
    """The inputs are the sentence moved round, so that the decoder begins with the last token, and the start token
    is a target."""
    return pair(lambda t: t.roll(1, 1), lambda t: t)(tokens)


@mistake
def rolled_over_sentences(tokens):
    """The targets are those of the next *sentence*: they are moved along the batch."""
    return pair(read, lambda t: t.roll(-1, 0)[:, :-1])(tokens)


@mistake
def reversed_without_start(tokens):
    """The targets run backwards from the second last token on."""
    return pair(read, lambda t: t.flip(1)[:, 1:])(tokens)


@mistake
def first_sentence_only(tokens):
    """Only the first sentence comes back, without its axis of the batch."""
    return pair(lambda t: t[0, :-1], lambda t: t[0, 1:])(tokens)


@mistake
def squeezed(tokens):
    """`squeeze()` takes away every axis of length one, and a batch of one sentence, or a sentence with one target,
    has one."""
    return pair(lambda t: t[:, :-1].squeeze(), lambda t: t[:, 1:].squeeze())(tokens)


@mistake
def positions_squeezed(tokens):
    """`squeeze(1)` takes the axis of the positions away where there is one target."""
    return pair(lambda t: t[:, :-1].squeeze(1), lambda t: t[:, 1:].squeeze(1))(tokens)


@mistake
def every_second_token(tokens):
    """Every second token is read, and the ones between are targets. Each token is read, and each is a target but the
    first."""
    return pair(lambda t: t[:, ::2], lambda t: t[:, 1::2])(tokens)


@mistake
def halves(tokens):
    """The first half of a sentence is read, and the second half is the target. Every position has a target of its
    own."""
    return pair(lambda t: t[:, : t.shape[1] // 2], lambda t: t[:, t.shape[1] // 2 :])(tokens)


@mistake
def small_ints(tokens):
    """The ids have become `int32`. They keep the dtype that they came in."""
    return pair(lambda t: t[:, :-1].int(), lambda t: t[:, 1:].int())(tokens)


@mistake
def mask_for_targets(tokens):
    """A mask stands where the targets belong: True where there is a token. The token itself is asked for."""
    return pair(read, lambda t: t[:, 1:] != 0)(tokens)
