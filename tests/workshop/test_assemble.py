"""course_kit.workshop.assemble: a transformer from a learner's own parts."""

from __future__ import annotations

import copy
import inspect
import warnings

import pytest
import torch
from oracles import CLOSE, gradients, no_side_effects
from solutions_by_others import cells
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit import assemble, assemble_set_encoder
from course_kit import nn as full
from course_kit.exercises import find
from course_kit.workshop.part_names import PLACES, POSITIONS
from course_kit.workshop.tasks import copy as copy_task
from course_kit.workshop.train_on import train_on

SIZES = {"d_model": 12, "num_heads": 2, "d_ff": 7, "num_layers": 2}
PAD = 1
SOURCE = torch.tensor([[2, 3, 4, 5, 6], [9, 8, 7, PAD, PAD]])
TARGET = torch.tensor([[0, 10, 9, 8], [0, 7, PAD, PAD]])

pytestmark = pytest.mark.usefixtures("unchecked")  # parts are wrong on purpose, and fail as they do for a learner


def build(*parts, **options):
    return assemble(*parts, vocab_size=11, pad_id=PAD, **{**SIZES, **options})


def set_encoder(*parts):
    return assemble_set_encoder(*parts, num_features=5, **SIZES)


class Spy:
    """A learner's function: the course's, under its name, with its calls counted."""

    def __init__(self, name):
        self.__name__, self.function, self.calls = name, find(name).reference, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def spy(name):
    """A learner's function or class: the course's, under its name, with its calls counted."""
    if not find(name).is_class:
        return Spy(name)

    class Spied(find(name).reference):
        calls = 0

        def forward(self, *args):  # no need_weights: the contract has none
            Spied.calls += 1
            return super().forward(*args)

    Spied.__name__, Spied.__module__ = name, "student"
    return Spied


def named(name, body):
    """A learner's function of that name."""
    scope = {"torch": torch}
    exec(f"def {name}(*args, **kwargs):\n    {body}", scope)
    return scope[name]


def fitting(name):
    """Options under which a part has its place."""
    return {"positions": next((kind for kind, part in POSITIONS.items() if part == name), None)}


def assert_same_model(ours, theirs):
    """Values and gradients, in double precision."""
    results = [model.double()(SOURCE, TARGET) for model in (ours, theirs)]
    assert_close(*results, **CLOSE)
    for result in results:
        result.square().sum().backward()
    assert_close(gradients(ours), gradients(theirs), **CLOSE)


# --- the same as the course's -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_without_parts_it_is_the_course_s_transformer(positions):
    ours = build(positions=positions)
    course = full.Transformer(ours.config)
    course.load_state_dict(ours.state_dict())
    assert_same_model(ours, course)


@pytest.mark.parametrize("name", PLACES)
def test_each_part_is_really_called_and_changes_nothing_when_it_is_right(name):
    part = spy(name)
    model, plain = build(part, **fitting(name)), build(**fitting(name))
    assert model.parts[name] == "yours"
    assert_close(model.state_dict(), plain.state_dict())
    before = part.calls
    assert_same_model(model, plain)
    assert part.calls > before


def test_all_parts_at_once():
    model = build(*map(spy, PLACES))
    assert_close(model(SOURCE, TARGET), build()(SOURCE, TARGET), rtol=0, atol=1e-5)
    outer = {"MultiHeadAttention", "padding_mask", "decoder_mask", "sinusoidal_encoding", "layer_norm", "FeedForward"}
    assert {name for name, whose in model.parts.items() if whose == "yours"} == outer | {"EncoderLayer", "DecoderLayer"}
    assert model.parts["softmax"] == "yours, not called: your MultiHeadAttention does its work"
    assert model.parts["causal_mask"] == "yours, not called: your decoder_mask does its work"
    assert model.parts["alibi_bias"] == "yours, not called: it has no place in this model"


