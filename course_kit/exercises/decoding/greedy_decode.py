"""Exercise `greedy_decode`: metadata, stub and cases."""

from collections.abc import Callable

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises._headings import GREEDY_DECODING
from course_kit.exercises._language_model import NextLogProbs
from course_kit.exercises.decoding.random_models import CLEAR_LEAD, random_model
from course_lib.decoding import greedy_decode


def _arguments(model: NextLogProbs, *between) -> tuple:
    return (model, model.bos_id, model.eos_id, *between[:-1], model.max_length, *between[-1:])


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    """List of generated ids, without bos and eos; each is the most probable one."""
    raise NotImplementedError
''',
    reference=greedy_decode,
    returns=("ids",),
    read_next=GREEDY_DECODING,
    forbidden=("course_lib.beam_search", "course_kit.beam_trace.beam_trace", "course_kit.translator.search.greedy"),
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
        model = random_model(draw, vocab, max_length, **options)
        answer = greedy_decode(model.function(), model.bos_id, model.eos_id, max_length)
        if wanted(len(answer)) and _greedy_gap(model) > CLEAR_LEAD:
            return Case(args=(model, model.bos_id, model.eos_id, max_length), note=note)


@exercise.holds("Each token is the most probable one after all tokens before it", weight=3)
def _(draw):
    table = {(): [0.01, 0.1, 0.59, 0.3], (2,): [0.01, 0.2, 0.24, 0.55], (2, 3): [0.01, 0.7, 0.2, 0.09]}
    model = NextLogProbs.of(table, [0.01, 0.29, 0.3, 0.4], 0, 1, 3)
    yield Case(args=_arguments(model, *())[:4], note="a small model, to be read by eye")
    for vocab, max_length in ((4, 4), (5, 4), (6, 3)):
        yield _greedy_case(draw, lambda n: n >= 2, vocab, max_length)
    yield _greedy_case(draw, lambda n: n >= 4, 7, 9, long=True, note="a longer sequence")


@exercise.holds("It stops at eos; neither eos nor bos is in the result")
def _(draw):
    yield _greedy_case(draw, lambda n: n == 0, 4, 3, eos=1.0, note="the first token is eos")
    for length in (1, 2):
        yield _greedy_case(
            draw, lambda n, length=length: n == length, 5, 4, note=f"eos after {length} token{'s' * (length > 1)}"
        )
    yield _greedy_case(draw, lambda n: 3 <= n < 10, 6, 12, long=True, note="eos long before max_length")


@exercise.holds("It stops after max_length tokens, with or without eos")
def _(draw):
    for max_length in (1, 3):
        note = f"eos does not come within {max_length} token{'s' * (max_length > 1)}"
        yield _greedy_case(draw, lambda n, longest=max_length: n == longest, 4, max_length, eos=-3.0, note=note)
    yield _greedy_case(draw, lambda n: n == 11, 6, 11, eos=-4.0, long=True, note="eos does not come within 11 tokens")
