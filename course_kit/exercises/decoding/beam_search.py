"""Exercise `beam_search`: metadata, stub and cases."""

import inspect
import itertools
from collections.abc import Callable

from course_kit.beam_trace import beam_trace
from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises._language_model import NextLogProbs
from course_kit.exercises.decoding.random_models import CLEAR_LEAD, random_model
from course_lib.decoding import beam_search

BEAMS = "beam_search: The algorithm"
MOST_DRAWS = 2000  # until a case is found that tells right from wrong
# Without the check of what the model answers, which takes as long as the search.
_search, _traced = inspect.unwrap(beam_search), inspect.unwrap(beam_trace)


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=4,
    minutes=45,
    stub='''\
def beam_search(
    next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0
):
    """List of ids of the best hypothesis, without bos and eos."""
    raise NotImplementedError
''',
    reference=beam_search,
    returns=("ids",),
    read_next=BEAMS,
    forbidden=("course_kit.beam_trace.beam_trace", "course_kit.translator.search.beam"),
    differentiable=False,
)


def _beam_gap(model: NextLogProbs, beam_size: int, penalty: float) -> float:
    """By how much the closest decision of a beam search is clear: at the edge of the beam, and at the end."""
    steps = _traced(model.function(), model.bos_id, model.eos_id, beam_size, model.max_length, penalty)
    gaps = [step[beam_size - 1].log_prob - step[beam_size].log_prob for step in steps if len(step) > beam_size]
    last = steps[-1]
    ended = [c.score for step in steps for c in step if c.survives and (c.finished or step is last)]
    gaps += [a - b for a, b in itertools.pairwise(sorted(ended, reverse=True)[:2])]
    return min(gaps)