def test_every_layer_has_your_classes_in_every_place():
    attention, feed_forward = spy("MultiHeadAttention"), spy("FeedForward")
    model = build(attention, feed_forward, spy("EncoderLayer"), spy("DecoderLayer"))
    attention.calls = feed_forward.calls = 0
    model(SOURCE, TARGET)
    assert attention.calls == 2 + 2 * 2  # self-attention in all layers, cross-attention in the decoder's
    assert feed_forward.calls == 2 + 2


@pytest.mark.parametrize("library", [cl, full], ids=["plain", "full"])
def test_classes_of_the_course_may_be_parts_too(library):
    model = build(library.MultiHeadAttention, library.FeedForward, library.EncoderLayer, library.DecoderLayer)
    assert_close(model(SOURCE, TARGET), build()(SOURCE, TARGET), rtol=0, atol=1e-5)
    assert f"{sum(parameter.numel() for parameter in build().parameters()):,} parameters" in repr(model)
    assert set(model.parts.values()) == {"the course's"}


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_positions_inside_attention_come_into_your_layers(positions):
    options = {"positions": positions, "d_model": 8}
    model = build(spy("EncoderLayer"), spy("DecoderLayer"), **options)
    assert_same_model(model, build(**options))
    assert model.parts["MultiHeadAttention"] == model.parts["FeedForward"] == "the course's"


@pytest.mark.parametrize("inner", ["softmax", "merge_heads", "scaled_dot_product_attention", "layer_norm"])
def test_functions_come_into_your_layers_too(inner):
    part, x = Spy(inner), torch.randn(2, 3, 12)
    model = build(part, spy("EncoderLayer"), spy("DecoderLayer"))
    for layer, inputs in ((model.encoder.layers[0], (x,)), (model.decoder.layers[0], (x, x))):
        part.calls = 0
        layer(*inputs)
        assert part.calls > 0


def test_a_layer_s_own_attention_stays():
    own = spy("MultiHeadAttention")

    class EncoderLayer(full.EncoderLayer):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.self_attention = own(*sizes[:2])

        def forward(self, x, mask=None):
            x = self.norm1(x + self.self_attention(x, x, x, mask)[0])
            return self.norm2(x + self.feed_forward(x))

    EncoderLayer.__module__ = "student"
    model = build(EncoderLayer, Spy("split_heads"))
    assert type(model.encoder.layers[0].self_attention) is own
    assert model.parts["MultiHeadAttention"] == "yours, inside your layer"
    with pytest.raises(ValueError, match="rotary positions act inside attention, where the attention of your Enc"):
        build(EncoderLayer, positions="rotary", d_model=8)


# --- properties -------------------------------------------------------------------------------------------------------


def test_the_weights_are_tied_and_have_their_stated_start():
    model = build(positions="learned", max_length=50)
    assert model.output.weight is model.source_embedding.embedding.weight is model.target_embedding.embedding.weight
    assert model.source_embedding.positions.embedding.weight.std().item() == pytest.approx(1, rel=0.1)
    for name, weight in build(d_model=64).named_parameters():
        if "embedding" in name:
            assert weight.std().item() == pytest.approx(1 / 8, rel=0.1)
        elif name.endswith("bias") or "norm" in name:
            assert (weight == (not name.endswith("bias"))).all()
        else:
            assert 0 < weight.abs().max() <= (6 / sum(weight.shape)) ** 0.5


def test_the_seed_decides_the_weights_and_the_global_state_stays():
    class FeedForward(full.FeedForward):  # draws in another order
        def __init__(self, d_model, d_ff):
            super().__init__(d_model, d_ff)
            torch.rand(7)

    with no_side_effects():
        first, other = build(seed=3), build(seed=4)
    torch.manual_seed(99)
    again = build({"FeedForward": FeedForward}, seed=3)
    assert all(map(torch.equal, first.parameters(), again.parameters()))
    assert not torch.equal(first.output.weight, other.output.weight)


