"""course_kit.recurrent: two GRUs, with and without a look back at the source."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from oracles import CLOSE, gradients, no_side_effects, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.recurrent import RecurrentEncoderDecoder

PAD = 0
SOURCE = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, PAD, PAD], [10, PAD, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[1, 12, 13, 14, 15], [1, 16, 15, 14, 2], [1, 2, 3, 4, 5]])
BOTH = pytest.mark.parametrize("attention", [False, True], ids=["without attention", "with attention"])


def build(attention, **options):
    return randomise(RecurrentEncoderDecoder(17, 11, attention=attention, **options)).double()


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attention", "states"),
    [
        # A GRU with zero weights halves its state and adds half of tanh(bias of n). The encoder's tanh(ln 3) = 0.8:
        # states 0.4 and 0.6; the padding after them is not read. The decoder's bias is zero: 0.3, 0.15.
        (False, [0.3, 0.15]),
        # v = 0 looks at both source tokens equally: c = (0.4 + 0.6) / 2 = 0.5, and 2 ln 3 · c = ln 3, tanh 0.8:
        # 0.6 / 2 + 0.4 = 0.7, then 0.7 / 2 + 0.4 = 0.75.
        (True, [0.7, 0.75]),
    ],
)
def test_two_steps_by_hand(attention, states):
    model = RecurrentEncoderDecoder(5, 1, attention=attention)
    for parameter in model.parameters():
        parameter.data.zero_()
    model.encoder.bias_ih_l0.data[2] = math.log(3.0)  # the gates are r, z, n
    if attention:
        model.decoder.weight_ih_l0.data[2, 1] = 2.0 * math.log(3.0)  # inputs are (y, c)
    model.output.weight.data = torch.tensor([[10.0], [20.0], [0.0], [0.0], [-10.0]])
    model.output.bias.data[3] = 7.0
    logits, weights = model(torch.tensor([[3, 4, PAD]]), torch.tensor([[1, 2]]))
    assert_close(logits, torch.tensor([[[10 * s, 20 * s, 0.0, 7.0, -10 * s] for s in states]]))
    if attention:
        assert weights.tolist() == [[[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]]
    else:
        assert weights is None


# --- against PyTorch --------------------------------------------------------------------------------------------------


def gru_cell(gru):
    cell = nn.GRUCell(gru.input_size, gru.hidden_size).double()
    cell.load_state_dict({name.removesuffix("_l0"): parameter for name, parameter in gru.state_dict().items()})
    return cell


def test_without_attention_it_is_two_gru_a_sentence_at_a_time_without_padding():
    ours, loops = build(attention=False), []
    theirs = copy.deepcopy(ours)
    for source, target in zip(SOURCE, TARGET, strict=True):
        _, state = theirs.encoder(theirs.embedding(source[source != PAD][None]))
        states, _ = theirs.decoder(theirs.embedding(target[None]), state)
        loops.append(theirs.output(states))
    expected, (logits, _) = torch.cat(loops), ours(SOURCE, TARGET)
    assert_close(logits, expected, **CLOSE)
    grad = torch.randn_like(expected)
    logits.backward(grad), expected.backward(grad)
    assert_close(gradients(ours), gradients(theirs), **CLOSE)


def test_with_attention_it_is_a_loop_over_cells():
    ours = build(attention=True)
    theirs = copy.deepcopy(ours)
    cells = {"encoder": gru_cell(theirs.encoder), "decoder": gru_cell(theirs.decoder)}
    loops, alignments = [], []
    for source, target in zip(SOURCE, TARGET, strict=True):
        state, seen, rows, attended = torch.zeros(11, dtype=torch.float64), [], [], []
        for token in source[source != PAD]:
            state = cells["encoder"](theirs.embedding(token), state)
            seen.append(state)
        for token in target:
            scores = [
                theirs.score.v @ torch.tanh(theirs.score.w_query @ state + theirs.score.w_key @ key) for key in seen
            ]
            weights = torch.softmax(torch.stack(scores), 0)
            context = sum(w * key for w, key in zip(weights, seen, strict=True))
            state = cells["decoder"](torch.cat((theirs.embedding(token), context)), state)
            rows.append(theirs.output(state))
            attended.append(torch.cat((weights, weights.new_zeros(7 - len(seen)))))
        loops.append(torch.stack(rows))
        alignments.append(torch.stack(attended))
    expected, (logits, weights) = torch.stack(loops), ours(SOURCE, TARGET)
    assert_close(logits, expected, **CLOSE)
    assert_close(weights, torch.stack(alignments), **CLOSE)

    grad = torch.randn_like(expected)
    logits.backward(grad), expected.backward(grad)
    of_theirs = {name: g for name, g in gradients(theirs).items() if g is not None}
    for which, cell in cells.items():
        of_theirs |= {f"{which}.{name}_l0": g for name, g in gradients(cell).items()}
    assert_close(gradients(ours), of_theirs, **CLOSE)


# --- properties -------------------------------------------------------------------------------------------------------


@BOTH
def test_future_tokens_do_not_change_the_past(attention):
    model, other = build(attention), TARGET.clone()
    other[:, 3:] = 6
    before, after = model(SOURCE, TARGET)[0], model(SOURCE, other)[0]
    assert_close(before[:, :3], after[:, :3], **CLOSE)
    assert (before[:, 3:] - after[:, 3:]).abs().amax(-1).min() > 1e-4


@BOTH
@pytest.mark.parametrize("pad_id", [0, 16])
def test_more_padding_changes_nothing(attention, pad_id):
    model = build(attention, pad_id=pad_id)
    source = SOURCE.masked_fill(SOURCE == PAD, pad_id)
    padded = torch.nn.functional.pad(source, (0, 4), value=pad_id)
    logits, weights = model(source, TARGET)
    padded_logits, padded_weights = model(padded, TARGET)
    assert_close(padded_logits, logits, **CLOSE)
    if attention:
        assert_close(padded_weights[..., :7], weights, **CLOSE)
        assert (padded_weights[..., 7:] == 0.0).all()


def test_padding_gets_no_weight_and_the_rest_sums_to_one():
    _, weights = build(attention=True)(SOURCE, TARGET)
    assert weights.shape == (3, 5, 7)
    assert_close(weights.sum(-1), torch.ones(3, 5).double(), **CLOSE)
    assert torch.equal(weights > 0, (SOURCE != PAD)[:, None, :].expand(3, 5, 7))


@BOTH
def test_a_source_of_padding_only_stays_finite(attention):
    model, source = build(attention), SOURCE.clone()
    source[1] = PAD
    logits, weights = model(source, TARGET)
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    if attention:
        assert (weights[1] == 0.0).all()


@BOTH
def test_sentences_of_a_batch_do_not_see_each_other(attention):
    model, source, target = build(attention), SOURCE.clone(), TARGET.clone()
    source[1:], target[1:] = 5, 6
    assert_close(model(source, target)[0][0], model(SOURCE, TARGET)[0][0], **CLOSE)


@BOTH
def test_state_dict_and_deepcopy_carry_the_model_over_and_nothing_is_random(attention):
    model = build(attention)
    loaded = RecurrentEncoderDecoder(17, 11, attention=attention).double()
    loaded.load_state_dict(model.state_dict())
    with no_side_effects(SOURCE, TARGET, *model.parameters()):
        expected = model(SOURCE, TARGET)[0]
    for twin in (loaded, copy.deepcopy(model)):
        assert_close(twin(SOURCE, TARGET)[0], expected, rtol=0, atol=0)


def test_the_two_models_differ_in_nothing_but_the_look_back():
    plain, attending = (
        {name: tuple(p.shape) for name, p in build(attention).named_parameters()} for attention in (False, True)
    )
    assert {name for name in attending if name not in plain} == {"score.w_query", "score.w_key", "score.v"}
    assert {name for name in plain if plain[name] != attending[name]} == {"decoder.weight_ih_l0"}
    assert (plain["decoder.weight_ih_l0"], attending["decoder.weight_ih_l0"]) == ((33, 11), (33, 22))
    assert [attending[f"score.{name}"] for name in ("w_query", "w_key", "v")] == [(11, 11), (11, 11), (11,)]


def test_padding_before_a_token_is_refused():
    source = torch.tensor([[PAD, PAD, 3, 4, 5, 6, 2], [3, 4, 5, 6, 2, PAD, PAD]])
    with pytest.raises(ValueError, match=r"padded at the end, got a token after padding \(pad_id = \d+\)"):
        build(True)(source, TARGET[:2])
