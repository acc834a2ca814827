"""Exercises of the chapter on training."""

from __future__ import annotations

import math
from typing import Any

import torch

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._token_batches_slips import add_slips as add_batches_slips
from course_lib.exercises._training_slips import add_loss_slips, add_pair_slips, add_rate_slips

__all__ = ["BATCHES", "LOSS", "PAIR", "RATE"]

# teacher_forcing_pair


def teacher_forcing_pair(tokens):
    return tokens[:, :-1], tokens[:, 1:]  # (B, L - 1) both


PAIR = Exercise(
    name="teacher_forcing_pair",
    title="One sentence, read and predicted",
    statement="""\
In training the decoder is told the sentence so far and has to name the next token. It is told the *right* sentence so
far, not what it would have written itself: that is teacher forcing. With a causal mask, one pass asks this question at
every position of the sentence.

`tokens` is an int tensor `(B, L)`: a start token, the sentence, an end token, then padding. Return `(inputs, targets)`,
both `(B, L − 1)`: what the decoder reads, and what it shall predict at the same position.

Padding stays where it is: masks and the loss look after it.""",
    difficulty=1,
    minutes=5,
    stub='''\
def teacher_forcing_pair(tokens):
    """(inputs, targets), both (B, L - 1): the target is always the next token."""
    raise NotImplementedError
''',
    hints=(
        "Write down one sentence, `<s> a b c </s>`, and below each token the one that comes next. Which token has "
        "nothing below it, and which one is never asked for?",
        "Inputs and targets are the same sentence, moved by one position against each other. Each of them loses one "
        "token, and not the same one.",
        "Both are slices along axis 1. A slice may leave out the first entry, or the last one.",
    ),
    reference=teacher_forcing_pair,
    shapes={"tokens": "batch length"},
    returns=("inputs", "targets"),
    look="training: Teacher forcing",
    differentiable=False,
)

BOS, EOS, PAD = 1, 2, 0


def _sentences(draw: Draw, rows: int, length: int, padded: bool = False, ids=(BOS, EOS, PAD)):
    """Token ids `(rows, length)`: start, words, end; where padded, all but the first row end in padding."""
    bos_id, eos_id, pad_id = ids
    tokens = draw.integers(rows, length, low=3, high=40)
    tokens[:, 0] = bos_id
    tokens[:, -1] = eos_id
    for row in tokens[1:] if padded else ():
        end = draw.integer(2, length - 2)
        row[end], row[end + 1 :] = eos_id, pad_id
    return tokens


@PAIR.holds("The target of each position is the token that comes next", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[1, 7, 5, 9, 2]]),), edge="one sentence, to be read by eye")
    for _ in range(3):
        rows, length = draw.sizes(2, 4, 9)
        yield Case(args=(_sentences(draw, rows, length),))


@PAIR.holds("End tokens and padding are tokens like any other here")
def _(draw):
    yield Case(args=(torch.tensor([[1, 7, 5, 2], [1, 9, 2, 0]]),), note="the second sentence is padded", edge="small")
    for _ in range(2):
        rows, length = draw.sizes(2, 5, 9)
        yield Case(args=(_sentences(draw, rows, length, padded=True),), note="padded with 0")
    rows, length = draw.sizes(2, 5, 9)
    tokens = _sentences(draw, rows, length, padded=True, ids=(41, 42, 43))
    yield Case(args=(tokens,), note="start 41, end 42, padding 43")


@PAIR.holds("It works for the shortest sentences and for a single sentence")
def _(draw):
    yield Case(args=(_sentences(draw, 3, 2),), note="a start token and one more: one target each")
    yield Case(args=(_sentences(draw, 1, 6),), note="a batch of one sentence", edge="one sentence on purpose")


def _pair(inputs, targets):
    """A pair of two other slices."""
    return lambda tokens: (inputs(tokens), targets(tokens))


def _all(tokens):
    return tokens.clone()


def _without_last(tokens):
    return tokens[:, :-1]


def _without_first(tokens):
    return tokens[:, 1:]