def test_attention_maps_can_be_recorded_with_functions_of_yours():
    model = build(Spy("softmax"), Spy("layer_norm"))
    with full.record_attention(model) as maps:
        model(SOURCE, TARGET)
    assert len(maps) == 6
    assert_close(maps["decoder.layers.1.cross_attention"].sum(-1), torch.ones(2, 2, 4))
    assert (maps["decoder.layers.0.cross_attention"][1, ..., 3:] == 0).all()
    assert (maps["decoder.layers.0.self_attention"].triu(1) == 0).all()


def test_a_copy_is_a_model_of_its_own():
    model = build(spy("MultiHeadAttention"), Spy("softmax"))
    twin = copy.deepcopy(model)
    assert_close(twin(SOURCE, TARGET), model(SOURCE, TARGET))
    assert twin.output.weight is not model.output.weight


# --- stubs, and what is not given -------------------------------------------------------------------------------------


def test_a_stub_is_replaced_and_said_so():
    expected = build()(SOURCE, TARGET)
    for name in PLACES:
        scope = {"torch": torch, "nn": nn}
        exec(find(name).stub, scope)
        model = build(scope[name])
        assert model.parts[name] == "the course's (yours is a stub)", name
        assert "yours is a stub" in repr(model)
        assert_close(model(SOURCE, TARGET), expected)


def test_what_is_not_given_is_the_course_s():
    model = build(spy("FeedForward"))
    assert model.parts["FeedForward"] == "yours"
    assert {whose for name, whose in model.parts.items() if name != "FeedForward"} == {"the course's"}
    assert "sinusoidal_encoding" in model.parts
    assert "softmax" not in model.parts  # nothing of the course calls it here
    assert build(cl.layer_norm).parts["layer_norm"] == "the course's"  # given, and not the learner's own


# --- positions --------------------------------------------------------------------------------------------------------


def test_the_positions_are_those_that_you_wrote():
    rotary, alibi, stub = (
        Spy("apply_rotary"),
        Spy("alibi_bias"),
        named("sinusoidal_encoding", "raise NotImplementedError"),
    )
    for parts, options, kind in (
        ([], {}, "sinusoidal"),
        ([rotary], {}, "rotary"),
        ([alibi], {}, "alibi"),
        ([spy("LearnedPositionalEmbedding"), alibi], {}, "learned"),
        ([stub, alibi], {}, "alibi"),
        ([rotary], {"positions": "none"}, "none"),
        ([rotary], {"d_model": 6, "num_heads": 2}, "sinusoidal"),
        ([alibi], {"d_model": 6, "num_heads": 3}, "sinusoidal"),
    ):
        assert build(*parts, **{"d_model": 16, "num_heads": 4, **options}).config.positions == kind, (parts, options)
    blocked = build(rotary, spy("MultiHeadAttention"), d_model=16, num_heads=4)
    assert blocked.config.positions == "sinusoidal"
    assert blocked.parts["apply_rotary"] == "yours, not called: it has no place in this model"


@pytest.mark.parametrize(
    ("positions", "name"), [("rotary", "MultiHeadAttention"), ("alibi", "scaled_dot_product_attention")]
)
def test_positions_inside_attention_need_a_place_there(positions, name):
    with pytest.raises(ValueError, match=f"{positions} positions act inside attention, where your {name} does not sup"):
        build(spy(name), positions=positions)


# --- sets -------------------------------------------------------------------------------------------------------------


