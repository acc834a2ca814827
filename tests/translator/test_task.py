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
from course_kit.workshop.tasks import Task
from course_kit.workshop.train_on import train_on

PAIRS = {"train": [("ab", "b"), ("a b", "a"), ("b", "ab a")] * 7, "val": [("ba", "a b"), ("a", "b")]}


@pytest.fixture(scope="module")
def tiny():
    corpus = ParallelCorpus(
        name="letters",
        source_language="x",
        target_language="y",
        licence="ours",
        splits=("train", "val"),
        read=PAIRS.get,
    )
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


def model_for(vocabulary, **options):
    sizes = {"vocab_size": len(vocabulary), "d_model": 24, "num_heads": 2, "num_layers": 1, "d_ff": 40, "dropout": 0.0}
    return Transformer(TransformerConfig(**sizes | options))


def test_a_batch_by_hand(tiny):
    corpus, vocabulary = tiny
    task = TranslationTask(corpus, vocabulary)
    a, b, space = (vocabulary.encode(text)[-1] for text in ("xa", "xb", " "))
    batch = task.pairs([("b", "ab"), ("a", "b")])
    long_ab = vocabulary.encode("ab")
    assert batch.source.tolist() == [[*vocabulary.encode("b"), 2], [*vocabulary.encode("a"), 2]]
    assert batch.inputs[0, : len(long_ab) + 1].tolist() == [1, *long_ab]
    assert batch.labels[0, : len(long_ab) + 1].tolist() == [*long_ab, 2]
    assert batch.inputs.shape == batch.labels.shape
    assert len({a, b, space}) == 3


def test_every_pair_comes_once_an_epoch_and_no_batch_is_too_large(captions):
    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary, max_tokens=256)
    batches = list(task.epoch(0, seed=0))
    expected = Counter(((*s, 2), (*t, 2)) for s, t in task.encoded("train"))
    assert rows(batches) == expected
    assert all(b.source.numel() <= 256 and b.inputs.numel() <= 256 for b in batches)
    assert len(batches) > 20


def test_the_order_follows_from_seed_and_epoch(captions):
    task = TranslationTask(*captions, max_tokens=256, bpe_dropout=0.1)

    def drawn(epoch, seed):
        return [batch.source.tolist() for batch in task.epoch(epoch, seed=seed)]

    assert drawn(0, 5) == drawn(0, 5)
    assert drawn(0, 5) != drawn(1, 5)
    assert drawn(0, 5) != drawn(0, 6)


def test_batches_come_in_another_order_in_each_epoch_never_from_short_to_long(captions):
    task = TranslationTask(*captions, max_tokens=256)
    orders = [[batch.source.shape[1] for batch in task.epoch(number, seed=0)] for number in range(3)]
    assert len({str(order) for order in orders}) == 3
    for order in orders:
        rises = sum(one < other for one, other in pairwise(order))
        falls = sum(one > other for one, other in pairwise(order))
        assert min(rises, falls) > len(order) / 4


def test_which_sentences_share_a_batch_differs_in_each_epoch(captions):
    task = TranslationTask(*captions, max_tokens=256)
    one, other = ({frozenset(map(str, b.source.tolist())) for b in task.epoch(number, seed=0)} for number in (0, 1))
    assert len(one & other) < 0.7 * len(one)  # long sentences have few others of their length


def test_sorting_saves_padding(captions):
    """Against batches of the corpus's own order."""
    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary, max_tokens=256)
    share = task.figures("train").padding_share
    batches = [task.pairs(corpus["train"][i : i + 12]) for i in range(0, 500, 12)]
    tensors = [tensor for batch in batches for tensor in (batch.source, batch.inputs)]
    unsorted = sum(int((t == 0).sum()) for t in tensors) / sum(t.numel() for t in tensors)
    assert share < 0.5 * unsorted


def test_the_figures_are_counted(tiny):
    figures = TranslationTask(*tiny).figures("val")
    encoded = TranslationTask(*tiny).encoded("val")
    assert figures.sentences == 2
    assert figures.source_tokens == sum(len(s) for s, _ in encoded)
    assert figures.longest_target == max(len(t) for _, t in encoded)
    # One batch of both, eos or bos included.
    longest = [max(len(pair[i]) for pair in encoded) + 1 for i in (0, 1)]
    padding = sum(2 * longest[i] - sum(len(pair[i]) + 1 for pair in encoded) for i in (0, 1))
    assert figures.padding_share == pytest.approx(padding / (2 * sum(longest)))
    assert "2 pairs" in str(figures)


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
    assert figures.padding_share == pytest.approx(sum(padding) / sum(entries))
    assert (figures.source_tokens, figures.target_tokens) == tuple(sum(side) - 3 for side in lengths)
    assert (figures.longest_source, figures.longest_target) == tuple(max(side) - 1 for side in lengths)
    assert figures.unknown_share == pytest.approx(1 / (sum(map(sum, lengths)) - 6))  # the z


