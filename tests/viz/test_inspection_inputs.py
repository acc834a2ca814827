"""What the views of the chapter `inspection` accept and refuse, and how numbers reach their scripts."""

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
    forms = [
        plain,
        plain[:, None],
        tuple(plain[:, None]),
        list(plain),
        {f"layers.{n}.a": plain[n, None] for n in range(3)},
    ]
    for form in forms:
        got = attention_of(form, list("abcde"))
        torch.testing.assert_close(got.weights, plain.double(), atol=0, rtol=0)
        assert (got.queries, got.keys, got.own) == (list("abcde"), list("abcde"), True)


def test_transformers_output_is_taken_as_it_comes():
    config = transformers.BertConfig(
        vocab_size=31, hidden_size=14, num_hidden_layers=3, num_attention_heads=2, intermediate_size=11
    )
    model = transformers.BertModel._from_config(config, attn_implementation="eager").eval()
    attentions = model(torch.arange(7)[None], output_attentions=True).attentions
    got = attention_of(attentions, list("abcdefg"))
    assert got.weights.shape == (3, 2, 7, 7)
    torch.testing.assert_close(got.weights[2], attentions[2][0].double().detach(), atol=0, rtol=0)


@pytest.mark.filterwarnings("ignore")  # transformers warns of the very thing that is refused here
def test_the_fused_path_of_transformers_is_an_error_that_says_what_to_pass():
    config = transformers.BertConfig(
        vocab_size=31, hidden_size=14, num_hidden_layers=3, num_attention_heads=2, intermediate_size=11
    )
    model = transformers.BertModel._from_config(config, attn_implementation="sdpa").eval()
    attentions = model(torch.arange(7)[None]).attentions
    with pytest.raises(ValueError, match=r'attn_implementation="eager" .*output_attentions=True'):
        attention_of(attentions, list("abcdefg"))
    with pytest.raises(ValueError, match=r'attn_implementation="eager" .*output_attentions=True'):
        attention_of((None, None, None), list("abcdefg"))


def test_a_whole_output_is_refused_with_what_to_pass():
    output = transformers.modeling_outputs.BaseModelOutput(last_hidden_state=torch.ones(1, 2, 3))
    with pytest.raises(TypeError, match=r"whole output of a model; pass outputs\.attentions"):
        attention_of(output, ["a", "b"])
    logits = transformers.modeling_outputs.CausalLMOutput(logits=torch.ones(1, 2, 3))
    with pytest.raises(TypeError, match=r"whole output of a model; pass outputs\.attentions"):
        attention_of(logits, ["a", "b"])
    with pytest.raises(TypeError, match=r"got int; pass outputs\.attentions"):
        attention_of(3, None)


def test_every_part_of_the_courses_translator_can_be_chosen():
    model = Transformer(TransformerConfig(vocab_size=13, num_layers=2, d_model=12, num_heads=3, d_ff=7)).eval()
    source, target = torch.randint(1, 13, (1, 5)), torch.randint(1, 13, (1, 7))
    with record_attention(model) as maps, torch.no_grad():
        model(source, target)
    for part, shape in {
        "encoder": (5, 5),
        "self_attention": None,
        "cross": (7, 5),
        "decoder.layers.*.self": (7, 7),
    }.items():
        if shape is None:
            with pytest.raises(
                ValueError, match=r"one kind of attention, got 'encoder.*', .*pass part=.*got part='self_a"
            ):
                attention_of(maps, None, part=part)
            continue
        got = attention_of(maps, None, part=part)
        assert got.weights.shape == (2, 3, *shape)
        assert got.own == (part != "cross")
    name = next(name for name in maps if "cross" in name and "1" in name)
    torch.testing.assert_close(got.weights.shape, torch.Size((2, 3, 7, 7)))
    cross = attention_of(maps, list("abcdefg"), list("vwxyz"), part="cross")
    torch.testing.assert_close(cross.weights[1], maps[name][0].double(), atol=0, rtol=0)
    assert (cross.queries, cross.keys) == (list("abcdefg"), list("vwxyz"))


def test_a_single_attention_module_is_one_layer():
    layer = MultiHeadAttention(6, 2)
    with record_attention(layer) as maps:
        x = torch.randn(1, 3, 6)
        layer(x, x, x)
    assert attention_of(maps, None).weights.shape == (1, 2, 3, 3)


@pytest.mark.parametrize(
    ("tokens", "second"),
    [
        ("[CLS] a b [SEP]", None),
        ("[CLS] a b [SEP] c [SEP]", 4),
        ("<s> a </s> </s> b </s>", 4),
        ("a b c", None),
        ("[SEP] a [SEP]", None),
    ],
)
def test_where_sentence_b_starts(tokens, second):
    tokens = tokens.split()
    assert attention_of(weights(1, 1, len(tokens), len(tokens)), tokens).second == second


def test_where_sentence_b_starts_can_be_given():
    assert attention_of(weights(1, 1, 5, 5), None, second=2).second == 2


HALF = torch.full((2, 3, 2, 2), 0.5)


