"""Exercises of the chapter on decoding."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import torch

from course_lib.exercises import _bleu_parts
from course_lib.exercises._bleu_parts import bleu
from course_lib.exercises._bleu_slips import add_slips as add_bleu_slips
from course_lib.exercises._cached_attention_slips import add_slips as add_cached_slips
from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._language_model import NextLogProbs
from course_lib.exercises._searching import beam as _beam
from course_lib.exercises._searching import best as _best
from course_lib.exercises._searching import greedy as _greedy
from course_lib.exercises._searching import search as _search
from course_lib.exercises._searching_slips import (
    add_beam_slips,
    add_greedy_slips,
    extended_ones_compete,
    twice_as_many,
)
from course_lib.exercises._top_p_slips import add_slips as add_top_p_slips
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as attention_exercise

__all__ = ["BEAM", "BLEU", "CACHED", "GREEDY", "TOP_P"]

INF = float("inf")
GREEDILY = "decoding: The most probable next token"
BEAMS = "decoding: Several sentences at once"
LENGTH = "decoding: Why long sentences lose"
SAMPLING = "decoding: Choosing by chance"
SCORING = "decoding: Scoring a translation"
CACHING = "decoding: Keys and values that stay"

MOST_DRAWS = 2000  # until a case is found that tells right from wrong
CLEAR = 0.02  # by how much a decision of a search has to be clear; in float32 sums are off by some 1e-6


def _model(draw: Draw, vocab: int, max_length: int, *, eos: float = 0.0, long: bool = False) -> NextLogProbs:
    """A random model: a row for each sequence, or 61 rows that sequences of any length share.

    Args:
        eos: added to the score of eos; bos is never probable.
    """
    bos_id, eos_id = draw.sizes(2, 0, vocab - 1)
    rows = 61 if long else sum(vocab**n for n in range(max_length))
    scores = draw.normal(rows, vocab, dtype=torch.float64, scale=1.2)
    scores[:, bos_id] = -7.0
    scores[:, eos_id] += eos
    # As log_softmax does, which uses several threads for this, and takes milliseconds where they wait for each other.
    log_probs = scores - scores.logsumexp(-1, keepdim=True)
    return NextLogProbs(log_probs.float(), bos_id, eos_id, max_length)


def _inputs(model: NextLogProbs, *between) -> tuple:
    return (model, model.bos_id, model.eos_id, *between[:-1], model.max_length, *between[-1:])


# greedy_decode


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        token = int(next_log_probs(tokens).argmax())
        if token == eos_id:
            break
        tokens.append(token)
    return tokens[1:]


GREEDY = Exercise(
    name="greedy_decode",
    title="Word by word",
    statement="""\
A model tells how probable each next token is. The simplest way to a sentence takes the most probable one, appends it,
and asks again.

`next_log_probs(tokens)` is the model: it takes the list of all ids so far, `bos_id` first, and returns a tensor `(V,)`
with the log-probability of each next token. Begin with bos alone. End when the model chooses `eos_id`, or after
`max_length` generated tokens.

Return the list of generated ids, as Python ints, **without** bos and eos. A sequence that has ended with eos has no
next token: do not ask the model for one.""",
    difficulty=2,
    minutes=10,
    stub='''\
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    """List of generated ids, without bos and eos; each is the most probable one."""
    raise NotImplementedError
''',
    hints=(
        "Keep one list that begins with bos, and grows by one id a step. What does the model want to see, and what do "
        "you return?",
        "How often may the loop run, at most? What ends it earlier?",
        "`argmax()` gives a tensor with one number. `int(...)` makes an id of it, which can be compared and appended.",
        "Look whether the new id is eos *before* you append it, and leave bos out at the very end.",
    ),
    reference=greedy_decode,
    shapes={},
    returns=("ids",),
    look=GREEDILY,
    differentiable=False,
)


def _greedy_gap(model: NextLogProbs) -> float:
    """By how much the best token of a step is ahead of the second, at least."""
    gaps, tokens = [], []
    for _ in range(model.max_length):
        first, second = model.log_probs[model.row(tokens)].topk(2).values.tolist()
        gaps.append(first - second)
        tokens.append(int(model.log_probs[model.row(tokens)].argmax()))
        if tokens[-1] == model.eos_id:
            break
    return min(gaps)


def _greedy_case(draw: Draw, wanted: Callable[[int], bool], vocab: int, max_length: int, **options) -> Case:
    """A case whose answer has a length that is wanted, with clear decisions."""
    note = options.pop("note", "")
    while True:
        model = _model(draw, vocab, max_length, **options)
        answer = greedy_decode(model.function(), model.bos_id, model.eos_id, max_length)
        if wanted(len(answer)) and _greedy_gap(model) > CLEAR:
            return Case(args=(model, model.bos_id, model.eos_id, max_length), note=note)


@GREEDY.holds("Each token is the most probable one after all tokens before it", weight=3)
def _(draw):
    table = {(): [0.01, 0.1, 0.59, 0.3], (2,): [0.01, 0.2, 0.24, 0.55], (2, 3): [0.01, 0.7, 0.2, 0.09]}
    model = NextLogProbs.of(table, [0.01, 0.29, 0.3, 0.4], 0, 1, 3)
    yield Case(args=_inputs(model, *())[:4], note="a small model, to be read by eye")
    for vocab, max_length in ((4, 4), (5, 4), (6, 3)):
        yield _greedy_case(draw, lambda n: n >= 2, vocab, max_length)
    yield _greedy_case(draw, lambda n: n >= 4, 7, 9, long=True, note="a longer sequence")


@GREEDY.holds("It stops at eos; neither eos nor bos is in the result")
def _(draw):
    yield _greedy_case(draw, lambda n: n == 0, 4, 3, eos=1.0, note="the first token is eos")
    for length in (1, 2):
        yield _greedy_case(
            draw, lambda n, length=length: n == length, 5, 4, note=f"eos after {length} token{'s' * (length > 1)}"
        )
    yield _greedy_case(draw, lambda n: 3 <= n < 10, 6, 12, long=True, note="eos long before max_length")


@GREEDY.holds("It stops after max_length tokens, with or without eos")
def _(draw):
    for max_length in (1, 3):
        note = f"eos does not come within {max_length} token{'s' * (max_length > 1)}"
        yield _greedy_case(draw, lambda n, longest=max_length: n == longest, 4, max_length, eos=-3.0, note=note)
    yield _greedy_case(draw, lambda n: n == 11, 6, 11, eos=-4.0, long=True, note="eos does not come within 11 tokens")


def _without_eos(log_probs, bos, eos):
    log_probs[eos] = -INF
    return int(log_probs.argmax())


GREEDY.misconception(
    "eos_included",
    "eos stands at the end of the result. It says that the sequence is over, and is not part of it: when do you look "
    "at the new token, before or after it is appended?",
)(_greedy(result=lambda tokens, ended, eos: tokens[1:] + [eos] * ended))
GREEDY.misconception(
    "bos_included",
    "bos stands at the beginning of the result. The model needs it, the reader does not.",
)(_greedy(result=lambda tokens, ended, eos: tokens))
GREEDY.misconception(
    "bos_and_eos_included",
    "bos and eos are in the result. Both are signs for the model; the result has the generated tokens alone.",
)(_greedy(result=lambda tokens, ended, eos: tokens + [eos] * ended))
GREEDY.misconception(
    "last_of_all_dropped",
    "One token too few comes back: something is cut from the end that is not eos.",
)(_greedy(result=lambda tokens, ended, eos: tokens[1:-1]))
GREEDY.misconception(
    "max_length_ignored",
    "Only eos ends the loop, and a model may never choose it. What else is there to end it?",
)(_greedy(steps=lambda max_length: 10_000))
GREEDY.misconception(
    "bos_counted",
    "The result is one token too short where eos does not come. Either bos counts as one of the `max_length` tokens, "
    "and it is not generated, or the last token is cut off as if it were eos.",
)(_greedy(steps=lambda max_length: max_length - 1))
GREEDY.misconception(
    "one_too_many",
    "Where eos does not come there is one token more than `max_length`: the loop runs once too often.",
)(_greedy(steps=lambda max_length: max_length + 1))
GREEDY.misconception(
    "only_the_last_token",
    "The model is asked with the last token alone. It has no memory of its own: it wants to see all tokens so far, "
    "bos first.",
)(_greedy(asked=lambda tokens, bos: tokens[-1:]))
GREEDY.misconception(
    "bos_and_the_last_token",
    "The model sees bos and the last token, and nothing of what stands between. The next token depends on all of them.",
)(_greedy(asked=lambda tokens, bos: [bos, *tokens[1:][-1:]]))
GREEDY.misconception(
    "without_bos",
    "The model is asked without bos. It was trained on sequences that begin with it, and the first token has nothing "
    "else to go on.",
)(_greedy(asked=lambda tokens, bos: tokens[1:]))
GREEDY.misconception(
    "never_grows",
    "The model is asked with bos alone, at every step, so its answer never changes. What was generated has to go back "
    "in.",
)(_greedy(asked=lambda tokens, bos: [bos]))
GREEDY.misconception(
    "reversed",
    "The model sees the generated tokens in the wrong order: the newest one stands at the end.",
)(_greedy(asked=lambda tokens, bos: [bos, *tokens[:0:-1]]))
GREEDY.misconception(
    "least_probable",
    "The least probable token is taken: log-probabilities are negative, and the one nearest to zero is the best.",
)(_greedy(choose=lambda log_probs, bos, eos: int(log_probs.argmin())))
GREEDY.misconception(
    "largest_absolute_value",
    "The log-probability farthest from zero is taken, which belongs to the least probable token but for bos.",
)(_greedy(choose=lambda log_probs, bos, eos: int(log_probs.index_fill(0, torch.tensor([bos]), 0).abs().argmax())))
GREEDY.misconception(
    "second_best",
    "At each step the second most probable token is taken.",
)(_greedy(choose=lambda log_probs, bos, eos: int(log_probs.argsort()[-2])))
GREEDY.misconception(
    "eos_never_chosen",
    "eos is never chosen, even where it is the most probable token. It is a token like the others, until it is chosen.",
)(_greedy(choose=_without_eos))
GREEDY.misconception(
    "stops_at_bos",
    "The new token is compared with `bos_id`. It is eos that ends a sequence.",
)(_greedy(stop=lambda token, bos, eos: token == bos))
GREEDY.misconception(
    "stops_at_one",
    "The loop ends at the id 1, whatever `eos_id` says.",
)(_greedy(stop=lambda token, bos, eos: token == 1))
GREEDY.misconception(
    "stops_at_zero",
    "The loop ends at the id 0, whatever `eos_id` says.",
)(_greedy(stop=lambda token, bos, eos: token == 0))
GREEDY.misconception(
    "stops_at_two",
    "The loop ends at the id 2, whatever `eos_id` says.",
)(_greedy(stop=lambda token, bos, eos: token == 2))
GREEDY.misconception(
    "tensor_returned",
    "The ids come back as a tensor. The contract asks for a list of ints.",
)(_greedy(result=lambda tokens, ended, eos: torch.tensor(tokens[1:], dtype=torch.long)))
GREEDY.misconception(
    "tensors_in_the_list",
    "The list holds tensors with one number each. An id is an int: what makes one of a tensor?",
)(_greedy(choose=lambda log_probs, bos, eos: log_probs.argmax()))
GREEDY.misconception(
    "tuple_returned",
    "The ids come back as a tuple. The contract asks for a list.",
)(_greedy(result=lambda tokens, ended, eos: tuple(tokens[1:])))
GREEDY.misconception(
    "scores_returned",
    "A pair comes back, the ids and something else. Only the ids are asked for.",
)(_greedy(result=lambda tokens, ended, eos: (tokens[1:], 0.0)))
GREEDY.misconception(
    "eos_for_the_rest",
    "The result is filled up with eos to `max_length`. A list may be as short as it is.",
)(lambda next_log_probs, bos_id, eos_id, max_length: _filled(next_log_probs, bos_id, eos_id, max_length))


def _filled(next_log_probs, bos_id, eos_id, max_length):
    tokens = greedy_decode(next_log_probs, bos_id, eos_id, max_length)
    return tokens + [eos_id] * (max_length - len(tokens))


@GREEDY.misconception(
    "goes_on_after_eos",
    "The model is asked for what follows eos. Nothing does: the loop has to end there, not only the result.",
)
def _(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        tokens.append(int(next_log_probs(tokens).argmax()))
    tokens = tokens[1:]
    return tokens[: tokens.index(eos_id)] if eos_id in tokens else tokens


@GREEDY.misconception(
    "drawn_by_chance",
    "Tokens are drawn by chance, each with its probability. That is sampling; greedy search takes the most probable "
    "one.",
    look=SAMPLING,
)
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(choose=lambda log_probs, bos, eos: int(log_probs.exp().multinomial(1)))(
        next_log_probs, bos_id, eos_id, max_length
    )


add_greedy_slips(GREEDY)


# beam_search


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    open_, ended = [([], 0.0)], []  # (generated tokens, sum of log-probabilities)
    for length in range(1, max_length + 1):
        candidates = [
            ([*tokens, token], total + log_prob)
            for tokens, total in open_
            for token, log_prob in enumerate(next_log_probs([bos_id, *tokens]).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        open_ = []
        for tokens, total in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                ended.append((tokens[:-1], total / length**length_penalty))
            else:
                open_.append((tokens, total))
    ended += [(tokens, total / max_length**length_penalty) for tokens, total in open_]
    return max(ended, key=lambda hypothesis: hypothesis[1])[0]


BEAM = Exercise(
    name="beam_search",
    title="Several sentences at once",
    statement="""\