PAIR.misconception(
    "not_shifted",
    "Inputs and targets are the same tokens. A model solves that by copying: at each position it already reads what it "
    "is asked for.",
)(_pair(_without_last, _without_last))
PAIR.misconception(
    "not_shifted_start_dropped",
    "Inputs and targets are the same tokens, both without the start. What does the decoder read before it writes its "
    "first word?",
)(_pair(_without_first, _without_first))
PAIR.misconception(
    "shifted_the_wrong_way",
    "The two are exchanged, so each position is asked for the token *before* it, which a causal model has seen. Which "
    "of them begins with the start token?",
)(_pair(_without_first, _without_last))
PAIR.misconception(
    "start_in_targets",
    "The targets still begin with the start token. Nobody has to predict it: every sentence begins with it.",
)(_pair(_without_last, _all))
PAIR.misconception(
    "inputs_keep_the_end",
    "The inputs are the whole sentence. What comes after its last token? Nothing is there to be predicted.",
)(_pair(_all, _without_first))
PAIR.misconception(
    "nothing_dropped",
    "Both are the whole sentence. Input and target of a position have to differ by one step.",
)(_pair(_all, _all))
PAIR.misconception(
    "start_added_again",
    "A further token is put before the sentence and the whole sentence is the target. The start token is in `tokens` "
    "already.",
)(_pair(lambda tokens: torch.cat([torch.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1), _all))
PAIR.misconception(
    "start_token_repeated",
    "The start token is put before the sentence once more and the whole sentence is the target. It is in `tokens` "
    "already.",
)(_pair(lambda tokens: torch.cat([tokens[:, :1], tokens[:, :-1]], 1), _all))
PAIR.misconception(
    "rolled",
    "`roll` moves the tokens round: the start token comes back as the last target. What is pushed out at one end has "
    "no place at the other.",
)(_pair(_all, lambda tokens: tokens.roll(-1, 1)))
PAIR.misconception(
    "rolled_backwards",
    "The targets are moved by one position in the other direction: each position is asked for the token before it.",
)(_pair(_without_last, lambda tokens: tokens.roll(1, 1)[:, :-1]))
PAIR.misconception(
    "rolled_over_the_batch",
    "`roll` without an axis flattens the batch first, so a sentence gets tokens of its neighbour.",
)(_pair(_without_last, lambda tokens: tokens.roll(1)[:, :-1]))
PAIR.misconception(
    "sentences_shifted",
    "The slices run along the batch: a sentence is paired with the next *sentence*. Positions are the other axis.",
)(_pair(lambda tokens: tokens[:-1], lambda tokens: tokens[1:]))
PAIR.misconception(
    "two_steps",
    "The targets lie two positions ahead. The question is for the very next token.",
)(_pair(lambda tokens: tokens[:, :-2], lambda tokens: tokens[:, 2:]))
PAIR.misconception(
    "both_ends_dropped",
    "Start and end token are missing in both. The decoder reads the start to begin with, and has to learn to stop.",
)(_pair(lambda tokens: tokens[:, 1:-1], lambda tokens: tokens[:, 1:-1]))
PAIR.misconception(
    "end_never_predicted",
    "The last token is nobody's target. A model that is never asked for the end never stops.",
)(_pair(lambda tokens: tokens[:, :-2], lambda tokens: tokens[:, 1:-1]))
PAIR.misconception(
    "only_the_last_token",
    "There is one target a sentence, its last token. With a causal mask every position is a question of its own.",
)(_pair(_without_last, lambda tokens: tokens[:, -1:]))
PAIR.misconception(
    "only_the_last_token_flat",
    "There is one target a sentence, its last token, as in classification. With a causal mask every position is a "
    "question of its own.",
)(_pair(_without_last, lambda tokens: tokens[:, -1]))
PAIR.misconception(
    "first_token_given",
    "Only the start token is read. That is how generating begins; in training the whole sentence before a position is "
    "given.",
)(_pair(lambda tokens: tokens[:, :1], _without_first))
PAIR.misconception(
    "next_number",
    "The ids are counted up by one. The next token is the next one in the sentence, not in the vocabulary.",
)(_pair(_without_last, lambda tokens: tokens[:, :-1] + 1))
PAIR.misconception(
    "reversed",
    "The targets run backwards through the sentence.",
)(_pair(_without_last, lambda tokens: tokens.flip(1)[:, :-1]))
PAIR.misconception(
    "floats",
    "The tokens have become floats. They are ids: an embedding looks them up, and takes ints.",
)(_pair(lambda tokens: tokens[:, :-1].float(), lambda tokens: tokens[:, 1:].float()))
PAIR.misconception(
    "float_targets",
    "The targets are floats. They are ids of classes, and stay ints.",
)(_pair(_without_last, lambda tokens: tokens[:, 1:].float()))
PAIR.misconception(
    "flattened",
    "The batch is gone: all tokens stand in one row. The loss may flatten them; here each sentence keeps its own.",
)(_pair(lambda tokens: tokens[:, :-1].flatten(), lambda tokens: tokens[:, 1:].flatten()))
PAIR.misconception(
    "targets_flattened",
    "The targets stand in one row. The loss may flatten them; here each sentence keeps its own.",
)(_pair(_without_last, lambda tokens: tokens[:, 1:].flatten()))
PAIR.misconception(
    "turned",
    "Positions and sentences have changed places: the result is `(L − 1, B)`.",
)(_pair(lambda tokens: tokens[:, :-1].T, lambda tokens: tokens[:, 1:].T))
PAIR.misconception("only_targets", "Only the targets come back. The contract asks for `(inputs, targets)`.")(
    _without_first
)
PAIR.misconception("only_inputs", "Only the inputs come back. The contract asks for `(inputs, targets)`.")(
    _without_last
)
PAIR.misconception(
    "ends_removed_by_value",
    "The token that goes is looked for by its id. Which one has nothing after it is a question of its place: the last "
    "column, whatever stands there.",
)(_pair(lambda tokens: tokens.masked_fill(tokens == EOS, PAD)[:, :-1], _without_first))


@PAIR.misconception(
    "overwritten",
    "The result is right, but the tokens are moved inside `tokens` itself, which is the caller's: an assignment to a "
    "part of a tensor works in place.",
)
def _(tokens):
    inputs = tokens[:, :-1].clone()
    tokens[:, :-1] = tokens[:, 1:].clone()
    return inputs, tokens[:, :-1]


add_pair_slips(PAIR)


# label_smoothing_loss


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(dim=-1)  # (N, V)
    of_target = log_probs.gather(1, targets[:, None])[:, 0]  # (N,)
    of_all = log_probs.mean(dim=-1)  # (N,)
    loss = -(1 - smoothing) * of_target - smoothing * of_all  # (N,)
    return loss[targets != pad_id].mean()


LOSS = Exercise(
    name="label_smoothing_loss",
    title="Cross-entropy with smoothed labels",
    statement="""\
Cross-entropy is content only when the right token has probability one, so it pushes logits ever further apart. Label
smoothing asks for less: with $\\varepsilon$ = `smoothing`, the label of a position is

$$q_k = (1 - \\varepsilon)\\,[k = \\text{target}] + \\varepsilon / V ,$$

and its loss is $-\\sum_k q_k \\log p_k$ with $p = \\operatorname{softmax}(\\text{logits})$. The mass $\\varepsilon$
goes to all $V$ classes, the right one among them.

- `logits` is `(N, V)`, `targets` an int tensor `(N,)` of classes: all positions of a batch, one below the other.
- Where `targets` is `pad_id`, the position is padding and counts for nothing. At least one position is none.
- Return the mean over the positions that count, a scalar tensor.

Logits of ±10,000 must not give `nan` or `inf`. (`torch.nn.functional.cross_entropy` can do all of it; here you write it
yourself.)""",
    difficulty=3,
    minutes=20,
    stub='''\
def label_smoothing_loss(logits, targets, smoothing, pad_id):
    """Mean cross-entropy of logits (N, V), labels (N,) smoothed, padding left out."""
    raise NotImplementedError
''',
    hints=(
        "Put the label into the sum: it splits into (1 − ε) times a term of the target alone, and ε times a term in "
        "which all classes count the same. What is Σ 1/V · x_k called?",
        "Take logarithms of probabilities in one step: `torch.log_softmax` subtracts the largest logit first. A "
        "softmax and then a `log` meets log 0.",
        "`log_probs.gather(1, index)` picks from each row the entry that `index` names; index needs as many axes as "
        "`log_probs`. For the padding: which number do you divide by at the end?",
    ),
    reference=label_smoothing_loss,
    shapes={"logits": "count vocab", "targets": "count"},
    returns=("loss",),
    look="training: Label smoothing",
    twins=(
        "cross_entropy",
        "cross_entropy_loss",
        "linear_cross_entropy",
        "course_lib.chunked_loss.chunked_label_smoothing_loss",
        "transformers.LabelSmoother",
    ),
)


def _classified(draw: Draw, pad_id: int | None = None, pads: int = 0, dtype=torch.float32, logits=None):
    """Logits `(N, V)`, targets with `pads` times pad_id among them, pad_id (drawn where none is given)."""
    count, vocab = draw.sizes(2, 4, 9)
    logits = draw.normal(count, vocab, dtype=dtype, scale=2.0) if logits is None else logits(count, vocab).to(dtype)
    pad_id = draw.integer(0, vocab - 1) if pad_id is None else pad_id % vocab
    targets = draw.integers(count, low=0, high=vocab - 2)
    targets += targets >= pad_id  # none of them is pad_id
    places = torch.randperm(count, generator=draw.generator)[:pads]
    targets[places] = pad_id
    return logits, targets, pad_id


@LOSS.holds("Without smoothing it is the cross-entropy, averaged over the targets", weight=2)
def _(draw):
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 3.0]])
    yield Case(args=(logits, torch.tensor([0, 1]), 0.0, 2), edge="two positions, to be read by eye")
    for dtype in (torch.float64, torch.float32):
        logits, targets, pad_id = _classified(draw, dtype=dtype)
        yield Case(args=(logits, targets, 0.0, pad_id), note="no smoothing, no padding")


@LOSS.holds("The smoothing mass is spread over all classes", weight=2)
def _(draw):
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 3.0]])
    yield Case(args=(logits, torch.tensor([0, 1]), 0.3, 2), edge="two positions, to be read by eye")
    for smoothing in (0.1, 0.4, 1.0):
        for dtype in (torch.float64, torch.float32):
            logits, targets, pad_id = _classified(draw, dtype=dtype)
            yield Case(args=(logits, targets, smoothing, pad_id), note=f"smoothing {smoothing}, no padding")