def test_long_pairs_are_left_out_of_training_only(tiny):
    longest = max(len(side) for pair in TranslationTask(*tiny).encoded("train") for side in pair)
    task = TranslationTask(*tiny, max_length=longest - 1)
    assert all(batch.source.shape[1] <= longest for batch in task.epoch(0, seed=0))
    assert 0 < sum(len(b.source) for b in task.epoch(0, seed=0)) < 21
    assert len(task.encoded("train")) == 21


def test_a_pair_of_just_the_limit_is_trained_on(captions):
    """On either side, its end not counted."""
    limit = 20
    task = TranslationTask(*captions, max_length=limit)
    kept = [(s, t) for s, t in task.encoded("train") if len(s) <= limit and len(t) <= limit]
    assert {max(len(s), len(t)) for s, t in task.encoded("train")} >= {limit, limit + 1}
    assert rows(task.epoch(0, seed=0)) == Counter(((*s, 2), (*t, 2)) for s, t in kept)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_loss_is_the_same_off_the_cpu(captions, device):
    """There another function computes it; these tensors only say that they lie there."""

    class Elsewhere(torch.Tensor):
        device = property(lambda self: torch.device(device))

    corpus, vocabulary = captions
    task, model = TranslationTask(corpus, vocabulary, label_smoothing=0.3), model_for(vocabulary)
    batch = task.pairs(corpus["train"][:7])
    logits = model(batch.source, batch.inputs).detach()

    class Answers(torch.nn.Module):
        def forward(self, source, inputs):
            return logits.as_subclass(Elsewhere)

    expected = F.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=vocabulary.pad_id, label_smoothing=0.3
    )
    torch.testing.assert_close(task.loss(Answers(), batch).as_subclass(torch.Tensor), expected)


def test_the_loss_is_cross_entropy_without_padding(captions):
    corpus, vocabulary = captions
    task, model = TranslationTask(corpus, vocabulary, label_smoothing=0.1), model_for(vocabulary)
    batch = task.pairs(corpus["train"][:7])
    logits = model(batch.source, batch.inputs)
    expected = F.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=vocabulary.pad_id, label_smoothing=0.1
    )
    torch.testing.assert_close(task.loss(model, batch), expected)


def test_it_is_a_task_like_the_small_ones(captions):
    """`train_on` learns it a little, with the very methods that it calls for reversal."""
    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary)
    assert isinstance(task, Task)
    result = train_on(
        model_for(vocabulary), task, steps=60, batch_size=16, num_fresh=20, evaluate_every=60, show_progress=False
    )
    assert sum(result.losses[-5:]) < 0.9 * sum(result.losses[:5])
    assert "did not reach 50 %" in repr(result)


def test_the_fingerprint_is_that_of_the_training_pairs_as_tokens(tiny):
    """A resumed run must find the same: neither another pair, nor another order, nor another vocabulary."""
    corpus, vocabulary = tiny

    def fingerprint(vocabulary=vocabulary, **changed):
        other = dataclasses.replace(corpus, read=(PAIRS | changed).get)
        return TranslationTask(other, vocabulary).fingerprint()

    first = fingerprint()
    assert fingerprint() == first
    assert fingerprint(val=PAIRS["val"][:1]) == first
    assert fingerprint(train=PAIRS["train"][:-1]) != first
    assert fingerprint(train=PAIRS["train"][::-1]) != first
    assert fingerprint(train=[(target, source) for source, target in PAIRS["train"]]) != first
    assert fingerprint(Vocabulary.learn(corpus.sentences("train"), 8)) != first


def test_held_out_pairs_are_those_of_val(tiny):
    corpus, vocabulary = tiny
    task = TranslationTask(corpus, vocabulary)
    assert torch.equal(task.held_out(2).source, task.pairs(corpus["val"]).source)
    assert torch.equal(task.held_out(1, 1).source, task.pairs(corpus["val"][1:]).source)


def test_held_out_batches_of_different_numbers_share_no_pair(captions):
    """Until all of "val" has been read; then it begins again."""
    corpus, vocabulary = captions
    task = TranslationTask(corpus, vocabulary)
    pairs = list(corpus["val"])  # 60 of them
    for number, place in enumerate((0, 25, 50, 15)):
        expected = task.pairs((pairs + pairs)[place : place + 25])
        for ours, theirs in zip(task.held_out(25, number), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_a_model_that_does_not_fit_is_named(tiny):
    task = TranslationTask(*tiny)
    with pytest.raises(TypeError, match="letters x→y needs an encoder–decoder"):
        task.check_model(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="must have a vocab_size of 9"):
        task.check_model(Transformer(TransformerConfig(vocab_size=11, d_model=8, num_heads=2, num_layers=1, d_ff=8)))


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
