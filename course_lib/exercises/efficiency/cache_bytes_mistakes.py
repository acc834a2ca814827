"""The mistakes in `cache_bytes`."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _bytes(*, layers=True, heads=True, features=True, tokens=True, sequences=True, width=True, factor=2):
    """The product with some of its factors left out, or with another number in place of the 2."""

    def solution(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
        numbers = (num_layers if layers else 1) * (num_kv_heads if heads else 1) * (d_head if features else 1)
        numbers *= (length if tokens else 1) * (batch_size if sequences else 1)
        return factor * numbers * (bytes_per_number if width else 1)

    return solution


mistake.named(
    "keys_only",
    "Half of the right number: only the keys are counted, or only the values. What does a later token need of an "
    "earlier one?",
)(_bytes(factor=1))
mistake.named(
    "queries_too",
    "Three vectors are counted for each token. A query is used once, at its own step, and is not kept.",
)(_bytes(factor=3))
mistake.named(
    "factor_two_twice",
    "Twice the right number: there is one key and one value per layer, head and token. Is a factor of 2 counted twice, "
    "for instance because 2 bytes are already in `bytes_per_number`?",
)(_bytes(factor=4))
mistake.named(
    "in_bits",
    "Eight times the right number: this is the cache in bits. The widths are given in bytes, and bytes are wanted.",
)(_bytes(factor=16))
mistake.named(
    "layers_forgotten",
    "The cache of a single layer is counted. Each layer has its own keys and values.",
)(_bytes(layers=False))
mistake.named(
    "heads_forgotten",
    "A single head is counted. Each head of keys and values has vectors of its own, `d_head` numbers long.",
)(_bytes(heads=False))
mistake.named(
    "features_forgotten",
    "The vectors are counted, but not the numbers in them.",
)(_bytes(features=False))
mistake.named(
    "length_forgotten",
    "The cache of a single token is counted. The keys and values of all `length` tokens are kept.",
)(_bytes(tokens=False))
mistake.named(
    "batch_forgotten",
    "The cache of a single sequence is counted, whatever `batch_size` is. Sequences do not share their tokens.",
)(_bytes(sequences=False))
mistake.named(
    "numbers_for_bytes",
    "The numbers in the cache are counted, and not their bytes. Is `bytes_per_number` used? A factor of 2 for keys and "
    "values is not a factor of 2 bytes per number.",
)(_bytes(width=False))
mistake.named(
    "keys_only_in_numbers",
    "The numbers of the keys alone are counted, or those of the values. Both are kept, and each number takes several "
    "bytes.",
)(_bytes(width=False, factor=1))
mistake.named(
    "always_two_bytes",
    "Each number is counted as 2 bytes, whatever `bytes_per_number` is.",
)(_bytes(width=False, factor=4))
mistake.named(
    "always_four_bytes",
    "Each number is counted as 4 bytes, whatever `bytes_per_number` is.",
)(_bytes(width=False, factor=8))


@mistake
def four_bytes_by_default(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=4):
    """A call without `bytes_per_number` counts 4 bytes per number. In the contract the default is 2."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


@mistake
def one_byte_by_default(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=1):
    """A call without `bytes_per_number` counts 1 byte per number. In the contract the default is 2."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


@mistake
def no_defaults(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number):
    """The last two arguments have no defaults, so a call without them is an error. The contract gives both a value."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


@mistake
def defaults_exchanged(num_layers, num_kv_heads, d_head, length, bytes_per_number=2, batch_size=1):
    """The last two arguments have changed places. The batch size comes first; if only five arguments are given, the
    fifth is taken for the bytes."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


@mistake
def bits_for_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The number is divided by 8, as if the widths were given in bits. They are bytes already."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number) // 8


for unit, size in {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "kB": 1000, "MB": 1000**2, "GB": 1000**3}.items():
    mistake.named(f"in_{unit}", f"This is the size in {unit}. The exercise asks for bytes, as an int.")(
        lambda *args, size=size: _bytes()(*args) / size
    )


@mistake
def scores_counted(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The number grows with the square of `length`, like the table of scores. Scores are not kept: a new token computes
    its own from the keys."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number) * length


@mistake
def scores_for_features(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """A table of `length` times `length` scores is counted for each head. The cache holds keys and values, which have
    `d_head` numbers per token."""
    return _bytes(features=False)(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number) * length


@mistake
def projections_counted(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The width is squared, as in a matrix of weights. The cache holds no weights: a key is a vector of `d_head`
    numbers."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number) * d_head


@mistake
def heads_squared(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The heads are counted twice. `d_head` is the width of one head, not of all heads together."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number) * num_kv_heads


@mistake
def features_shared_among_heads(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """`d_head` is divided by the number of heads, as if it were the width of the model. It is the width of one head
    already."""
    features = d_head // num_kv_heads
    return 2 * num_layers * num_kv_heads * features * length * batch_size * bytes_per_number


@mistake
def newest_token_not_counted(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """One token too few is counted: `length` is how many tokens the cache already holds."""
    return _bytes()(num_layers, num_kv_heads, d_head, length - 1, batch_size, bytes_per_number)


@mistake
def next_token_counted(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """One token too many is counted: `length` is how many tokens the cache holds, the newest one included."""
    return _bytes()(num_layers, num_kv_heads, d_head, length + 1, batch_size, bytes_per_number)


@mistake
def triangle_counted(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The cache is added up over all steps of decoding, 1 + 2 + … + `length` tokens. The question is how large it is at
    one moment, with `length` tokens in it."""
    rows = length * (length + 1) // 2
    return 2 * num_layers * num_kv_heads * d_head * rows * batch_size * bytes_per_number


@mistake
def keys_and_values_added(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The factors are added instead of multiplied. Every layer has all heads, and every head has all tokens."""
    return 2 * (num_layers + num_kv_heads + d_head + length) * batch_size * bytes_per_number


@mistake
def float_result(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The number is right, but its type is not: a count of bytes is an int. `/` gives a float, and for large caches it
    is not exact."""
    return _bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number) / 1


@mistake
def through_floats(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The number was converted to a float, which loses the last digits of large caches. `/` and floats such as 2.0 are
    not exact; `*` of ints is."""
    return int(2.0 * num_layers * num_kv_heads * d_head * length * batch_size * bytes_per_number)


@mistake
def tensor_result(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The number is right, but it is a tensor. A count is a plain int."""
    return torch.tensor(_bytes()(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number))


@mistake
def pair_returned(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    """The bytes of the keys and those of the values are returned as a pair. The exercise asks for their sum."""
    half = _bytes(factor=1)(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)
    return half, half
