"""Mistakes of both layers: which norm stands where, what the constructors build, and what is inherited."""

from __future__ import annotations

from torch import nn

from course_lib.exercises._headings import ENCODER_LAYER, RESIDUALS
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import attend_with, attending
from course_lib.exercises.transformer.feed_forward import FeedForward
from course_lib.exercises.transformer.feed_forward import exercise as feed_forward_exercise
from course_lib.exercises.transformer.layer_norm import exercise as layer_norm_exercise
from course_lib.exercises.transformer.variants import PARTS, built_with, hidden
from course_lib.multi_head import MultiHeadAttention

__all__ = ["MASK_OUT_OF_LINE", "add_inherited", "add_norm_names", "add_parts", "layers_attending"]


MASK_OUT_OF_LINE = "Your own attention then gets a mask that does not line up with its scores."


def add_norm_names(mistake, build, count):
    """Misconceptions about which norm stands where."""
    usual = tuple(range(1, count + 1))
    for one in usual:
        mistake.named(
            f"only_norm{one}",
            f"norm{one} does the work of all norms. Each sub-layer is followed by a norm with gain and bias of its "
            f"own.",
            look=RESIDUALS,
        )(build(norms=(one,) * count))
    for one in usual[1:]:
        order = list(usual)
        order[one - 2 : one] = one, one - 1
        mistake.named(
            f"norms_{one - 1}_{one}_exchanged",
            f"norm{one - 1} and norm{one} have changed places. They follow the sub-layers in the order of their "
            f"numbers.",
        )(build(norms=tuple(order)))


def _own_feed_forward(between):
    return lambda d_model, num_heads, d_ff: hidden(between)(d_model, d_ff)


