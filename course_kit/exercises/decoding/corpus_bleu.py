"""Exercise `corpus_bleu`: metadata, stub and cases."""

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.decoding import corpus_bleu

SCORING = "bleu: Four ideas"


exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=(
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
    difficulty=3,
    minutes=30,
    stub='''\
def corpus_bleu(hypotheses, references):
    """BLEU-4 of a corpus, 0 to 100: lists of token lists, one reference each."""
    raise NotImplementedError
''',
    reference=corpus_bleu,
    returns=("bleu",),
    read_next=SCORING,
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


def lengths_of(hypotheses, references):
    return sum(map(len, hypotheses)), sum(map(len, references))


def _as_long(hypotheses, references):
    h, r = lengths_of(hypotheses, references)
    return h == r and [*map(len, hypotheses)] != [*map(len, references)]


def _shorter(hypotheses, references):
    h, r = lengths_of(hypotheses, references)
    return h < r


def _longer(hypotheses, references):
    h, r = lengths_of(hypotheses, references)
    return h > r


def _clipped(hypotheses, references):
    return (
        abs(exercise.mistake("not_clipped").solution(hypotheses, references) - corpus_bleu(hypotheses, references)) > 1
    )


@exercise.holds("It is the geometric mean of four precisions, times 100", weight=2)
def _(draw):
    reference = ["the", "old", "dog", "sees", "the", "cat"]
    yield Case(args=([["the", "old", "dog", "sees", "a", "cat"]], [reference]), note="one sentence, one word exchanged")
    for sentences in (1, 2, 4):
        test = _as_long if sentences > 1 else lambda h, r: len(h[0]) == len(r[0])
        yield Case(args=_corpus(draw, sentences, test=test))


@exercise.holds("An n-gram matches at most as often as it occurs in its own reference", weight=2)
def _(draw):
    reference = ["a", "dog", "sees", "the", "old", "cat"]
    yield Case(args=([[*reference, "the", "the"]], [reference]), note="one word too often")
    hypothesis, reference = ["a", "bc", "d", "e", "f", "g"], ["ab", "c", "d", "e", "f", "g"]
    yield Case(args=([hypothesis], [reference]), note="other words, but the same letters")
    for sentences in (2, 3):
        yield Case(args=_corpus(draw, sentences, test=lambda h, r: _clipped(h, r) and _longer(h, r)))
    hypothesis, reference = ["the", "old", "dog", "sees", "a", "Cat"], ["The", "old", "dog", "sees", "a", "cat"]
    yield Case(args=([hypothesis], [reference]), note="other tokens, but only in capitals")


@exercise.holds("Counts are summed over the whole corpus before anything is divided", weight=2)
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


@exercise.holds("Too few tokens incur the brevity penalty; too many incur no further penalty")
def _(draw):
    reference = ["a", "dog", "sees", "the", "old", "cat", "and", "runs", "home"]
    yield Case(args=([reference[:4]], [reference]), note="right as far as it goes, less than half as long")
    for sentences in (2, 4):
        yield Case(args=_corpus(draw, sentences, test=_shorter), note="shorter than the references")
        yield Case(args=_corpus(draw, sentences, test=_longer), note="longer than the references")
    hypotheses, references = _corpus(draw, 3, test=lambda h, r: corpus_bleu([[], *h[1:]], r) > 1)
    hypotheses[0] = []
    yield Case(args=(hypotheses, references), note="an empty hypothesis")


@exercise.holds("It is 0.0 where no n-gram of some order matches, and 100 for the references themselves")
def _(draw):
    reference = _sentence(draw, 6)
    yield Case(args=([["a", "b", "c", "d", "e"]], [["a", "b", "c", "e", "d"]]), note="no four words match")
    yield Case(args=([["w", "x", "y", "z"]], [reference]), note="nothing matches")
    yield Case(args=([["a", "dog"]], [["a", "dog"]]), note="there is no 4-gram")
    yield Case(args=([[]], [reference]), note="nothing was written")
    yield Case(args=([reference], [list(reference)]), note="the reference itself")
