"""The size of the tensors that a solution computes from two of its arguments."""

import math

import pytest
import torch

from course_kit.checker.observing import observe
from course_kit.checker.protocol import pack_case, unpack_case
from course_kit.checker.verdict.explaining import explain_problem
from course_kit.exercises import Case, find

LEN_Q, LEN_K, D_K, D_V, BLOCK = 2, 101, 3, 5, 7
LARGEST = LEN_Q * BLOCK * (D_K + 1)


def case(largest=LARGEST):
    draw = torch.Generator().manual_seed(0)
    shapes = (LEN_Q, D_K), (LEN_K, D_K), (LEN_K, D_V)
    args = (*(torch.randn(shape, generator=draw) for shape in shapes), BLOCK)
    return Case(args=args, max_numel=largest, gradients=False)


def problem(solution, given=None):
    return observe(solution, find("tiled_attention"), given or case()).problem


def attention(query, key, value, scores):
    return (scores / math.sqrt(D_K)).softmax(-1) @ value


def all_at_once(query, key, value, block_size):
    return attention(query, key, value, query @ key.mT)


def collected(query, key, value, block_size):
    return attention(query, key, value, torch.cat([query @ keys.mT for keys in key.split(block_size)], -1))


def written_into_a_matrix(query, key, block_size):
    scores = query.new_empty(LEN_Q, LEN_K)
    for start in range(0, LEN_K, block_size):
        scores[:, start : start + block_size] = query @ key[start : start + block_size].mT
    return scores


def written_through_views(query, key, block_size):
    scores = query.new_empty(LEN_Q, LEN_K)
    for part, keys in zip(scores.split(block_size, -1), key.split(block_size), strict=True):
        part.copy_(query @ keys.mT)
    return scores


TOO_LARGE = {
    "all at once": all_at_once,
    "by einsum": lambda q, k, v, size: attention(q, k, v, torch.einsum("...id,...jd->...ij", q * 2.0, k / 2.0)),
    "in place": lambda q, k, v, size: attention(q, k, v, torch.zeros(LEN_Q, LEN_K).addmm_(q, k.mT)),
    "into a buffer": lambda q, k, v, size: attention(q, k, v, torch.mm(q, k.mT, out=torch.empty(LEN_Q, LEN_K))),
    "one query at a time": lambda q, k, v, size: torch.stack([attention(one, k, v, k @ one) for one in q]),
    "collected": collected,
    "written into a matrix": lambda q, k, v, size: attention(q, k, v, written_into_a_matrix(q, k, size)),
    "written through views": lambda q, k, v, size: attention(q, k, v, written_through_views(q, k, size)),
    "blocks too long": lambda q, k, v, size: find("tiled_attention").reference(q, k, v, 5 * size),
}


@pytest.mark.parametrize("way", TOO_LARGE)
def test_scores_of_too_many_keys_end_the_call_where_they_are_computed(way):
    found = problem(TOO_LARGE[way])
    assert found.type == "MemoryError"
    assert "in a tensor that is computed from query and key in this case" in found.message
    assert problem(TOO_LARGE[way], case(largest=None)) is None


def test_the_error_names_what_is_allowed_and_the_line():
    found = problem(all_at_once)
    assert found.message.startswith(f"expected at most {LARGEST} numbers in a tensor")
    assert found.message.endswith(f"got one of {LEN_Q * LEN_K} numbers")
    assert found.code == "return attention(query, key, value, query @ key.mT)"
    assert problem(collected).message.startswith(f"expected at most {LEN_Q * LEN_K - 1} numbers in a tensor")


def merged_at_the_end(query, key, value, block_size):
    """Each block by itself; all their results side by side are large, and are no scores."""
    scores = [query @ keys.mT / math.sqrt(D_K) for keys in key.split(block_size)]
    sums = torch.stack([s.logsumexp(-1) for s in scores])
    outputs = [s.softmax(-1) @ values for s, values in zip(scores, value.split(block_size), strict=True)]
    return (sums.softmax(0)[..., None] * torch.stack(outputs)).sum(0)


def products_of_features(query, key, value, block_size):
    scores = [(query[:, None] * keys).sum(-1) / math.sqrt(D_K) for keys in key.split(block_size)]
    return sum(s.exp() @ values for s, values in zip(scores, value.split(block_size), strict=True)) / sum(
        s.exp().sum(-1, keepdim=True) for s in scores
    )


def copies_of_the_key(query, key, value, block_size):
    """What comes from one argument, or takes only the dtype of another, may be of any size."""
    root = query.new_tensor(math.sqrt(D_K))
    key = torch.nn.functional.pad(key.to(query) / root, (0, 0, 0, 50))[:LEN_K].contiguous()
    assert torch.zeros_like(key).numel() > LARGEST
    return find("tiled_attention").reference(query * math.sqrt(D_K), key, value, block_size)


@pytest.mark.parametrize("solution", [merged_at_the_end, products_of_features, copies_of_the_key])
def test_ways_to_compute_it_in_blocks_are_left_alone(solution):
    exercise = find("tiled_attention")
    seen = observe(solution, exercise, case())
    assert seen.problem is None
    assert torch.allclose(seen.value, exercise.reference(*case().args), atol=1e-5)


def test_a_learner_is_told_what_is_too_large():
    seen = observe(all_at_once, find("tiled_attention"), case())
    explained = explain_problem(find("tiled_attention"), case(), seen)
    assert "computes a tensor from `query` and `key` that is larger than the exercise allows" in explained.message


def test_the_limit_reaches_the_process_of_a_submission():
    message, blobs = pack_case(case(), (), False)
    arrived, _, _ = unpack_case(message, blobs)
    assert arrived.max_numel == LARGEST
    assert problem(all_at_once, arrived).type == "MemoryError"
