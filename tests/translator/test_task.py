"""Translation as a task: batches of about equal work, in an order that follows from the seed."""

import dataclasses
from collections import Counter
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from course_kit.data import Vocabulary, built_in_corpus
from course_kit.data.corpus import ParallelCorpus
from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator import TranslationTask
from course_kit.translator.slices import padded, slices
from course_kit.workshop.tasks import Task
from course_kit.workshop.train_on import train_on

PAIRS = {"train": [("ab", "b"), ("a b", "a"), ("b", "ab a")] * 7, "val": [("ba", "a b"), ("a", "b")]}
LANGUAGES = {"source_language": "x", "target_language": "y", "licence": "ours", "splits": ("train", "val")}


@pytest.fixture(scope="module")
def tiny():
    corpus = ParallelCorpus(name="letters", read=PAIRS.get, **LANGUAGES)
    return corpus, Vocabulary.learn(corpus.sentences("train"), 9)


@pytest.fixture(scope="module")
def captions():
    corpus = built_in_corpus(num_train=500, num_held_out=60)
    return corpus, Vocabulary.learn(corpus.sentences("train"), 300)


def rows(batches):
    return Counter(
        (tuple(s[s != 0].tolist()), tuple(t[t != 0].tolist()))
        for batch in batches
        for s, t in zip(batch.source, batch.labels, strict=True)
    )


def model_for(vocabulary):
    sizes = {"vocab_size": len(vocabulary), "d_model": 24, "num_heads": 2, "num_layers": 1, "d_ff": 40, "dropout": 0.0}
    return Transformer(TransformerConfig(**sizes))


# Batches


def test_a_batch_by_hand(tiny):
    corpus, vocabulary = tiny
    batch = TranslationTask(corpus, vocabulary).pairs([("b", "ab"), ("a", "b")])
    (a, b), (long, short) = ([vocabulary.encode(text) for text in texts] for texts in (("a", "b"), ("ab", "b")))
    pad = [0] * (len(long) - len(short))
    assert batch.source.tolist() == [[*b, 2], [*a, 2]]
    assert batch.inputs.tolist() == [[1, *long], [1, *short, *pad]]
    assert batch.labels.tolist() == [[*long, 2], [*short, 2, *pad]]


def test_every_pair_comes_once_an_epoch_and_no_batch_is_too_large(captions):
    task = TranslationTask(*captions, max_tokens=256)
    batches = list(task.epoch(0, seed=0))
    assert rows(batches) == Counter(((*s, 2), (*t, 2)) for s, t in task.encoded("train"))
    assert all(b.source.numel() <= 256 and b.inputs.numel() <= 256 for b in batches)
    assert len(batches) > 20


def test_epochs_differ_in_order_and_company_and_never_go_from_short_to_long(captions):
    """All of it follows from seed and epoch."""
    task = TranslationTask(*captions, max_tokens=256, bpe_dropout=0.1)

    def drawn(epoch, seed=5):
        return [batch.source.tolist() for batch in task.epoch(epoch, seed=seed)]

    epochs = [drawn(number) for number in range(3)]
    assert drawn(0) == epochs[0] != drawn(0, seed=6)
    orders = [[len(batch[0]) for batch in batches] for batches in epochs]
    assert len({str(order) for order in orders}) == 3
    for order in orders:
        steps = [other - one for one, other in pairwise(order)]
        assert min(sum(step > 0 for step in steps), sum(step < 0 for step in steps)) > len(order) / 4


def test_which_sentences_share_a_batch_differs_in_each_epoch(captions):
    task = TranslationTask(*captions, max_tokens=256)
    one, other = ({frozenset(map(str, b.source.tolist())) for b in task.epoch(number, seed=0)} for number in (0, 1))
    assert len(one & other) < 0.7 * len(one)  # long sentences have few others of their length


def test_long_pairs_are_left_out_of_training_only(captions):
    """The limit holds for either side, its end not counted."""
    limit = 20
    task = TranslationTask(*captions, max_length=limit)
    kept = [(s, t) for s, t in task.encoded("train") if len(s) <= limit and len(t) <= limit]
    assert {max(len(s), len(t)) for s, t in task.encoded("train")} >= {limit, limit + 1}
    assert rows(task.epoch(0, seed=0)) == Counter(((*s, 2), (*t, 2)) for s, t in kept)
    assert rows(task.split("train")) == Counter(((*s, 2), (*t, 2)) for s, t in task.encoded("train"))


def test_held_out_batches_of_different_numbers_share_no_pair(captions):
    """Until all of "val" has been read; then it begins again."""
    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary)
    pairs = list(corpus["val"])  # 60 of them
    for size, number, place in ((25, 0, 0), (25, 1, 25), (25, 2, 50), (25, 3, 15), (500, 0, 0)):
        expected = task.pairs((pairs + pairs)[place : place + min(size, 60)])
        for ours, theirs in zip(task.held_out(size, number), expected, strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([1, 2, 3, 3], [[0, 1], [2, 3]]),  # a third row would be padded to 3: nine tokens
        ([2, 2, 2, 2], [[0, 1, 2], [3]]),
        ([3, 3, 5, 2, 2], [[0, 1], [2], [3, 4]]),  # the 5 begins a slice, and no other row fits beside it
        ([9, 1], [[0], [1]]),  # one that is too long gets a slice of its own
        ([], []),
    ],
)
def test_slices_of_six_tokens_by_hand(lengths, expected):
    assert list(slices(list(range(len(lengths))), lengths.__getitem__, 6)) == expected


