"""The models that the ablation compares: the same sizes, and at both ends the course's own blocks."""

import pytest
import torch

from benchmarks import language_blocks as blocks
from course_lib.language_model import LanguageModel


@pytest.mark.parametrize("variant", blocks.VARIANTS)
def test_all_variants_have_the_same_number_of_parameters(variant):
    changes = blocks.VARIANTS[variant]
    base = blocks.num_parameters(blocks.Decoder((), blocks.D_FF))
    model = blocks.Decoder(changes, blocks.equal_width(changes))
    assert abs(blocks.num_parameters(model) / base - 1) < 1e-3


def test_with_all_five_changes_it_is_the_language_model():
    ours = blocks.Decoder(blocks.CHANGES, 256)
    sizes = {"num_layers": blocks.LAYERS, "num_heads": blocks.HEADS, "num_kv_heads": blocks.HEADS // 2, "d_ff": 256}
    plain = LanguageModel(blocks.VOCAB, blocks.D_MODEL, **sizes)
    weights = {name.replace("attention.", ""): value for name, value in plain.state_dict().items()} | {
        "code": torch.zeros(blocks.LENGTH, blocks.D_MODEL)
    }
    ours.load_state_dict(weights)
    tokens = torch.randint(blocks.VOCAB, (2, 10))
    torch.testing.assert_close(ours(tokens), plain(tokens))


def test_bits_per_byte_of_equal_probabilities():
    """A model that knows nothing needs ten bits for each of 1,024 tokens."""
    tokens = torch.randint(blocks.VOCAB, (64 + 32 * 5,))

    def even(rows):
        return torch.zeros(*rows.shape, blocks.VOCAB)

    assert blocks.bits_per_byte(even, tokens, num_bytes=len(tokens) * 4) == pytest.approx(10 / 4)
