"""The cache of a sliding window: against the mask of the window, in memory that does not grow."""

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE
from torch.testing import assert_close

from course_kit.shared_key_attention import GroupedQueryAttention
from course_kit.window_cache import SlidingWindowCache
from course_lib.masking import causal_mask, sliding_window_mask

BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 13, 5


def token(number):
    """A key of one number, and the value ten times as large."""
    return torch.tensor([[[[float(number)]]]]), torch.tensor([[[[10.0 * number]]]])


def test_the_newest_token_takes_the_place_of_the_oldest_by_hand():
    cache = SlidingWindowCache(3)
    kept = [[x.flatten().tolist() for x in cache.append(*token(t))] for t in range(5)]
    assert [keys for keys, _ in kept] == [[0.0], [0.0, 1.0], [0.0, 1.0, 2.0], [3.0, 1.0, 2.0], [3.0, 4.0, 2.0]]
    assert kept[-1][1] == [30.0, 40.0, 20.0]
    assert (cache.keys.flatten().tolist(), cache.values.flatten().tolist()) == tuple(kept[-1])


def test_the_first_tokens_stay_by_hand():
    cache = SlidingWindowCache(2, sinks=1)
    seen = [sorted(cache.append(*token(t))[0].flatten().tolist()) for t in range(5)]
    assert seen == [[0.0], [0.0, 1.0], [0.0, 1.0, 2.0], [0.0, 2.0, 3.0], [0.0, 3.0, 4.0]]


@pytest.mark.parametrize("window", [1, 4, 20])
@pytest.mark.parametrize("sinks", [0, 1, 3])
def test_token_by_token_the_output_is_that_of_pytorch_with_the_mask_of_the_window(window, sinks):
    query, key, value = torch.randn(3, BATCH, HEADS, LENGTH, D_HEAD).double()
    mask = sliding_window_mask(LENGTH, window)
    mask[:, :sinks] = causal_mask(LENGTH)[:, :sinks]
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    cache = SlidingWindowCache(window, sinks=sinks)
    for t in range(LENGTH):
        now = slice(t, t + 1)
        kept = cache.append(key[:, :, now], value[:, :, now])
        output = F.scaled_dot_product_attention(query[:, :, now], *kept)
        assert_close(output, expected[:, :, now], **CLOSE)
        assert len(cache) == min(t + 1, window + sinks) == kept[0].shape[2]


@pytest.mark.parametrize("num_kv_heads", [1, 3])
def test_a_module_decodes_with_it(num_kv_heads):
    module = GroupedQueryAttention(HEADS * D_HEAD, HEADS, num_kv_heads).double()
    x, cache = torch.randn(BATCH, LENGTH, HEADS * D_HEAD).double(), SlidingWindowCache(4)
    with torch.no_grad():
        outputs = [module(x[:, t : t + 1], cache=cache) for t in range(LENGTH)]
        assert_close(torch.cat(outputs, dim=1), module(x, sliding_window_mask(LENGTH, 4)), **CLOSE)


def test_its_memory_does_not_grow():
    cache = SlidingWindowCache(4, sinks=1)
    places = set()
    for t in range(30):
        keys, values = cache.append(*token(t))
        places |= {(x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()) for x in (keys, values)}
    assert len(places) == 2  # one buffer for keys, one for values
    assert {size for _, size in places} == {5 * 4}


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ((1, 3, 2, 5), (1, 3, 2, 5), "add one at a time"),
        ((3, 1, 5), (3, 1, 5), r"must be \(B, H, 1, d_head\)"),
        ((1, 3, 1, 5), (1, 2, 1, 5), r"got .*\(1, 2, 1, 5"),
        ((1, 3, 1, 5), (1, 3, 1, 5), r"expected keys \(2, 3, 1, 5\).*got \(1, 3, 1, 5\)"),
    ],
)
def test_keys_of_more_than_one_token_or_of_another_batch_are_refused(unchecked, keys, values, message):
    cache = SlidingWindowCache(4)
    cache.append(*torch.zeros(2, 2, 3, 1, 5))
    with pytest.raises(ValueError, match=message):
        cache.append(torch.zeros(keys), torch.zeros(values))
