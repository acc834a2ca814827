"""What the views of the chapter `inspection` accept and refuse, and how numbers reach their scripts."""

import re

import pytest
import torch
import transformers

from course_kit.nn import MultiHeadAttention, Transformer, TransformerConfig, record_attention
from course_kit.viz.inspection_inputs import attention_of, encoded, thousandths
from course_kit.viz.inspection_patterns import patterns_of
from course_kit.viz.view_numbers import fixed
from course_lib.inspection import head_scores


def decoded(text):
    """What the script makes of `encoded`, written once more from its description."""
    values, symbols = [], iter(ord({"!": "<", " ": "\\"}.get(c, c)) - 35 for c in text)
    for symbol in symbols:
        if symbol <= 80:
            values.append(symbol)
        elif symbol == 91:
            values += [0] * (next(symbols) + 3)
        else:
            values.append(81 + 92 * (symbol - 81) + next(symbols))
    return values


def weights(*shape):
    return (2 * torch.randn(shape)).softmax(-1)


# Forms ----------------------------------------------------------------------------------------------------------------


def test_all_forms_of_the_same_weights_are_one():
    plain = weights(3, 2, 5, 5)
    by_name = {f"layers.{n}.a": plain[n, None] for n in range(3)}
    for form in (plain, plain[:, None], tuple(plain[:, None]), list(plain), by_name):
        got = attention_of(form, list("abcde"))
        torch.testing.assert_close(got.weights, plain.double(), atol=0, rtol=0)
        assert (got.queries, got.keys, got.own) == (list("abcde"), list("abcde"), True)


@pytest.mark.filterwarnings("ignore")  # transformers warns of the very thing that is refused here
def test_transformers_output_is_taken_as_it_comes_and_its_fused_path_is_refused():
    config = transformers.BertConfig(
        vocab_size=31, hidden_size=14, num_hidden_layers=3, num_attention_heads=2, intermediate_size=11
    )
    eager, fused = (
        transformers.BertModel._from_config(config, attn_implementation=kind)
        .eval()(torch.arange(7)[None], output_attentions=True)
        .attentions
        for kind in ("eager", "sdpa")
    )
    got = attention_of(eager, list("abcdefg"))
    assert got.weights.shape == (3, 2, 7, 7)
    torch.testing.assert_close(got.weights[2], eager[2][0].double().detach(), atol=0, rtol=0)
    for without in (fused, (None, None, None)):
        with pytest.raises(ValueError, match=r'attn_implementation="eager" .*output_attentions=True'):
            attention_of(without, list("abcdefg"))


def test_every_part_of_the_courses_translator_can_be_chosen():
    model = Transformer(TransformerConfig(vocab_size=13, num_layers=2, d_model=12, num_heads=3, d_ff=7)).eval()
    with record_attention(model) as maps, torch.no_grad():
        model(torch.randint(1, 13, (1, 5)), torch.randint(1, 13, (1, 7)))
    for part, shape in {"encoder": (5, 5), "cross": (7, 5), "decoder.layers.*.self": (7, 7)}.items():
        got = attention_of(maps, None, part=part)
        assert got.weights.shape == (2, 3, *shape)
        assert got.own == (part != "cross")
    with pytest.raises(ValueError, match=r"one kind of attention, got 'encoder.*', .*pass part=.*got part='self_a"):
        attention_of(maps, None, part="self_attention")
    cross = attention_of(maps, list("abcdefg"), list("vwxyz"), part="cross")
    (name,) = (name for name in maps if re.search(r"1.*cross", name))
    torch.testing.assert_close(cross.weights[1], maps[name][0].double(), atol=0, rtol=0)
    assert (cross.queries, cross.keys) == (list("abcdefg"), list("vwxyz"))
    layer, x = MultiHeadAttention(6, 2), torch.randn(1, 3, 6)
    with record_attention(layer) as maps:
        layer(x, x, x)
    assert attention_of(maps, None).weights.shape == (1, 2, 3, 3)  # a module alone is one layer


def test_where_sentence_b_starts():
    for tokens, second in {
        "[CLS] a b [SEP]": None,
        "[CLS] a b [SEP] c [SEP]": 4,
        "<s> a </s> </s> b </s>": 4,
        "a b c": None,
        "[SEP] a [SEP]": None,
    }.items():
        length = len(tokens.split())
        assert attention_of(weights(1, 1, length, length), tokens.split()).second == second
    assert attention_of(weights(1, 1, 5, 5), None, second=2).second == 2