def _with_two(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A beam of two, whatever is asked for."""
    return _search(next_log_probs, bos_id, eos_id, 2, max_length, length_penalty)


def _beam_case(
    draw: Draw,
    beam_size: int,
    *,
    vocab: int = 5,
    max_length: int = 4,
    penalty: float | None = None,
    unlike: tuple[str | Callable, ...] = (),
    apart: tuple[str, ...] = (),
    eos: float = 0.3,
    long: bool = False,
    note: str = "",
) -> Case:
    """A case with clear decisions, in which none of the searches `unlike` gives the right answer.

    Args:
        unlike: keys of mistakes, or functions.
        apart: keys of mistakes of which no two give the same answer.
    """
    unlike = [exercise.mistake(wrong).solution if isinstance(wrong, str) else wrong for wrong in unlike]
    apart = [exercise.mistake(wrong).solution for wrong in apart]
    for _ in range(MOST_DRAWS):
        model = random_model(draw, vocab, max_length, eos=eos, long=long)
        args = (model.bos_id, model.eos_id, beam_size, max_length, *(() if penalty is None else (penalty,)))
        if _beam_gap(model, beam_size, penalty or 0.0) <= CLEAR_LEAD:
            continue
        answer = _search(model.function(), *args)
        different = {tuple(search(model.function(), *args)) for search in apart}
        if len(different) == len(apart) and all(search(model.function(), *args) != answer for search in unlike):
            return Case(args=(model, *args), note=note)
    raise AssertionError(f"no case with beam_size {beam_size}, penalty {penalty} and this vocabulary tells {unlike}")


@exercise.holds("Of all candidates of a step together, the beam_size with the highest sums survive", weight=3)
def _(draw):
    table = {(): [0.01, 0.09, 0.5, 0.4], (2,): [0.01, 0.29, 0.4, 0.3], (3,): [0.01, 0.89, 0.06, 0.04]}
    model = NextLogProbs.of(table, [0.01, 0.5, 0.3, 0.19], 0, 1, 3)
    yield Case(args=(model, 0, 1, 2, 3), note="a small model in which greedy search is misled")
    for beam_size, vocab, max_length in ((2, 4, 3), (2, 5, 4), (3, 5, 4), (3, 6, 3)):
        yield _beam_case(draw, beam_size, vocab=vocab, max_length=max_length, unlike=("greedy", "best_of_each"))
    yield _beam_case(draw, 3, unlike=("parents_forgotten",), eos=-0.5)
    yield _beam_case(
        draw, 2, apart=("one_survivor_too_many", "nothing_is_pruned"), vocab=6, max_length=3, penalty=1.0, eos=-0.5
    )
    yield _beam_case(draw, 4, vocab=7, max_length=9, long=True, unlike=("greedy",), note="longer sequences")


@exercise.holds("Survivors that end in eos are set aside; candidates that do not survive are dropped", weight=2)
def _(draw):
    yield _beam_case(draw, 2, vocab=4, max_length=4, unlike=("finished_stay_in_the_beam",), penalty=1.0)
    yield _beam_case(draw, 3, unlike=("filled_up",), penalty=0.8)
    yield _beam_case(draw, 2, unlike=("finished_stay_and_compete_by_score",), penalty=1.0)
    yield _beam_case(draw, 2, unlike=("every_eos_counts",), eos=-0.5)
    yield _beam_case(
        draw,
        2,
        vocab=6,
        unlike=("eos_outside_the_beam",),
        apart=("eos_outside_the_beam", "twice_the_beam_looked_at"),
        eos=-0.5,
    )
    yield _beam_case(draw, 3, unlike=("first_to_finish", "ends_with_a_full_list"), penalty=1.2)
    yield _beam_case(
        draw,
        3,
        unlike=("stops_when_no_open_one_is_ahead",),
        apart=("stops_when_no_open_one_is_ahead", "stops_when_the_best_has_ended"),
        penalty=0.6,
    )
    yield _beam_case(draw, 2, unlike=("beam_shrinks",), penalty=1.0)
    yield _beam_case(draw, 3, unlike=("beam_shrinks",), penalty=1.0)
    yield _beam_case(draw, 2, apart=("beam_shrinks", "finished_stay_in_the_beam"), vocab=4, max_length=5, penalty=1.0)


@exercise.holds("The winner has the highest sum divided by n to the length_penalty, with eos counted in n", weight=2)
def _(draw):
    yield _beam_case(draw, 2, vocab=4, max_length=3, penalty=1.0, unlike=("penalty_ignored", "greedy"))
    for penalty in (0.5, 1.0, 2.0):
        unlike = ("penalty_ignored",) if penalty < 2 else ("penalty_ignored", "always_a_mean")
        yield _beam_case(draw, 3, penalty=penalty, unlike=unlike, note=f"length_penalty {penalty}")
    yield _beam_case(draw, 3, penalty=0.5, unlike=("always_a_mean",), note="length_penalty 0.5")
    yield _beam_case(draw, 3, penalty=0.7, unlike=("eos_not_counted",))
    yield _beam_case(draw, 4, penalty=1.0, unlike=("eos_not_counted",))
    yield _beam_case(draw, 3, penalty=0.6, unlike=("other_formula", "penalty_ignored"))
    yield _beam_case(
        draw, 3, penalty=1.0, unlike=("products_penalised",), apart=("products_penalised", "penalty_ignored")
    )
    yield _beam_case(draw, 3, vocab=6, penalty=0.3, apart=("penalty_multiplied", "penalty_subtracted"), eos=-0.5)
    for wrong in ("other_formula", "bos_counted", "open_ones_counted_longer", "reward_added", "penalty_added_to_n"):
        yield _beam_case(draw, 3, penalty=0.9, unlike=(wrong,))
    yield _beam_case(
        draw,
        3,
        penalty=0.7,
        unlike=("survivors_renormalised",),
        apart=("survivors_renormalised", "mean_before_the_penalty"),
    )


@exercise.holds("Sequences without eos after max_length tokens compete as they are")
def _(draw):
    yield _beam_case(draw, 2, vocab=4, max_length=2, unlike=("open_ones_lost",), note="the winner has not ended")
    yield _beam_case(draw, 3, penalty=1.0, max_length=3, unlike=("open_ones_lost",), note="the winner has not ended")
    yield _beam_case(draw, 3, max_length=3, unlike=("finished_ones_lost",), note="the winner ended early", eos=1.0)
    ended = "all have ended before max_length"
    yield _beam_case(draw, 2, vocab=4, max_length=4, unlike=("extended_ones_compete",), note=ended, eos=2.0)
    yield _beam_case(draw, 2, vocab=4, max_length=5, eos=-6.0, note="none has ended")
    for wrong in ("open_ones_counted_longer", "open_ones_not_penalised"):
        yield _beam_case(draw, 3, penalty=0.8, max_length=3, unlike=(wrong,))
    yield _beam_case(draw, 2, max_length=1, unlike=("open_ones_lost",), note="one token")


@exercise.holds("With beam_size 1 it is greedy search")
def _(draw):
    for penalty in (None, 1.0):
        yield _beam_case(draw, 1, penalty=penalty, unlike=(_with_two,), note="beam_size 1", eos=-0.5)
    yield _beam_case(draw, 1, vocab=6, max_length=10, long=True, unlike=(_with_two,), eos=-1.0, note="beam_size 1")
    yield _beam_case(draw, 1, penalty=0.7, vocab=4, eos=-0.5, unlike=(_with_two,), note="beam_size 1")


@exercise.holds("A beam wider than the vocabulary works, up to the number of possible sequences")
def _(draw):
    table = {
        (): [0.01, 0.09, 0.45, 0.45],
        (2,): [0.01, 0.32, 0.34, 0.33],
        (3,): [0.01, 0.35, 0.34, 0.3],
        (3, 3): [0.01, 0.97, 0.01, 0.01],
    }
    model = NextLogProbs.of(table, [0.01, 0.35, 0.33, 0.31], 0, 1, 3)
    yield Case(args=(model, 0, 1, 8, 3, 1.0), note="beam_size 8, 4 tokens in the vocabulary, to be read by eye")
    for beam_size, penalty in ((9, 0.5), (300, 1.0), (300, 1.4)):
        note = f"beam_size {beam_size}, 5 tokens in the vocabulary"
        yield _beam_case(draw, beam_size, penalty=penalty, unlike=(_with_two,), note=note)