Greedy search never takes a choice back. Beam search keeps several hypotheses open and lets them compete.

It begins with one open hypothesis: bos alone, with the sum 0. At each step

1. every open hypothesis is extended by **every** token: its sum of log-probabilities grows by that of the token;
2. of **all** these candidates together, the `beam_size` with the highest sums survive;
3. survivors that end in eos are finished and set aside; the other survivors are the open hypotheses of the next step.

The search is over when none is open, or after `max_length` steps. Then the finished hypotheses compete, and with them
those still open, as they stand. The score of a hypothesis is its sum divided by $n^{\\text{length\\_penalty}}$, where
$n$ is the number of generated tokens, eos counted where it was generated. The highest score wins.

`next_log_probs(tokens)` takes the list of all ids so far, bos first, and returns log-probabilities `(V,)`; do not ask
it for what follows eos. Return the list of ids of the winner, without bos and eos. The beam may be wider than there
are candidates.""",
    difficulty=4,
    minutes=45,
    stub='''\
def beam_search(
    next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0
):
    """List of ids of the best hypothesis, without bos and eos."""
    raise NotImplementedError
''',
    hints=(
        "A hypothesis is a pair: its tokens and its sum. You need two lists of them, open and finished. Write one step "
        "first, for a beam of two.",
        "All candidates of a step go into *one* list, whichever hypothesis they come from. Sort it by the sum, and cut "
        "it.",
        "Go through the survivors: those that end in eos go to the finished ones, the others are the new open ones. "
        "Places of the finished ones are free again in the next step.",
        "Sums decide who survives; the penalty enters once, when finished and open hypotheses are compared at the end. "
        "Is eos still there when you count n?",
    ),
    reference=beam_search,
    shapes={},
    returns=("ids",),
    look=BEAMS,
    differentiable=False,
)


def _beam_gap(model: NextLogProbs, beam_size: int, penalty: float) -> float:
    """By how much the closest decision of a beam search is clear: at the edge of the beam, and at the end."""
    gaps = []

    def noted(candidates, beam_size, finished):
        ranked = _best(candidates)
        if len(ranked) > beam_size:
            gaps.append(ranked[beam_size - 1][1] - ranked[beam_size][1])
        return ranked[:beam_size]

    def choose(hypotheses, key):
        scores = sorted(map(key, hypotheses), reverse=True)
        gaps.extend(a - b for a, b in itertools.pairwise(scores[:2]))
        return max(hypotheses, key=key)

    _search(
        model.function(),
        *(model.bos_id, model.eos_id, beam_size, model.max_length, penalty),
        survivors=noted,
        choose=choose,
    )
    return min(gaps)


def _beam_case(
    draw: Draw,
    beam_size: int,
    *,
    vocab: int = 5,
    max_length: int = 4,
    penalty: float | None = None,
    unlike: tuple[Callable, ...] = (),
    apart: tuple[Callable, ...] = (),
    eos: float = 0.3,
    long: bool = False,
    note: str = "",
) -> Case:
    """A case with clear decisions, in which none of the searches `unlike` gives the right answer.

    Args:
        apart: searches of which no two give the same answer, to tell these mistakes from each other.
    """
    for _ in range(MOST_DRAWS):
        model = _model(draw, vocab, max_length, eos=eos, long=long)
        args = (model.bos_id, model.eos_id, beam_size, max_length, *(() if penalty is None else (penalty,)))
        if _beam_gap(model, beam_size, penalty or 0.0) <= CLEAR:
            continue
        answer = beam_search(model.function(), *args)
        different = {tuple(search(model.function(), *args)) for search in apart}
        if len(different) == len(apart) and all(search(model.function(), *args) != answer for search in unlike):
            return Case(args=(model, *args), note=note)
    raise AssertionError(f"no case with beam_size {beam_size}, penalty {penalty} and this vocabulary tells {unlike}")


def _greedy_for_beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return greedy_decode(next_log_probs, bos_id, eos_id, max_length)


def _best_of_each(candidates, still_open, finished, beam_size, eos):
    """Every open hypothesis keeps its own best extension; the first step fills the beam."""
    groups: dict[tuple, list] = {}
    for tokens, total in candidates:
        groups.setdefault(tuple(tokens[:-1]), []).append((tokens, total))
    best = _best(candidates)[:beam_size] if len(groups) == 1 else [_best(group)[0] for group in groups.values()]
    return [h for h in best if h[0][-1] != eos], [h for h in best if h[0][-1] == eos]


def _filled_up(candidates, still_open, finished, beam_size, eos):
    """Survivors in eos are finished, and other candidates move up into their places."""
    ranked = _best(candidates)
    return [h for h in ranked if h[0][-1] != eos][:beam_size], [h for h in ranked[:beam_size] if h[0][-1] == eos]


def _every_eos(candidates, still_open, finished, beam_size, eos):
    """Whatever ends in eos is finished, whether it survives or not."""
    ranked = _best(candidates)
    return [h for h in ranked[:beam_size] if h[0][-1] != eos], [h for h in ranked if h[0][-1] == eos]


def _eos_set_aside(candidates, still_open, finished, beam_size, eos):
    """Whatever ends in eos is finished, and the beam is filled with others."""
    ranked = _best(candidates)
    return [h for h in ranked if h[0][-1] != eos][:beam_size], [h for h in ranked if h[0][-1] == eos]


def _staying(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0, *, key=None):
    """Finished hypotheses stay in the beam, and open ones have to beat them."""
    beam = [([], 0.0)]
    for _ in range(max_length):
        candidates = []
        for tokens, total in beam:
            if tokens[-1:] == [eos_id]:
                candidates.append((tokens, total))
                continue
            row = next_log_probs([bos_id, *tokens]).tolist()
            candidates += [([*tokens, token], total + log_prob) for token, log_prob in enumerate(row)]
        key_of = key or (lambda h, penalty: h[1])
        beam = sorted(candidates, key=lambda h: key_of(h, length_penalty), reverse=True)[:beam_size]
    tokens = max(beam, key=lambda h: h[1] / len(h[0]) ** length_penalty)[0]
    return tokens[:-1] if tokens[-1] == eos_id else tokens


def _by_mean(h, penalty):
    return h[1] / len(h[0]) ** penalty


def _staying_by_score(*args):
    return _staying(*args, key=_by_mean)


def _shrinking(candidates, beam_size, finished):
    return _best(candidates)[: max(0, beam_size - len(finished))]


_unpruned = _beam(survivors=lambda candidates, beam_size, finished: _best(candidates)[:100])
_one_more = _beam(survivors=lambda candidates, beam_size, finished: _best(candidates)[: beam_size + 1])
_only_finished = _beam(competing=lambda finished, still_open: finished or still_open)
_only_open = _beam(competing=lambda finished, still_open: still_open or finished)
_products = _beam(score=lambda total, n, penalty: math.exp(total) / n**penalty)
_penalty_ignored = _beam(score=lambda total, n, penalty: total)
_without_eos_counted = _beam(count=lambda tokens, eos: max(1, len([t for t in tokens if t != eos])))
_multiplied = _beam(score=lambda total, n, penalty: total * n**penalty)
_subtracted = _beam(score=lambda total, n, penalty: total - penalty * n)
_rewarded = _beam(score=lambda total, n, penalty: total + penalty * n)
_added_to_n = _beam(score=lambda total, n, penalty: total / (n + penalty))
_always_a_mean = _beam(score=lambda total, n, penalty: total / n)
_first_to_finish = _beam(over=lambda finished, still_open, beam_size: bool(finished) or not still_open)
_full = _beam(over=lambda finished, still_open, beam_size: len(finished) >= beam_size or not still_open)


@BEAM.holds("Of all candidates of a step together, the beam_size with the highest sums survive", weight=3)
def _(draw):
    table = {(): [0.01, 0.09, 0.5, 0.4], (2,): [0.01, 0.29, 0.4, 0.3], (3,): [0.01, 0.89, 0.06, 0.04]}
    model = NextLogProbs.of(table, [0.01, 0.5, 0.3, 0.19], 0, 1, 3)
    yield Case(args=(model, 0, 1, 2, 3), note="a small model in which greedy search is misled")
    each = _beam(split=_best_of_each)
    for beam_size, vocab, max_length in ((2, 4, 3), (2, 5, 4), (3, 5, 4), (3, 6, 3)):
        yield _beam_case(draw, beam_size, vocab=vocab, max_length=max_length, unlike=(_greedy_for_beam, each))
    yield _beam_case(draw, 3, unlike=(_parents_forgotten,), eos=-0.5)
    yield _beam_case(draw, 2, apart=(_one_more, _unpruned), vocab=6, max_length=3, penalty=1.0, eos=-0.5)
    yield _beam_case(draw, 4, vocab=7, max_length=9, long=True, unlike=(_greedy_for_beam,), note="longer sequences")


@BEAM.holds("Survivors that end in eos are set aside; candidates that do not survive are dropped", weight=2)
def _(draw):
    yield _beam_case(draw, 2, vocab=4, max_length=4, unlike=(_staying,), penalty=1.0)
    yield _beam_case(draw, 3, unlike=(_beam(split=_filled_up),), penalty=0.8)
    yield _beam_case(draw, 2, unlike=(_staying_by_score,), penalty=1.0)
    yield _beam_case(draw, 2, unlike=(_beam(split=_every_eos),), eos=-0.5)
    aside = _beam(split=_eos_set_aside)
    yield _beam_case(draw, 2, vocab=6, unlike=(aside,), apart=(aside, _beam(split=twice_as_many)), eos=-0.5)
    yield _beam_case(draw, 3, unlike=(_first_to_finish, _full), penalty=1.2)
    yield _beam_case(draw, 3, unlike=(_no_open_ahead,), apart=(_no_open_ahead, _best_has_ended), penalty=0.6)
    yield _beam_case(draw, 2, unlike=(_beam(survivors=_shrinking),), penalty=1.0)
    yield _beam_case(draw, 3, unlike=(_beam(survivors=_shrinking),), penalty=1.0)
    yield _beam_case(draw, 2, apart=(_beam(survivors=_shrinking), _staying), vocab=4, max_length=5, penalty=1.0)


@BEAM.holds("The winner has the highest sum divided by n to the length_penalty, with eos counted in n", weight=2)
def _(draw):
    yield _beam_case(draw, 2, vocab=4, max_length=3, penalty=1.0, unlike=(_penalty_ignored, _greedy_for_beam))
    for penalty in (0.5, 1.0, 2.0):
        unlike = (_penalty_ignored,) if penalty < 2 else (_penalty_ignored, _always_a_mean)
        yield _beam_case(draw, 3, penalty=penalty, unlike=unlike, note=f"length_penalty {penalty}")
    yield _beam_case(draw, 3, penalty=0.5, unlike=(_always_a_mean,), note="length_penalty 0.5")
    yield _beam_case(draw, 3, penalty=0.7, unlike=(_without_eos_counted,))
    yield _beam_case(draw, 4, penalty=1.0, unlike=(_without_eos_counted,))
    yield _beam_case(draw, 3, penalty=0.6, unlike=(_gnmt, _penalty_ignored))
    yield _beam_case(draw, 3, penalty=1.0, unlike=(_products,), apart=(_products, _penalty_ignored))
    yield _beam_case(draw, 3, vocab=6, penalty=0.3, apart=(_multiplied, _subtracted), eos=-0.5)
    for wrong in (_gnmt, _bos_counted, _penalty_of_bos, _rewarded, _added_to_n):
        yield _beam_case(draw, 3, penalty=0.9, unlike=(wrong,))


@BEAM.holds("Sequences without eos after max_length tokens compete as they are")
def _(draw):
    yield _beam_case(draw, 2, vocab=4, max_length=2, unlike=(_only_finished,), note="the winner has not ended")
    yield _beam_case(draw, 3, penalty=1.0, max_length=3, unlike=(_only_finished,), note="the winner has not ended")
    yield _beam_case(draw, 3, max_length=3, unlike=(_only_open,), note="the winner ended early", eos=1.0)
    ended = "all have ended before max_length"
    yield _beam_case(draw, 2, vocab=4, max_length=4, unlike=(extended_ones_compete,), note=ended, eos=2.0)
    yield _beam_case(draw, 2, vocab=4, max_length=5, eos=-6.0, note="none has ended")
    for wrong in (_open_counted_longer, _open_as_sums):
        yield _beam_case(draw, 3, penalty=0.8, max_length=3, unlike=(wrong,))
    yield _beam_case(draw, 2, max_length=1, unlike=(_only_finished,), note="one token")


@BEAM.holds("With beam_size 1 it is greedy search")
def _(draw):
    wide = _beam(survivors=lambda candidates, beam_size, finished: _best(candidates)[:2])
    for penalty in (None, 1.0):
        yield _beam_case(draw, 1, penalty=penalty, unlike=(wide,), note="beam_size 1", eos=-0.5)
    yield _beam_case(draw, 1, vocab=6, max_length=10, long=True, unlike=(wide,), eos=-1.0, note="beam_size 1")
    yield _beam_case(draw, 1, penalty=0.7, vocab=4, eos=-0.5, unlike=(wide,), note="beam_size 1")


@BEAM.holds("A beam wider than the vocabulary works, up to the number of possible sequences")
def _(draw):
    table = {
        (): [0.01, 0.09, 0.45, 0.45],
        (2,): [0.01, 0.32, 0.34, 0.33],
        (3,): [0.01, 0.35, 0.34, 0.3],
        (3, 3): [0.01, 0.97, 0.01, 0.01],
    }
    model = NextLogProbs.of(table, [0.01, 0.35, 0.33, 0.31], 0, 1, 3)
    yield Case(args=(model, 0, 1, 8, 3, 1.0), note="beam_size 8, 4 tokens in the vocabulary, to be read by eye")
    narrow = _beam(survivors=lambda candidates, beam_size, finished: _best(candidates)[:2])
    for beam_size, penalty in ((9, 0.5), (300, 1.0), (300, 1.4)):
        note = f"beam_size {beam_size}, 5 tokens in the vocabulary"
        yield _beam_case(draw, beam_size, penalty=penalty, unlike=(narrow,), note=note)


def _gnmt(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    formula = _beam(score=lambda total, n, penalty: total / ((5 + n) / 6) ** penalty)
    return formula(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


def _no_open_ahead(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def over(finished, still_open, beam_size):
        scores = [max((_by_mean(h, length_penalty) for h in part), default=-INF) for part in (finished, still_open)]
        return not still_open or scores[0] >= scores[1]

    return _search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, over=over)


def _last_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def competing(finished, still_open):
        longest = max(len(tokens) for tokens, _ in finished + still_open)
        return [h for h in finished + still_open if len(h[0]) == longest]

    return _search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, competing=competing)


def _eos_forced(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def competing(finished, still_open):
        return finished + [
            ([*tokens, eos_id], total + float(next_log_probs([bos_id, *tokens])[eos_id]))
            for tokens, total in still_open
        ]

    return _search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, competing=competing)


def _some_of_each(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def split(candidates, still_open, finished, beam_size, eos):
        groups: dict[tuple, list] = {}
        for tokens, total in candidates:
            groups.setdefault(tuple(tokens[:-1]), []).append((tokens, total))
        best = [h for group in groups.values() for h in _best(group)[:beam_size]]
        return [h for h in best if h[0][-1] != eos], [h for h in best if h[0][-1] == eos]

    return _search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, split=split)


_bos_counted = _beam(count=lambda tokens, eos: len(tokens) + 1)
_penalty_of_bos = _beam(count=lambda tokens, eos: len(tokens) + (tokens[-1] != eos))
_open_counted_longer = _penalty_of_bos


def _open_as_sums(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    # Without the penalty a count of one leaves the sum as it is.
    count = _beam(count=lambda tokens, eos: len(tokens) if tokens[-1] == eos else 1)
    return count(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


def _parents_forgotten(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The new tokens are appended to the hypotheses in the order of the beam, not to the ones that they came from."""

    def split(candidates, still_open, finished, beam_size, eos):
        ranked = _best(candidates)[:beam_size]
        mixed = [
            ([*(still_open[i][0] if i < len(still_open) else tokens[:-1]), tokens[-1]], total)
            for i, (tokens, total) in enumerate(ranked)
        ]
        return [h for h in mixed if h[0][-1] != eos], [h for h in mixed if h[0][-1] == eos]

    return _search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, split=split)