def test_a_fully_masked_row_and_half_precision_are_accepted():
    masked = weights(1, 1, 3, 3)
    masked[..., 1, :] = 0.0
    attention_of(masked, None)
    for dtype in (torch.float16, torch.bfloat16):
        attention_of(weights(2, 3, 64, 64).to(dtype), None)


# Numbers --------------------------------------------------------------------------------------------------------------


def test_thousandths_are_the_three_decimals():
    exact = torch.cat([torch.rand(997), torch.tensor([0.0, 1.0, 0.0005, 0.0625, 0.9995])])
    assert [fixed(t / 1000) for t in thousandths(exact)] == [fixed(x) for x in exact.tolist()]


def test_every_thousandth_and_every_run_of_zeros_come_back():
    text = encoded(torch.arange(1001) / 1000)
    assert decoded(text) == list(range(1001))
    assert not set(text) & set('<"\\\n')  # needs no escape
    assert len(text) == 81 + 2 * 920
    for zeros in (1, 2, 3, 4, 93, 94, 95, 96, 97, 98, 189, 300):
        values = [81, *[0] * zeros, 1, 80, 1000, *[0] * zeros]
        text = encoded(torch.tensor(values) / 1000)
        assert decoded(text) == values
        assert text.isprintable()
    causal = torch.ones(12, 12, 20, 20).tril() / torch.arange(1, 21)[:, None]
    assert len(encoded(causal)) < 0.85 * causal.numel()


# Patterns -------------------------------------------------------------------------------------------------------------


def test_patterns_computed_by_hand():
    tokens = ["[CLS]", "a", "b", "a", "[SEP]"]
    rows = torch.tensor(
        [
            [0.2, 0.2, 0.2, 0.2, 0.2],
            [0.5, 0.1, 0.0, 0.3, 0.1],
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.75, 0.25, 0.0],
            [0.0, 0.0, 0.0, 0.5, 0.5],
        ],
        dtype=torch.float64,
    )
    found = patterns_of(attention_of(rows[None, None], tokens))
    entropy = torch.distributions.Categorical(rows[1:4]).entropy().mean() / torch.tensor(5.0).log()
    assert dict(zip(found.names, found.scores[0].tolist(), strict=True)) == pytest.approx(
        {  # over a, b, a; not over [CLS] and [SEP]
            "previous token": (0.5 + 1.0 + 0.75) / 3,
            "next token": 0.0,
            "same word": (0.1 + 0.3 + 0.0 + 0.25) / 3,
            "delimiter": (0.6 + 0.0 + 0.0) / 3,
            "broad": entropy.item(),
        }
    )
    assert found.told(0) == "previous token 0.750"
    assert found.first() == 0


@pytest.mark.parametrize("ids", [[5, 11, 12, 11, 6, 13, 6], [11, 12, 11, 5, 13, 6, 12]], ids=["marked", "words first"])
@pytest.mark.parametrize("causal", [False, True])
def test_patterns_are_those_of_the_library(causal, ids):
    """With a word at both ends, one query has no previous token and one has no next token."""
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask = mask.tril() if causal else mask
    given = torch.randn(2, 3, 7, 7, dtype=torch.float64).masked_fill(~mask, -torch.inf).softmax(-1)
    expected = head_scores(given[:, None], torch.tensor([ids]), delimiters=[5, 6], mask=mask[None, None])
    found = patterns_of(attention_of(given, [{5: "[CLS]", 6: "[SEP]"}.get(i, str(i)) for i in ids]))
    assert found.names == ["previous token", "next token", "same word", "delimiter", "broad"]
    wanted = [expected[name].flatten() for name in ("previous", "next", "same", "delimiter", "broad")]
    torch.testing.assert_close(found.scores, torch.stack(wanted, 1))


def test_equal_weights_are_broad_and_a_mixture_has_no_pattern():
    for keys, told in (
        (range(6), "broad 1.000"),
        ((2, 4), "no plain pattern"),
        ((1, 2, 4), "no plain pattern"),  # broad is 0.613
    ):
        given = torch.zeros(1, 1, 6, 6)
        given[..., list(keys)] = 1 / len(keys)
        assert patterns_of(attention_of(given, list("abcdef"))).told(0) == told


def test_cross_attention_has_no_neighbours_and_one_token_only_itself():
    found = patterns_of(attention_of(weights(2, 3, 4, 5), list("abcd"), ["<bos>", *"wxyz"]))
    assert found.names == ["delimiter", "broad"]
    assert found.first() == found.scores[:, 1].argmin()
    found = patterns_of(attention_of(torch.ones(1, 1, 1, 1), ["a"]))
    assert dict(zip(found.names, found.scores[0].tolist(), strict=True)) == {"same word": 1.0, "broad": 0.0}
