"""translator.alignments: the alignment error rate by hand, against F1, and on captions of known alignment."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from course_kit.data.grammar import aligned_captions
from course_kit.translator.alignments import alignment_counts, alignment_error_rate, attention_alignment


def test_alignment_error_rate_by_hand():
    # Found 3 links: one sure, one possible, one wrong. 2 sure links in all.
    # |A ∩ S| = 1, |A ∩ P| = 2: 1 − (1 + 2) / (3 + 2) = 0.4.
    counts = alignment_counts({(0, 0), (1, 2), (2, 2)}, sure={(0, 0), (1, 1)}, possible={(1, 2)})
    assert counts.tolist() == [1, 2, 3, 2]
    assert_close(alignment_error_rate(counts), torch.tensor(0.4))


def test_sure_links_are_possible_and_count_once_however_often_they_are_given():
    links = [(0, 0), (1, 1), (0, 0)]
    for possible in (None, {(0, 1)}, {(0, 0), (0, 1), (1, 1)}):
        assert alignment_counts(links, links, possible).tolist() == [2, 2, 2, 2]


def test_without_possible_links_the_rate_is_1_minus_f1_of_all_sentences_together():
    sentences = [({(0, 0), (1, 1), (2, 0)}, {(0, 0), (1, 2)}), ({(0, 1)}, {(0, 1), (1, 0), (1, 1)}), (set(), {(0, 0)})]
    counts = torch.stack([alignment_counts(found, sure) for found, sure in sentences])
    right = sum(len(found & sure) for found, sure in sentences)
    precision, recall = right / sum(len(found) for found, _ in sentences), right / sum(len(s) for _, s in sentences)
    assert_close(alignment_error_rate(counts), torch.tensor(1 - 2 * precision * recall / (precision + recall)))
    assert alignment_error_rate(counts[None]) == alignment_error_rate(counts)


def test_each_target_word_is_aligned_with_its_largest_weight():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]])
    assert attention_alignment(weights) == {(2, 0), (0, 1)}  # (source word, target word)


def test_the_known_alignment_of_a_caption_has_no_errors_and_a_shifted_one_many():
    captions = aligned_captions(37, seed=3)
    for shift, low, high in ((0, 0.0, 0.0), (1, 0.7, 1.0)):
        found = [([(i, j + shift) for i, j in c.alignment], c.alignment) for c in captions]
        assert low <= alignment_error_rate(torch.stack([alignment_counts(*pair) for pair in found])) <= high


def test_only_predicted_or_only_sure_links_are_all_wrong_and_none_at_all_an_error():
    for predicted, sure in (((), {(0, 0)}), ({(0, 0)}, ())):
        assert alignment_error_rate(alignment_counts(predicted, sure)) == 1
    with pytest.raises(ValueError, match="counts must have a predicted or sure link"):
        alignment_error_rate(alignment_counts((), ()))