BEAM.misconception(
    "best_of_each",
    "Every hypothesis keeps its own best extension, so a weak one never leaves the beam. All candidates of a step "
    "compete together, and the best of them may have the same parent.",
)(_beam(split=_best_of_each))
BEAM.misconception(
    "greedy",
    "The answer is that of greedy search. Is more than one hypothesis kept open? And does the beam begin with one? "
    "Several copies of bos have the same extensions, and fill the beam with copies of one hypothesis for ever.",
)(_greedy_for_beam)
BEAM.misconception(
    "parents_forgotten",
    "The new tokens are appended to the hypotheses in the order of their ranks. Each of them belongs to the "
    "hypothesis that it extends, and the ranks have changed.",
)(_parents_forgotten)
BEAM.misconception(
    "finished_stay_in_the_beam",
    "Finished hypotheses stay in the beam, and take places from open ones step after step. They are set aside, and "
    "the next `beam_size` survivors are chosen among the new candidates alone.",
)(_staying)
BEAM.misconception(
    "finished_stay_and_compete_by_score",
    "Finished hypotheses stay in the beam, and survival is decided by the penalised score. Sums of new candidates "
    "alone decide who survives; the penalty comes at the end.",
    look=LENGTH,
)(_staying_by_score)
BEAM.misconception(
    "beam_shrinks",
    "With every finished hypothesis the beam gets narrower for good. Its place is free again in the next step.",
)(_beam(survivors=_shrinking))
BEAM.misconception(
    "filled_up",
    "Where survivors have ended, other candidates move up, so that there are always `beam_size` open ones. Only the "
    "`beam_size` best survive a step, with eos among them.",
)(_beam(split=_filled_up))
BEAM.misconception(
    "every_eos_counts",
    "A candidate that ends in eos is taken as finished without having survived. It has to be among the `beam_size` "
    "best of its step.",
)(_beam(split=_every_eos))
BEAM.misconception(
    "eos_outside_the_beam",
    "Candidates in eos are kept apart: all of them are finished, and the beam is filled with others. eos competes "
    "for its place like every other token.",
)(_beam(split=_eos_set_aside))
BEAM.misconception(
    "first_to_finish",
    "The search ends when the first hypothesis has ended. An open one may still become better than it.",
    look=LENGTH,
)(_first_to_finish)
BEAM.misconception(
    "ends_with_a_full_list",
    "The search ends when `beam_size` hypotheses have ended. As long as one is open, it may still win.",
    look=LENGTH,
)(_full)
BEAM.misconception(
    "stops_when_the_best_has_ended",
    "The search ends as soon as the best candidate of a step ends in eos. With a penalty a longer one may still win, "
    "and others are still open.",
    look=LENGTH,
)(lambda *args: _best_has_ended(*args))
BEAM.misconception(
    "stops_when_no_open_one_is_ahead",
    "The search ends when the best finished hypothesis has a better score than every open one has now. With a penalty "
    "an open one can still overtake it: the score may rise with the length.",
    look=LENGTH,
)(_no_open_ahead)
BEAM.misconception(
    "only_the_last_step",
    "Only the survivors of the last step compete. Those that ended in earlier steps are candidates too: where do you "
    "keep them?",
)(_last_step)
BEAM.misconception(
    "eos_forced_at_the_end",
    "Hypotheses that have not ended after `max_length` tokens are charged for an eos that they did not generate. They "
    "compete as they stand.",
)(_eos_forced)
BEAM.misconception(
    "beam_size_of_each",
    "Each hypothesis keeps its `beam_size` best extensions, and all of them go on, so the beam grows with every step. "
    "It is all candidates of a step that share `beam_size` places.",
)(_some_of_each)
BEAM.misconception(
    "goes_on_after_eos",
    "A hypothesis that has ended is extended. Nothing follows eos: it has to leave the open ones.",
)(_beam(split=lambda candidates, still_open, finished, beam_size, eos: (_best(candidates)[:beam_size], [])))
BEAM.misconception(
    "eos_not_counted",
    "n is counted after eos has been taken off. It was generated, and its log-probability is in the sum, so it counts.",
    look=LENGTH,
)(_without_eos_counted)
BEAM.misconception(
    "bos_counted",
    "n is one too large: it counts bos, which was not generated.",
    look=LENGTH,
)(_bos_counted)
BEAM.misconception(
    "open_ones_counted_longer",
    "A hypothesis that has not ended is counted with the eos that it does not have.",
    look=LENGTH,
)(_penalty_of_bos)
BEAM.misconception(
    "open_ones_not_penalised",
    "Finished hypotheses are divided by their length, open ones are not. At the end the same score is for all.",
    look=LENGTH,
)(_open_as_sums)
BEAM.misconception(
    "penalty_multiplied",
    "The sum is multiplied by the power of n. Sums are negative: what does that do to a long hypothesis, and what "
    "should it do?",
    look=LENGTH,
)(_multiplied)
BEAM.misconception(
    "penalty_ignored",
    "The highest plain sum wins; `length_penalty` has no effect.",
    look=LENGTH,
)(_penalty_ignored)
BEAM.misconception(
    "always_a_mean",
    "The sum is always divided by n, whatever `length_penalty` says. It is the exponent of n.",
    look=LENGTH,
)(_always_a_mean)
BEAM.misconception(
    "penalty_times_n",
    "The sum is divided by the penalty times n. The penalty is the exponent of n.",
    look=LENGTH,
)(_beam(score=lambda total, n, penalty: total / (n * penalty) if penalty else total))
BEAM.misconception(
    "other_formula",
    "The length enters as (5 + n)/6. That is another penalty that is in use; here it is n itself.",
    look=LENGTH,
)(_gnmt)
BEAM.misconception(
    "divided_at_every_step",
    "The sum is divided at every step, and what is left is carried on, so the first tokens are divided again and "
    "again. Sums stay sums until the end.",
    look=LENGTH,
)(_beam(add=lambda total, log_prob, n, penalty: (total + log_prob) / n**penalty, score=lambda total, n, penalty: total))
BEAM.misconception(
    "each_token_divided",
    "Each log-probability is divided by the length at its own step. What is divided is the whole sum, by the length "
    "at the end.",
    look=LENGTH,
)(_beam(add=lambda total, log_prob, n, penalty: total + log_prob / n**penalty, score=lambda total, n, penalty: total))
BEAM.misconception(
    "sum_forgotten",
    "Candidates are ranked by their last token alone. What a hypothesis has cost so far counts as well.",
)(_beam(add=lambda total, log_prob, n, penalty: log_prob))
BEAM.misconception(
    "probabilities_added",
    "Probabilities are added up. The probability of a sequence is a product; it is the logarithms that add up, and "
    "the model gives logarithms already.",
)(_beam(add=lambda total, log_prob, n, penalty: total + math.exp(log_prob)))
BEAM.misconception(
    "products_penalised",
    "Products of probabilities are divided by the power of n. The penalty belongs to the sum of the logarithms.",
    look=LENGTH,
)(_products)
BEAM.misconception(
    "lowest_sums",
    "The candidates with the lowest sums survive. Log-probabilities are negative: the highest are nearest to zero.",
)(_beam(survivors=lambda candidates, beam_size, finished: _best(candidates)[::-1][:beam_size]))
BEAM.misconception(
    "worst_wins",
    "The right hypotheses are collected, and the one with the lowest score is returned.",
)(_beam(choose=min))
BEAM.misconception(
    "open_ones_lost",
    "Hypotheses that have not ended after `max_length` tokens are left out as soon as any has ended. They compete as "
    "they stand.",
)(_only_finished)
BEAM.misconception(
    "finished_ones_lost",
    "Only hypotheses that are still in the beam after the last step compete. Those that ended before are candidates "
    "too: where do you keep them?",
)(_only_open)
BEAM.misconception(
    "open_ones_need_eos",
    "At the end, hypotheses that have not ended never win, and where none has ended nothing comes back.",
)(_beam(competing=lambda finished, still_open: finished or [([], 0.0)]))
BEAM.misconception(
    "first_finished_wins",
    "The hypothesis that was finished first is returned. Finished ones have to be compared.",
)(_beam(choose=lambda hypotheses, key: hypotheses[0]))
BEAM.misconception(
    "last_finished_wins",
    "The hypothesis that came last is returned. They have to be compared.",
)(_beam(choose=lambda hypotheses, key: hypotheses[-1]))
BEAM.misconception(
    "one_step_too_few",
    "The search is one step too short: bos is not one of the `max_length` tokens.",
)(_beam(steps=lambda max_length: max_length - 1, result=lambda tokens, total, bos, eos: _cut(tokens, eos)))
BEAM.misconception(
    "one_step_too_many",
    "The search runs one step too long: a hypothesis has `max_length` generated tokens at most.",
)(_beam(steps=lambda max_length: max_length + 1))
BEAM.misconception(
    "eos_included",
    "eos stands at the end of the result. It counts in n, and is not part of the result.",
)(_beam(result=lambda tokens, total, bos, eos: tokens))
BEAM.misconception(
    "bos_included",
    "bos stands at the beginning of the result. The model needs it, the reader does not.",
)(_beam(result=lambda tokens, total, bos, eos: [bos, *_cut(tokens, eos)]))
BEAM.misconception(
    "bos_and_eos_included",
    "bos and eos are in the result. Both are signs for the model; the result has the generated tokens alone.",
)(_beam(result=lambda tokens, total, bos, eos: [bos, *tokens]))
BEAM.misconception(
    "last_token_dropped",
    "The last token is cut off where it is not eos, too.",
)(_beam(result=lambda tokens, total, bos, eos: tokens[:-1]))
BEAM.misconception(
    "score_returned_too",
    "A pair comes back, the ids and a score. Only the ids are asked for.",
)(_beam(result=lambda tokens, total, bos, eos: (_cut(tokens, eos), total)))
BEAM.misconception(
    "all_hypotheses_returned",
    "A list of hypotheses comes back. Only the best one is asked for.",
)(_beam(result=lambda tokens, total, bos, eos: [_cut(tokens, eos)]))
BEAM.misconception(
    "tensor_returned",
    "The ids come back as a tensor. The contract asks for a list of ints.",
)(_beam(result=lambda tokens, total, bos, eos: torch.tensor(_cut(tokens, eos), dtype=torch.long)))
BEAM.misconception(
    "only_the_last_token",
    "The model is asked with the last token alone. It has no memory of its own: it wants to see all tokens so far, "
    "bos first.",
    look=GREEDILY,
)(_beam(asked=lambda tokens, bos: tokens[-1:] or [bos]))
BEAM.misconception(
    "without_bos",
    "The model is asked without bos. It was trained on sequences that begin with it.",
    look=GREEDILY,
)(_beam(asked=lambda tokens, bos: tokens))
BEAM.misconception(
    "bos_and_the_last_token",
    "The model sees bos and the last token, and nothing of what stands between. The next token depends on all of them.",
    look=GREEDILY,
)(_beam(asked=lambda tokens, bos: [bos, *tokens[-1:]]))
BEAM.misconception(
    "nothing_is_pruned",
    "All candidates survive, so this searches everything there is. The beam keeps `beam_size` of them.",
)(_unpruned)
BEAM.misconception(
    "one_survivor_too_many",
    "One candidate too many survives each step.",
)(_one_more)
BEAM.misconception(
    "one_survivor_too_few",
    "One candidate too few survives each step.",
)(_beam(survivors=lambda candidates, beam_size, finished: _best(candidates)[: max(1, beam_size - 1)]))