@pytest.mark.parametrize(
    ("given", "settings", "error", "message"),
    [
        (HALF[0], {}, ValueError, r"\(num_layers, H, L_q, L_k\), got \(3, 2, 2\); weights\[None\]"),
        (HALF[:0], {}, ValueError, r"got \(0, 3, 2, 2\)"),
        ((), {}, ValueError, "got none: the fused path"),
        (None, {}, ValueError, "got None: the fused path"),
        ({}, {}, ValueError, "an empty dictionary"),
        (HALF.repeat(1, 2, 1, 1, 1), {}, ValueError, r"of one sentence, got \(4, 3, 2, 2\); choose a sentence"),
        ((HALF[0], 3), {}, TypeError, r"layer 2 \(index 1\) must be a tensor .* got int"),
        ((HALF[0], HALF[1, :2]), {}, ValueError, r"layers of one shape .* got \[\(2, 2, 2\), \(3, 2, 2\)\]"),
        (HALF / 0 * 0, {}, ValueError, r"layer 1 \(index 0\): .* got NaN in row 0"),
        (HALF * torch.inf, {}, ValueError, r"must lie in \[0, 1\]"),
        (HALF * 3, {}, ValueError, r"must lie in \[0, 1\].*softmax"),
        (HALF + torch.tensor([-0.5005, 0.5005]), {}, ValueError, "0 or more, got -0.0005"),
        (HALF * 0.9, {}, ValueError, r"sum to 1, got 0.900 in row 0 of layer 1, head 1 .*model.eval\(\)"),
        (HALF, {"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 2, got 1"),
        (HALF, {"keys": ["a"]}, ValueError, "keys must have a label for each of the 2, got 1"),
        (HALF, {"part": "cross"}, ValueError, "part chooses from a dictionary"),
        (HALF, {"second": 2}, ValueError, "second must be the position .* 1 to 1"),
        (torch.full((1, 1, 2, 4), 0.25), {"tokens": ["a", "b"]}, ValueError, "tokens for the keys too"),
        (torch.full((1, 1, 129, 129), 1 / 129), {}, ValueError, "at most 128 tokens .* got 129 × 129"),
        (
            torch.full((12, 12, 64, 64), 1 / 64),
            {},
            ValueError,
            "and 400,000 weights, got .* 589,824 weights; show fewer",
        ),
    ],
)
def test_what_is_refused(given, settings, error, message):
    with pytest.raises(error, match=message):
        attention_of(given, settings.pop("tokens", None), settings.pop("keys", None), **settings)


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


@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 4, 93, 94, 95, 96, 97, 98, 189, 300])
def test_runs_of_zeros_come_back(zeros):
    values = [81, *[0] * zeros, 1, 80, 1000, *[0] * zeros]
    assert decoded(encoded(torch.tensor(values) / 1000)) == values


def test_every_thousandth_comes_back_and_needs_no_escape():
    text = encoded(torch.arange(1001) / 1000)
    assert decoded(text) == list(range(1001))
    assert not set(text) & set('<>"\\\n') - {">"}
    assert len(text) == 81 + 2 * 920


def test_causal_weights_are_short():
    causal = torch.ones(12, 12, 20, 20).tril() / torch.arange(1, 21)[:, None]
    assert decoded(encoded(causal)) == thousandths(causal)
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
    score = dict(zip(found.names, found.scores[0].tolist(), strict=True))
    # over a, b, a; not over [CLS] and [SEP]
    assert score["previous token"] == pytest.approx((0.5 + 1.0 + 0.75) / 3)
    assert score["next token"] == pytest.approx(0.0)
    assert score["same word"] == pytest.approx((0.1 + 0.3 + 0.0 + 0.25) / 3)
    assert score["delimiter"] == pytest.approx((0.6 + 0.0 + 0.0) / 3)
    entropy = torch.distributions.Categorical(rows[1:4]).entropy().mean() / torch.tensor(5.0).log()
    assert score["broad"] == pytest.approx(entropy.item())
    assert found.told(0) == "previous token 0.750"
    assert found.first() == 0


@pytest.mark.parametrize("ids", [[5, 11, 12, 11, 6, 13, 6], [11, 12, 11, 5, 13, 6, 12]], ids=["marked", "words first"])
@pytest.mark.parametrize("causal", [False, True])
def test_patterns_are_those_of_the_library(causal, ids):
    """With a word at both ends, one query has no previous token and one has no next token."""
    length = 7
    mask = torch.ones(length, length, dtype=torch.bool)
    mask = mask.tril() if causal else mask
    given = torch.randn(2, 3, length, length, dtype=torch.float64).masked_fill(~mask, -torch.inf).softmax(-1)
    expected = head_scores(given[:, None], torch.tensor([ids]), delimiters=[5, 6], mask=mask[None, None])
    tokens = [{5: "[CLS]", 6: "[SEP]"}.get(i, str(i)) for i in ids]
    found = patterns_of(attention_of(given, tokens))
    assert found.names == ["previous token", "next token", "same word", "delimiter", "broad"]
    for p, name in enumerate(["previous", "next", "same", "delimiter", "broad"]):
        torch.testing.assert_close(found.scores[:, p], expected[name].flatten())


def test_equal_weights_are_broad_and_a_mixture_has_no_pattern():
    equal = torch.full((1, 1, 6, 6), 1 / 6)
    two, three = torch.zeros(2, 1, 1, 6, 6)
    two[..., 2] = two[..., 4] = 0.5
    three[..., [1, 2, 4]] = 1 / 3
    assert patterns_of(attention_of(equal, list("abcdef"))).told(0) == "broad 1.000"
    assert patterns_of(attention_of(two, list("abcdef"))).told(0) == "no plain pattern"
    assert patterns_of(attention_of(three, list("abcdef"))).told(0) == "no plain pattern"  # broad is 0.613


def test_cross_attention_has_no_neighbours():
    found = patterns_of(attention_of(weights(2, 3, 4, 5), list("abcd"), ["<bos>", *"wxyz"]))
    assert found.names == ["delimiter", "broad"]
    assert found.first() == found.scores[:, 1].argmin()


def test_one_token_has_only_itself():
    found = patterns_of(attention_of(torch.ones(1, 1, 1, 1), ["a"]))
    assert dict(zip(found.names, found.scores[0].tolist(), strict=True)) == {"same word": 1.0, "broad": 0.0}
