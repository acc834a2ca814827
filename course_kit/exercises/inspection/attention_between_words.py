"""Exercise `attention_between_words`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.inspection import attention_between_words

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=20,
    stub='''\
def attention_between_words(weights, query_words, key_words):
    """Attention between words: (..., L_q, L_k) to (..., query words, key words)."""
    raise NotImplementedError
''',
    reference=attention_between_words,
    shapes={"weights": "... len_q len_k", "query_words": "len_q", "key_words": "len_k"},
    returns=("between",),
    read_next="inspection: Sub-word pieces and words",
    single_sign_args=("weights",),
)


def _words(draw: Draw, pieces: int, words: int) -> torch.Tensor:
    """Numbers of words for this many pieces: all in order, at least one word split."""
    numbers = torch.arange(pieces) % words
    numbers[words:] = draw.integers(pieces - words, low=0, high=words - 1)
    return numbers.sort().values


def _split_sentences(draw: Draw, *batch: int, dtype: torch.dtype = torch.float32) -> tuple:
    len_q, len_k = draw.sizes(2, 5, 9, but=batch)
    words_q, words_k = draw.sizes(2, 2, 4)
    return draw.weights(*batch, len_q, len_k, dtype=dtype), _words(draw, len_q, words_q), _words(draw, len_k, words_k)


@exercise.holds("Weights to the pieces of a word are added, weights from its pieces averaged", weight=3)
def _(draw):
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    yield Case(
        args=(weights, torch.tensor([0, 0]), torch.tensor([0, 1, 1])), degenerate_because="to be worked out by hand"
    )
    for dtype in (torch.float32, torch.float64, torch.float32):
        yield Case(args=_split_sentences(draw, dtype=dtype))
    rows, columns = torch.tensor([0, 0, 0, 1, 2]), torch.tensor([0, 1, 2, 2, 3, 3, 3])
    yield Case(args=(draw.weights(5, 7), rows, columns), note="words of one, two and three pieces")


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float32, torch.float64):
            yield Case(args=_split_sentences(draw, *batch, dtype=dtype), note=f"batch dimensions: {len(batch)}")
    weights, *words = _split_sentences(draw, 2, 1, 3)
    yield Case(args=(weights, *words), note="batch dimensions: 3", degenerate_because="some are short")
    weights, *words = _split_sentences(draw, 1)
    yield Case(args=(weights, *words), note="a batch of one", degenerate_because="a batch of one")
    weights, *words = _split_sentences(draw, 3)
    yield Case(args=(weights.mT.contiguous().mT, *words), note="transposed in memory")


@exercise.holds("Tokens with the number −1 are left out wherever they are, and the weight on them is dropped", weight=2)
def _(draw):
    both = torch.tensor([-1, 0, 1, 1, -1]), torch.tensor([-1, 0, 0, 1, 2, 2, -1])
    yield Case(args=(draw.weights(3, 5, 7), *both), note="left out at both ends")
    pair = torch.tensor([-1, 0, 0, 1, -1, 2, -1]), torch.tensor([-1, 0, -1, 1, 1, 2, 3, -1])
    yield Case(args=(draw.weights(7, 8, dtype=torch.float64), *pair), note="left out in the middle as well")
    only = _words(draw, 5, 3), torch.tensor([-1, 0, 0, 1, 2, -1, -1])
    yield Case(args=(draw.weights(5, 7), *only), note="left out among the keys only")
    only = torch.tensor([-1, 0, 0, 1, -1]), _words(draw, 7, 3)
    yield Case(args=(draw.weights(5, 7), *only), note="left out among the queries only")


@exercise.holds("It works for words of one piece, for a single word, and in self-attention")
def _(draw):
    words, others = torch.tensor([0, 0, 1, 1, 1, 2]), torch.tensor([0, 1, 1, 2, 2, 2])
    yield Case(args=(draw.weights(3, 5, 7), torch.arange(5), torch.arange(7)), note="one piece per word")
    yield Case(args=(draw.weights(5, 7), torch.zeros(5).long(), _words(draw, 7, 4)), note="one query word")
    yield Case(
        args=(draw.weights(4, 6), torch.tensor([0, 0, 1, 2]), torch.tensor([-1, 0, 0, 0, 0, -1])), note="one key word"
    )
    for rows, columns in ((words, words), (words, others), (others, _words(draw, 6, 4))):
        yield Case(
            args=(draw.weights(6, 6), rows, columns), note="as many queries as keys", degenerate_because="equal lengths"
        )
    yield Case(
        args=(torch.tensor([[1.0]]), torch.tensor([0]), torch.tensor([0])),
        note="one token",
        degenerate_because="one token",
    )