def _cut(tokens, eos):
    return tokens[:-1] if tokens[-1:] == [eos] else tokens


def _best_has_ended(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def split(candidates, still_open, finished, beam_size, eos):
        ranked = _best(candidates)[:beam_size]
        done = [h for h in ranked if h[0][-1] == eos]
        return ([] if ranked[0][0][-1] == eos else [h for h in ranked if h[0][-1] != eos]), done

    return _search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, split=split)


@BEAM.misconception(
    "more_than_the_vocabulary",
    "`topk` is asked for `beam_size` tokens, and there are fewer. The beam may be wider than the vocabulary.",
)
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def checked(tokens):
        log_probs = next_log_probs(tokens)
        log_probs.topk(beam_size)
        return log_probs

    return beam_search(checked, bos_id, eos_id, beam_size, max_length, length_penalty)


add_beam_slips(BEAM)


# top_p_filter


def top_p_filter(logits, p):
    order = logits.argsort(descending=True)
    probs = logits.softmax(-1)[order]
    before = probs.cumsum(-1) - probs  # of the tokens that are more probable: 0 for the first, which is always kept
    keep = before < p
    return logits.masked_fill(~keep[order.argsort()], float("-inf"))


TOP_P = Exercise(
    name="top_p_filter",
    twins=("transformers.TopPLogitsWarper", "transformers.top_k_top_p_filtering"),
    title="A choice among the probable ones",
    statement="""\
Drawn from the whole distribution, a bad token comes up now and then: each is improbable, but there are many. Top-p
sampling draws from the **smallest set of most probable tokens whose probability reaches** `p`: few tokens where the
model is sure, many where it is not.

`logits` is `(V,)`, `p` a number above 0 and below 1. Return logits of the same shape: those in the set as they are, all
others −∞, so that a softmax gives them probability zero. The set is never empty, however small `p` is. Gradients are
not needed.""",
    difficulty=3,
    minutes=20,
    stub='''\
def top_p_filter(logits, p):
    """Logits with -inf outside the smallest set of probable tokens that reaches p."""
    raise NotImplementedError
''',
    hints=(
        "Probabilities decide, logits come back. Which probabilities do the tokens have, and in which order do you go "
        "through them?",
        "With probabilities 0.5, 0.3, 0.2 and p = 0.7, two tokens are in the set. Does the running sum at a token tell "
        "you that, or the sum of those *before* it?",
        "`sort(descending=True)` gives values and places; `cumsum` the running sum. The most probable token belongs to "
        "the set in any case.",
        "What you know is a True or False for each *rank*. The places of the sort tell which token has which rank: "
        "bring the answer back into the order of the vocabulary before you fill.",
    ),
    reference=top_p_filter,
    shapes={"logits": "vocab"},
    returns=("logits",),
    look=SAMPLING,
    differentiable=False,
)