def test_rows_are_padded_at_the_end():
    assert padded([[3, 4], [5]], 1, torch.device("cpu")).tolist() == [[3, 4], [5, 1]]


# Figures


def test_the_figures_count_source_and_target(tiny):
    """The sources are of different lengths, the targets of one: nearly all of the padding is on one side."""
    corpus, vocabulary = tiny
    pairs = [("a", "b"), ("ab ab ab a", "a"), ("az", "b")]
    task = TranslationTask(dataclasses.replace(corpus, read={**PAIRS, "val": pairs}.get), vocabulary)
    sides = [[vocabulary.encode(text) for text in texts] for texts in zip(*pairs, strict=True)]
    lengths = [[len(ids) + 1 for ids in side] for side in sides]  # with eos, or bos
    entries = [3 * max(side) for side in lengths]
    padding = [entry - sum(side) for entry, side in zip(entries, lengths, strict=True)]
    assert padding[0] > 5 * padding[1]
    figures = task.figures("val")
    assert figures.sentences == 3
    assert figures.padding_share == pytest.approx(sum(padding) / sum(entries))
    assert (figures.source_tokens, figures.target_tokens) == tuple(sum(side) - 3 for side in lengths)
    assert (figures.longest_source, figures.longest_target) == tuple(max(side) - 1 for side in lengths)
    assert figures.unknown_share == pytest.approx(1 / (sum(map(sum, lengths)) - 6))  # the z
    assert f"3 pairs, {figures.source_tokens / 3:.1f} and {figures.target_tokens / 3:.1f} tokens" in str(figures)


def test_sorting_saves_padding(captions):
    """Against batches of the corpus's own order."""
    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary, max_tokens=256)
    batches = [task.pairs(corpus["train"][i : i + 12]) for i in range(0, 500, 12)]
    tensors = [tensor for batch in batches for tensor in (batch.source, batch.inputs)]
    unsorted = sum(int((t == 0).sum()) for t in tensors) / sum(t.numel() for t in tensors)
    assert task.figures("train").padding_share < 0.5 * unsorted


# Loss and model


@pytest.mark.parametrize("device", ["", "cpu", "cuda"])
def test_the_loss_is_cross_entropy_without_padding_on_every_device(captions, device):
    """Off the CPU another function computes it; these tensors only say that they lie there."""

    class Elsewhere(torch.Tensor):
        device = property(lambda self: torch.device(device))

    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary, label_smoothing=0.3)
    batch = task.pairs(corpus["train"][:7])
    logits = model_for(vocabulary)(batch.source, batch.inputs).detach()
    model = torch.nn.Identity()
    model.forward = lambda *_: logits.as_subclass(Elsewhere) if device else logits
    expected = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=0, label_smoothing=0.3)
    torch.testing.assert_close(task.loss(model, batch).as_subclass(torch.Tensor), expected)


def test_it_is_a_task_like_the_small_ones(captions):
    """`train_on` learns it a little, with the very methods that it calls for reversal."""
    task = TranslationTask(*captions)
    assert isinstance(task, Task)
    model, options = model_for(captions[1]), {"batch_size": 16, "num_fresh": 20, "evaluate_every": 60}
    result = train_on(model, task, steps=60, **options, show_progress=False)
    assert sum(result.losses[-5:]) < 0.9 * sum(result.losses[:5])
    assert "did not reach 50 %" in repr(result)


def test_a_model_that_does_not_fit_is_named(tiny):
    task = TranslationTask(*tiny)
    with pytest.raises(TypeError, match="letters x→y needs an encoder–decoder"):
        task.check_model(torch.nn.Linear(2, 2))
    for sizes, message in (
        ({"vocab_size": 11}, "must have a vocab_size of 9, .* got 11"),
        ({"vocab_size": 9, "target_vocab_size": 7}, "must have a target_vocab_size of 9, .* got 7"),
    ):
        with pytest.raises(ValueError, match=message):
            task.check_model(Transformer(TransformerConfig(**sizes, d_model=8, num_heads=2, num_layers=1, d_ff=8)))


def test_the_fingerprint_is_that_of_the_training_pairs_as_tokens(tiny):
    """A resumed run must find the same: neither another pair, nor another order, nor another vocabulary."""
    corpus, vocabulary = tiny

    def fingerprint(vocabulary=vocabulary, **changed):
        other = dataclasses.replace(corpus, read=(PAIRS | changed).get)
        return TranslationTask(other, vocabulary).fingerprint()

    first, train = fingerprint(), PAIRS["train"]
    assert fingerprint(val=PAIRS["val"][:1]) == first
    for other in (train[:-1], train[::-1], [(target, source) for source, target in train]):
        assert fingerprint(train=other) != first
    assert fingerprint(Vocabulary.learn(corpus.sentences("train"), 8)) != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_smoothing": 1.0}, "label_smoothing must lie in"),
        ({"bpe_dropout": 1.5}, "bpe_dropout must lie in"),
        ({"max_tokens": 50}, "a batch must hold the longest sentence and its eos, max_length . 1 = 101 tokens, got"),
    ],
)
def test_wrong_options_are_refused(tiny, options, message):
    with pytest.raises(ValueError, match=message):
        TranslationTask(*tiny, **options)


def test_the_built_in_corpus_has_no_sentence_twice(captions):
    corpus, _ = captions
    german = [source for split in corpus.splits for source, _ in corpus[split]]
    assert len(set(german)) == len(german) == 620
    assert corpus["train"] is corpus["train"]  # read once
