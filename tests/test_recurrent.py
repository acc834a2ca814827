"""course_kit.recurrent: two GRUs, with and without a look back at the source."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from oracles import CLOSE, gradients, randomise
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
@pytest.mark.parametrize("pad_id", [0, 16])
def test_more_padding_changes_nothing(attention, pad_id):
    model = build(attention, pad_id=pad_id)
    source = SOURCE.masked_fill(SOURCE == PAD, pad_id)
    logits, weights = model(source, TARGET)
    padded_logits, padded_weights = model(torch.nn.functional.pad(source, (0, 4), value=pad_id), TARGET)
    assert_close(padded_logits, logits, **CLOSE)
    if attention:
        assert_close(padded_weights, torch.nn.functional.pad(weights, (0, 4)), **CLOSE)
        assert_close(weights.sum(-1), torch.ones(3, 5).double(), **CLOSE)
        assert torch.equal(weights > 0, (source != pad_id)[:, None, :].expand(3, 5, 7))


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


@pytest.mark.parametrize(
    ("source", "target", "error", "message"),
    [
        ([[PAD, 3], [3, 4]], [[1], [1]], ValueError, r"padded at the end, got a token after padding \(pad_id = 0\)"),
        ([[3], [3]], [[1], [17]], ValueError, "target must be tokens 0 … 16, got 1 … 17"),
        ([[3], [3]], [[1]], ValueError, "must be of one batch, got"),
        ([[]], [[1]], TypeError, "source must be tokens of int64 or int32, one at least, got"),
    ],
)
def test_tokens_that_cannot_be_read_are_refused(unchecked, source, target, error, message):
    source, target = (torch.tensor(x, dtype=torch.long) for x in (source, target))
    with pytest.raises(error, match=message):
        build(True)(source, target)