def _p_for(draw: Draw, logits: torch.Tensor, kept: int) -> float:
    """A p for which this many tokens are kept, well inside the range of such p."""
    sums = [0.0, *logits.double().softmax(-1).sort(descending=True).values.cumsum(-1).tolist()]
    low, high = sums[kept - 1], sums[kept]
    return round(low + (high - low) * float(draw.uniform(1, low=0.35, high=0.65)), 4)


def _gap_around(logits: torch.Tensor, kept: int) -> float:
    """How far the last token that is kept is from the next one."""
    ranked = logits.double().sort(descending=True).values
    return float(ranked[kept - 1] - ranked[kept])


def _logits(draw: Draw, vocab: int, dtype=torch.float32, scale=1.5):
    """Logits with clear differences, the most probable token neither first nor last."""
    while True:
        logits = draw.normal(vocab, dtype=dtype, scale=scale)
        ranked = logits.sort().values
        inside = 0 < int(logits.argmax()) < vocab - 1
        order = logits.argsort(descending=True)
        if inside and float((ranked[1:] - ranked[:-1]).min()) > 0.03 and not torch.equal(order, order.argsort()):
            return logits


@TOP_P.holds(
    "The most probable tokens are kept as they are, up to the one that reaches p; all others are −inf", weight=3
)
def _(draw):
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log().round(decimals=3)
    yield Case(args=(logits, 0.7), note="probabilities 0.15, 0.5, 0.05, 0.3", edge="logarithms of probabilities")
    for vocab, kept in ((6, 2), (7, 4), (9, 5), (11, 3)):
        logits = _logits(draw, vocab)
        yield Case(args=(logits, _p_for(draw, logits, kept)))


@TOP_P.holds("It works for few tokens and for many, in float32 and float64")
def _(draw):
    for dtype in (torch.float64, torch.float32):
        logits = _logits(draw, 8, dtype, scale=0.5)
        for kept in (3, 7, 8):
            yield Case(args=(logits, _p_for(draw, logits, kept)), note=f"{kept} of 8 tokens are needed")
        logits = _logits(draw, 60, dtype, scale=6.0)
        yield Case(args=(logits, _p_for(draw, logits, 4)), note="a vocabulary of 60")
    logits = draw.normal(400, scale=0.3)
    while _gap_around(logits, kept := draw.integer(190, 210)) < 0.002:
        logits = draw.normal(400, scale=0.3)
    note = "a vocabulary of 400, nearly all tokens alike"
    yield Case(args=(logits, _p_for(draw, logits, kept)), note=note)


@TOP_P.holds("The set is never empty")
def _(draw):
    logits = _logits(draw, 6)
    for p in (0.001, 0.02):
        yield Case(args=(logits, p), note=f"p = {p}")
    logits = _logits(draw, 7)
    logits[3] = 9.0
    yield Case(args=(logits, 0.6), note="one token has nearly all probability")


@TOP_P.holds("Large logits stay finite, and right")
def _(draw):
    logits = _logits(draw, 6) + 1000.0
    yield Case(args=(logits, 0.6), note="all logits near 1,000", edge="one sign on purpose", tolerance=10)
    logits = _logits(draw, 7) - 1000.0
    yield Case(args=(logits, 0.6), note="all logits near −1,000", edge="one sign on purpose", tolerance=10)


def _filter(
    *,
    probs=lambda logits: logits.softmax(-1),
    descending=True,
    keep=lambda sums, probs, p: sums - probs < p,
    at_least_one=True,
    restore=lambda keep, order: keep[order.argsort()],
    fill=-INF,
    of=lambda logits: logits,
):
    """The filter with one part exchanged."""

    def top_p(logits, p):
        order = logits.argsort(descending=descending)
        ranked = probs(logits)[order]
        kept = keep(ranked.cumsum(-1), ranked, p)
        if at_least_one:
            kept[0] = True
        return of(logits).masked_fill(~restore(kept, order), fill)

    return top_p


def _by_token(keep):
    """A filter that looks at each probability alone."""
    return lambda logits, p: logits.masked_fill(~keep(logits.softmax(-1), p), -INF)


TOP_P.misconception(
    "crossing_token_dropped",
    "The token that reaches `p` is not in the set, so the set has less than `p`, and may be empty. Look at the sum "
    "*before* a token.",
)(_filter(keep=lambda sums, probs, p: sums <= p, at_least_one=False))
TOP_P.misconception(
    "crossing_token_dropped_but_one_kept",
    "The token that reaches `p` is not in the set, so the set has less than `p`. Look at the sum *before* a token.",
)(_filter(keep=lambda sums, probs, p: sums <= p))
TOP_P.misconception(
    "one_token_too_many",
    "The set has one token more than it needs: it reaches `p` already, and goes on.",
)(_filter(restore=lambda keep, order: (keep | keep.roll(1))[order.argsort()]))
TOP_P.misconception(
    "order_not_restored",
    "The answer for rank 0, 1, 2, … is used for token 0, 1, 2, …. The sort knows which token has which rank: the "
    "answer has to go back the same way.",
)(_filter(restore=lambda keep, order: keep))
TOP_P.misconception(
    "restored_with_the_wrong_order",
    "The answer is sorted once more by the same places, which does not undo the sort. The way back is the opposite "
    "one: where does rank r belong?",
)(_filter(restore=lambda keep, order: keep[order]))
TOP_P.misconception(
    "sorted_logits_returned",
    "The right logits are kept, but they come back sorted. Token v has to stay at place v.",
)(_filter(restore=lambda keep, order: keep, of=lambda logits: logits.sort(descending=True).values))
TOP_P.misconception(
    "probable_on_their_own",
    "A token is kept where its own probability reaches `p`. It is the sum over a set that has to reach it.",
)(_by_token(lambda probs, p: probs >= p))
TOP_P.misconception(
    "more_probable_than_the_rest_of_p",
    "A token is kept where its own probability is above 1 − p. It is the sum over a set that counts.",
)(_by_token(lambda probs, p: probs > 1 - p))
TOP_P.misconception(
    "share_of_the_best",
    "Tokens are compared with `p` times the best probability. That is another filter (min-p); here a sum has to reach "
    "`p`.",
)(_by_token(lambda probs, p: probs >= p * probs.max()))
TOP_P.misconception(
    "share_of_the_vocabulary",
    "A share `p` of the vocabulary is kept, whatever the probabilities. The number of tokens should depend on them.",
)(_filter(keep=lambda sums, probs, p: torch.arange(len(sums)) < p * len(sums)))
TOP_P.misconception(
    "least_probable_kept",
    "The set is filled from the least probable token on. Which end does the sort begin with?",
)(_filter(descending=False))
TOP_P.misconception(
    "not_sorted",
    "The sum runs in the order of the vocabulary. It has to run from the most probable token on.",
)(lambda logits, p: logits.masked_fill(~((probs := logits.softmax(-1)).cumsum(-1) - probs < p), -INF))
TOP_P.misconception(
    "logits_summed",
    "The running sum is over logits. It is probabilities that add up to `p`: a softmax is missing.",
)(_filter(probs=lambda logits: logits))
TOP_P.misconception(
    "logarithms_summed",
    "Nothing is filtered. Is the running sum one of log-probabilities? They are negative and never reach `p`.",
)(_filter(probs=lambda logits: logits.log_softmax(-1)))
TOP_P.misconception(
    "turned_round",
    "Exactly the tokens of the set are set to −∞, and the others kept: the condition of the filling is turned round.",
)(_filter(restore=lambda keep, order: ~keep[order.argsort()]))
TOP_P.misconception(
    "filled_with_zero",
    "The others get the logit 0. A softmax gives that a probability of its own: which logit gives none?",
)(_filter(fill=0.0))
TOP_P.misconception(
    "filled_with_a_large_number",
    "The others get a large negative number. It should be −∞, which no logit can be below.",
)(_filter(fill=-1e9))
TOP_P.misconception(
    "filled_with_the_smallest_number",
    "The others get the smallest number of the dtype. It should be −∞.",
)(lambda logits, p: top_p_filter(logits, p).nan_to_num(neginf=torch.finfo(logits.dtype).min))
TOP_P.misconception(
    "probabilities_returned",
    "Probabilities come back, and logits are asked for: a softmax comes after this filter, as before.",
)(lambda logits, p: top_p_filter(logits, p).softmax(-1))
TOP_P.misconception(
    "probabilities_not_renormalised",
    "The old probabilities of the set come back, with zeros for the others. Logits are asked for, with −∞.",
)(_filter(of=lambda logits: logits.softmax(-1), fill=0.0))
TOP_P.misconception(
    "log_probabilities_returned",
    "Log-probabilities come back in place of the logits. They give the same softmax, but the kept ones should stay as "
    "they are.",
)(_filter(of=lambda logits: logits.log_softmax(-1)))
TOP_P.misconception(
    "new_log_probabilities_returned",
    "The log-probabilities of the set come back. The kept logits should stay as they are.",
)(lambda logits, p: top_p_filter(logits, p).log_softmax(-1))
TOP_P.misconception(
    "only_the_set_returned",
    "Only the kept logits come back, so nobody knows which tokens they belong to. The shape stays, with −∞ for the "
    "others.",
)(lambda logits, p: logits[top_p_filter(logits, p).isfinite()])
TOP_P.misconception(
    "mask_returned",
    "A mask comes back: True for the set. The logits are asked for, with −∞ outside.",
)(lambda logits, p: top_p_filter(logits, p).isfinite())
TOP_P.misconception(
    "best_alone",
    "Only the most probable token is kept. That is greedy search; `p` says how much more belongs to the set.",
)(_filter(keep=lambda sums, probs, p: sums < 0))
TOP_P.misconception(
    "softmax_overflows",
    "Exponentials of large logits leave the range of the dtype. `torch.softmax` takes a constant off first.",
)(_filter(probs=lambda logits: logits.exp() / logits.exp().sum()))
TOP_P.misconception(
    "without_a_sum_to_one",
    "Exponentials are summed that were never divided by their sum: they are no probabilities yet.",
)(_filter(probs=lambda logits: logits.exp()))


