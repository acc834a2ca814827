"""Further mistakes in the exercises on training: other slices, other formulas, and two common ones at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_loss_slips", "add_pair_slips", "add_rate_slips"]

Slip = tuple[str, str, Callable]


def _add(exercise: Exercise, slips: list[Slip]) -> None:
    for key, says, solution in slips:
        exercise.misconception(key, says)(solution)


# teacher_forcing_pair


def add_pair_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `teacher_forcing_pair`."""

    def pair(inputs, targets):
        return lambda tokens: (inputs(tokens), targets(tokens))

    def read(tokens):
        return tokens[:, :-1]

    def predicted(tokens):
        return tokens[:, 1:]

    def without_padding(tokens):
        keep = (tokens[:, :-1] != 0).all(0) & (tokens[:, 1:] != 0).all(0)
        return tokens[:, :-1][:, keep], tokens[:, 1:][:, keep]

    _add(
        exercise,
        [
            (
                "inputs_cut_along_the_batch",
                "The inputs lose the last *sentence*, and not the last token of each. Which axis counts positions?",
                pair(lambda t: t[:-1], predicted),
            ),
            (
                "targets_cut_along_the_batch",
                "The targets lose the first *sentence*, and not the first token of each. Which axis counts positions?",
                pair(read, lambda t: t[1:]),
            ),
            (
                "targets_two_ahead",
                "The targets begin with the third token, so they are one shorter than the inputs, and each lies two "
                "positions ahead.",
                pair(read, lambda t: t[:, 2:]),
            ),
            (
                "start_never_read",
                "The start token is missing in the inputs, and so is the question for the first word. The decoder "
                "begins with nothing but the start token.",
                pair(lambda t: t[:, 1:-1], lambda t: t[:, 2:]),
            ),
            (
                "only_the_last_token_read",
                "The inputs are the last token alone. An index picks one place; a slice leaves one out.",
                pair(lambda t: t[:, -1], predicted),
            ),
            (
                "only_the_last_column_read",
                "The inputs are the last column alone. `-1:` begins at the last token; `:-1` ends before it.",
                pair(lambda t: t[:, -1:], predicted),
            ),
            (
                "pairs_of_sentences",
                "A list with a pair for each sentence comes back. The contract asks for two tensors, each with the "
                "whole batch.",
                lambda t: list(zip(t[:, :-1], t[:, 1:], strict=True)),
            ),
            (
                "lists",
                "Lists of numbers come back. The contract asks for tensors.",
                pair(lambda t: t[:, :-1].tolist(), lambda t: t[:, 1:].tolist()),
            ),
            (
                "one_hot_targets",
                "The targets are one-hot vectors. Here they are ids of classes, `(B, L − 1)`.",
                pair(read, lambda t: torch.nn.functional.one_hot(t[:, 1:])),
            ),
            (
                "padding_marked",
                "Padding has become −100 in the targets. It stays what it is here: the loss knows `pad_id`.",
                pair(read, lambda t: t[:, 1:].masked_fill(t[:, 1:] == 0, -100)),
            ),
            (
                "padding_cut_off",
                "Columns with padding are cut off, and with them words of the longer sentences. Padding stays where "
                "it is.",
                without_padding,
            ),
            (
                "targets_filled_up",
                "The inputs are the whole sentence, and the targets are filled up with padding. What comes after the "
                "last token has no next token to predict: both are one token shorter than the sentence.",
                pair(lambda t: t, lambda t: torch.cat([t[:, 1:], torch.zeros_like(t[:, :1])], 1)),
            ),
            (
                "rolled_backwards_whole",
                "The targets are the sentence moved round in the wrong direction: each position is asked for the token "
                "*before* it, the first one for the last.",
                pair(lambda t: t, lambda t: t.roll(1, 1)),
            ),
            (
                "inputs_rolled",
                "The inputs are the sentence moved round, so that the decoder begins with the last token, and the "
                "start token is a target.",
                pair(lambda t: t.roll(1, 1), lambda t: t),
            ),
            (
                "rolled_over_sentences",
                "The targets are those of the next *sentence*: they are moved along the batch.",
                pair(read, lambda t: t.roll(-1, 0)[:, :-1]),
            ),
            (
                "reversed_without_start",
                "The targets run backwards from the second last token on.",
                pair(read, lambda t: t.flip(1)[:, 1:]),
            ),
            (
                "first_sentence_only",
                "Only the first sentence comes back, without its axis of the batch.",
                pair(lambda t: t[0, :-1], lambda t: t[0, 1:]),
            ),
            (
                "squeezed",
                "`squeeze()` takes away every axis of length one, and a batch of one sentence, or a sentence with one "
                "target, has one.",
                pair(lambda t: t[:, :-1].squeeze(), lambda t: t[:, 1:].squeeze()),
            ),
            (
                "positions_squeezed",
                "`squeeze(1)` takes the axis of the positions away where there is one target.",
                pair(lambda t: t[:, :-1].squeeze(1), lambda t: t[:, 1:].squeeze(1)),
            ),
            (
                "every_second_token",
                "Every second token is read, and the ones between are targets. Each token is read, and each is a "
                "target but the first.",
                pair(lambda t: t[:, ::2], lambda t: t[:, 1::2]),
            ),
            (
                "halves",
                "The first half of a sentence is read, and the second half is the target. Every position has a target "
                "of its own.",
                pair(lambda t: t[:, : t.shape[1] // 2], lambda t: t[:, t.shape[1] // 2 :]),
            ),
            (
                "small_ints",
                "The ids have become `int32`. They keep the dtype that they came in.",
                pair(lambda t: t[:, :-1].int(), lambda t: t[:, 1:].int()),
            ),
            (
                "mask_for_targets",
                "A mask stands where the targets belong: True where there is a token. The token itself is asked for.",
                pair(read, lambda t: t[:, 1:] != 0),
            ),
        ],
    )


# label_smoothing_loss


def _log_softmax(logits):
    return logits.log_softmax(-1)


def _smoothed(one_hot, e, pad):
    return (1 - e) * one_hot + e / one_hot.shape[1]


def _mean(each, real, vocab):
    return each[real].mean()


def _loss(*, transform=_log_softmax, label=_smoothed, mean=_mean, real=lambda targets, pad: targets != pad):
    """The loss with parts exchanged; as it stands, it is right."""

    def solution(logits, targets, smoothing, pad_id):
        vocab = logits.shape[1]
        one_hot = torch.nn.functional.one_hot(targets, vocab).to(logits.dtype)
        each = -(label(one_hot, smoothing, pad_id) * transform(logits)).sum(-1)
        return mean(each, real(targets, pad_id), vocab)

    return solution


def _terms(combine):
    """The loss from its two terms, `(N,)` each: `combine(of_target, of_all, smoothing, real, vocab)`."""

    def solution(logits, targets, smoothing, pad_id):
        log_probs = logits.log_softmax(-1)
        of_target = -log_probs.gather(1, targets[:, None])[:, 0]
        return combine(of_target, -log_probs.mean(-1), smoothing, targets != pad_id, logits.shape[1])

    return solution


def _other_columns(one_hot, pad):
    """1 for the classes that are neither target nor padding."""
    others = 1 - one_hot
    others[:, pad] = 0
    return others


def _without_class(value):
    def solution(logits, targets, smoothing, pad_id):
        column = torch.arange(logits.shape[1]) == pad_id
        return _loss()(logits.masked_fill(column, value), targets, smoothing, pad_id)

    return solution


def _stabilised(dim):
    def transform(logits):
        largest = logits.max() if dim is None else logits.max(dim, keepdim=True).values
        shifted = logits - largest
        return shifted - shifted.exp().sum(-1, keepdim=True).log()

    return transform


def _most_probable(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    each = -(1 - smoothing) * log_probs.max(-1).values - smoothing * log_probs.mean(-1)
    return each[targets != pad_id].mean()


def _every_target(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    each = -(1 - smoothing) * log_probs[:, targets] - smoothing * log_probs.mean(-1)
    real = targets != pad_id
    return each[real].sum() / real.sum()


def _divergence(divide):
    def solution(logits, targets, smoothing, pad_id):
        vocab, real = logits.shape[1], targets != pad_id
        q = _smoothed(torch.nn.functional.one_hot(targets, vocab).to(logits.dtype), smoothing, pad_id)
        each = (torch.xlogy(q, q) - q * logits.log_softmax(-1)).sum(-1)
        return divide(each, real, vocab)

    return solution


_LOSS: list[Slip] = [
    (
        "divided_by_classes",
        "The sum is divided by the number of classes. The mean is one over positions.",
        _loss(mean=lambda each, real, vocab: each[real].sum() / vocab),
    ),
    (
        "mean_over_classes_too",
        "The mean is taken over the classes, too. The label weighs the classes already: its shares sum to one, so they "
        "are added up.",
        _loss(mean=lambda each, real, vocab: each[real].mean() / vocab),
    ),
    (
        "mean_of_everything",
        "The mean is taken over all positions and all classes. Classes are added up, as the label weighs them, and the "
        "mean is one over the positions that count.",
        _loss(mean=lambda each, real, vocab: each[real].sum() / (len(each) * vocab)),
    ),
    (
        "ids_above_padding",
        "Only targets with an id above `pad_id` count. Padding is one id; all others count, below it and above.",
        _loss(real=lambda targets, pad: targets > pad),
    ),
    (
        "worst_position",
        "The largest loss of all positions comes back. The mean is asked for.",
        _loss(mean=lambda each, real, vocab: each[real].max()),
    ),
    (
        "shares_of_the_mean",
        "Each position's loss is divided by their number, and they are never added up.",
        _loss(mean=lambda each, real, vocab: each[real] / real.sum()),
    ),
    (
        "number_returned",
        "A Python number comes back: no gradient flows through `.item()` or `float(…)`. The contract asks for a scalar "
        "tensor.",
        _loss(mean=lambda each, real, vocab: each[real].mean().item()),
    ),
    (
        "sign_of_the_target_term",
        "The term of the target has the wrong sign, the spread term the right one.",
        _terms(lambda a, b, e, real, vocab: (-(1 - e) * a + e * b)[real].mean()),
    ),
    (
        "spread_term_subtracted",
        "The spread term has the wrong sign: both terms are losses, and add up.",
        _terms(lambda a, b, e, real, vocab: ((1 - e) * a - e * b)[real].mean()),
    ),
    (
        "share_divided_twice",
        "The spread term is divided by V twice: its mean over the classes is a sum with shares of 1/V already.",
        _terms(lambda a, b, e, real, vocab: ((1 - e) * a + e * b / vocab)[real].mean()),
    ),
    (
        "more_than_one_for_the_target",
        "The target's term is multiplied by 1 + ε. It gives ε away.",
        _terms(lambda a, b, e, real, vocab: ((1 + e) * a + e * b)[real].mean()),
    ),
    (
        "smoothing_always_a_tenth",
        "ε is 0.1, whatever `smoothing` says.",
        _terms(lambda a, b, e, real, vocab: (0.9 * a + 0.1 * b)[real].mean()),
    ),
    (
        "spread_term_of_all_positions",
        "The sum of the spread terms has the padded positions in it, while the number that divides leaves them out. A "
        "padded position counts in neither term.",
        _terms(lambda a, b, e, real, vocab: ((1 - e) * a[real].sum() + e * b.sum()) / real.sum()),
    ),
    (
        "padding_in_the_target_term",
        "The term of the target averages over all positions, the spread term leaves padding out. A padded position "
        "counts in neither.",
        _terms(lambda a, b, e, real, vocab: (1 - e) * a.mean() + e * b[real].mean()),
    ),
    (
        "most_probable_class",
        "The class that the model finds most probable is taken. The target says which class is the right one.",
        _most_probable,
    ),
    (
        "every_position_with_every_target",
        "`log_probs[:, targets]` pairs every position with every target, (N, N) of them. Each position has one.",
        _every_target,
    ),
    (
        "added_along_a_wrong_axis",
        "One term has the shape (N, 1) and the other (N,): together they are (N, N), each position with every other "
        "one. What `gather` gives has an axis of length one.",
        _terms(lambda a, b, e, real, vocab: ((1 - e) * a[:, None] + e * b)[real].sum() / real.sum()),
    ),
    (
        "mass_over_two_less",
        "All wrong classes get ε / (V − 2), padding too: the label sums to more than one.",
        _loss(label=lambda q, e, pad: (1 - e) * q + e / (q.shape[1] - 2) * (1 - q)),
    ),
    (
        "padding_without_its_share_of_others",
        "The wrong classes get ε / (V − 1), and that of padding is set to zero: the label does not sum to one.",
        _loss(label=lambda q, e, pad: (1 - e) * q + e / (q.shape[1] - 1) * _other_columns(q, pad)),
    ),
    (
        "padding_at_minus_infinity",
        "The logit of padding is set to −∞, and with smoothing that class has a share of the label: an infinite loss. "
        "Padded *positions* are left out; the class stays.",
        _without_class(-math.inf),
    ),
    (
        "padding_at_a_large_number",
        "The logit of padding is set to a large negative number, and with smoothing that class has a share of the "
        "label: a huge loss. Padded *positions* are left out; the class stays.",
        _without_class(-1e9),
    ),
    (
        "largest_of_all_subtracted",
        "The largest logit of the *whole batch* is taken off. In a row that lies far below it all exponentials are 0. "
        "Each row has its own largest logit.",
        _loss(transform=_stabilised(None)),
    ),
    (
        "largest_of_each_class_subtracted",
        "The largest logit of each *class* is taken off, which changes the probabilities. It is the largest of each "
        "row that can go.",
        _loss(transform=_stabilised(0)),
    ),
    (
        "infinities_replaced_by_zero",
        "Where the logarithm is −∞, 0 is put in its place: an impossible class would cost nothing. From the logits the "
        "logarithm can be had exactly.",
        _loss(transform=lambda logits: logits.softmax(-1).log().nan_to_num(neginf=0.0)),
    ),
    (
        "infinities_replaced",
        "Where the logarithm is −∞, the lowest number of the dtype is put in its place, which makes up the answer. "
        "From the logits it can be had exactly.",
        _loss(transform=lambda logits: logits.softmax(-1).log().nan_to_num()),
    ),
    (
        "decimal_logarithm",
        "The logarithm has base 10. The natural one is asked for.",
        _loss(transform=lambda logits: logits.log_softmax(-1) / math.log(10)),
    ),
    (
        "divergence_summed",
        "This is a Kullback–Leibler divergence, summed over the positions. Asked for is the cross-entropy, and its "
        "mean.",
        _divergence(lambda each, real, vocab: each[real].sum()),
    ),
    (
        "divergence_of_all_positions",
        "This is a Kullback–Leibler divergence, padding included. Asked for is the cross-entropy over the positions "
        "that count.",
        _divergence(lambda each, real, vocab: each.mean()),
    ),
    (
        "divergence_averaged_over_classes",
        "This is a Kullback–Leibler divergence, averaged over positions and classes, as `reduction='mean'` does. Asked "
        "for is the cross-entropy, with a mean over the positions only.",
        _divergence(lambda each, real, vocab: each[real].mean() / vocab),
    ),
]

_COMMON_IN_LOSS: dict[str, tuple[str, dict]] = {
    "pads_counted": ("padded positions count", {"mean": lambda each, real, vocab: each.mean()}),
    "divided_by_all_positions": (
        "the sum is divided by all positions",
        {"mean": lambda each, real, vocab: each[real].sum() / len(each)},
    ),
    "sum": ("the losses are not divided by their number", {"mean": lambda each, real, vocab: each[real].sum()}),
    "mass_over_the_others": (
        "the mass ε goes to the wrong classes only",
        {"label": lambda q, e, pad: (1 - e) * q + e / (q.shape[1] - 1) * (1 - q)},
    ),
    "mass_added_in_full": ("every class gets ε in full", {"label": lambda q, e, pad: (1 - e) * q + e}),
    "mass_added": (
        "nothing is taken from the target for ε",
        {"label": lambda q, e, pad: q + e / q.shape[1]},
    ),
    "target_without_its_share": (
        "the target does not get its own share of ε",
        {"label": lambda q, e, pad: (1 - e) * q + e / q.shape[1] * (1 - q)},
    ),
    "logarithm_of_softmax": (
        "the logarithm of a softmax is −∞ for logits far apart",
        {"transform": lambda logits: logits.softmax(-1).log()},
    ),
    "small_number_in_log_9": (
        "1e-9 in the logarithm makes up answers",
        {"transform": lambda logits: (logits.softmax(-1) + 1e-9).log()},
    ),
    "no_softmax": ("the logits are no log-probabilities yet", {"transform": lambda logits: logits}),
    "probabilities": (
        "probabilities stand where their logarithms belong",
        {"transform": lambda logits: logits.softmax(-1)},
    ),
}


def _pairs(exercise: Exercise, common: dict[str, tuple[str, dict]], build: Callable) -> None:
    """Two common mistakes at once, where they lie in different parts."""
    for (a, (first, one)), (b, (second, other)) in itertools.combinations(common.items(), 2):
        if not one.keys() & other.keys():
            says = f"Two mistakes meet here: {first}, and {second}. Mend them one at a time."
            exercise.misconception(f"{a}+{b}", says)(build(**one, **other))


def add_loss_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `label_smoothing_loss`."""
    _add(exercise, _LOSS)
    for bound in (20, 30, 50, 100, 1000):
        says = f"The logits are cut off at ±{bound}, which makes up the answer for larger ones. Nothing has to be cut."
        exercise.misconception(f"logits_cut_off_at_{bound}", says)(
            _loss(transform=lambda logits, bound=bound: logits.clamp(-bound, bound).log_softmax(-1))
        )
    _pairs(exercise, _COMMON_IN_LOSS, _loss)


# warmup_rate


def _schedule(
    *,
    rise=lambda s, w: s * w**-1.5,
    fall=lambda s, w: s**-0.5,
    width=lambda d: d**-0.5,
    choose=min,
    form=float,
):
    return lambda s, d, w: form(width(d) * choose(fall(s, w), rise(s, w)))


_RATE: list[Slip] = [
    (
        "falls_with_the_square",
        "After the warm-up the rate falls with the square of the step. It falls with its root.",
        _schedule(fall=lambda s, w: s**-2),
    ),
    (
        "three_halves_at_width",
        "The exponent −3/2 stands at `d_model`. It belongs to `warmup_steps`; `d_model` has −1/2.",
        _schedule(width=lambda d: d**-1.5),
    ),
    (
        "negative_rate",
        "The rate is negative: a minus before a power is applied after it, and belongs into the exponent.",
        _schedule(width=lambda d: -(d**0.5)),
    ),
    (
        "terms_multiplied",
        "The two terms are multiplied. At each step one of them rules, the smaller one.",
        _schedule(choose=lambda a, b: a * b),
    ),
    (
        "half_of_the_inverse_step",
        "`step ** -1 / 2` is half of 1/step: a power binds more tightly than a division. The exponent is −1/2.",
        _schedule(fall=lambda s, w: s**-1 / 2),
    ),
    (
        "half_of_the_inverse_width",
        "`d_model ** -1 / 2` is half of 1/d_model: a power binds more tightly than a division. The exponent is −1/2.",
        _schedule(width=lambda d: d**-1 / 2),
    ),
    (
        "half_of_a_cube",
        "`warmup_steps ** -3 / 2` is half of a cube: a power binds more tightly than a division. The exponent is −3/2.",
        _schedule(rise=lambda s, w: s * w**-3 / 2),
    ),
    (
        "all_powers_before_their_division",
        "`x ** -1 / 2` is half of 1/x: a power binds more tightly than a division, in all three factors.",
        _schedule(fall=lambda s, w: s**-1 / 2, width=lambda d: d**-1 / 2, rise=lambda s, w: s * w**-3 / 2),
    ),
    (
        "rise_without_step",
        "The rate does not rise: `step` is missing in the term of the warm-up.",
        _schedule(rise=lambda s, w: w**-1.5),
    ),
    (
        "rise_with_the_square",
        "The rate rises with the square of the step. It rises in a straight line.",
        _schedule(rise=lambda s, w: s**2 * w**-1.5),
    ),
    (
        "fall_one_after_the_peak",
        "After the warm-up the falling term counts its steps from the peak, so the rate jumps up to d_model^(−1/2). "
        "It counts from the first update.",
        lambda s, d, w: d**-0.5 * (s * w**-1.5 if s < w else (s - w + 1) ** -0.5),
    ),
    (
        "in_percent",
        "The rate is a hundred times too large.",
        _schedule(form=lambda x: 100 * x),
    ),
    ("as_text", "The rate comes back as text. A float is asked for.", _schedule(form=str)),
    (
        "whole_number",
        "The rate is rounded to a whole number, which is 0 nearly everywhere.",
        _schedule(form=lambda x: float(int(x))),
    ),
]

_COMMON_IN_RATE: dict[str, tuple[str, dict]] = {
    "max_for_min": ("the larger term is taken", {"choose": max}),
    "added": ("the two terms are added", {"choose": lambda a, b: a + b}),
    "width_forgotten": ("d_model is missing", {"width": lambda d: 1.0}),
    "root_missing_at_width": ("d_model is without its root", {"width": lambda d: 1 / d}),
    "multiplied_by_the_root_of_width": ("the exponent of d_model is positive", {"width": lambda d: d**0.5}),
    "root_in_the_rise": ("`warmup_steps` has the exponent −1/2", {"rise": lambda s, w: s * w**-0.5}),
    "rise_to_one": ("the rise is step / warmup_steps", {"rise": lambda s, w: s / w}),
    "falls_without_root": ("the step is without its root", {"fall": lambda s, w: 1 / s}),
    "rising_root": ("the exponent of the step is positive", {"fall": lambda s, w: s**0.5}),
}


def add_rate_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `warmup_rate`."""
    _add(exercise, _RATE)
    for digits in (3, 4, 5, 6, 8):
        says = f"The rate is rounded to {digits} decimals, and it is small: most of it is lost. Nothing has to be cut."
        exercise.misconception(f"rounded_to_{digits}", says)(
            _schedule(form=lambda x, digits=digits: float(round(x, digits)))
        )
    _pairs(exercise, _COMMON_IN_RATE, _schedule)