def add_parts(mistake, base, attentions, norms):
    """Misconceptions about what the constructor builds, the same for both layers."""

    def attention(make):
        return built_with(base, **dict.fromkeys(attentions, make))

    def norm(make):
        return built_with(base, **dict.fromkeys(norms, make))

    says = mistake.named
    says(
        "attention_sizes_exchanged",
        "`MultiHeadAttention` gets its arguments in the wrong order: the width of the model comes first, then the "
        "number of heads.",
    )(attention(lambda d, h, f: MultiHeadAttention(h, d)))
    says(
        "one_head",
        "num_heads does not arrive at the attention, which works with a single head. The weights fit all the same, "
        "so nothing complains.",
    )(attention(lambda d, h, f: MultiHeadAttention(d, 1)))
    for heads in (2, 4, 8):
        says(
            f"fixed_{heads}_heads",
            f"The attention is built with {heads} heads, whatever num_heads is. The weights of any number of heads "
            f"fit, so "
            f"nothing complains as long as it divides d_model.",
        )(attention(lambda d, h, f, heads=heads: MultiHeadAttention(d, heads)))
    says(
        "head_width_as_heads",
        "The attention gets the width of a head, d_model / num_heads, in place of the number of heads. The weights fit "
        "all the same, so nothing complains.",
    )(attention(lambda d, h, f: MultiHeadAttention(d, d // h)))
    says(
        "torch_attention",
        "This is PyTorch's `nn.MultiheadAttention`: its parameters have other names, and its masks the opposite "
        "meaning. The contract asks for the course's `MultiHeadAttention`.",
        look=ENCODER_LAYER,
    )(attention(lambda d, h, f: nn.MultiheadAttention(d, h, batch_first=True)))
    says("attention_without_bias", "The projections of the attention are built without their biases.")(
        attention(lambda d, h, f: MultiHeadAttention(d, h, bias=False))
    )
    says(
        "feed_forward_sizes_exchanged",
        "`FeedForward` gets its arguments in the wrong order: the width of the model comes first, then the number of "
        "hidden features.",
    )(built_with(base, feed_forward=lambda d, h, f: FeedForward(f, d)))
    says(
        "width_of_feed_forward_ignored", "d_ff does not arrive at the feed-forward network, which is 4 · d_model wide."
    )(built_with(base, feed_forward=lambda d, h, f: FeedForward(d, 4 * d)))
    says(
        "feed_forward_sequential",
        "The feed-forward network is an `nn.Sequential`, whose parameters are called `0` and `2`. The contract asks "
        "for a `FeedForward`, with linear1 and linear2.",
    )(built_with(base, feed_forward=lambda d, h, f: nn.Sequential(nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d))))
    says(
        "feed_forward_one_linear",
        "The feed-forward network is a single Linear. It has two, with d_ff hidden features and a ReLU between them.",
    )(built_with(base, feed_forward=lambda d, h, f: nn.Linear(d, d)))
    says("feed_forward_linear", "The feed-forward network has no activation between its Linears.")(
        built_with(base, feed_forward=_own_feed_forward(lambda h: h))
    )
    says("feed_forward_gelu", "The feed-forward network has GELU between its Linears; the paper's has ReLU.")(
        built_with(base, feed_forward=_own_feed_forward(nn.functional.gelu))
    )
    says(
        "eps_1e6",
        "The norms work with eps = 1e-6, where the contract has the default of `nn.LayerNorm`. It shows in float64 "
        "first.",
    )(norm(lambda d, h, f: nn.LayerNorm(d, eps=1e-6)))
    says(
        "eps_tiny",
        "The norms work with an eps far below the default of `nn.LayerNorm`, or with none. It shows in float64 first.",
    )(norm(lambda d, h, f: nn.LayerNorm(d, eps=1e-9)))
    says(
        "norms_without_parameters",
        "The norms are built without gain and bias, so there is nothing to load and nothing to learn.",
        look=RESIDUALS,
    )(norm(lambda d, h, f: nn.LayerNorm(d, elementwise_affine=False)))
    says(
        "batch_norm",
        "This is batch norm, which mixes the sequences of a batch. Layer norm takes each position alone.",
        look=RESIDUALS,
    )(norm(lambda d, h, f: nn.BatchNorm1d(d)))
    says(
        "rms_norm",
        "This is RMSNorm, which takes off no mean and has no bias. The contract asks for `nn.LayerNorm`.",
        look=RESIDUALS,
    )(norm(lambda d, h, f: nn.RMSNorm(d)))
    says(
        "one_norm_module",
        "There is only one norm, under one name or under several. Each sub-layer has its own, with its own gain and "
        "bias.",
        look=RESIDUALS,
    )(built_with(base, **dict.fromkeys(norms[1:])))
    says(
        "norms_too_wide",
        "The norms are built for d_ff features. How wide is the sum that they are applied to?",
        look=RESIDUALS,
    )(norm(lambda d, h, f: nn.LayerNorm(f)))


def layers_attending(base, *places):
    """From a wrong attention the layer that has it in these places."""
    return lambda wrong: built_with(base, **dict.fromkeys(places, lambda d, h, f: wrong(d, h)))


def _norming(base, *places):
    """From a wrong layer norm the layer that has it, as a module with the parameters of the right one."""

    def build(wrong):
        class Norm(nn.LayerNorm):
            def forward(self, x):
                return wrong(x, self.weight, self.bias)

        return built_with(base, **dict.fromkeys(places, lambda d, h, f: Norm(d)))

    return build


def add_inherited(mistake, base, norms):
    """The mistakes of a learner's own norm and feed-forward network, and of an attention with finite masked scores."""
    attentions = [name for name in PARTS[base.__name__] if name.endswith("attention")]
    for axis, words in ((-2, "queries"), (1, "heads"), (0, "sequences of the batch")):
        attend = attend_with(dim=axis, hide=lambda scores, mask: scores.masked_fill(~mask, -1e9))
        mistake.named(
            f"softmax_over_{words.split()[0]}",
            f"In your attention, the softmax runs over the {words}. The weights of a query over its keys add up to 1.",
            look="multi_head: The formula",
        )(layers_attending(base, *attentions)(attending(attend)))
    mistake.contains(layer_norm_exercise, _norming(base, *norms), called="layer norm")
    mistake.contains(
        feed_forward_exercise,
        lambda wrong: built_with(base, feed_forward=lambda d, h, f: wrong(d, f)),
        called="feed-forward network",
        prefix="feed_forward",
    )