@TOP_P.misconception(
    "logits_overwritten",
    "The result is right, but it is written into `logits`, which belongs to the caller. A name that ends in `_` or an "
    "assignment to a part of a tensor says so; `masked_fill` or `torch.where` give a new tensor.",
)
def _(logits, p):
    logits[~top_p_filter(logits, p).isfinite()] = -INF
    return logits


add_top_p_slips(TOP_P)


# corpus_bleu


def corpus_bleu(hypotheses, references):
    def ngrams(tokens, n):
        return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

    logs = 0.0
    for n in range(1, 5):
        pairs = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)]
        matches = sum(sum((found & wanted).values()) for found, wanted in pairs)  # & takes the smaller count
        if matches == 0:
            return 0.0
        logs += math.log(matches / sum(sum(found.values()) for found, _ in pairs))
    h, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * min(1.0, math.exp(1 - r / h)) * math.exp(logs / 4)


BLEU = Exercise(
    name="corpus_bleu",
    twins=(
        "sacrebleu.corpus_bleu",
        "sacrebleu.raw_corpus_bleu",
        "sacrebleu.corpus_score",
        "sacrebleu.BLEU",
        "torchmetrics.bleu_score",
        "torchmetrics._bleu_score_update",
        "torchmetrics._bleu_score_compute",
        "torchmetrics.BLEUScore",
        "nltk.corpus_bleu",
    ),
    title="BLEU",
    statement="""\
How good is a translation? BLEU compares it with a reference, and asks which share of its n-grams stands there too.

`hypotheses` and `references` are lists of the same length; each item is a list of tokens, one reference a sentence.

- For $n = 1, 2, 3, 4$: $p_n$ is the number of n-grams of the hypotheses that match, divided by the number of n-grams
  of the hypotheses, **both summed over the whole corpus**. An n-gram matches at most as often as it occurs in the
  reference of its own sentence.
- $\\text{BP} = 1$ where the hypotheses have at least as many tokens as the references, both summed up. Otherwise
  $\\text{BP} = e^{1 - r/h}$ with $h$ tokens in the hypotheses and $r$ in the references.
- BLEU $= 100 \\cdot \\text{BP} \\cdot (p_1 p_2 p_3 p_4)^{1/4}$, a float between 0 and 100.

There is no smoothing: where no n-gram of some order matches, BLEU is 0.0. Hypotheses can be shorter than four tokens,
or empty.""",
    difficulty=3,
    minutes=30,
    stub='''\
def corpus_bleu(hypotheses, references):
    """BLEU-4 of a corpus, 0 to 100: lists of token lists, one reference each."""
    raise NotImplementedError
''',
    hints=(
        "Write a function that counts the n-grams of one sentence. `collections.Counter` counts; tuples of tokens can "
        "be counted.",
        "For one sentence and one n: how often does an n-gram match that stands three times in the hypothesis and "
        "twice in the reference? `Counter` has an operation for that.",
        "Two numbers for each n, matches and n-grams, grow over all sentences. Divide when the corpus is through, not "
        "sooner.",
        "Four precisions become one number by their geometric mean: a product and a root, or a mean of logarithms. The "
        "lengths for the penalty are sums over the corpus, too.",
    ),
    reference=corpus_bleu,
    shapes={},
    returns=("bleu",),
    look=SCORING,
    differentiable=False,
)

WORDS = ("a", "the", "dog", "cat", "sees", "old", "runs", "and")


def _sentence(draw: Draw, length: int) -> list[str]:
    return [draw.choice(WORDS) for _ in range(length)]


def _translated(draw: Draw, reference: list[str]) -> list[str]:
    """The reference with a word dropped, doubled or exchanged here and there."""
    words = []
    for word in reference:
        kept = [word]
        words += draw.choice([kept, kept, kept, kept, kept, [word, word], [], [draw.choice(WORDS)]])
    return words


def _corpus(draw: Draw, sentences: int, *, low: int = 5, high: int = 9, test=lambda h, r: True):
    """Hypotheses and references for which every order has a match, and `test` holds."""
    while True:
        references = [_sentence(draw, draw.integer(low, high)) for _ in range(sentences)]
        hypotheses = [_translated(draw, reference) for reference in references]
        if 5 < corpus_bleu(hypotheses, references) < 95 and test(hypotheses, references):
            return hypotheses, references


def _as_long(hypotheses, references):
    h, r = _bleu_parts.lengths_of(hypotheses, references)
    return h == r and [*map(len, hypotheses)] != [*map(len, references)]


def _shorter(hypotheses, references):
    h, r = _bleu_parts.lengths_of(hypotheses, references)
    return h < r


def _longer(hypotheses, references):
    h, r = _bleu_parts.lengths_of(hypotheses, references)
    return h > r


def _clipped(hypotheses, references):
    return abs(bleu(clip=_bleu_parts.unclipped)(hypotheses, references) - corpus_bleu(hypotheses, references)) > 1


@BLEU.holds("It is the geometric mean of four precisions, times 100", weight=2)
def _(draw):
    reference = ["the", "old", "dog", "sees", "the", "cat"]
    yield Case(args=([["the", "old", "dog", "sees", "a", "cat"]], [reference]), note="one sentence, one word exchanged")
    for sentences in (1, 2, 4):
        test = _as_long if sentences > 1 else lambda h, r: len(h[0]) == len(r[0])
        yield Case(args=_corpus(draw, sentences, test=test))


@BLEU.holds("An n-gram matches at most as often as it occurs in its own reference", weight=2)
def _(draw):
    reference = ["a", "dog", "sees", "the", "old", "cat"]
    yield Case(args=([[*reference, "the", "the"]], [reference]), note="one word too often")
    hypothesis, reference = ["a", "bc", "d", "e", "f", "g"], ["ab", "c", "d", "e", "f", "g"]
    yield Case(args=([hypothesis], [reference]), note="other words, but the same letters")
    for sentences in (2, 3):
        yield Case(args=_corpus(draw, sentences, test=lambda h, r: _clipped(h, r) and _longer(h, r)))


@BLEU.holds("Counts are summed over the whole corpus before anything is divided", weight=2)
def _(draw):
    for sentences in (2, 5):
        hypotheses, references = _corpus(draw, sentences, low=4, high=12)
        yield Case(args=(hypotheses, references), note="sentences of different lengths")
    hypotheses, references = _corpus(draw, 2, test=_as_long)
    short = draw.choice(WORDS[:4])
    yield Case(args=([*hypotheses, [short]], [*references, [short]]), note="one sentence has a single word")
    hypotheses, references = _corpus(draw, 3)
    hypotheses[1] = ["no", "word", "matches", "in", "this"]
    yield Case(args=(hypotheses, references), note="one sentence matches nowhere")


@BLEU.holds("Too few tokens incur the brevity penalty; too many incur no further penalty")
def _(draw):
    reference = ["a", "dog", "sees", "the", "old", "cat", "and", "runs", "home"]
    yield Case(args=([reference[:4]], [reference]), note="right as far as it goes, less than half as long")
    for sentences in (2, 4):
        yield Case(args=_corpus(draw, sentences, test=_shorter), note="shorter than the references")
        yield Case(args=_corpus(draw, sentences, test=_longer), note="longer than the references")
    hypotheses, references = _corpus(draw, 3, test=lambda h, r: corpus_bleu([[], *h[1:]], r) > 1)
    hypotheses[0] = []
    yield Case(args=(hypotheses, references), note="an empty hypothesis")


@BLEU.holds("It is 0.0 where no n-gram of some order matches, and 100 for the references themselves")
def _(draw):
    reference = _sentence(draw, 6)
    yield Case(args=([["a", "b", "c", "d", "e"]], [["a", "b", "c", "e", "d"]]), note="no four words match")
    yield Case(args=([["w", "x", "y", "z"]], [reference]), note="nothing matches")
    yield Case(args=([["a", "dog"]], [["a", "dog"]]), note="there is no 4-gram")
    yield Case(args=([[]], [reference]), note="nothing was written")
    yield Case(args=([reference], [list(reference)]), note="the reference itself")