def test_items_exchanged_exchange_their_scores():
    model = set_encoder(spy("EncoderLayer"), Spy("softmax"), Spy("causal_mask"))
    features, order = torch.randn(3, 7, 5), torch.randperm(7)
    scores = model(features)
    assert scores.shape == (3, 7)
    assert_close(model(features[:, order]), scores[:, order])
    assert_close(scores, set_encoder()(features))
    assert model.parts["EncoderLayer"] == model.parts["softmax"] == "yours"
    assert model.parts["causal_mask"] == "yours, not called: it has no place in this model"
    assert "Set encoder, 2 layers" in repr(model)
    assert "5 features" in model._repr_html_()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (named("kernel_regression", "pass"), ValueError, r"a place in a transformer, got 'kernel_regression'.*softmax"),
        ("softmax", TypeError, "got the text 'softmax'; write softmax, without quotes"),
        (3, TypeError, "expected your functions and classes, got an object of type int"),
        ({"FeedForward": full.FeedForward(2, 3)}, TypeError, "the class FeedForward itself, got an object of type"),
        (named("FeedForward", "pass"), TypeError, "expected the class FeedForward itself, got a function"),
        (type("softmax", (), {}), TypeError, "expected the function softmax itself, got a class"),
        (named("softmax", "return 3"), ValueError, r"your softmax must return weights .* int; check\(softmax\)"),
        (named("merge_heads", "return None"), ValueError, r"your merge_heads must return .*got None"),
        (named("attend", "return torch.ones(2)"), ValueError, r"your attend must return \(output, weights\), got \(2,"),
        (named("padding_mask", "return (args[0] != 0).float()"), ValueError, r"\(2, 1, 1, 3\) bool .*float32"),
        (named("layer_norm", "return args[0] / 0 @ 1"), ValueError, r"layer_norm fails on a tiny input .*check"),
    ],
)  # fmt: skip
def test_what_cannot_be_put_in(part, error, message):
    with pytest.raises(error, match=message):
        build(part)


def test_a_part_given_twice_and_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="each part once, got softmax twice"):
        build(cl.softmax, cl.softmax)
    with pytest.raises(ValueError, match="num_heads must divide d_model"):
        build(num_heads=5)
    with pytest.raises(ValueError, match="vocab_size must be at least 2"):
        assemble(vocab_size=1)
    with pytest.raises(ValueError, match="num_features must be at least 1"):
        assemble_set_encoder(num_features=0)


def test_a_layer_without_its_sub_modules_is_named():
    class EncoderLayer(nn.Module):
        def __init__(self, d_model, num_heads, d_ff):
            super().__init__()
            self.norm1 = nn.LayerNorm(d_model)

    with pytest.raises(ValueError, match=r"but self_attention, feed_forward, norm2 cannot be found; check\(Encoder"):
        build(EncoderLayer)


