"""Our encoder and `transformers` compute the same numbers from the same weights."""

import pytest
import torch

from course_lib.bert import BertEncoder
from course_lib.transformer import EncoderLayer

FLOAT = {"rtol": 0.0, "atol": 1e-5}
SINGLES = [
    "Time flies like an arrow.",
    "Unbelievable!",
    "The animal did not cross the street because it was too tired.",
]
SECONDS = ["Fruit flies like a banana.", "Is it? Yes, it is, I am quite sure of it.", "Naïve café, 東京 — ok."]
CASES = {
    "a single sentence": (SINGLES[:1], None),
    "a padded batch": (SINGLES, None),
    "a pair": (SINGLES[2:], SECONDS[2:]),
    "a padded batch of pairs": (SINGLES, SECONDS),
}


def reference(theirs, batch):
    """What `transformers` computes, with all hidden states and attention weights; segments where the model has them."""
    options = {} if theirs.config.model_type == "distilbert" else {"token_type_ids": batch.segment_ids}
    return theirs(
        input_ids=batch.token_ids,
        attention_mask=batch.mask.long(),
        output_hidden_states=True,
        output_attentions=True,
        **options,
    )


# all-MiniLM-L6-v2: trained weights


def test_every_parameter_is_there(minilm):
    assert sum(p.numel() for p in minilm.parameters()) == 22_713_216  # with the pooler
    assert sum(p.numel() for n, p in minilm.named_parameters() if not n.startswith("pooler.")) == 22_565_376
    assert isinstance(minilm, BertEncoder)
    assert [type(layer) for layer in minilm.layers] == [EncoderLayer] * 6
    assert not minilm.training


@pytest.mark.parametrize(("sentences", "second"), CASES.values(), ids=CASES)
def test_hidden_states_of_every_layer_and_all_72_heads(minilm, their_minilm, sentences, second):
    batch = minilm.tokenize(sentences, second)
    with torch.no_grad():
        ours, theirs = minilm(batch), reference(their_minilm, batch)
    hidden, attentions = torch.stack(theirs.hidden_states), torch.stack(theirs.attentions)
    # Of the tokens: padding is out of what the model has learned, and rounding there grows to 1e-4 in both. The
    # test in float64 compares padding too.
    torch.testing.assert_close(ours.hidden[:, batch.mask], hidden[:, batch.mask], **FLOAT)
    torch.testing.assert_close(ours.pooled, theirs.pooler_output, **FLOAT)
    weights = minilm.attention(batch)
    assert weights.shape == (6, len(sentences), 12, *2 * batch.token_ids.shape[1:])
    rows = batch.mask[None, :, None, :].expand(weights.shape[:-1])
    torch.testing.assert_close(weights[rows], attentions[rows], **FLOAT)