BLEU.misconception(
    "mean_of_sentences",
    "BLEU is computed for each sentence, and averaged. Counts of all sentences come together first, and are divided "
    "once.",
)(_bleu_parts.mean_of_sentences)
BLEU.misconception(
    "mean_of_precisions",
    "A precision is computed for each sentence, and averaged. A long sentence has more n-grams, and counts for more: "
    "sum up first, then divide.",
)(_bleu_parts.mean_of_precisions)
BLEU.misconception(
    "not_clipped",
    "An n-gram matches as often as it is repeated. “the the the” should not match a reference with one “the” three "
    "times.",
)(bleu(clip=_bleu_parts.unclipped))
BLEU.misconception(
    "sets",
    "Each different n-gram counts once, however often it occurs. They are counted, in hypothesis and reference.",
)(bleu(count=lambda tokens, n: Counter(set(_bleu_parts.ngrams(tokens, n)))))
BLEU.misconception(
    "sentences_joined",
    "All sentences are joined to one, so there are n-grams across their borders, and a match may lie in another "
    "sentence's reference.",
)(_bleu_parts.joined)
BLEU.misconception(
    "any_reference",
    "An n-gram may match in the reference of any sentence. Each hypothesis has its own.",
)(_bleu_parts.any_reference)
BLEU.misconception(
    "arithmetic_mean",
    "The four precisions are averaged by their sum. BLEU takes the geometric mean, which is zero where one of them is.",
)(bleu(mean=lambda precisions: sum(precisions) / len(precisions)))
BLEU.misconception(
    "product_without_root",
    "The precisions are multiplied, and the fourth root is missing.",
)(bleu(mean=math.prod))
BLEU.misconception(
    "no_brevity_penalty",
    "The brevity penalty has no effect, so a few sure words would be a perfect translation. Its lengths are numbers of "
    "tokens; the numbers of sentences are always equal.",
)(bleu(brevity=lambda h, r: 1.0 if h else 0.0))
BLEU.misconception(
    "penalty_inverted",
    "The lengths in the penalty are exchanged: it punishes long output, and short output goes free.",
)(bleu(brevity=_bleu_parts.inverted))
BLEU.misconception(
    "bonus_for_length",
    "Output longer than the references gets a factor above one. The penalty ends at 1.",
)(bleu(brevity=lambda h, r: math.exp(1 - r / h) if h else 0.0))
BLEU.misconception(
    "ratio_of_lengths",
    "The penalty is the ratio of the lengths itself. It is an exponential of one minus a ratio.",
)(bleu(brevity=lambda h, r: min(1.0, h / r)))
BLEU.misconception(
    "exponent_of_the_other_ratio",
    "The exponent of the penalty has hypothesis over reference, the wrong way round, with the sign turned to fit.",
)(bleu(brevity=lambda h, r: min(1.0, math.exp(h / r - 1)) if h else 0.0))
BLEU.misconception(
    "penalty_for_each_sentence",
    "The brevity penalty is computed for each sentence, and averaged. It looks at the whole corpus: a short sentence "
    "may be made up for by a long one.",
)(_bleu_parts.penalty_for_each_sentence)
BLEU.misconception(
    "recall",
    "Matches are divided by the number of n-grams of the *references*. That is recall; precision asks which share of "
    "what was written is right.",
)(bleu(total=lambda found, wanted: sum(wanted.values())))
BLEU.misconception(
    "arguments_exchanged",
    "Hypotheses and references are exchanged throughout: precisions and penalty are those of the references.",
)(lambda hypotheses, references: bleu()(references, hypotheses))
BLEU.misconception(
    "smoothed",
    "One is added to each count. There is no smoothing here: an order without a match gives 0.0.",
)(bleu(share=_bleu_parts.smoothed))
BLEU.misconception(
    "smoothed_above_one",
    "One is added to the counts of n-grams longer than one. There is no smoothing here.",
)(bleu(share=_bleu_parts.smoothed_above_one))
BLEU.misconception(
    "small_number_for_zero",
    "A tiny number stands for a precision of zero, so that the logarithm exists. The contract says 0.0 there.",
)(bleu(mean=_bleu_parts.never_zero))
BLEU.misconception(
    "zeros_left_out",
    "Orders without a match are left out of the mean. They make BLEU 0.0.",
)(bleu(mean=_bleu_parts.zeros_left_out))
BLEU.misconception(
    "logarithm_of_zero",
    "The logarithm of zero does not exist: an order without a match has to be looked at before.",
)(bleu(mean=lambda precisions: math.exp(sum(map(math.log, precisions)) / 4)))
BLEU.misconception(
    "division_by_zero",
    "Hypotheses without n-grams of some order divide by zero: they may be short, or empty.",
)(bleu(share=lambda matches, total, n: matches / total))
BLEU.misconception(
    "between_0_and_1",
    "The result is between 0 and 1. The contract asks for 0 to 100.",
)(bleu(times=1))
BLEU.misconception(
    "rounded",
    "The result is rounded. Round only where the number is printed.",
)(lambda hypotheses, references: round(corpus_bleu(hypotheses, references), 2))
BLEU.misconception(
    "words_only",
    "Only single words are compared, so their order does not matter. Where are the longer n-grams?",
)(bleu(orders=(1,)))
BLEU.misconception(
    "four_grams_only",
    "Only n-grams of four are compared. All four orders belong to the mean.",
)(bleu(orders=(4,)))
BLEU.misconception(
    "up_to_three",
    "The longest n-grams have three words: `range(1, 4)` ends before 4.",
)(bleu(orders=(1, 2, 3)))
BLEU.misconception(
    "up_to_five",
    "n-grams of five are counted, too. BLEU-4 ends with four.",
)(bleu(orders=(1, 2, 3, 4, 5)))
BLEU.misconception(
    "last_ngram_missing",
    "The last n-gram of each sentence is missing: L tokens have L − n + 1 of them.",
)(bleu(count=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n))))
BLEU.misconception(
    "pieces_at_the_end",
    "Pieces shorter than n are counted at the end of a sentence: a slice that goes past the end is only shorter.",
)(bleu(count=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(len(tokens)))))
BLEU.misconception(
    "ngrams_side_by_side",
    "The sentence is cut into pieces of n words side by side. n-grams overlap: one begins at every word.",
)(bleu(count=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(0, len(tokens) - n + 1, n))))
BLEU.misconception(
    "order_of_words_ignored",
    "The words of an n-gram are sorted or put into a set, so their order is lost.",
)(bleu(count=lambda tokens, n: Counter(tuple(sorted(tokens[i : i + n])) for i in range(len(tokens) - n + 1))))
BLEU.misconception(
    "same_place",
    "An n-gram matches only at the same place of the sentence. One word too many shifts all that follow: places do not "
    "count.",
)(bleu(count=lambda tokens, n: Counter((i, *tokens[i : i + n]) for i in range(len(tokens) - n + 1))))


@BLEU.misconception(
    "lists_cannot_be_counted",
    "A list cannot be a key of a dictionary. A tuple can.",
)
def _(hypotheses, references):
    return Counter([tokens[i : i + 2] for tokens in hypotheses for i in range(len(tokens))])


@BLEU.misconception(
    "references_emptied",
    "Matched tokens are taken out of the caller's lists. The number is right; the lists belong to the caller.",
)
def _(hypotheses, references):
    score = corpus_bleu(hypotheses, references)
    for reference in references:
        reference.clear()
    return score


add_bleu_slips(BLEU)


# cached_attention


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key = torch.cat((cache[0], key), dim=-2)  # (B, H, past + 1, d)
        value = torch.cat((cache[1], value), dim=-2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, 1, past + 1)
    return scores.softmax(dim=-1) @ value, (key, value)


CACHED = Exercise(
    name="cached_attention",
    title="Keys and values that stay",
    statement="""\
A decoder writes one token at a time. Keys and values of the earlier tokens do not change any more, so they are kept.

Write one step of causal self-attention with such a cache. `query`, `key` and `value` belong to the newest token, all
`(B, H, 1, d)`. `cache` is None at the first step, and later the pair `(keys, values)` of all tokens before, each
`(B, H, t, d)`, the oldest first.

- The newest token attends to all tokens before it and to itself: scaled dot-product attention, $1/\\sqrt{d}$.
- Return `(output, (keys, values))`: the output `(B, H, 1, d)`, and the cache of the next step, `(B, H, t + 1, d)` each.

The old cache stays as it is: in a beam search several hypotheses may go on from it. You may use
`scaled_dot_product_attention`, your own or the course's.""",
    difficulty=3,
    minutes=20,
    stub='''\
def cached_attention(query, key, value, cache=None):
    """(output, (keys, values)) of one step; cache: (keys, values) of those before."""
    raise NotImplementedError
''',
    hints=(
        "Which keys and values may the newest token see? Put them together first; what is left is attention as you "
        "know it.",
        "`torch.cat` puts tensors together along an axis that exists. Which axis counts the tokens, from the right?",
        "Is a mask needed? Write down the shape of the scores, and who would have to be hidden from whom.",
        "What you have put together is the cache of the next step, too.",
    ),
    reference=cached_attention,
    shapes={
        "query": "batch heads 1 d",
        "key": "batch heads 1 d",
        "value": "batch heads 1 d",
        "cache": "batch heads past d",
    },
    returns=("output", "cache"),
    look=CACHING,
)


def _step(draw: Draw, sizes=None, dtype=torch.float32, scale=1.0, first=False):
    batch, heads, past, d = sizes or draw.sizes(4, 2, 7)
    new = [draw.normal(batch, heads, 1, d, dtype=dtype, scale=s) for s in (scale, scale, 1.0)]
    old = tuple(draw.normal(batch, heads, past, d, dtype=dtype, scale=s) for s in (scale, 1.0))
    return (*new, *(() if first else (old,)))


@CACHED.holds("The first token attends to itself and starts the cache")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_step(draw, first=True, dtype=dtype), note="no cache yet")
    yield Case(args=(*_step(draw, first=True), None), note="the cache is None")


@CACHED.holds("The newest token attends to all tokens before it, and to itself", weight=3)
def _(draw):
    yield Case(args=_step(draw, (1, 1, 2, 2)), edge="one head, two tokens before, to be read by eye")
    for dtype in (torch.float32, torch.float64, torch.float32):
        yield Case(args=_step(draw, dtype=dtype))


@CACHED.holds("The cache grows by one token at its end, along the token axis", weight=2)
def _(draw):
    yield Case(args=_step(draw, (2, 3, 1, 4)), note="one token before", edge="a past of one token on purpose")
    yield Case(args=_step(draw, (2, 4, 9, 3)), note="nine tokens before")
    yield Case(args=_step(draw, (1, 1, 1, 3)), note="one token before, one head", edge="axes of one on purpose")
    yield Case(args=_step(draw, (1, 3, 4, 2)), note="a batch of one", edge="a batch of one on purpose")
    yield Case(args=_step(draw, (3, 1, 5, 2)), note="one head", edge="one head on purpose")
    yield Case(args=_step(draw, (3, 2, 4, 1)), note="d is one", edge="one feature on purpose")
    yield Case(args=_step(draw, (2, 3, 4, 4)), note="as many tokens before as features", edge="equal on purpose")


@CACHED.holds("Large scores stay finite, and right")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        step = _step(draw, dtype=dtype, scale=60.0)
        yield Case(args=step, note="scores of some thousands", tolerance=50, gradients=False)


def _joined_cache(key, value, cache, dim=-2):
    if cache is None:
        return key, value
    return torch.cat((cache[0], key), dim), torch.cat((cache[1], value), dim)