@LOSS.holds("Padding is ignored, both in the sum and in the number that divides it", weight=2)
def _(draw):
    for smoothing in (0.0, 0.2):
        for pad_id in (0, 2, -1):
            logits, targets, pad = _classified(draw, pad_id, pads=draw.integer(1, 2))
            note = f"{int((targets == pad).sum())} padded, pad_id {pad}, smoothing {smoothing}"
            yield Case(args=(logits, targets, smoothing, pad), note=note)
        logits, targets, pad = _classified(draw, pads=3, dtype=torch.float64)
        yield Case(args=(logits, targets, smoothing, pad), note=f"3 padded, smoothing {smoothing}")
    logits, targets, pad = _classified(draw, 1)
    targets[1:] = pad
    yield Case(args=(logits, targets, 0.2, pad), note="all but one position padded")


@LOSS.holds("Large logits stay finite, and right")
def _(draw):
    logits = torch.tensor([[1e4, 0.0, -1e4], [3.0, 1e4, 2.0]])
    edge = "two positions, to be read by eye"
    yield Case(args=(logits, torch.tensor([2, 0]), 0.1, 1), note="logits of ±1e4", edge=edge)
    for dtype in (torch.float32, torch.float64):
        for smoothing in (0.0, 0.1):
            logits, targets, pad_id = _classified(
                draw, dtype=dtype, logits=lambda *shape: draw.uniform(*shape, low=-1e4, high=1e4)
            )
            logits[0, :2] = torch.tensor([1e4, -1e4])
            yield Case(args=(logits, targets, smoothing, pad_id), note=f"logits of ±1e4, smoothing {smoothing}")
        for middle in (2000.0, -2000.0):
            logits, targets, pad_id = _classified(draw, dtype=dtype)
            edge = "one sign on purpose: all logits of a row are far from zero, and near each other"
            yield Case(args=(logits + middle, targets, 0.1, pad_id), note=f"logits near {middle:,.0f}", edge=edge)


def _real(targets, pad_id):
    return targets != pad_id


def _picked(log_probs, targets):
    return log_probs.gather(1, targets[:, None])[:, 0]


def _by_label(label, transform=lambda logits: logits.log_softmax(-1), mean=None):
    """The loss with another label: `label(one_hot, V, smoothing, pad_id)` gives q, one row a position."""

    def loss(logits, targets, smoothing, pad_id):
        one_hot = torch.nn.functional.one_hot(targets, logits.shape[1]).to(logits.dtype)
        q = label(one_hot, logits.shape[1], smoothing, pad_id)
        each = -(q * transform(logits)).sum(-1)
        return (mean or _mean_of_real)(each, _real(targets, pad_id))

    return loss


def _smoothed(one_hot, vocab, smoothing, pad_id):
    return (1 - smoothing) * one_hot + smoothing / vocab


def _mean_of_real(each, real):
    return each[real].mean()


def _with_log_probs(transform):
    return _by_label(_smoothed, transform)


def _with_mean(mean):
    return _by_label(_smoothed, mean=mean)


def _column(vocab, pad_id, like):
    return torch.nn.functional.one_hot(torch.tensor(pad_id), vocab).to(like.dtype)  # (V,): 1 at pad_id