def test_a_part_that_fails_only_in_the_model_is_named():
    def causal_mask(length):
        return torch.ones(length - length // 5, length, dtype=torch.bool).tril()

    class FeedForward(full.FeedForward):
        def forward(self, x):
            if x.shape[1] == 5:
                raise ZeroDivisionError("five")
            return super().forward(x)

    words = r"own, but in the model they fail with ValueError: self_mask .*; check\(causal_mask\), check\(attend\) says"
    with pytest.raises(ValueError, match=words):
        build(causal_mask, Spy("attend"))
    with pytest.raises(ValueError, match=r"in the model your FeedForward fails .*five; check\(FeedForward\) says"):
        build(Spy("attend"), FeedForward)


def test_a_part_whose_gradient_fails_is_named():
    def softmax(scores, dim=-1):
        weights = scores.softmax(dim)
        weights.register_hook(lambda gradient: 1 / 0)
        return weights

    with pytest.raises(ValueError, match=r"your softmax fails on a tiny input with ZeroDivisionError.*check\(softmax"):
        build(softmax)


def test_a_wrong_shape_that_comes_of_all_parts_together_is_found():
    class DecoderLayer(full.DecoderLayer):
        def forward(self, x, *args):
            return super().forward(x, *args)[:, :4]

    with pytest.raises(ValueError, match=r"must return logits of shape \(2, 5, 11\), got \(2, 4, 11\); check\(Decoder"):
        build(DecoderLayer, num_layers=1)

    class EncoderLayer(full.EncoderLayer):
        def forward(self, x, mask=None):
            return super().forward(x, mask)[: 1 if mask is None else None]

    words = r"return scores of shape \(2, 3\), got \(1, 3\); check\(FeedForward\), check\(EncoderLayer\) says"
    with pytest.raises(ValueError, match=words):
        set_encoder(spy("FeedForward"), EncoderLayer)


@pytest.mark.parametrize(
    ("name", "body", "shape"),
    [
        ("attend", "w = args[0].softmax(-1); return (w @ args[1]).squeeze(0), w", r"\(1, 2, 4, 6\) .* \(2, 4, 6"),
        ("causal_mask", "return torch.ones(3, 3, dtype=torch.bool).tril()", r"\(4, 4\) bool .*got \(3, 3\) bool"),
        ("padding_mask", "return (args[0] != args[1])[:, None, None].squeeze(0)", r"\(1, 1, 1, 4\) bool .*\(1, 1, 4\)"),
        ("split_heads", "return args[0].view(*args[0].shape[:2], 2, 6).permute(2, 0, 1, 3)", r"\(1, 2, 4, .*\(2, 1"),
    ],
)  # fmt: skip
def test_a_shape_that_is_right_by_chance_is_found_with_other_sizes(name, body, shape):
    with pytest.raises(ValueError, match=rf"your {name} must return .*{shape}.*; check\({name}\) says what is wrong"):
        build(named(name, body))


def test_prints_and_warnings_of_parts_are_held_back(capsys):
    build(named("softmax", "print('x'); import warnings; warnings.warn('y'); return torch.softmax(*args, **kwargs)"))
    assert capsys.readouterr() == ("", "")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACES)
def test_a_wrong_part_is_put_in_or_refused_with_its_name(name):
    """Every misconception: it runs (and will not learn, or less well), or the message says what to look at."""
    runs, messages = 0, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for misconception in (m for m in find(name).misconceptions if not m.inherited_from):
            try:
                model = build({name: misconception.solution}, num_layers=1, **fitting(name))
            except ValueError as error:
                messages[misconception.key] = str(error)
            else:
                for source, target in ((SOURCE, TARGET), (SOURCE[:1, :1], TARGET[:1, :1])):
                    assert model(source, target).shape == (*target.shape, 11)
                runs += 1
    assert runs > 0
    assert not {key: text for key, text in messages.items() if f"check({name})" not in text}


def is_a_part(cell):
    """Some write a function as a class whose instances are results: right in an exercise, and no part of a model."""
    return cell.exercise in PLACES and inspect.isclass(cell.load()) == find(cell.exercise).is_class


@pytest.mark.thorough
@pytest.mark.parametrize("cell", [cell for cell in cells("right") if is_a_part(cell)], ids=lambda cell: cell.key)
def test_right_parts_of_other_people_do_as_the_course_s(cell, capsys):
    options = {"num_layers": 1, **fitting(cell.exercise)}
    model = build({cell.exercise: cell.load()}, **options)
    assert model.parts[cell.exercise] == "yours"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_close(model(SOURCE, TARGET), build(**options)(SOURCE, TARGET), rtol=0, atol=1e-4)


# --- training ---------------------------------------------------------------------------------------------------------


def test_a_decoder_that_saw_the_future_cannot_write():
    def causal_mask(length):
        return torch.ones(length, length, dtype=torch.bool)

    model = assemble(causal_mask, vocab_size=6, d_model=32, num_heads=2, d_ff=64)
    task = copy_task(length=3, vocab_size=6, min_length=2)
    result = train_on(model, task, steps=120, evaluate_every=40, num_fresh=200, warmup_steps=20, show_progress=False)
    assert result.losses[-1] < 0.1
    assert not result.reached
    words = "copy: did not reach 100 %, most of 200 fresh sequences are wrong; the loss is small nevertheless"
    assert words in repr(result)