def _attention(query, key, value, scale=None, dim=-1, weights=torch.softmax):
    scores = query @ key.transpose(-2, -1) / (query.shape[-1] ** 0.5 if scale is None else scale)
    return weights(scores, dim) @ value


def _cached(*, join=_joined_cache, attend=_attention, seen=None, kept=None):
    """The step with one part exchanged: how the cache is joined, who is seen, what is kept."""

    def step(query, key, value, cache=None):
        keys, values = join(key, value, cache)
        output = attend(query, *(seen(key, value, cache) if seen else (keys, values)))
        return output, (kept(query, key, value, cache, output) if kept else (keys, values))

    return step


def _old(key, value, cache):
    return (key, value) if cache is None else cache


def _kept(change):
    """The step with a change to the cache that is returned."""
    return _cached(kept=lambda query, key, value, cache, output: change(*_joined_cache(key, value, cache)))


def _top_left(scores, dim):
    rows, columns = scores.shape[-2:]
    return scores.masked_fill(~torch.ones(rows, columns, dtype=torch.bool).tril(), -INF).softmax(dim)


def _joined_by(function):
    """The step with another way to put cache and new token together."""
    return _cached(join=lambda key, value, cache: (key, value) if cache is None else function(key, value, cache))


CACHED.misconception(
    "cache_ignored",
    "The cache has no effect: the newest token attends to itself alone, and the next cache has nothing else.",
)(_cached(join=lambda key, value, cache: (key, value)))
CACHED.misconception(
    "sees_itself_only",
    "The cache grows as it should, but the newest token attends to itself alone: the others are left out, or masked. "
    "They are what the cache is for.",
)(_cached(seen=lambda key, value, cache: (key, value)))
CACHED.misconception(
    "does_not_see_itself",
    "The newest token attends to the old cache, before its own key and value are in it. A position sees itself, too.",
    look="masking: No look ahead",
)(_cached(seen=_old))
CACHED.misconception(
    "old_cache_returned",
    "The cache that comes back is the old one. The next step needs the new key and value as well.",
)(_cached(kept=lambda query, key, value, cache, output: _old(key, value, cache)))
CACHED.misconception(
    "only_the_new_one_kept",
    "The output is right, but only the newest key and value come back. The next step needs all of them.",
)(_cached(kept=lambda query, key, value, cache, output: (key, value)))
CACHED.misconception(
    "new_before_old",
    "The new token is put before the old ones. The output does not show it, but the cache is in order of time, the "
    "oldest first.",
)(_joined_by(lambda key, value, cache: (torch.cat((key, cache[0]), -2), torch.cat((value, cache[1]), -2))))
CACHED.misconception(
    "keys_in_another_order_than_values",
    "Keys and values are put together in different orders, so a weight goes to the value of another token.",
)(_joined_by(lambda key, value, cache: (torch.cat((key, cache[0]), -2), torch.cat((cache[1], value), -2))))
for axis, name in ((0, "batch"), (1, "heads"), (-1, "features")):
    CACHED.misconception(
        f"joined_along_{name}",
        f"Old and new are put together along the axis of the {name}. Which axis counts the tokens?",
    )(_joined_by(lambda key, value, cache, axis=axis: _joined_cache(key, value, cache, axis)))
CACHED.misconception(
    "stacked",
    "`torch.stack` makes a new axis, and wants equal lengths. The tokens have their axis already.",
)(_joined_by(lambda key, value, cache: (torch.stack((cache[0], key)), torch.stack((cache[1], value)))))
CACHED.misconception(
    "added",
    "The new key and value are added to every old one. They are a further token: the length grows by one.",
)(_joined_by(lambda key, value, cache: (cache[0] + key, cache[1] + value)))
CACHED.misconception(
    "one_of_two_appended",
    "Only one of the new key and the new value is appended, so there is a weight too many or too few. Each key owns "
    "one value.",
)(_joined_by(lambda key, value, cache: (torch.cat((cache[0], key), -2), cache[1])))
CACHED.misconception(
    "oldest_dropped",
    "The oldest token is dropped when a new one comes, so the cache never grows. Every token before may be seen.",
)(_joined_by(lambda key, value, cache: tuple(x[..., 1:, :] for x in _joined_cache(key, value, cache))))
CACHED.misconception(
    "last_replaced",
    "The last token of the cache is replaced by the new one, and the cache does not grow.",
)(
    _joined_by(
        lambda key, value, cache: (
            torch.cat((cache[0][..., :-1, :], key), -2),
            torch.cat((cache[1][..., :-1, :], value), -2),
        )
    )
)
CACHED.misconception(
    "causal_mask_from_the_top_left",
    "A causal mask is cut from the top left corner, where row 0 is the first token. Here the only row is the *last* "
    "token: with this mask it sees the oldest key alone.",
    look="masking: No look ahead",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, weights=_top_left)))
CACHED.misconception(
    "no_scale",
    "The scores are not scaled. Attention is the same as ever, 1/√d included.",
    look="scaled_dot_product: Why divide by the root of d",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, scale=1.0)))
CACHED.misconception(
    "scale_without_root",
    "The scores are divided by d, and not by its root.",
    look="scaled_dot_product: Why divide by the root of d",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, scale=query.shape[-1])))
CACHED.misconception(
    "scaled_by_length",
    "The scores are divided by the root of the number of tokens, so they change as the cache grows. The divisor is the "
    "root of d.",
    look="scaled_dot_product: Why divide by the root of d",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, scale=key.shape[-2] ** 0.5)))
CACHED.misconception(
    "softmax_over_the_query",
    "The softmax runs over the axis of the query, which has length one, so every weight is 1. It runs over the keys.",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, dim=-2)))
CACHED.misconception(
    "softmax_over_the_heads",
    "The softmax runs over the heads. It runs over the keys, the last axis.",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, dim=1)))
CACHED.misconception(
    "softmax_over_the_batch",
    "The softmax runs over the batch. It runs over the keys, the last axis.",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, dim=0)))
CACHED.misconception(
    "no_softmax",
    "The values are averaged with the raw scores: the softmax is missing.",
)(_cached(attend=lambda query, key, value: _attention(query, key, value, weights=lambda scores, dim: scores)))
CACHED.misconception(
    "unstable_softmax",
    "Large scores overflow: their exponentials leave the range of the dtype. `torch.softmax` takes a constant off.",
    look="attention: The mathematics",
)(
    _cached(
        attend=lambda query, key, value: _attention(
            query, key, value, weights=lambda s, dim: s.exp() / s.exp().sum(dim, keepdim=True)
        )
    )
)
CACHED.misconception(
    "plain_mean",
    "All tokens get the same weight, whatever the query. Attention weighs them.",
)(_cached(attend=lambda query, key, value: _attention(query * 0, key, value)))
CACHED.misconception(
    "keys_averaged",
    "The keys are averaged, and not the values.",
)(_cached(attend=lambda query, key, value: _attention(query, key, key)))
CACHED.misconception(
    "cache_swapped",
    "Values and keys come back in the wrong order: the cache is `(keys, values)`.",
)(_kept(lambda keys, values: (values, keys)))
CACHED.misconception(
    "cache_read_swapped",
    "The pair is read in the wrong order: keys are appended to values. The cache is `(keys, values)`.",
)(_joined_by(lambda key, value, cache: _joined_cache(key, value, cache[::-1])))
CACHED.misconception(
    "query_kept",
    "The query is kept in place of the key. A query is used once, by its own token: nobody asks for it again.",
)(
    lambda query, key, value, cache=None: (
        cached_attention(query, key, value, cache)[0],
        _joined_cache(query, value, cache),
    )
)
CACHED.misconception(
    "output_kept",
    "The output is kept in place of the value. What later tokens average is the value.",
)(
    _cached(
        kept=lambda query, key, value, cache, output: _joined_cache(key, output, cache),
    )
)
CACHED.misconception(
    "three_results",
    "Three values come back. The contract asks for two: the output, and the pair `(keys, values)`.",
)(lambda *args: (lambda output, cache: (output, *cache))(*cached_attention(*args)))
CACHED.misconception(
    "only_the_output",
    "Only the output comes back. Without the cache there is no next step.",
)(lambda *args: cached_attention(*args)[0])
CACHED.misconception(
    "results_swapped",
    "The cache comes first, then the output. The contract asks for `(output, (keys, values))`.",
)(lambda *args: cached_attention(*args)[::-1])
CACHED.misconception(
    "cache_as_one_tensor",
    "The cache comes back as one tensor. The contract asks for a pair, `(keys, values)`.",
)(_kept(lambda keys, values: torch.stack((keys, values))))
CACHED.misconception(
    "query_axis_dropped",
    "The output has lost the axis of length one: the contract asks for `(B, H, 1, d)`.",
)(lambda *args: (lambda output, cache: (output.squeeze(-2), cache))(*cached_attention(*args)))
CACHED.misconception(
    "squeezed",
    "`squeeze()` takes away every axis of length one, and a batch or a number of heads of one goes with them.",
)(lambda *args: (lambda output, cache: (output.squeeze().unsqueeze(-2), cache))(*cached_attention(*args)))
CACHED.misconception(
    "cache_detached",
    "The values are right, but no gradient reaches the cache: `detach`, `no_grad`, `.data` or a copy through Python "
    "numbers cuts it off.",
)(
    lambda query, key, value, cache=None: cached_attention(
        query, key, value, None if cache is None else tuple(x.detach() for x in cache)
    )
)
CACHED.misconception(
    "cache_never_none",
    "The first step has no cache: None cannot be taken apart.",
)(_cached(join=lambda key, value, cache: (torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2))))


@CACHED.misconception(
    "if_cache",
    "`if keys:` asks a whole tensor for one truth value. What you want to know is whether there is a cache.",
)
def _(query, key, value, cache=None):
    keys, values = cache if cache is not None else (None, None)
    return cached_attention(query, key, value, (keys, values) if keys else None)


@CACHED.misconception(
    "cache_overwritten",
    "The new key and value are written into the old cache. It belongs to the caller, and other hypotheses may go on "
    "from it: the length of the past, and what is in it, should stay.",
)
def _(query, key, value, cache=None):
    if cache is None:
        return cached_attention(query, key, value)
    result = cached_attention(query, key, value, cache)
    cache[0][..., -1:, :] = key
    cache[1][..., -1:, :] = value
    return result


add_cached_slips(CACHED)


def _with_attention(attention):
    """The step whose attention is a wrong one."""
    return _cached(attend=lambda query, key, value: attention(query, key, value)[0])


CACHED.contains(attention_exercise, _with_attention, called="attention")