LOSS.misconception(
    "pads_counted",
    "Padded positions count like all others: the model is rewarded for predicting padding.",
    look="training: The loss",
)(_with_mean(lambda each, real: each.mean()))
LOSS.misconception(
    "divided_by_all_positions",
    "The sum leaves padding out, the number that divides it does not: a batch with more padding looks as if it were "
    "predicted better.",
    look="training: The loss",
)(_with_mean(lambda each, real: each[real].sum() / len(each)))
LOSS.misconception(
    "sum", "The losses are added up and not divided: the loss grows with the number of tokens in the batch."
)(_with_mean(lambda each, real: each[real].sum()))
LOSS.misconception(
    "sum_of_all", "The losses of all positions are added up, padding too. A mean over those that count is asked for."
)(_with_mean(lambda each, real: each.sum()))
LOSS.misconception(
    "one_loss_a_position",
    "There is a loss for each position. The contract asks for one number, their mean.",
)(_with_mean(lambda each, real: each.masked_fill(~real, 0.0)))
LOSS.misconception(
    "one_loss_a_real_position",
    "There is a loss for each position that counts. The contract asks for one number, their mean.",
)(_with_mean(lambda each, real: each[real]))
LOSS.misconception(
    "only_padding_counts",
    "The mean runs over the padded positions: the condition is turned round.",
    look="training: The loss",
)(_with_mean(lambda each, real: each[~real].mean()))
LOSS.misconception(
    "pads_set_to_zero_only",
    "Padded positions have loss 0 and still take part in the mean, which they make smaller, and their count grows by "
    "one.",
    look="training: The loss",
)(_with_mean(lambda each, real: each[real].sum() / (real.sum() + 1)))
LOSS.misconception("median", "The middle loss is taken. The mean is asked for: it weighs every token alike.")(
    _with_mean(lambda each, real: each[real].median())
)
LOSS.misconception(
    "perplexity",
    "This is the exponential of the loss, the perplexity. It is reported; what is minimised is the loss itself.",
)(_with_mean(lambda each, real: each[real].mean().exp()))
LOSS.misconception(
    "sign_missing",
    "The sign is missing: log-probabilities are negative, a loss is what gets smaller when they grow.",
)(_with_mean(lambda each, real: -each[real].mean()))
LOSS.misconception(
    "mass_over_the_others",
    "The mass ε is shared out among the V − 1 wrong classes. Here it goes to all V, the right one included, which "
    "then has a little more than 1 − ε.",
)(_by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / (vocab - 1) * (1 - one_hot)))
LOSS.misconception(
    "mass_over_others_but_padding",
    "The mass goes to the V − 2 classes that are neither the target nor padding. That is another convention; here it "
    "goes to all V.",
)(
    _by_label(
        lambda one_hot, vocab, e, pad: (
            (1 - e) * one_hot + e / (vocab - 2) * (1 - one_hot) * (1 - _column(vocab, pad, one_hot))
        )
    )
)
LOSS.misconception(
    "mass_over_others_but_padding_v",
    "Padding gets none of the mass, and the target only 1 − ε: what is left out is missing, so the label does not sum "
    "to one. All V classes get ε / V.",
)(
    _by_label(
        lambda one_hot, vocab, e, pad: (
            (1 - e) * one_hot + e / vocab * (1 - one_hot) * (1 - _column(vocab, pad, one_hot))
        )
    )
)
LOSS.misconception(
    "mass_without_padding",
    "Padding gets none of the mass. That is another convention; here the mass goes to all V classes, as in PyTorch.",
)(_by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / (vocab - 1) * (1 - _column(vocab, pad, one_hot))))
LOSS.misconception(
    "padding_loses_its_mass",
    "The label of padding is set to zero, so the label no longer sums to one. Padded *positions* do not count; the "
    "class gets its ε / V.",
)(_by_label(lambda one_hot, vocab, e, pad: ((1 - e) * one_hot + e / vocab) * (1 - _column(vocab, pad, one_hot))))
LOSS.misconception(
    "v_minus_one_for_all",
    "Every class gets ε / (V − 1), the target too, so the label sums to more than one. How many shares are there?",
)(_by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / (vocab - 1)))
LOSS.misconception(
    "target_without_its_share",
    "The target has 1 − ε and the others ε / V: that does not sum to one. The target has its own share of ε too.",
)(_by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / vocab * (1 - one_hot)))
LOSS.misconception("smoothing_ignored", "The result does not depend on `smoothing`.")(
    _by_label(lambda one_hot, vocab, e, pad: one_hot)
)
LOSS.misconception(
    "only_scaled",
    "The term of the target is multiplied by 1 − ε, and the other one is missing. Where does the mass ε go?",
)(_by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot))
LOSS.misconception(
    "mass_added",
    "The smoothing is added, and nothing is taken from the target: the label sums to 1 + ε.",
)(_by_label(lambda one_hot, vocab, e, pad: one_hot + e / vocab))
LOSS.misconception(
    "mass_added_in_full",
    "Every class gets ε, not its share of it: the mass ε is one for all V classes together. Is it a sum where a mean "
    "belongs?",
)(_by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e))
LOSS.misconception(
    "weights_exchanged",
    "1 − ε and ε have changed places: with a small ε nearly all of the label is spread out.",
)(_by_label(lambda one_hot, vocab, e, pad: e * one_hot + (1 - e) / vocab))
LOSS.misconception(
    "only_uniform",
    "The target has no part in the loss: only the term in which all classes count the same is there.",
)(_by_label(lambda one_hot, vocab, e, pad: torch.full_like(one_hot, 1 / vocab)))
LOSS.misconception(
    "softmax_over_positions",
    "The softmax runs over the positions. Each position shares out one unit of probability among the classes.",
)(_with_log_probs(lambda logits: logits.log_softmax(0)))
LOSS.misconception(
    "no_softmax",
    "The logits are used as if they were log-probabilities. Their exponentials do not sum to one yet.",
)(_with_log_probs(lambda logits: logits))
LOSS.misconception(
    "probabilities",
    "Probabilities stand where their logarithms belong.",
)(_with_log_probs(lambda logits: logits.softmax(-1)))
LOSS.misconception(
    "softmax_twice",
    "The logits go through a softmax twice: what comes out of the first lies between 0 and 1, and the second makes "
    "nearly uniform probabilities of it.",
)(_with_log_probs(lambda logits: logits.softmax(-1).log_softmax(-1)))
LOSS.misconception(
    "sigmoid",
    "Each class is judged alone by a sigmoid. The classes have to compete: their probabilities sum to one.",
)(_with_log_probs(lambda logits: torch.nn.functional.logsigmoid(logits)))
LOSS.misconception(
    "binary_logarithm",
    "The logarithm has base 2: the loss comes in bits, and is a factor of log 2 off. The natural one is asked for.",
)(_with_log_probs(lambda logits: logits.log_softmax(-1) / math.log(2)))
LOSS.misconception(
    "logarithm_of_softmax",
    "The softmax gives 0 for a logit far below the others, and then the logarithm is −∞. There is one function that "
    "takes both steps at once, from the logits.",
    look="training: The loss",
)(_with_log_probs(lambda logits: logits.softmax(-1).log()))
LOSS.misconception(
    "exponential_overflows",
    "Large logits overflow: e¹⁰⁰ is more than a float32 can hold. What can be taken off all logits of a row without "
    "changing the probabilities?",
    look="attention: The mathematics",
)(_with_log_probs(lambda logits: logits - logits.exp().sum(-1, keepdim=True).log()))
LOSS.misconception(
    "exponential_over_sum",
    "e to the logits is formed and divided by its sum before the logarithm: for large logits that is ∞ / ∞. What can "
    "be taken off all logits of a row without changing the probabilities?",
    look="attention: The mathematics",
)(_with_log_probs(lambda logits: (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()))
for digits in (5, 6, 7, 8, 9, 10, 12, 15, 16, 20):
    LOSS.misconception(
        f"small_number_in_log_{digits}",
        f"A small number, 1e-{digits}, keeps the logarithm from −∞, and makes up the answer: the log-probability of an "
        f"unlikely class is −10,000 here, not {math.log(10**-digits):.0f}. From the logits it can be had exactly.",
        look="training: The loss",
    )(_with_log_probs(lambda logits, epsilon=10**-digits: (logits.softmax(-1) + epsilon).log()))
for digits in (5, 6, 7, 8, 9, 10):
    LOSS.misconception(
        f"clamped_probability_{digits}",
        f"Probabilities below 1e-{digits} are cut off, which makes up the answer: the log-probability of an unlikely "
        f"class is −10,000 here, not {math.log(10**-digits):.0f}. From the logits it can be had exactly.",
        look="training: The loss",
    )(_with_log_probs(lambda logits, epsilon=10**-digits: logits.softmax(-1).clamp(min=epsilon).log()))
LOSS.misconception(
    "zero_is_padding",
    "Targets of 0 are left out, whatever `pad_id` says.",
    look="training: The loss",
)(lambda logits, targets, smoothing, pad_id: _by_label(_smoothed)(logits, targets, smoothing, 0))


@LOSS.misconception(
    "padding_in_the_spread_term",
    "The term of the target leaves padding out, the spread term averages over all positions. A padded position counts "
    "in neither.",
    look="training: The loss",
)
def _(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    return -(1 - smoothing) * _picked(log_probs, targets)[_real(targets, pad_id)].mean() - smoothing * log_probs.mean()


@LOSS.misconception(
    "divergence",
    "This is the Kullback–Leibler divergence: the entropy of the smoothed label has been taken off. Gradients are the "
    "same, the number is not the cross-entropy.",
)
def _(logits, targets, smoothing, pad_id):
    vocab = logits.shape[1]
    one_hot = torch.nn.functional.one_hot(targets, vocab).to(logits.dtype)
    q = _smoothed(one_hot, vocab, smoothing, pad_id)
    each = (torch.xlogy(q, q) - q * logits.log_softmax(-1)).sum(-1)
    return each[_real(targets, pad_id)].mean()


@LOSS.misconception(
    "divergence_other_convention",
    "This is a Kullback–Leibler divergence, with the mass on the V − 2 classes that are neither target nor padding. "
    "Here it is the cross-entropy, and the mass goes to all V.",
)
def _(logits, targets, smoothing, pad_id):
    vocab = logits.shape[1]
    one_hot = torch.nn.functional.one_hot(targets, vocab).to(logits.dtype)
    others = (1 - one_hot) * (1 - _column(vocab, pad_id, one_hot))
    q = (1 - smoothing) * one_hot + smoothing / (vocab - 2) * others
    each = (torch.xlogy(q, q) - q * logits.log_softmax(-1)).sum(-1)
    return each[_real(targets, pad_id)].mean()


@LOSS.misconception(
    "padding_taken_out_of_the_classes",
    "The logit of padding is thrown away, so the other classes share its probability. Padded *positions* are left out; "
    "the class stays.",
)
def _(logits, targets, smoothing, pad_id):
    kept = [k for k in range(logits.shape[1]) if k != pad_id]
    log_probs = logits[:, kept].log_softmax(-1)
    real = _real(targets, pad_id)
    own = targets - (targets > pad_id).to(targets.dtype)
    own = own.clamp(max=len(kept) - 1)
    return (-(1 - smoothing) * _picked(log_probs, own) - smoothing * log_probs.mean(-1))[real].mean()


@LOSS.misconception(
    "logits_overwritten",
    "The largest logit is taken off in place: `logits` belongs to the caller, and to the gradient. An operation that "
    "gives a new tensor does it.",
)
def _(logits, targets, smoothing, pad_id):
    logits -= logits.max(-1, keepdim=True).values
    return label_smoothing_loss(logits, targets, smoothing, pad_id)


add_loss_slips(LOSS)


# warmup_rate


def warmup_rate(step, d_model, warmup_steps):
    return min(step**-0.5, step * warmup_steps**-1.5) / math.sqrt(d_model)


RATE = Exercise(
    name="warmup_rate",
    title="A learning rate that warms up",
    statement="""\
Adam divides each step by the root of a running mean of squared gradients. In the first updates that mean rests on a
handful of batches, and large steps in a wrong direction can spoil a deep model for good. So the paper begins with a
rate near zero, lets it rise in a straight line for `warmup_steps` updates, and lets it fall with the root of the step
from there on (section 5.3):

$$\\text{rate} = d_{\\text{model}}^{-1/2} \\cdot \\min\\left(\\text{step}^{-1/2},\\;
\\text{step} \\cdot \\text{warmup\\_steps}^{-3/2}\\right)$$

`step`, `d_model` and `warmup_steps` are ints, 1 or more; the first update has `step` 1. Return a float.""",
    difficulty=1,
    minutes=5,
    stub='''\
def warmup_rate(step, d_model, warmup_steps):
    """The learning rate of update number `step`, counted from 1: a float."""
    raise NotImplementedError
''',
    hints=(
        "Compute both terms for step = 1 and for a very large step. Which one is smaller, and so rules, at the start?",
        "Both terms are equal at one step: which? If your curve jumps there, an exponent is off.",
        "x to the power −1/2 is one over the root of x. Only one of the two terms knows `warmup_steps`; both know "
        "`d_model`.",
    ),
    reference=warmup_rate,
    shapes={},
    returns=("rate",),
    look="training: The learning rate",
    differentiable=False,
)


@RATE.holds("During the warm-up the rate rises in a straight line", weight=2)
def _(draw):
    yield Case(args=(1, 4, 9), note="the first update", edge="small numbers, to be read by eye")
    for _ in range(3):
        d_model, warmup_steps = draw.sizes(2, 5, 24)
        yield Case(args=(draw.integer(2, warmup_steps - 2), d_model, warmup_steps), note="inside the warm-up")


@RATE.holds("After it, the rate falls with the root of the step", weight=2)
def _(draw):
    yield Case(args=(16, 4, 9), note="after the warm-up", edge="small numbers, to be read by eye")
    for _ in range(3):
        d_model, warmup_steps = draw.sizes(2, 3, 12)
        yield Case(args=(draw.integer(warmup_steps + 2, 40), d_model, warmup_steps), note="after the warm-up")
    yield Case(args=(90, 6, 3), note="long after the warm-up")


@RATE.holds("Both pieces meet at the peak, step = warmup_steps")
def _(draw):
    for _ in range(2):
        d_model, warmup_steps = draw.sizes(2, 3, 12)
        for step in (warmup_steps - 1, warmup_steps, warmup_steps + 1):
            yield Case(args=(step, d_model, warmup_steps), note=f"{step - warmup_steps:+d} steps from the peak")
    yield Case(args=(1, 2, 1), note="a warm-up of one update")


@RATE.holds("It gives the rates of the paper's own settings")
def _(draw):
    for step in (1, 400, 4000, 100_000):
        yield Case(args=(step, 512, 4000), note=f"d_model 512, 4,000 steps of warm-up, step {step:,}")


def _rate(rise=None, fall=None, width=None, choose=min):
    """The schedule with one part exchanged; all parts are functions of (step, d_model, warmup_steps)."""
    rise = rise or (lambda s, d, w: s * w**-1.5)
    fall = fall or (lambda s, d, w: s**-0.5)
    width = width or (lambda s, d, w: d**-0.5)
    return lambda s, d, w: float(width(s, d, w) * choose(fall(s, d, w), rise(s, d, w)))


RATE.misconception(
    "max_for_min",
    "The larger of the two terms is taken (or the condition is turned round): the rate begins with the fall, and rises "
    "without end after the warm-up.",
)(_rate(choose=max))
RATE.misconception("added", "The two terms are added. At each step one of them rules, the smaller one.")(
    _rate(choose=lambda a, b: a + b)
)
RATE.misconception("only_rise", "The rate rises for ever: the term that falls is missing.")(
    _rate(fall=lambda s, d, w: math.inf)
)
RATE.misconception(
    "only_fall",
    "The rate falls from the first step on: the warm-up is missing, or its term is never the smaller one.",
)(_rate(rise=lambda s, d, w: math.inf))
RATE.misconception(
    "constant_after_warmup", "After the warm-up the rate stays where it is. It should fall with the root of the step."
)(_rate(fall=lambda s, d, w: w**-0.5))
RATE.misconception(
    "falls_without_root", "After the warm-up the rate falls with the step itself. It is the root of the step."
)(_rate(fall=lambda s, d, w: 1 / s))
RATE.misconception(
    "falls_with_three_halves",
    "The exponent −3/2 stands at the step. It belongs to `warmup_steps`; the step has −1/2.",
)(_rate(fall=lambda s, d, w: s**-1.5))
RATE.misconception(
    "exponents_exchanged",
    "The exponents have changed places: the step falls with −3/2, `warmup_steps` has −1/2.",
)(_rate(fall=lambda s, d, w: s**-1.5, rise=lambda s, d, w: s * w**-0.5))
RATE.misconception(
    "root_in_the_rise",
    "The rise is too steep: `warmup_steps` has the exponent −1/2 there. With which one do both terms meet at the peak?",
)(_rate(rise=lambda s, d, w: s * w**-0.5))
RATE.misconception(
    "rise_to_one",
    "The rise is step / warmup_steps: it reaches 1 at the peak, where the falling term is much smaller. Both have to "
    "meet there.",
)(_rate(rise=lambda s, d, w: s / w))
RATE.misconception(
    "rise_too_flat", "The rise is too flat: `warmup_steps` is squared. With which exponent do both terms meet?"
)(_rate(rise=lambda s, d, w: s / w**2))
RATE.misconception(
    "three_halves_over_all",
    "The whole quotient step / warmup_steps has the exponent. The step rises in a straight line: its exponent is 1.",
)(_rate(rise=lambda s, d, w: (s / w) ** 1.5))
RATE.misconception(
    "product_has_the_exponent",
    "The exponent −3/2 is applied to the product of step and `warmup_steps`. It belongs to the latter alone: a power "
    "binds more tightly than a product.",
)(_rate(rise=lambda s, d, w: (s * w) ** -1.5))
RATE.misconception("root_missing_at_width", "d_model is divided by in full. It is its root.")(
    _rate(width=lambda s, d, w: 1 / d)
)
RATE.misconception(
    "multiplied_by_the_root_of_width",
    "The rate grows with d_model. Wider models take smaller steps: the exponent is negative.",
)(_rate(width=lambda s, d, w: d**0.5))
RATE.misconception("width_forgotten", "The rate does not depend on d_model.")(_rate(width=lambda s, d, w: 1.0))
RATE.misconception(
    "width_in_the_fall_only",
    "The factor of d_model reaches one of the two terms only. It stands before the minimum.",
)(lambda s, d, w: float(min(d**-0.5 * s**-0.5, s * w**-1.5)))
RATE.misconception(
    "width_in_the_rise_only",
    "The factor of d_model reaches the rising term only. It stands before the minimum.",
)(lambda s, d, w: float(min(s**-0.5, d**-0.5 * s * w**-1.5)))
RATE.misconception(
    "counted_from_zero",
    "One step too few: the first update has step 1, and a rate that is not zero.",
)(lambda s, d, w: _rate()(s - 1, d, w) if s > 1 else 0.0)
RATE.misconception(
    "one_step_ahead", "One step too many: this is the rate of the next update. `step` counts from 1 already."
)(lambda s, d, w: _rate()(s + 1, d, w))
RATE.misconception(
    "fall_begins_anew",
    "After the warm-up the falling term counts its steps from the end of the warm-up, so the rate jumps there. It "
    "counts from the first update.",
)(lambda s, d, w: float(d**-0.5 * (s * w**-1.5 if s <= w else (s - w) ** -0.5)))
RATE.misconception(
    "fall_from_the_peak_without_warmup",
    "The rise ends at d_model^(−1/2), not at the peak (d_model · warmup_steps)^(−1/2), and the rate jumps.",
)(lambda s, d, w: float(d**-0.5 * (s / w if s <= w else s**-0.5)))
RATE.misconception(
    "relative_to_the_peak",
    "This is the rate in units of its peak: 1 at step = warmup_steps. The factor (d_model · warmup_steps)^(−1/2) is "
    "missing.",
)(lambda s, d, w: float(min(s / w, (w / s) ** 0.5)))
RATE.misconception(
    "warmup_factor_missing",
    "This has its peak at d_model^(−1/2). The factor warmup_steps^(−1/2) is missing: the exponent of the rise is "
    "−3/2, not −1.",
)(lambda s, d, w: float(d**-0.5 * min(s / w, (w / s) ** 0.5)))
RATE.misconception(
    "linear_fall",
    "The rate falls in a straight line after the peak. It falls with the root of the step, ever more slowly.",
)(_rate(fall=lambda s, d, w: w**-0.5 * max(0.0, 2 - s / w)))
RATE.misconception(
    "width_and_warmup_exchanged",
    "d_model and `warmup_steps` have changed places.",
)(lambda s, d, w: _rate()(s, w, d))
RATE.misconception("rising_root", "The root of the step is multiplied, not divided by: the exponent is negative.")(
    _rate(fall=lambda s, d, w: s**0.5)
)
RATE.misconception(
    "whole_division",
    "`//` rounds down to 0: the rise of the warm-up is a fraction.",
)(_rate(rise=lambda s, d, w: s // w**1.5))
RATE.misconception(
    "tensor", "The rate is right, but it is a tensor. An optimizer's rate is a float: `.item()`, or `math`."
)(lambda s, d, w: torch.tensor(warmup_rate(s, d, w)))


add_rate_slips(RATE)


# token_batches


def token_batches(lengths, max_tokens):
    for length in lengths:
        if length > max_tokens:
            raise ValueError(
                f"a sentence of {length} tokens does not fit into max_tokens = {max_tokens}; drop or cut it"
            )
    batches = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # In rising order the newcomer is the longest, so it alone decides how wide the batch becomes.
        if not batches or (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


def _indices_sorted(value: Any) -> list | None:
    """Batches without the order of batches, and of sentences in a batch; None unless it is a list of lists of ints."""
    if not isinstance(value, list | tuple) or not all(isinstance(batch, list | tuple) for batch in value):
        return None
    if not all(type(index) is int for batch in value for index in batch):
        return None
    return sorted(sorted(batch) for batch in value)


BATCHES = Exercise(
    name="token_batches",
    title="Batches by tokens",
    statement="""\
A batch is a rectangle: all its sentences are padded to the longest of them. What it costs is its area, the number of
sentences times the longest length, whether the cells hold words or padding. So training puts sentences of similar
length together, and bounds the area of a batch in place of its number of sentences.

`lengths` is a list of ints, the length of each sentence. Return a list of batches, each a list of **indices** into
`lengths`, so that

- every index stands in exactly one batch;
- in every batch, the number of sentences times the longest length is at most `max_tokens`;
- there are no more batches, and there is no more padding in total, than with the greedy way: go through the sentences
  in order of rising length, and open a new batch whenever the next sentence does not fit into the present one.

The greedy way itself will do, and so will any other that is no worse. Order does not matter, neither of the batches nor
inside them. A sentence longer than `max_tokens` fits nowhere: raise a `ValueError`. Leave `lengths` as it is.""",
    difficulty=2,
    minutes=20,
    stub='''\
def token_batches(lengths, max_tokens):
    """Lists of indices; with its padding, each batch holds max_tokens at most."""
    raise NotImplementedError
''',
    hints=(
        "Sort the *indices*, not the lengths: afterwards you still have to say which sentence it is. `sorted` takes a "
        "`key`.",
        "Go through them with one open batch. In rising order, which sentence is the longest once the next one has "
        "joined? So how large would the rectangle be?",
        "Ask whether it fits *before* the sentence joins. If it does not, close the batch and open a new one with this "
        "sentence in it. What happens to the batch that is open at the end?",
    ),
    reference=token_batches,
    shapes={},
    returns=("batches",),
    look="training: Batches by tokens",
    differentiable=False,
    up_to=_indices_sorted,
)


def _area(batch, lengths) -> int:
    return len(batch) * max(lengths[index] for index in batch) if batch else 0


def _padding(batches, lengths) -> int:
    """Cells of all rectangles that hold no token, each index being in one batch."""
    return sum(_area(batch, lengths) for batch in batches) - sum(lengths)


def _shown(value: list) -> str:
    text = repr([list(batch) for batch in value])
    return text if len(text) <= 160 else f"{text[:160]} …"


def _kind(value: Any) -> str:
    """What something is that should have been a list, or an index."""
    if value is None:
        return "None (is there a return?)"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of " + (" and ".join(sorted({_kind(item) for item in value})) or "nothing")
    if type(value) in (bool, float, str):
        return f"the {type(value).__name__} {value!r}"[:60]
    if type(value) is int:
        return "an int"
    return value.type if type(value).__name__ == "Foreign" else f"a {type(value).__name__}"


def _not_batches(args: tuple, value: Any) -> str:
    """What is wrong with the batches as such: type, indices, width. The value may be anything."""
    lengths, max_tokens = args
    if not isinstance(value, list | tuple) or not all(isinstance(batch, list | tuple) for batch in value):
        return f"expected a list of lists of indices, got {_kind(value)}"
    indices = [index for batch in value for index in batch]
    if strange := [index for index in indices if type(index) is not int]:
        return f"expected ints as indices, got {_kind(strange[0])}"
    if outside := [index for index in indices if not 0 <= index < len(lengths)]:
        return f"expected indices from 0 to {len(lengths) - 1}, got {str(outside[0])[:20]}: {_shown(value)}"
    for index in range(len(lengths)):
        if indices.count(index) != 1:
            times = {0: "in none"}.get(indices.count(index), f"{indices.count(index)} times")
            return f"expected each index in exactly one batch; index {index} stands {times}: {_shown(value)}"
    for batch in value:
        if _area(batch, lengths) > max_tokens:
            longest = max(lengths[index] for index in batch)
            return (
                f"expected at most {max_tokens} tokens a batch, padding counted; {list(batch)} has {len(batch)} "
                f"sentences, the longest {longest}: {_area(batch, lengths)}"
            )
    return ""


def _too_many(args: tuple, value: Any) -> str:
    greedy = token_batches(*args)
    if fault := _not_batches(args, value):
        return fault
    if len(value) > len(greedy):
        return f"expected at most {len(greedy)} batches, as the greedy way gives, got {len(value)}: {_shown(value)}"
    return ""


def _too_padded(args: tuple, value: Any) -> str:
    if fault := _too_many(args, value):
        return fault
    most, padding = _padding(token_batches(*args), args[0]), _padding(value, args[0])
    if padding > most:
        return f"expected at most {most} cells of padding, as the greedy way gives, got {padding}: {_shown(value)}"
    return ""


def _in_order(lengths, max_tokens, order, fits=None):
    """Greedy batches in another order, or with another test whether a sentence joins an open batch."""
    fits = fits or (lambda batch, index: (len(batch) + 1) * max(lengths[i] for i in (*batch, index)) <= max_tokens)
    batches: list[list[int]] = []
    for index in order:
        if not batches or not fits(batches[-1], index):
            batches.append([])
        batches[-1].append(index)
    return batches


def _rising(lengths):
    return sorted(range(len(lengths)), key=lambda i: lengths[i])


def _falling(lengths):
    return sorted(range(len(lengths)), key=lambda i: -lengths[i])


def _corpus(draw: Draw, count: int, low: int, high: int) -> list[int]:
    """Lengths in which equal ones are rare, that two other orders batch worse than the rising one."""
    for _ in range(1000):
        lengths, room = draw.sizes(count, low, high), draw.integer(high + 1, 4 * high)
        greedy = token_batches(lengths, room)
        unsorted, falling = (_in_order(lengths, room, o) for o in (range(count), _falling(lengths)))
        if len(unsorted) > len(greedy) and _padding(falling, lengths) > _padding(greedy, lengths) and len(greedy) > 2:
            return lengths, room
    raise AssertionError("no such lengths were drawn")


@BATCHES.holds(
    "Every index is in exactly one batch, and no batch holds more than max_tokens, padding included",
    weight=2,
    fault=_not_batches,
)
def _(draw):
    yield Case(args=([5, 2, 4, 3], 8), note="four sentences")
    for count in (6, 9, 24):
        yield Case(args=_corpus(draw, count, 2, 2 * count), note=f"{count} sentences")


@BATCHES.holds("There are no more batches than with the greedy way", weight=2, fault=_too_many)
def _(draw):
    yield Case(args=([2, 6, 3, 5], 12), note="four sentences")
    for count in (7, 8, 30):
        yield Case(args=_corpus(draw, count, 2, 2 * count), note=f"{count} sentences")
    yield Case(args=([4, 3, 3, 4, 4], 12), note="two batches that are full to the last cell")


@BATCHES.holds("There is no more padding in total than with the greedy way", weight=2, fault=_too_padded)
def _(draw):
    for count in (6, 7, 8, 40):
        yield Case(args=_corpus(draw, count, 2, 2 * count), note=f"{count} sentences")


@BATCHES.holds("It works for equal lengths, one sentence, and a sentence of max_tokens tokens", fault=_too_padded)
def _(draw):
    yield Case(args=([4, 4, 4, 4, 4], 12), note="equal lengths")
    yield Case(args=([3, 9, 2, 9, 3], 9), note="sentences as long as max_tokens")
    yield Case(args=([7], 7), note="one sentence, as long as max_tokens")
    yield Case(args=([5, 3, 5, 3, 5, 3, 3], 10), note="two lengths")
    yield Case(args=([1, 2, 1, 1, 3], 3), note="more sentences than max_tokens")


@BATCHES.holds("A sentence longer than max_tokens is refused")
def _(draw):
    yield Case(args=([3, 9, 4], 8), raises=ValueError, note="a sentence of 9 tokens, max_tokens 8")
    for lengths, which in (([9, 3, 4], "the first"), ([3, 4, 9], "the last"), ([10, 9], "each")):
        yield Case(args=(lengths, 8), raises=ValueError, note=f"{which} sentence has more than 8 tokens")
    lengths, _ = _corpus(draw, 9, 2, 18)
    yield Case(args=(lengths, max(lengths) - 1), raises=ValueError, note="the longest is one token too long")


def _checked(batches):
    """A wrong way of batching that still refuses long sentences."""

    def solution(lengths, max_tokens):
        if max(lengths) > max_tokens:
            raise ValueError("a sentence is too long")
        return batches(lengths, max_tokens)

    return solution


def _greedy(fits=None, order=_rising):
    """Greedy batches with another order, or another test: `fits(batch, length, longest, max_tokens, lengths)`."""

    def batches(lengths, max_tokens):
        def joins(batch, index):
            return fits(batch, lengths[index], max(lengths[i] for i in (*batch, index)), max_tokens, lengths)

        return _in_order(lengths, max_tokens, order(lengths), joins if fits else None)

    return _checked(batches)


BATCHES.misconception(
    "padding_not_counted",
    "The lengths of a batch are added up. The batch is a rectangle: every sentence takes the room of the longest one.",
)(_greedy(lambda batch, length, longest, room, lengths: sum(lengths[i] for i in batch) + length <= room))
BATCHES.misconception(
    "sentences_counted",
    "The number of sentences is held against max_tokens. What is bounded is sentences times the longest length.",
)(_greedy(lambda batch, length, longest, room, lengths: len(batch) + 1 <= room))
BATCHES.misconception(
    "overflows_by_one",
    "A batch is closed only when it is over the bound already, with the sentence in it that did not fit.",
)(_greedy(lambda batch, length, longest, room, lengths: _area(batch, lengths) < room))
BATCHES.misconception(
    "newcomer_not_counted",
    "The rectangle is measured with the newcomer's length, but without its row: one sentence too many gets in.",
)(_greedy(lambda batch, length, longest, room, lengths: len(batch) * longest <= room))
BATCHES.misconception(
    "old_longest",
    "The rectangle is measured with the longest sentence *before* the newcomer. In rising order, who is the longest "
    "after it?",
)(_greedy(lambda batch, length, longest, room, lengths: (len(batch) + 1) * max(lengths[i] for i in batch) <= room))
BATCHES.misconception(
    "area_plus_length",
    "The newcomer is added to the rectangle with its own length. It also widens the rectangle for all who are in it.",
)(_greedy(lambda batch, length, longest, room, lengths: _area(batch, lengths) + length <= room))
BATCHES.misconception(
    "bound_never_reached",
    "A batch that would be full to the last cell is refused: the bound is *at most* max_tokens.",
)(_greedy(lambda batch, length, longest, room, lengths: (len(batch) + 1) * longest < room))
BATCHES.misconception(
    "one_row_too_careful",
    "One row too many is kept free: the newcomer is counted twice.",
)(_greedy(lambda batch, length, longest, room, lengths: (len(batch) + 2) * longest <= room))
BATCHES.misconception(
    "shortest_counted",
    "The width of the rectangle is taken from its shortest sentence. All are padded to the longest.",
)(_greedy(lambda batch, length, longest, room, lengths: (len(batch) + 1) * lengths[batch[0]] <= room))
BATCHES.misconception(
    "only_equal_lengths",
    "Only sentences of equal length share a batch. There is not padding then, but there are many more batches than "
    "needed.",
)(
    _greedy(
        lambda batch, length, longest, room, lengths: lengths[batch[0]] == length and (len(batch) + 1) * longest <= room
    )
)
BATCHES.misconception(
    "not_sorted",
    "The sentences are taken in the order in which they come, so short ones are padded to chance neighbours. Which "
    "order brings sentences of similar length together?",
)(_greedy(order=lambda lengths: list(range(len(lengths)))))
BATCHES.misconception(
    "falling_order",
    "Valid batches, but with more padding than the greedy way in *rising* order: from the long end, what does not fit "
    "any more is left over at the short end.",
)(_greedy(order=_falling))
BATCHES.misconception(
    "positions_in_the_sorted_list",
    "The indices count places in the *sorted* list. The caller has the list in its own order and would get other "
    "sentences.",
)(_checked(lambda lengths, max_tokens: token_batches(sorted(lengths), max_tokens)))
BATCHES.misconception(
    "lengths_returned",
    "The batches hold lengths. The caller needs to know *which* sentences they are: indices.",
)(_checked(lambda lengths, max_tokens: [[lengths[i] for i in batch] for batch in token_batches(lengths, max_tokens)]))
BATCHES.misconception(
    "pairs_returned",
    "The batches hold pairs of index and length. The contract asks for indices alone.",
)(
    _checked(
        lambda lengths, max_tokens: [[(i, lengths[i]) for i in batch] for batch in token_batches(lengths, max_tokens)]
    )
)
BATCHES.misconception(
    "first_of_equal_lengths",
    "The index is looked up by length, and of several sentences of one length that always finds the first. Sort "
    "indices, and no lookup is needed.",
)(
    _checked(
        lambda lengths, max_tokens: [
            [lengths.index(lengths[i]) for i in batch] for batch in token_batches(lengths, max_tokens)
        ]
    )
)
BATCHES.misconception(
    "last_batch_lost",
    "The batch that is open at the end is lost: nothing follows that would close it.",
)(_checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[:-1]))
BATCHES.misconception(
    "only_the_last_batch",
    "Only the last batch comes back: a `return` stands where the batches should be collected.",
)(_checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[-1:]))
BATCHES.misconception(
    "only_the_first_batch",
    "Only the first batch comes back: a `return` stands inside the loop.",
)(_checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[:1]))
BATCHES.misconception(
    "one_batch_flat",
    "All indices stand in one list. A list of batches is asked for, each a list of its own.",
)(_checked(lambda lengths, max_tokens: _rising(lengths)))
BATCHES.misconception(
    "one_sentence_a_batch",
    "Every sentence has a batch of its own. That holds the bound, and wastes what a batch is for.",
)(_checked(lambda lengths, max_tokens: [[i] for i in range(len(lengths))]))
BATCHES.misconception(
    "everything_in_one_batch",
    "All sentences share one batch, whatever its size. What does it cost with its padding?",
)(_checked(lambda lengths, max_tokens: [_rising(lengths)]))
BATCHES.misconception(
    "an_empty_batch_first",
    "An empty batch stands before the others: the list is opened twice before the first sentence is in.",
)(_checked(lambda lengths, max_tokens: [[], *token_batches(lengths, max_tokens)]))


def _in_chunks(order):
    def batches(lengths, max_tokens):
        size = max_tokens // max(lengths)
        indices = order(lengths)
        return [indices[i : i + size] for i in range(0, len(indices), size)]

    return _checked(batches)


BATCHES.misconception(
    "equal_batch_sizes",
    "All batches have as many sentences as fit when they are the longest. Batches of short sentences could take more.",
)(_in_chunks(_rising))
BATCHES.misconception(
    "equal_batch_sizes_not_sorted",
    "All batches have the same number of sentences, in the order in which they come. Put similar lengths together, and "
    "let batches of short sentences take more.",
)(_in_chunks(lambda lengths: list(range(len(lengths)))))


def _losing(lengths, max_tokens):
    batches, batch = [], []
    for index in _rising(lengths):
        if (len(batch) + 1) * lengths[index] <= max_tokens:
            batch.append(index)
        else:
            batches.append(batch)
            batch = []
    return [*batches, batch]


BATCHES.misconception(
    "newcomer_lost",
    "The sentence that does not fit any more closes the batch and is in no batch itself.",
)(_checked(_losing))


def _cleared(lengths, max_tokens):
    batches = token_batches(lengths, max_tokens)
    return [batches[-1] for _ in batches]


def _cleared_to_empty(lengths, max_tokens):
    return [[] for _ in token_batches(lengths, max_tokens)]


BATCHES.misconception(
    "one_list_cleared",
    "All batches are one and the same list: `clear` empties it wherever it stands, and the last batch shows in all "
    "places. A new batch is a new list.",
)(_checked(_cleared))
BATCHES.misconception(
    "one_list_cleared_at_the_end",
    "All batches are one and the same list, which is empty in the end. A new batch is a new list.",
)(_checked(_cleared_to_empty))
BATCHES.misconception(
    "first_fit",
    "Each sentence goes into the first batch with room, in the order in which they come. Sentences of similar length "
    "do not find each other that way.",
)(_checked(lambda lengths, max_tokens: _first_fit(lengths, max_tokens, range(len(lengths)))))


def _first_fit(lengths, max_tokens, order):
    batches: list[list[int]] = []
    for index in order:
        for batch in batches:
            if (len(batch) + 1) * max(lengths[i] for i in (*batch, index)) <= max_tokens:
                batch.append(index)
                break
        else:
            batches.append([index])
    return batches


BATCHES.misconception(
    "long_sentences_let_in",
    "A sentence longer than max_tokens gets a batch of its own, which is over the bound. The contract asks for a "
    "`ValueError`.",
)(lambda lengths, max_tokens: _in_order(lengths, max_tokens, _rising(lengths)))
BATCHES.misconception(
    "long_sentences_dropped",
    "Sentences longer than max_tokens disappear without a word. The contract asks for a `ValueError`: whoever calls "
    "has to decide.",
)(lambda lengths, max_tokens: _in_order(lengths, max_tokens, [i for i in _rising(lengths) if lengths[i] <= max_tokens]))
BATCHES.misconception(
    "as_long_as_max_tokens_refused",
    "A sentence of exactly max_tokens tokens is refused. It fits, alone in its batch.",
)(lambda lengths, max_tokens: _strict(lengths, max_tokens))


def _strict(lengths, max_tokens):
    if max(lengths) >= max_tokens:
        raise ValueError("a sentence is too long")
    return token_batches(lengths, max_tokens)


BATCHES.misconception(
    "another_error",
    "A long sentence is noticed, but by another error than the contract names: an `assert` raises an `AssertionError`.",
)(lambda lengths, max_tokens: _asserting(lengths, max_tokens))


def _asserting(lengths, max_tokens):
    assert max(lengths) <= max_tokens
    return token_batches(lengths, max_tokens)


@BATCHES.misconception(
    "lengths_sorted_in_place",
    "`lengths.sort()` changes the caller's list, and afterwards the indices mean other sentences than the caller's.",
)
def _(lengths, max_tokens):
    lengths.sort()
    return token_batches(lengths, max_tokens)


add_batches_slips(BATCHES)
