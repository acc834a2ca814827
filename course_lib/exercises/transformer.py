"""Exercises of the chapter on the transformer's layers."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises import multi_head
from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._small_layers import (
    DECODER_OF_FOUR,
    DECODER_OF_TWO,
    ENCODER_OF_FOUR,
    ENCODER_OF_TWO,
    rows,
)
from course_lib.exercises._two_slips import two_slips
from course_lib.multi_head import MultiHeadAttention
from course_lib.transformer import layer_norm, transformer_parameter_count

__all__ = ["COUNT", "DECODER", "ENCODER", "FEED_FORWARD", "LAYER_NORM"]

NORM = "transformer: Residual connections and layer norm"
POST = "transformer: Pre-norm and post-norm"
ENCODING = "transformer: The encoder layer"
DECODING = "transformer: The decoder layer"
COUNTING = "transformer: Counting parameters"
IN_ENCODER, IN_DECODER = "transformer: The encoder layer", "transformer: The decoder layer"  # where a mask goes

# Layer norm

LAYER_NORM = Exercise(
    name="layer_norm",
    title="Layer norm",
    statement="""\
Deep stacks need something that keeps numbers in range: layer norm brings the features of each position to the same
scale. For one vector $x$ of $d$ features

$$y_i = g_i\\,\\frac{x_i - \\mu}{\\sqrt{\\sigma^2 + \\epsilon}} + b_i,\\qquad
\\mu = \\frac1d\\sum_j x_j,\\qquad \\sigma^2 = \\frac1d\\sum_j (x_j - \\mu)^2 .$$

- `x` is `(..., d)`: any number of axes before the last, none included. Every vector along the last axis has its own
  $\\mu$ and $\\sigma^2$.
- `gain` ($g$) and `bias` ($b$) are `(d,)`, `eps` ($\\epsilon$) is a number.
- Return `(..., d)`.

The variance is divided by $d$, not by $d - 1$, and `eps` is added to it under the root. A vector of equal features
comes out as `bias`. In float32, vectors that lie around ±1000 and spread by about 1 should still come out right to
three digits.""",
    difficulty=2,
    minutes=10,
    stub='''\
def layer_norm(x, gain, bias, eps=1e-5):
    """Mean 0 and variance 1 over the last axis of x, then times gain, plus bias."""
    raise NotImplementedError
''',
    hints=(
        "Which numbers share one mean? Write the shape of the mean beside the shape of `x`: how do they line up when "
        "you subtract?",
        "`keepdim=True` leaves an axis of length one where the mean was taken, so the mean lines up with `x` whatever "
        "stands before.",
        "Centre first, then take the mean of the squares of what you have centred: that is the variance divided by d, "
        "and it stays exact where the mean is large. `torch.var` divides by d − 1 unless you tell it otherwise.",
    ),
    reference=layer_norm,
    shapes={"x": "... d", "gain": "d", "bias": "d"},
    look=NORM,
    twins=(
        "layer_norm",
        "native_layer_norm",
        "group_norm",
        "native_group_norm",
        "instance_norm",
        "batch_norm",
        "native_batch_norm",
        "_native_batch_norm_legit",
    ),
)


def _vectors(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    (width,) = draw.sizes(1, 3, 8, but=batch)
    return (
        draw.normal(*batch, width, dtype=dtype, scale=scale),
        draw.normal(width, dtype=dtype),
        draw.normal(width, dtype=dtype),
    )


@LAYER_NORM.holds("Each vector gets mean 0 and variance 1 over its own features, then gain and bias", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 2.0]), torch.tensor([0.0, 10.0])),
        edge="the smallest case, to be read by eye: mean 2, variance 1",
        note="mean 2, variance 1",
    )
    for batch in draw.batches():
        rows = draw.sizes(1, but=batch)
        yield Case(args=_vectors(draw, (*batch, *rows)))


@LAYER_NORM.holds("It works for a single vector and for any number of axes before the last, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_vectors(draw, batch, dtype), note=f"{len(batch)} axes before the last")


@LAYER_NORM.holds("eps is added to the variance, under the root", weight=2)
def _(draw):
    rows = draw.sizes(1)
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_vectors(draw, rows, dtype, scale=2e-3), note="a variance as small as eps")
    yield Case(args=(*_vectors(draw, rows, torch.float64), 0.5), note="eps = 0.5")
    yield Case(args=(*_vectors(draw, rows), 1e-2), note="eps = 0.01")
    yield Case(args=(*_vectors(draw, rows, scale=2e-3), 0.0), note="eps = 0")
    x, gain, bias = _vectors(draw, rows, torch.float64)
    x[0] = 3.0
    yield Case(args=(x, gain, bias), note="one vector of equal features")


@LAYER_NORM.holds("A large mean does not spoil the variance")
def _(draw):
    for batch in ((4,), (2, 3)):
        x, gain, bias = _vectors(draw, batch)
        x = x / x.std(-1, keepdim=True)
        signs = torch.tensor([1.0, -1.0] * (x.shape[:-1].numel() // 2)).view(*batch, 1)
        yield Case(args=(x + 1000 * signs, gain, bias), note="means of ±1000", tolerance=50, gradients=False)


def _mean(x):
    return x.mean(-1, keepdim=True)


def _norm(centre=_mean, power=lambda x: x.var(-1, keepdim=True, correction=0), root=None, apply=None, default=1e-5):
    """Layer norm with one step exchanged."""

    def norm(x, gain, bias, eps=default):
        centred = x - centre(x)
        variance = power(x)
        y = centred / ((variance + eps).sqrt() if root is None else root(variance, eps))
        return y * gain + bias if apply is None else apply(y, gain, bias)

    return norm


def _over(*dims):
    """Layer norm over other axes."""
    return _norm(centre=lambda x: x.mean(dims, keepdim=True), power=lambda x: x.var(dims, keepdim=True, correction=0))


LAYER_NORM.misconception(
    "unbiased_variance",
    "The variance is divided by d − 1. Nothing is estimated from a sample here: the d features are all there are. "
    "`torch.var` has an argument for that.",
)(_norm(power=lambda x: x.var(-1, keepdim=True)))
LAYER_NORM.misconception(
    "eps_outside_root",
    "eps is added to the standard deviation, outside the root. It belongs to the variance; where the variance is "
    "small, that is a large difference.",
)(_norm(root=lambda variance, eps: variance.sqrt() + eps))
LAYER_NORM.misconception(
    "unbiased_and_eps_outside",
    "Two slips at once, seen in many tutorials: the standard deviation is the unbiased one (divided by d − 1), and eps "
    "is added to it outside the root.",
)(_norm(power=lambda x: x.var(-1, keepdim=True), root=lambda variance, eps: variance.sqrt() + eps))
LAYER_NORM.misconception(
    "root_missing",
    "The vector is divided by its variance. Multiply x by 2: by how much does the variance grow, and what has the same "
    "unit as x?",
)(_norm(root=lambda variance, eps: variance + eps))
LAYER_NORM.misconception(
    "multiplied_by_root",
    "The centred vector is multiplied by its standard deviation, so what is spread out gets spread out more.",
)(_norm(root=lambda variance, eps: (variance + eps) ** -0.5))
LAYER_NORM.misconception(
    "eps_missing",
    "eps is not used. A vector of equal features has variance 0, and 0 / 0 is nan.",
)(_norm(root=lambda variance, eps: variance.sqrt()))
LAYER_NORM.misconception(
    "eps_fixed",
    "The argument eps makes no difference: a fixed number stands in its place.",
)(_norm(root=lambda variance, eps: (variance + 1e-5).sqrt()))
LAYER_NORM.misconception(
    "eps_default_1e6",
    "Right where eps is given, and wrong where its default is used: the default is not 1e-6.",
)(_norm(default=1e-6))
LAYER_NORM.misconception(
    "eps_default_1e8",
    "Right where eps is given, and wrong where its default is used: 1e-8 is another function's default.",
)(_norm(default=1e-8))
LAYER_NORM.misconception(
    "eps_default_1e12",
    "Right where eps is given, and wrong where its default is used: 1e-12 is BERT's default.",
)(_norm(default=1e-12))
LAYER_NORM.misconception(
    "eps_squared",
    "The square of eps is added to the variance; eps itself belongs there.",
)(_norm(root=lambda variance, eps: (variance + eps**2).sqrt()))
LAYER_NORM.misconception(
    "eps_as_bound",
    "eps is used as the least variance allowed. It is added, to every variance, small or large.",
)(_norm(root=lambda variance, eps: variance.clamp(min=eps).sqrt()))
LAYER_NORM.misconception(
    "deviation_bounded",
    "eps is used as the least standard deviation allowed. It is added, under the root, whatever the variance is.",
)(_norm(root=lambda variance, eps: variance.sqrt().clamp(min=eps)))
LAYER_NORM.misconception(
    "sum_of_squares",
    "The squares are summed up and not divided by d, so wide vectors come out smaller than narrow ones.",
)(_norm(power=lambda x: (x - _mean(x)).square().sum(-1, keepdim=True)))
LAYER_NORM.misconception(
    "unit_length",
    "The centred vector is brought to length 1. What should be 1 is its variance; its length is then √d.",
)(_norm(root=lambda variance, eps: variance.sqrt(), power=lambda x: (x - _mean(x)).square().sum(-1, keepdim=True)))
LAYER_NORM.misconception(
    "mean_of_deviations",
    "The spread is the mean of absolute deviations. The variance is the mean of their squares.",
)(_norm(root=lambda spread, eps: spread + eps, power=lambda x: (x - _mean(x)).abs().mean(-1, keepdim=True)))
LAYER_NORM.misconception(
    "unstable_variance",
    "The variance is computed as the mean of squares minus the square of the mean. For a large mean these are two huge "
    "numbers whose difference has lost its digits; the order of the two steps, centring and squaring, saves them.",
)(_norm(power=lambda x: x.square().mean(-1, keepdim=True) - _mean(x).square()))
LAYER_NORM.misconception(
    "not_centred",
    "The mean is not taken off what is scaled: divided by the right root, the vector still has its old mean.",
)(_norm(centre=lambda x: 0))
LAYER_NORM.misconception(
    "rms_norm",
    "No mean is taken off anywhere: this is RMSNorm, the mean of squares about zero. Layer norm takes it about the "
    "mean.",
)(_norm(centre=lambda x: 0, power=lambda x: x.square().mean(-1, keepdim=True)))
LAYER_NORM.misconception(
    "square_about_zero",
    "The vector is centred, but its squares are averaged before that, about zero instead of about the mean.",
)(_norm(power=lambda x: x.square().mean(-1, keepdim=True)))
LAYER_NORM.misconception(
    "not_scaled",
    "The mean is taken off, and that is all: the features keep their spread.",
)(_norm(root=lambda variance, eps: 1.0))
LAYER_NORM.misconception(
    "gain_and_bias_ignored",
    "gain and bias are not used. The network needs them to undo the norm where that helps.",
)(_norm(apply=lambda y, gain, bias: y))
LAYER_NORM.misconception("gain_ignored", "gain is not used.")(_norm(apply=lambda y, gain, bias: y + bias))
LAYER_NORM.misconception("bias_ignored", "bias is not used.")(_norm(apply=lambda y, gain, bias: y * gain))
LAYER_NORM.misconception(
    "gain_and_bias_exchanged",
    "gain is added and bias is multiplied: their roles are exchanged.",
)(_norm(apply=lambda y, gain, bias: y * bias + gain))
LAYER_NORM.misconception(
    "bias_scaled",
    "The bias is added before the gain, and so multiplied by it.",
)(_norm(apply=lambda y, gain, bias: (y + bias) * gain))
LAYER_NORM.misconception(
    "gain_plus_one",
    "The result is multiplied by 1 + gain. Some models store their gain that way; here gain = 1 means leave it alone.",
)(_norm(apply=lambda y, gain, bias: y * (1 + gain) + bias))
LAYER_NORM.misconception(
    "divided_by_gain",
    "The result is divided by gain instead of multiplied.",
)(_norm(apply=lambda y, gain, bias: y / gain + bias))
LAYER_NORM.misconception(
    "gain_and_bias_first",
    "gain and bias come before the norm, which takes part of them away again. Which of the two comes last?",
)(lambda x, gain, bias, eps=1e-5: layer_norm(x * gain + bias, torch.ones_like(gain), torch.zeros_like(bias), eps))
LAYER_NORM.misconception(
    "over_first_axis",
    "Mean and variance run over the first axis. Each vector has its own, over its features: the last axis.",
)(_over(0))
LAYER_NORM.misconception(
    "over_axis_1",
    "Mean and variance run over axis 1, counted from the left. That is the axis of the features for two axes only; "
    "count from the right.",
)(_over(1))
LAYER_NORM.misconception(
    "over_axis_2",
    "Mean and variance run over axis 2, counted from the left. That is the axis of the features for three axes only; "
    "count from the right.",
)(_over(2))
LAYER_NORM.misconception(
    "over_positions",
    "Mean and variance run over the last axis but one, the positions. A position's norm must not depend on the others.",
)(_over(-2))
LAYER_NORM.misconception(
    "over_last_two",
    "Mean and variance run over the last two axes together. Each position has its own.",
)(_over(-2, -1))
LAYER_NORM.misconception(
    "over_last_two_if_there_are_two",
    "Mean and variance run over the last two axes together where there are two. Each position has its own.",
)(lambda x, gain, bias, eps=1e-5: (_over(-2, -1) if x.dim() > 1 else layer_norm)(x, gain, bias, eps))
LAYER_NORM.misconception(
    "over_everything",
    "One mean and one variance are taken of all numbers together. Each vector along the last axis has its own.",
)(_norm(centre=lambda x: x.mean(), power=lambda x: x.var(correction=0)))
LAYER_NORM.misconception(
    "over_everything_unbiased",
    "One mean and one variance are taken of all numbers together, and divided by one less than their number. Each "
    "vector along the last axis has its own, of d features, divided by d.",
)(_norm(centre=lambda x: x.mean(), power=lambda x: x.var()))
LAYER_NORM.misconception(
    "spread_of_everything",
    "Each vector has its own mean, but one variance is taken of all numbers together.",
)(_norm(power=lambda x: (x - _mean(x)).square().mean()))
LAYER_NORM.misconception(
    "over_all_but_first",
    "Mean and variance run over all axes but the first, as for an image. Here each vector along the last axis is "
    "alone.",
)(_norm(centre=lambda x: _flat_mean(x, x), power=lambda x: _flat_mean(x, (x - _flat_mean(x, x)).square())))
LAYER_NORM.misconception(
    "axis_dropped",
    "A mean or a variance has lost its axis, so it lines up with the features instead of the positions. One argument "
    "keeps the axis, with length one.",
)(_norm(centre=lambda x: x.mean(-1), power=lambda x: x.var(-1, correction=0)))
LAYER_NORM.misconception(
    "gain_as_column",
    "gain and bias have been given an axis more, so they line up with the positions. There is one of each a feature, "
    "and the features are the last axis already.",
)(_norm(apply=lambda y, gain, bias: y * gain.unsqueeze(-1) + bias.unsqueeze(-1)))
LAYER_NORM.misconception(
    "statistics_detached",
    "The values are right; mean and variance are cut off from the gradient. They depend on x, and the gradient has to "
    "know.",
)(_norm(centre=lambda x: _mean(x).detach(), power=lambda x: x.var(-1, keepdim=True, correction=0).detach()))
LAYER_NORM.misconception(
    "variance_detached",
    "The values are right; the variance is cut off from the gradient. It depends on x, and the gradient has to know.",
)(_norm(power=lambda x: x.var(-1, keepdim=True, correction=0).detach()))


LAYER_NORM.misconception(
    "eps_in_the_numerator",
    "eps is added to the centred vector, above the line. It belongs to the variance, under the root.",
)(
    lambda x, gain, bias, eps=1e-5: (
        (x - _mean(x) + eps) / (x.var(-1, keepdim=True, correction=0) + eps).sqrt() * gain + bias
    )
)
LAYER_NORM.misconception(
    "eps_in_and_outside_the_root",
    "eps is added twice: under the root, and to the root once more. It belongs to the variance alone.",
)(_norm(root=lambda variance, eps: (variance + eps).sqrt() + eps))
LAYER_NORM.misconception(
    "divided_by_rows",
    "The sums are divided by the length of the first axis: `len(x)` and `x.shape[0]` count vectors. How many features "
    "has a vector?",
)(
    _norm(
        centre=lambda x: x.sum(-1, keepdim=True) / len(x),
        power=lambda x: (x - x.sum(-1, keepdim=True) / len(x)).square().sum(-1, keepdim=True) / len(x),
    )
)
LAYER_NORM.misconception(
    "min_and_max",
    "The vector is brought to the range from 0 to 1 by its least and largest feature. Wanted are mean 0 and variance "
    "1.",
)(
    lambda x, gain, bias, eps=1e-5: (
        (x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True) + eps) * gain + bias
    )
)
LAYER_NORM.misconception(
    "root_of_deviation",
    "The root is taken twice: a standard deviation has its root already.",
)(_norm(root=lambda variance, eps: (variance.sqrt() + eps).sqrt()))
LAYER_NORM.misconception(
    "variance_squared",
    "The vector is divided by the square of its variance, or a power has the wrong exponent. What has the same unit as "
    "x?",
)(_norm(root=lambda variance, eps: (variance + eps) ** 2))


@LAYER_NORM.misconception(
    "three_axes_unpacked",
    "The shape of x is unpacked into three names, so only one number of axes works. The last axis is all that this "
    "function needs: count from the right.",
)
def _(x, gain, bias, eps=1e-5):
    _batch, _length, _d = x.shape
    return layer_norm(x, gain, bias, eps)


@LAYER_NORM.misconception(
    "two_axes_unpacked",
    "The shape of x is unpacked into two names, so only one number of axes works. The last axis is all that this "
    "function needs: count from the right.",
)
def _(x, gain, bias, eps=1e-5):
    _rows, _d = x.shape
    return layer_norm(x, gain, bias, eps)


@LAYER_NORM.misconception(
    "centred_in_place",
    "The result is right, but x is centred in place, and x belongs to the caller: `-=` writes to it.",
)
def _(x, gain, bias, eps=1e-5):
    x -= _mean(x)
    return layer_norm(x, gain, bias, eps)


LAYER_NORM.misconception(
    "float32_inside",
    "The computation is done in float32 whatever the dtype of x is: what float64 has more is lost on the way.",
)(lambda x, gain, bias, eps=1e-5: layer_norm(x.float(), gain.float(), bias.float(), eps).to(x.dtype))


def _flat_mean(like, x):
    return x.mean(tuple(range(1, x.dim())) or -1, keepdim=True)


# Feed-forward


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())  # (..., d_ff) between, (..., d_model) at the end


FEED_FORWARD = Exercise(
    name="FeedForward",
    title="The position-wise feed-forward network",
    statement="""\
Attention moves information between positions; what is done with it at each position is the work of a small network,
the same one everywhere:

$$\\operatorname{FFN}(x) = W_2\\,\\max(0,\\, W_1 x + b_1) + b_2 .$$

Write it as a module.

- `FeedForward(d_model, d_ff)` has two sub-modules with these names: `linear1`, an `nn.Linear` from `d_model` to
  `d_ff` features, and `linear2`, an `nn.Linear` from `d_ff` to `d_model`. Both have a bias.
- `forward(x)` takes `(..., d_model)` and returns `(..., d_model)`. The dots stand for any number of axes, none
  included.

There is no dropout, no residual connection and no norm in it: the layer around it sees to these.""",
    difficulty=1,
    minutes=5,
    stub='''\
class FeedForward(nn.Module):
    """linear2 of the ReLU of linear1, at every position."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError
''',
    hints=(
        "How many features go into each of the two Linears, and how many come out? Write it down before the code.",
        "max(0, ·) of every number alone is the ReLU; tensors have it as a method. It stands in one place only.",
        "`nn.Linear` works on the last axis and leaves all others alone, so `x` needs no reshaping.",
    ),
    reference=FeedForward,
    shapes={"x": "... d_model"},
    look="transformer: The feed-forward network",
)


def _hidden_case(draw: Draw, batch=(), dtype=torch.float32, **more):
    d_model, d_ff = draw.sizes(2, 2, 9, but=batch)
    state = FEED_FORWARD.draw_state(draw, d_model, d_ff, dtype=dtype)
    return Case(args=(draw.normal(*batch, d_model, dtype=dtype),), init=(d_model, d_ff), state=state, **more)


@FEED_FORWARD.holds("It is the second Linear of the ReLU of the first", weight=3)
def _(draw):
    yield Case(
        args=(rows("2 -1 / 3 4")[None],),
        init=(2, 3),
        state={
            "linear1.weight": rows("1 0 / -1 1 / 1 2"),
            "linear1.bias": rows("0 1 1"),
            "linear2.weight": rows("1 2 0 / -1 0 1"),
            "linear2.bias": rows("3 -2"),
        },
        edge="a small case, to be followed with a pencil",
        note="hidden features 2, −2, 1 and 3, 2, 12 before the ReLU",
    )
    for _ in range(3):
        yield _hidden_case(draw, draw.sizes(2, 2, 5))


@FEED_FORWARD.holds(
    "It works for a single position and for any number of axes before the features, in float32 and float64"
)
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield _hidden_case(draw, batch, dtype, note=f"{len(batch)} axes before the features")
    yield _hidden_case(draw, (2, 3, 4), note="3 axes before the features")


def _hidden(between=torch.relu, before=lambda x: x, after=lambda y, x: y):
    """The network with something else between, before and after its Linears."""

    class Network(FeedForward):
        def forward(self, x):
            return after(self.linear2(between(self.linear1(before(x)))), x)

    return Network


def _with(base, **parts):
    """A layer some of whose parts are made otherwise: by a function of the constructor's arguments; None, left out."""

    class Layer(base):
        def __init__(self, *sizes):
            nn.Module.__init__(self)
            for name, make in {**PARTS[base.__name__], **parts}.items():
                if make is not None:  # only what is used is built: a check looks at hundreds of layers
                    setattr(self, name, make(*sizes))

    return Layer


# What the constructors build.
PARTS = {
    "FeedForward": {"linear1": lambda d, f: nn.Linear(d, f), "linear2": lambda d, f: nn.Linear(f, d)},
    "EncoderLayer": {
        "self_attention": lambda d, h, f: multi_head.MultiHeadAttention(d, h),
        "feed_forward": lambda d, h, f: FeedForward(d, f),
        "norm1": lambda d, h, f: nn.LayerNorm(d),
        "norm2": lambda d, h, f: nn.LayerNorm(d),
    },
    "DecoderLayer": {
        "self_attention": lambda d, h, f: multi_head.MultiHeadAttention(d, h),
        "cross_attention": lambda d, h, f: multi_head.MultiHeadAttention(d, h),
        "feed_forward": lambda d, h, f: FeedForward(d, f),
        "norm1": lambda d, h, f: nn.LayerNorm(d),
        "norm2": lambda d, h, f: nn.LayerNorm(d),
        "norm3": lambda d, h, f: nn.LayerNorm(d),
    },
}


FEED_FORWARD.misconception(
    "no_activation",
    "Nothing stands between the Linears. Two linear functions one after the other are one linear function: d_ff is "
    "wasted.",
)(_hidden(lambda h: h))
FEED_FORWARD.misconception(
    "activation_at_the_end",
    "The ReLU comes after the second Linear and not between the two, so no output is ever negative.",
)(_hidden(lambda h: h, after=lambda y, x: y.relu()))
FEED_FORWARD.misconception(
    "activation_twice",
    "There is a second ReLU at the end. Then the layer can only ever add to a feature, never take away.",
)(_hidden(after=lambda y, x: y.relu()))
FEED_FORWARD.misconception(
    "activation_first",
    "The ReLU is applied to the input, not to the hidden features: half of the input is lost before anything has seen "
    "it.",
)(_hidden(lambda h: h, before=torch.relu))
FEED_FORWARD.misconception(
    "activation_first_too",
    "The ReLU is applied to the input as well. It stands in one place: on the hidden features.",
)(_hidden(before=torch.relu))
for _key, _name, _activation in (
    ("gelu", "GELU, as in BERT and GPT", nn.functional.gelu),
    ("gelu_tanh", "GELU in its tanh approximation, as in GPT-2", lambda h: nn.functional.gelu(h, approximate="tanh")),
    ("silu", "SiLU (Swish), as in many models of today", nn.functional.silu),
    ("tanh", "tanh", torch.tanh),
    ("sigmoid", "the sigmoid", torch.sigmoid),
    ("leaky_relu", "a leaky ReLU, which lets a hundredth of a negative number through", nn.functional.leaky_relu),
    ("elu", "ELU", nn.functional.elu),
    ("softplus", "softplus", nn.functional.softplus),
    ("square", "the square of the ReLU", lambda h: h.relu().square()),
    ("absolute", "the absolute value", torch.abs),
    ("softmax", "a softmax over the hidden features", lambda h: h.softmax(-1)),
    ("negative_part", "the negative part, min(0, ·)", lambda h: h.clamp(max=0)),
    ("clamped_to_one", "a clamp to 0 … 1", lambda h: h.clamp(0, 1)),
):
    FEED_FORWARD.misconception(
        _key, f"Between the Linears is {_name}. The contract, and the paper of 2017, want max(0, ·)."
    )(_hidden(_activation))
FEED_FORWARD.misconception(
    "residual_inside",
    "The input is added to the output. The residual connection belongs to the layer around this network, and would be "
    "there twice.",
    look=NORM,
)(_hidden(after=lambda y, x: x + y))
FEED_FORWARD.misconception(
    "residual_and_norm_inside",
    "A residual connection and a norm are built in. They belong to the layer around this network, and would be there "
    "twice.",
    look=NORM,
)(_hidden(after=lambda y, x: nn.functional.layer_norm(x + y, y.shape[-1:])))
FEED_FORWARD.misconception(
    "python_max",
    "Python's `max` compares two things as wholes and keeps one of them. Wanted is the larger of 0 and each single "
    "number.",
)(_hidden(lambda h: max(0, h)))
FEED_FORWARD.misconception(
    "max_over_axis",
    "`torch.max(h, 0)` is the largest number along axis 0, together with its place: the 0 is read as an axis. Wanted "
    "is the larger of 0 and each single number.",
)(_hidden(lambda h: torch.max(h, 0)))
FEED_FORWARD.misconception(
    "first_bias_forgotten",
    "The bias of linear1 is not used. Calling the module, instead of its weight alone, adds it.",
)(type("Network", (FeedForward,), {"forward": lambda self, x: self.linear2((x @ self.linear1.weight.T).relu())}))
FEED_FORWARD.misconception(
    "second_bias_forgotten",
    "The bias of linear2 is not used. Calling the module, instead of its weight alone, adds it.",
)(type("Network", (FeedForward,), {"forward": lambda self, x: self.linear1(x).relu() @ self.linear2.weight.T}))
FEED_FORWARD.misconception(
    "biases_forgotten",
    "Both biases are not used. Calling the modules, instead of their weights alone, adds them.",
)(
    type(
        "Network",
        (FeedForward,),
        {"forward": lambda self, x: (x @ self.linear1.weight.T).relu() @ self.linear2.weight.T},
    )
)


@FEED_FORWARD.misconception(
    "three_axes_unpacked",
    "The shape of x is unpacked into three names, so only one number of axes works. A Linear takes the last axis and "
    "leaves the others as they are.",
)
class ThreeAxes(FeedForward):
    def forward(self, x):
        _batch, _length, _d = x.shape
        return super().forward(x)


@FEED_FORWARD.misconception(
    "dropout",
    "There is a dropout in it, which the contract does not ask for: train and eval mode differ.",
)
class WithDropout(FeedForward):
    def forward(self, x):
        return self.linear2(nn.functional.dropout(self.linear1(x).relu(), 0.1, self.training))


FEED_FORWARD.misconception(
    "normed_inside",
    "The hidden features go through a norm. There is none in this network; the layer around it sees to that.",
    look=NORM,
)(_hidden(lambda h: nn.functional.layer_norm(h.relu(), h.shape[-1:])))
FEED_FORWARD.misconception(
    "hidden_detached",
    "The values are right, but the gradient is cut off between the Linears, so the first never learns.",
)(_hidden(lambda h: h.relu().detach()))
FEED_FORWARD.misconception(
    "only_hidden",
    "What comes back are the hidden features. The second Linear brings them back to d_model.",
)(type("Network", (FeedForward,), {"forward": lambda self, x: self.linear1(x).relu()}))
FEED_FORWARD.misconception(
    "linears_exchanged",
    "The sizes of the Linears are turned round: `nn.Linear` takes the features that come in first, then those that go "
    "out.",
)(_with(FeedForward, linear1=lambda d, f: nn.Linear(f, d), linear2=lambda d, f: nn.Linear(d, f)))
FEED_FORWARD.misconception(
    "second_as_first",
    "linear2 has the sizes of linear1. It takes what linear1 gives, and brings it back.",
)(_with(FeedForward, linear2=lambda d, f: nn.Linear(d, f)))
FEED_FORWARD.misconception(
    "width_ignored",
    "Both Linears go from d_model to d_model; d_ff, the number of hidden features, is not used.",
)(_with(FeedForward, linear1=lambda d, f: nn.Linear(d, d), linear2=lambda d, f: nn.Linear(d, d)))
FEED_FORWARD.misconception(
    "second_stays_wide",
    "linear2 goes from d_ff to d_ff. What comes out has to be added to x later: how wide is x?",
)(_with(FeedForward, linear2=lambda d, f: nn.Linear(f, f)))
FEED_FORWARD.misconception(
    "no_bias",
    "The Linears are built without their biases. The formula has a b₁ and a b₂.",
)(
    _with(
        FeedForward,
        linear1=lambda d, f: nn.Linear(d, f, bias=False),
        linear2=lambda d, f: nn.Linear(f, d, bias=False),
    )
)
FEED_FORWARD.misconception(
    "sequential",
    "The Linears sit in an `nn.Sequential`, so they are called `net.0` and `net.2`. The contract names them linear1 "
    "and linear2, so that weights can be loaded.",
)(
    _with(
        FeedForward,
        linear1=None,
        linear2=None,
        net=lambda d, f: nn.Sequential(nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d)),
    )
)
FEED_FORWARD.misconception(
    "not_registered",
    "The module has no parameters at all: its Linears are in local variables or in a plain list, where neither an "
    "optimiser nor `load_state_dict` finds them. They belong on `self`, under the names linear1 and linear2.",
)(_with(FeedForward, linear1=None, linear2=None))


# Encoder layer


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + attended)  # (B, L, d_model), as everywhere
        return self.norm2(x + self.feed_forward(x))


ENCODER = Exercise(
    name="EncoderLayer",
    twins=("_transformer_encoder_layer_fwd", "torch.nn.TransformerEncoderLayer"),
    title="The encoder layer",
    statement="""\
Put the parts together: self-attention, then the feed-forward network, each inside a residual connection and followed
by a layer norm. This is post-norm, as in the paper: around every sub-layer stands

$$x \\leftarrow \\operatorname{LayerNorm}(x + \\operatorname{Sublayer}(x)).$$

- `EncoderLayer(d_model, num_heads, d_ff)` has four sub-modules with these names: `self_attention`, the course's
  `MultiHeadAttention(d_model, num_heads)`; `feed_forward`, the course's `FeedForward(d_model, d_ff)`; `norm1`, which
  follows attention, and `norm2`, which follows the feed-forward network, both `nn.LayerNorm(d_model)` with its
  default eps. No dropout.
- `forward(x, mask=None)` takes and returns `(B, L, d_model)`. `mask` is None or a bool tensor that broadcasts to `(B,
  num_heads, L, L)`, True = may attend; every position may attend to something.

`MultiHeadAttention` is called with query, key, value and mask, and returns `(output, weights)`. You may use your own
versions of both modules, if their parameters have the same names.""",
    difficulty=2,
    minutes=15,
    stub='''\
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; each with residual and post-norm."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, mask=None):
        raise NotImplementedError
''',
    hints=(
        "The formula in the statement stands there twice: once with attention as the sub-layer, once with the "
        "feed-forward network. The second x is what the first one gave.",
        "Self-attention: which tensor asks, which tensor is looked through, which one is averaged?",
        "Attention returns two things, and only one of them can be added to x.",
        "What goes into norm1 is a sum of two tensors of the same shape. Keep x under a name of its own until it has "
        "been added.",
    ),
    reference=EncoderLayer,
    shapes={"x": "batch length d_model", "mask": "#"},
    look=ENCODING,
)


def _layer_sizes(draw: Draw, count: int):
    """d_model and num_heads, then other sizes that differ from both and from the width of a head."""
    num_heads, d_head = draw.sizes(2, 2, 4)
    return num_heads * d_head, num_heads, *draw.sizes(count, 2, 9, but=(num_heads, d_head, num_heads * d_head))


def _causal(length: int):
    return torch.ones(length, length, dtype=torch.bool).tril()


def _encoder_case(draw: Draw, dtype=torch.float32, make_mask=None, **more):
    d_model, num_heads, d_ff, batch, length = _layer_sizes(draw, 3)
    init = (d_model, num_heads, d_ff)
    x = draw.normal(batch, length, d_model, dtype=dtype)
    masks = () if make_mask is None else (make_mask(batch, num_heads, length),)
    return Case(args=(x, *masks), init=init, state=ENCODER.draw_state(draw, *init, dtype=dtype), **more)


@ENCODER.holds("norm1 of x plus its attention, then norm2 of that plus its feed-forward network", weight=3)
def _(draw):
    for heads, (args, state) in ((1, ENCODER_OF_TWO), (2, ENCODER_OF_FOUR)):
        yield Case(
            args=args,
            init=(args[0].shape[-1], heads, 3),
            state=state,
            edge="a small case, to be followed with a pencil",
            note=f"{args[0].shape[-1]} features, {'one head' if heads == 1 else 'two heads'}",
            gradients=False,
        )
    for dtype in (torch.float32, torch.float64):
        yield _encoder_case(draw, dtype)


@ENCODER.holds("A position that the mask forbids is not attended to", weight=2)
def _(draw):
    (x,), state = ENCODER_OF_FOUR
    yield Case(
        args=(x, _causal(2)),
        init=(4, 2, 3),
        state=state,
        edge="a small case, to be followed with a pencil",
        note="two positions, the first sees itself only",
        gradients=False,
    )
    yield _encoder_case(draw, make_mask=lambda b, h, n: draw.mask(b, 1, 1, n), note="a padding mask (B, 1, 1, L)")
    yield _encoder_case(draw, torch.float64, lambda b, h, n: _causal(n), note="a causal mask (L, L)")
    yield _encoder_case(draw, make_mask=lambda b, h, n: draw.mask(n, n), note="a mask (L, L)")
    yield _encoder_case(
        draw, make_mask=lambda b, h, n: draw.mask(h, n, n), note="a mask (H, L, L): axes line up from the right"
    )
    yield _encoder_case(draw, make_mask=lambda b, h, n: draw.mask(b, 1, n, n), note="a mask (B, 1, L, L)")
    yield _encoder_case(
        draw, torch.float64, lambda b, h, n: draw.mask(b, h, n, n), note="a mask of full size (B, H, L, L)"
    )
    yield _encoder_case(
        draw,
        make_mask=lambda b, h, n: torch.ones(n, n, dtype=torch.bool),
        note="a mask that allows everything",
    )


@ENCODER.holds("It attends with num_heads heads, to any number of positions")
def _(draw):
    for init, length, note in (
        ((6, 1, 4), 5, "one head"),
        ((4, 4, 7), 3, "as many heads as features"),
        ((8, 2, 5), 1, "one position"),
    ):
        x = draw.normal(2, length, init[0], dtype=torch.float64)
        state = ENCODER.draw_state(draw, *init, dtype=torch.float64)
        yield Case(args=(x,), init=init, state=state, note=note, edge=note, gradients=False)


# Ways to put a sub-layer f, its norm and its residual connection together; the first is the right one.
def _post(x, norm, f):
    return norm(x + f(x))


def _pre(x, norm, f):
    return x + f(norm(x))


def _pre_without_shortcut(x, norm, f):
    return f(norm(x))


def _from_normed(x, norm, f):
    return norm(x) + f(norm(x))


def _inside(x, norm, f):
    return x + norm(f(x))


def _shortcut_normed(x, norm, f):
    return norm(x) + f(x)


def _both(x, norm, f):
    return norm(x + f(norm(x)))


def _without_shortcut(x, norm, f):
    return norm(f(x))


def _doubled(x, norm, f):
    return norm(2 * f(x))


def _shortcut_twice(x, norm, f):
    return norm(2 * x + f(x))


def _without_norm(x, norm, f):
    return x + f(x)


def _bare(x, norm, f):
    return f(x)


def _without_sublayer(x, norm, f):
    return norm(x)


def _skipped(x, norm, f):
    return x


def _multiplied(x, norm, f):
    return norm(x * f(x))


def _activated(x, norm, f):
    return norm(x + f(x).relu())


def _dropped(x, norm, f):
    return norm(x + nn.functional.dropout(f(x), 0.1, norm.training))


def _normed_twice(x, norm, f):
    return norm(x + norm(f(x)))


# What is said of a wrong way for all sub-layers, and of one for one of them.
EVERYWHERE = {
    "pre_norm": (
        _pre,
        "This is pre-norm: each norm is applied to what goes into its sub-layer. In the paper, and here, it is applied "
        "to the sum that comes out.",
        POST,
    ),
    "pre_norm_from_normed": (
        _from_normed,
        "Each norm is applied first, and the residual connection starts after it. Here the residual connection starts "
        "at x, and the norm comes after the sum.",
        POST,
    ),
    "pre_norm_without_residual": (
        _pre_without_shortcut,
        "Each norm stands before its sub-layer, and there is no residual connection. Here x is added to what the "
        "sub-layer makes of it, and the sum is normed.",
        POST,
    ),
    "norm_inside_residual": (
        _inside,
        "The norm is applied to the output of the sub-layer alone, and x is added after it. Which comes first, sum or "
        "norm?",
        POST,
    ),
    "shortcut_normed": (
        _shortcut_normed,
        "The norm is applied to x alone, and the output of the sub-layer is added after it. What is normed is the sum.",
        POST,
    ),
    "pre_and_post_norm": (
        _both,
        "Each norm is applied twice, before its sub-layer and after the sum. Post-norm has it after the sum only.",
        POST,
    ),
    "no_residuals": (
        _without_shortcut,
        "There are no residual connections: the output of each sub-layer replaces x, where it should be added to it.",
        NORM,
    ),
    "no_norms": (_without_norm, "The norms exist and are not used.", NORM),
    "no_residuals_no_norms": (
        _bare,
        "The sub-layers follow each other bare: no residual connections, no norms.",
        NORM,
    ),
    "overwritten": (
        _doubled,
        "The output of each sub-layer is added to itself, not to x. A name that is given a new value no longer holds "
        "the old one.",
        NORM,
    ),
    "multiplied": (
        _multiplied,
        "x and the output of the sub-layer are multiplied. A residual connection is a sum, so that the gradient has a "
        "way past the sub-layer.",
        NORM,
    ),
    "dropout": (
        _dropped,
        "There is a dropout in it, which the contract does not ask for: train and eval mode differ.",
        "",
    ),
    "normed_twice": (
        _normed_twice,
        "The output of each sub-layer is normed, and then the sum as well. Only the sum is normed.",
        POST,
    ),
    "activation_outside": (
        _activated,
        "A ReLU is applied to the output of each sub-layer. The only one is inside the feed-forward network.",
        "transformer: The feed-forward network",
    ),
}
ONCE = {
    "no_residual": (
        _without_shortcut,
        "Around {} there is no residual connection: its output replaces x, where it should be added to it.",
        NORM,
    ),
    "no_norm": (_without_norm, "The sum of x and {} is not normed, though the norm for it is there.", NORM),
    "bare": (_bare, "{} has neither residual connection nor norm: its output is passed on as it is.", NORM),
    "unused": (
        _without_sublayer,
        "The result does not depend on {}: its output is lost, or it is never called.",
        "",
    ),
    "skipped": (_skipped, "The step with {} is left out, with its residual connection and its norm.", ""),
    "doubled": (
        _doubled,
        "The output of {} is added to itself, not to x. A name that is given a new value no longer holds the old one.",
        NORM,
    ),
    "pre": (_pre, "Around {} the layer is pre-norm, elsewhere post-norm. Everywhere the sum is what is normed.", POST),
    "inside": (
        _inside,
        "The output of {} is normed before x is added; the rest of the layer is right. What is normed is the sum.",
        POST,
    ),
}


def _ways(exercise, build, sublayers):
    """Misconceptions about residual connections and norms, for an exercise with these sub-layers."""
    count = len(sublayers)
    for key, (way, says, look) in EVERYWHERE.items():
        exercise.misconception(key, says, look=look)(build(ways=(way,) * count))
    for place, (name, words) in enumerate(sublayers.items()):
        for key, (way, says, look) in ONCE.items():
            ways = tuple(way if i == place else _post for i in range(count))
            text = says.format(words)
            exercise.misconception(f"{key}_{name}", text[0].upper() + text[1:], look=look)(build(ways=ways))
    exercise.misconception(
        "residual_twice",
        "x is added twice to the output of the feed-forward network: once in the layer, once inside the network. One "
        "residual connection a sub-layer.",
        look=NORM,
    )(build(ways=(_post,) * (count - 1) + (_shortcut_twice,)))


def _if(mask, change):
    return None if mask is None else change(mask)


def _identity(mask, x):
    return mask


def _encoder(ways=(_post, _post), norms=(1, 2), mask=_identity, base=EncoderLayer):
    """The encoder layer with other ways, norms in another order, or something done to the mask."""

    class Layer(base):
        def forward(self, x, given=None):
            used, first, second = mask(given, x), *(getattr(self, f"norm{n}") for n in norms)
            x = ways[0](x, first, lambda y: self.self_attention(y, y, y, used)[0])
            return ways[1](x, second, self.feed_forward)

    return Layer


_ways(ENCODER, _encoder, {"attention": "the attention", "feed_forward": "the feed-forward network"})


def _norm_names(exercise, build, count):
    """Misconceptions about which norm stands where."""
    usual = tuple(range(1, count + 1))
    for one in usual:
        exercise.misconception(
            f"only_norm{one}",
            f"norm{one} does the work of all norms. Each sub-layer is followed by a norm with gain and bias of its "
            f"own.",
            look=NORM,
        )(build(norms=(one,) * count))
    for one in usual[1:]:
        order = list(usual)
        order[one - 2 : one] = one, one - 1
        exercise.misconception(
            f"norms_{one - 1}_{one}_exchanged",
            f"norm{one - 1} and norm{one} have changed places. They follow the sub-layers in the order of their "
            f"numbers.",
        )(build(norms=tuple(order)))


_norm_names(ENCODER, _encoder, 2)


def _own_feed_forward(between):
    return lambda d_model, num_heads, d_ff: _hidden(between)(d_model, d_ff)


def _parts(exercise, base, attentions, norms):
    """Misconceptions about what the constructor builds, the same for both layers."""

    def attention(make):
        return _with(base, **dict.fromkeys(attentions, make))

    def norm(make):
        return _with(base, **dict.fromkeys(norms, make))

    says = exercise.misconception
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
        look=IN_ENCODER,
    )(attention(lambda d, h, f: nn.MultiheadAttention(d, h, batch_first=True)))
    says("attention_without_bias", "The projections of the attention are built without their biases.")(
        attention(lambda d, h, f: MultiHeadAttention(d, h, bias=False))
    )
    says(
        "feed_forward_sizes_exchanged",
        "`FeedForward` gets its arguments in the wrong order: the width of the model comes first, then the number of "
        "hidden features.",
    )(_with(base, feed_forward=lambda d, h, f: FeedForward(f, d)))
    says(
        "width_of_feed_forward_ignored", "d_ff does not arrive at the feed-forward network, which is 4 · d_model wide."
    )(_with(base, feed_forward=lambda d, h, f: FeedForward(d, 4 * d)))
    says(
        "feed_forward_sequential",
        "The feed-forward network is an `nn.Sequential`, whose parameters are called `0` and `2`. The contract asks "
        "for a `FeedForward`, with linear1 and linear2.",
    )(_with(base, feed_forward=lambda d, h, f: nn.Sequential(nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d))))
    says(
        "feed_forward_one_linear",
        "The feed-forward network is a single Linear. It has two, with d_ff hidden features and a ReLU between them.",
    )(_with(base, feed_forward=lambda d, h, f: nn.Linear(d, d)))
    says("feed_forward_linear", "The feed-forward network has no activation between its Linears.")(
        _with(base, feed_forward=_own_feed_forward(lambda h: h))
    )
    says("feed_forward_gelu", "The feed-forward network has GELU between its Linears; the paper's has ReLU.")(
        _with(base, feed_forward=_own_feed_forward(nn.functional.gelu))
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
        look=NORM,
    )(norm(lambda d, h, f: nn.LayerNorm(d, elementwise_affine=False)))
    says(
        "batch_norm",
        "This is batch norm, which mixes the sequences of a batch. Layer norm takes each position alone.",
        look=NORM,
    )(norm(lambda d, h, f: nn.BatchNorm1d(d)))
    says(
        "rms_norm",
        "This is RMSNorm, which takes off no mean and has no bias. The contract asks for `nn.LayerNorm`.",
        look=NORM,
    )(norm(lambda d, h, f: nn.RMSNorm(d)))
    says(
        "one_norm_module",
        "There is only one norm, under one name or under several. Each sub-layer has its own, with its own gain and "
        "bias.",
        look=NORM,
    )(_with(base, **dict.fromkeys(norms[1:])))
    says(
        "norms_too_wide",
        "The norms are built for d_ff features. How wide is the sum that they are applied to?",
        look=NORM,
    )(norm(lambda d, h, f: nn.LayerNorm(f)))


def _attending(base, *places):
    """From a wrong attention the layer that has it in these places."""
    return lambda wrong: _with(base, **dict.fromkeys(places, lambda d, h, f: wrong(d, h)))


def _norming(base, *places):
    """From a wrong layer norm the layer that has it, as a module with the parameters of the right one."""

    def build(wrong):
        class Norm(nn.LayerNorm):
            def forward(self, x):
                return wrong(x, self.weight, self.bias)

        return _with(base, **dict.fromkeys(places, lambda d, h, f: Norm(d)))

    return build


def _inherited(exercise, base, norms):
    """The mistakes of a learner's own norm and feed-forward network, and of an attention with finite masked scores."""
    attentions = [name for name in PARTS[base.__name__] if name.endswith("attention")]
    for axis, words in ((-2, "queries"), (1, "heads"), (0, "sequences of the batch")):
        attend = multi_head._attend(dim=axis, hide=lambda scores, mask: scores.masked_fill(~mask, -1e9))
        exercise.misconception(
            f"softmax_over_{words.split()[0]}",
            f"In your attention, the softmax runs over the {words}. The weights of a query over its keys add up to 1.",
            look=multi_head.FORMULA,
        )(_attending(base, *attentions)(multi_head._attending(attend)))
    exercise.contains(LAYER_NORM, _norming(base, *norms), called="layer norm")
    exercise.contains(
        FEED_FORWARD,
        lambda wrong: _with(base, feed_forward=lambda d, h, f: wrong(d, f)),
        called="feed-forward network",
        prefix="feed_forward",
    )


_parts(ENCODER, EncoderLayer, ("self_attention",), ("norm1", "norm2"))
_inherited(ENCODER, EncoderLayer, ("norm1", "norm2"))
ENCODER.contains(
    multi_head.ATTENTION, _attending(EncoderLayer, "self_attention"), called="attention", prefix="attention"
)

ENCODER.misconception(
    "mask_ignored",
    "The result does not depend on the mask. It has to travel on to the attention.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None))
ENCODER.misconception(
    "mask_turned_round",
    "Attention goes exactly where the mask forbids it. True means *may attend*, in the course's attention as here; "
    "only `nn.MultiheadAttention` has it the other way round.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else ~mask))
ENCODER.misconception(
    "mask_transposed",
    "The last two axes of the mask are exchanged. Rows are queries, columns are keys, in the mask as in the scores.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else mask.transpose(-2, -1)))
ENCODER.misconception(
    "causal_always",
    "The layer hides the future by itself. An encoder reads the whole input; what is hidden, the mask says.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: _causal(x.shape[1]) if mask is None else mask & _causal(x.shape[1])))
ENCODER.misconception(
    "causal_by_default",
    "Without a mask, the layer hides the future. None means that everything may be attended to.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: _causal(x.shape[1]) if mask is None else mask))
ENCODER.misconception(
    "causal_instead",
    "Whatever mask is given, a causal one is used.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: _causal(x.shape[1])))
ENCODER.misconception(
    "mask_as_numbers",
    "The mask is turned into numbers on the way. It is bool, and the attention takes it as it is.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else mask.float()))
ENCODER.misconception(
    "if_mask",
    "`if mask:` asks a whole tensor for one truth value, which it does not have. What you want to know is whether "
    "there is a mask.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: mask if mask else None))
ENCODER.misconception(
    "mask_gets_head_axis",
    "The mask is given an axis for the heads. It broadcasts to (B, H, L, L) as it comes; pass it on as it is.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else mask.unsqueeze(1)))
ENCODER.misconception(
    "mask_gets_batch_axis",
    "The mask is given one axis more, in front. It broadcasts to (B, H, L, L) as it comes; pass it on as it is.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else mask.unsqueeze(0)))
ENCODER.misconception(
    "mask_gets_two_axes",
    "The mask is taken for one of shape (B, L) and given two axes. It broadcasts to (B, H, L, L) as it comes; pass it "
    "on as it is.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else mask[:, None, None]))
ENCODER.misconception(
    "mask_of_three_axes_by_sequence",
    "A mask of three axes is taken for one per sequence and given a head axis in the middle. Masks broadcast from the "
    "right, so its first axis is that of the heads; pass it on as it is.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: mask[:, None] if mask is not None and mask.dim() == 3 else mask))
ENCODER.misconception(
    "mask_of_two_axes_by_sequence",
    "A mask of two axes is taken for (B, L), which sequence has which keys, and given two axes in the middle. It is "
    "(L, L), and broadcasts as it comes.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: mask[:, None, None] if mask is not None and mask.dim() == 2 else mask))
ENCODER.misconception(
    "mask_added_axes_at_the_end",
    "The mask is given an axis at its end. Its last two axes are queries and keys already; pass it on as it is.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: None if mask is None else mask.unsqueeze(-1)))


@ENCODER.misconception(
    "mask_changed",
    "The result is right, but the mask is changed on the way, and it belongs to the caller.",
    look=IN_ENCODER,
)
class MaskChanging(EncoderLayer):
    def forward(self, x, mask=None):
        result = super().forward(x, mask)
        if mask is not None:
            mask.logical_not_()
        return result


ENCODER.misconception(
    "nonzero_mask_needed",
    "The layer does not work without a mask. None means that everything may be attended to.",
    look=IN_ENCODER,
)(_encoder(mask=lambda mask, x: mask.bool()))


OWN = "Your own attention then gets a mask that does not line up with its scores."
for _key, _mask in (
    ("mask_gets_head_axis", lambda mask, x: _if(mask, lambda m: m.unsqueeze(1))),
    ("mask_gets_two_axes", lambda mask, x: _if(mask, lambda m: m[:, None, None])),
    (
        "mask_of_three_axes_by_sequence",
        lambda mask, x: _if(mask, lambda m: m[:, None] if m.dim() == 3 else m),
    ),
    ("mask_added_axes_at_the_end", lambda mask, x: _if(mask, lambda m: m.unsqueeze(-1))),
):
    _says = next(known.says for known in ENCODER.misconceptions if known.key == _key)
    ENCODER.misconception(f"{_key}_in_own_attention", f"{_says} {OWN}", look=IN_ENCODER)(
        _encoder(mask=_mask, base=_with(EncoderLayer))
    )
WITH_A_MASK_MISTAKE = (
    ("pre_norm", "this is pre-norm, where the norm belongs after the sum", {"ways": _pre}),
    (
        "norm_inside_residual",
        "the norm is applied to the sub-layer's output and not to the sum",
        {"ways": _inside},
    ),
    ("no_residuals", "there are no residual connections", {"ways": _without_shortcut}),
    ("no_norms", "the norms are not used", {"ways": _without_norm}),
    ("only_norm1", "norm1 does the work of all norms", {"norms": 1}),
)


def _everywhere(count, changes):
    """The same change at each sub-layer."""
    return {name: (value,) * count for name, value in changes.items()}


for _key, _says, _changes in WITH_A_MASK_MISTAKE:
    for _name, _words, _mask in (
        ("mask_ignored", "the mask has no effect", lambda mask, x: None),
        ("mask_turned_round", "attention goes where the mask forbids it", lambda mask, x: _if(mask, torch.logical_not)),
    ):
        ENCODER.misconception(f"{_key}_and_{_name}", f"Two things: {_says}, and {_words}.", look=POST)(
            _encoder(mask=_mask, **_everywhere(2, _changes))
        )


def _forward(exercise, base, key, says, look=""):
    """Decorator of a wrong `forward`, made into a misconception."""

    def add(forward):
        exercise.misconception(key, says, look=look)(type(base.__name__, (base,), {"forward": forward}))
        return forward

    return add


def _attend(layer, x, mask):
    return layer.self_attention(x, x, x, mask)[0]


@_forward(
    ENCODER,
    EncoderLayer,
    "tuple_added",
    "Attention returns a pair, `(output, weights)`, and a pair cannot be added to a tensor.",
)
def _(self, x, mask=None):
    x = self.norm1(x + self.self_attention(x, x, x, mask))
    return self.norm2(x + self.feed_forward(x))


@_forward(
    ENCODER,
    EncoderLayer,
    "weights_added",
    "The attention weights are added to x. Attention returns `(output, weights)`: which of the two has the shape of x?",
)
def _(self, x, mask=None):
    x = self.norm1(x + self.self_attention(x, x, x, mask)[1])
    return self.norm2(x + self.feed_forward(x))


@_forward(ENCODER, EncoderLayer, "weights_too", "The weights come back as well. The contract asks for the output only.")
def _(self, x, mask=None):
    attended, weights = self.self_attention(x, x, x, mask)
    x = self.norm1(x + attended)
    return self.norm2(x + self.feed_forward(x)), weights


@_forward(
    ENCODER,
    EncoderLayer,
    "residual_in_place",
    "The result is right, but x is changed on the way, and x belongs to the caller: `+=` works in place.",
)
def _(self, x, mask=None):
    x += _attend(self, x, mask)
    x = self.norm1(x)
    return self.norm2(x + self.feed_forward(x))


@_forward(
    ENCODER,
    EncoderLayer,
    "second_residual_from_input",
    "The second residual connection starts at the layer's input. It starts where its sub-layer does: at the output of "
    "norm1.",
    look=NORM,
)
def _(self, x, mask=None):
    y = self.norm1(x + _attend(self, x, mask))
    return self.norm2(x + self.feed_forward(y))


@_forward(
    ENCODER,
    EncoderLayer,
    "second_residual_before_norm",
    "The second residual connection starts before norm1. It starts where its sub-layer does: at the output of norm1.",
    look=NORM,
)
def _(self, x, mask=None):
    x = x + _attend(self, x, mask)
    return self.norm2(x + self.feed_forward(self.norm1(x)))


@_forward(
    ENCODER,
    EncoderLayer,
    "second_residual_from_attention",
    "What is added to the output of the feed-forward network is that of the attention alone. Its residual connection "
    "starts at the output of norm1.",
    look=NORM,
)
def _(self, x, mask=None):
    attended = _attend(self, x, mask)
    return self.norm2(attended + self.feed_forward(self.norm1(x + attended)))


@_forward(
    ENCODER,
    EncoderLayer,
    "feed_forward_of_input",
    "The feed-forward network works on the layer's input. It follows attention: its input is the output of norm1.",
)
def _(self, x, mask=None):
    return self.norm2(self.norm1(x + _attend(self, x, mask)) + self.feed_forward(x))


@_forward(
    ENCODER,
    EncoderLayer,
    "feed_forward_of_attention",
    "The feed-forward network works on the bare output of the attention. Its input is the output of norm1.",
)
def _(self, x, mask=None):
    attended = _attend(self, x, mask)
    return self.norm2(self.norm1(x + attended) + self.feed_forward(attended))


@_forward(
    ENCODER,
    EncoderLayer,
    "parallel",
    "Attention and feed-forward network stand side by side, on the same input. Here the second works on what the first "
    "has made.",
)
def _(self, x, mask=None):
    return self.norm2(self.norm1(x + _attend(self, x, mask) + self.feed_forward(x)))


@_forward(
    ENCODER,
    EncoderLayer,
    "one_residual",
    "There is one residual connection around both sub-layers. Each has its own.",
    look=NORM,
)
def _(self, x, mask=None):
    return self.norm2(x + self.feed_forward(self.norm1(_attend(self, x, mask))))


@_forward(
    ENCODER,
    EncoderLayer,
    "feed_forward_first",
    "The feed-forward network comes before the attention. The order is the other way round.",
)
def _(self, x, mask=None):
    x = self.norm2(x + self.feed_forward(x))
    return self.norm1(x + _attend(self, x, mask))


@_forward(
    ENCODER,
    EncoderLayer,
    "feed_forward_first_norms_in_order",
    "The feed-forward network comes before the attention, though the norms are in their order. First the positions "
    "exchange what they know, then each works on it.",
)
def _(self, x, mask=None):
    x = self.norm1(x + self.feed_forward(x))
    return self.norm2(x + _attend(self, x, mask))


@_forward(
    ENCODER,
    EncoderLayer,
    "length_first",
    "Batch and length are exchanged before the attention, so that each position looks into the other sequences of the "
    "batch. Here the batch comes first, in x and in the attention.",
)
def _(self, x, mask=None):
    attended = _attend(self, x.transpose(0, 1), mask).transpose(0, 1)
    x = self.norm1(x + attended)
    return self.norm2(x + self.feed_forward(x))


# Decoder layer


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)  # (B, L, d_model), as everywhere
        attended, _ = self.cross_attention(x, memory, memory, memory_mask)  # weights (B, H, L, L_memory)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


DECODER = Exercise(
    name="DecoderLayer",
    twins=("torch.nn.TransformerDecoderLayer",),
    title="The decoder layer",
    statement="""\
A decoder layer is an encoder layer with a step in the middle that looks at the source: self-attention over the target
so far, then cross-attention to `memory`, the encoder's output, then the feed-forward network. Queries come from the
target, keys and values from `memory`. Post-norm again, around each of the three:

$$x \\leftarrow \\operatorname{LayerNorm}(x + \\operatorname{Sublayer}(x)).$$

- `DecoderLayer(d_model, num_heads, d_ff)` has six sub-modules with these names: `self_attention` and
  `cross_attention`, each the course's `MultiHeadAttention(d_model, num_heads)`; `feed_forward`, the course's
  `FeedForward(d_model, d_ff)`; and `norm1`, `norm2`, `norm3` after these three in this order, `nn.LayerNorm(d_model)`
  with its default eps. No dropout.
- `forward(x, memory, self_mask=None, memory_mask=None)` takes `x` of shape `(B, L, d_model)` and `memory` of shape
  `(B, L_memory, d_model)`, and returns `(B, L, d_model)`. `L_memory` may be shorter or longer than `L`.
- `self_mask` broadcasts to `(B, num_heads, L, L)`, `memory_mask` to `(B, num_heads, L, L_memory)`. Each is None or
  bool, True = may attend, and either may be given without the other; every query may attend to something. The layer
  adds no mask of its own: that a decoder sees no future is the business of `self_mask`.

`MultiHeadAttention` is called with query, key, value and mask, and returns `(output, weights)`. You may use your own
versions of both modules, if their parameters have the same names.""",
    difficulty=3,
    minutes=20,
    stub='''\
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, feed-forward; residual and post-norm."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        raise NotImplementedError

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        raise NotImplementedError
''',
    hints=(
        "Start from the encoder layer. One step of the same form is new, between the two that are there.",
        "In cross-attention every target position asks, and the source answers. The result has one row a query: which "
        "of the two lengths must it have, so that it can be added to x?",
        "Keys and values belong together: both come from `memory`, and `memory_mask` has one column for each of them.",
        "Each of the three steps begins with what the norm before it gave: as query and in the sum.",
    ),
    reference=DecoderLayer,
    shapes={"x": "batch length d_model", "memory": "batch len_memory d_model", "self_mask": "#", "memory_mask": "#"},
    look=DECODING,
)


def _decoder_case(draw: Draw, dtype=torch.float32, self_mask=None, memory_mask=None, longer=None, **more):
    """A case; masks are made from batch, num_heads and both lengths; `longer`: whether the source is the longer one."""
    d_model, num_heads, d_ff, batch, *lengths = _layer_sizes(draw, 4)
    length, len_memory = lengths if longer is None else sorted(lengths, reverse=not longer)
    init = (d_model, num_heads, d_ff)
    x = draw.normal(batch, length, d_model, dtype=dtype)
    memory = draw.normal(batch, len_memory, d_model, dtype=dtype)
    masks = [make and make(batch, num_heads, length, len_memory) for make in (self_mask, memory_mask)]
    args = (x, memory, *masks) if self_mask or memory_mask else (x, memory)
    return Case(args=args, init=init, state=DECODER.draw_state(draw, *init, dtype=dtype), **more)


@DECODER.holds("Self-attention, cross-attention and feed-forward network, each added to x, then normed", weight=3)
def _(draw):
    for heads, (args, state) in ((1, DECODER_OF_TWO), (2, DECODER_OF_FOUR)):
        yield Case(
            args=args,
            init=(args[0].shape[-1], heads, 3),
            state=state,
            edge="a small case, to be followed with a pencil",
            note=f"{args[0].shape[-1]} features, {'one head' if heads == 1 else 'two heads'}",
            gradients=False,
        )
    yield _decoder_case(draw, longer=True, note="the source is longer than the target")
    yield _decoder_case(draw, torch.float64, longer=False, note="the source is shorter than the target")
    for length, len_memory, heads, note in (
        (5, 1, 1, "one head, a source of one position"),
        (1, 5, 3, "one target position, as in generation"),
    ):
        yield Case(
            args=(draw.normal(2, length, 6), draw.normal(2, len_memory, 6)),
            init=(6, heads, 4),
            state=DECODER.draw_state(draw, 6, heads, 4),
            edge=note,
            note=note,
            gradients=False,
        )


@DECODER.holds("self_mask says which target positions a target position sees", weight=2)
def _(draw):
    (x, memory), state = DECODER_OF_FOUR
    yield Case(
        args=(x, memory, _causal(2)),
        init=(4, 2, 3),
        state=state,
        edge="a small case, to be followed with a pencil",
        note="the first target position sees itself only",
        gradients=False,
    )
    yield _decoder_case(draw, torch.float64, lambda b, h, n, m: _causal(n), note="a causal self_mask (L, L)")
    yield _decoder_case(
        draw,
        self_mask=lambda b, h, n, m: _causal(n) & torch.cat([_true(b, 1, 1, 1), draw.mask(b, 1, 1, n - 1)], -1),
        note="a self_mask (B, 1, L, L), causal and without padding",
    )
    yield _decoder_case(
        draw, self_mask=lambda b, h, n, m: draw.mask(h, n, n), note="a self_mask (H, L, L), not causal", gradients=False
    )
    yield _decoder_case(
        draw, self_mask=lambda b, h, n, m: draw.mask(b, h, n, n), note="a self_mask of full size", gradients=False
    )
    yield _decoder_case(draw, self_mask=lambda b, h, n, m: _true(n, n), note="a self_mask that allows everything")


@DECODER.holds("memory_mask says which source positions a target position sees", weight=2)
def _(draw):
    (x, memory), state = DECODER_OF_FOUR
    yield Case(
        args=(x, memory, None, torch.tensor([[[[True, False, True]]]])),
        init=(4, 2, 3),
        state=state,
        edge="a small case, to be followed with a pencil",
        note="the source position in the middle is padding",
        gradients=False,
    )
    for dtype, longer in ((torch.float64, True), (torch.float32, False)):
        yield _decoder_case(
            draw,
            dtype,
            memory_mask=lambda b, h, n, m: draw.mask(b, 1, 1, m),
            longer=longer,
            note="a memory_mask (B, 1, 1, L_memory)",
            gradients=longer,
        )
    yield _decoder_case(draw, memory_mask=lambda b, h, n, m: draw.mask(b, h, n, m), note="a memory_mask of full size")
    yield _decoder_case(draw, memory_mask=lambda b, h, n, m: draw.mask(n, m), note="a memory_mask (L, L_memory)")
    yield _decoder_case(draw, memory_mask=lambda b, h, n, m: draw.mask(h, n, m), note="a memory_mask (H, L, L_memory)")


@DECODER.holds("Both masks together, each in its own attention", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield _decoder_case(
            draw,
            dtype,
            lambda b, h, n, m: _causal(n),
            lambda b, h, n, m: draw.mask(b, 1, 1, m),
            note="causal self_mask, padded source",
            gradients=False,
        )
    x, memory = draw.normal(2, 5, 6, dtype=torch.float64), draw.normal(2, 5, 6, dtype=torch.float64)
    yield Case(
        args=(x, memory, _causal(5), draw.mask(2, 1, 1, 5)),
        init=(6, 3, 4),
        state=DECODER.draw_state(draw, 6, 3, 4, dtype=torch.float64),
        edge="equal lengths, so that exchanged masks raise no error",
        note="source and target of the same length",
        gradients=False,
    )


def _true(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def _decoder(ways=(_post,) * 3, norms=(1, 2, 3), masks=lambda own, theirs, x: (own, theirs), base=DecoderLayer):
    """The decoder layer with other ways, norms in another order, or something done to the masks."""

    class Layer(base):
        def forward(self, x, memory, self_mask=None, memory_mask=None):
            own, theirs = masks(self_mask, memory_mask, x)
            first, second, third = (getattr(self, f"norm{n}") for n in norms)
            x = ways[0](x, first, lambda y: self.self_attention(y, y, y, own)[0])
            x = ways[1](x, second, lambda y: self.cross_attention(y, memory, memory, theirs)[0])
            return ways[2](x, third, self.feed_forward)

    return Layer


_ways(
    DECODER,
    _decoder,
    {
        "self_attention": "the self-attention",
        "cross_attention": "the cross-attention",
        "feed_forward": "the feed-forward network",
    },
)
_norm_names(DECODER, _decoder, 3)
DECODER.misconception(
    "norm1_and_norm3_exchanged",
    "norm1 and norm3 have changed places. They follow the sub-layers in the order of their numbers.",
)(_decoder(norms=(3, 2, 1)))
DECODER.misconception(
    "norm1_again",
    "norm1 follows the cross-attention too, and norm2 comes after the feed-forward network, or not at all. Each of the "
    "three has its own place.",
)(_decoder(norms=(1, 1, 2)))
DECODER.misconception(
    "norm1_after_both_attentions",
    "norm1 follows both attentions. The cross-attention has a norm of its own: norm2.",
)(_decoder(norms=(1, 1, 3)))
DECODER.misconception(
    "norm2_twice",
    "norm2 follows the feed-forward network as well. That one has a norm of its own: norm3.",
)(_decoder(norms=(1, 2, 2)))
_parts(DECODER, DecoderLayer, ("self_attention", "cross_attention"), ("norm1", "norm2", "norm3"))
_inherited(DECODER, DecoderLayer, ("norm1", "norm2", "norm3"))
DECODER.contains(
    multi_head.ATTENTION,
    _attending(DecoderLayer, "self_attention", "cross_attention"),
    called="attention",
    prefix="attention",
)
# A learner has one class for both attentions; what is written out for one of them alone goes wrong in fewer ways.
IN_ONE_PLACE = {
    "attends_across_heads",
    "biases_forgotten",
    "heads_not_split",
    "mask_added",
    "mask_after_softmax",
    "mask_filled_with_zero",
    "merged_without_transpose",
    "multiplied_by_root",
    "no_out_proj",
    "no_scale",
    "no_softmax",
    "scale_of_the_model",
    "scale_without_root",
    "softmax_over_heads",
    "softmax_over_queries",
    "values_not_projected",
    "view_straight",
    "weights_times_keys",
}
for _place in ("self_attention", "cross_attention"):
    DECODER.contains(
        multi_head.ATTENTION,
        _attending(DecoderLayer, _place),
        called=_place.replace("_", "-"),
        prefix=_place,
        without=tuple(m.key for m in multi_head.ATTENTION.misconceptions if m.key not in IN_ONE_PLACE),
    )


def _masks(key, says, masks):
    DECODER.misconception(key, says, look=IN_DECODER)(_decoder(masks=masks))


def _no_future(own, x):
    return _causal(x.shape[1]) if own is None else own & _causal(x.shape[1])


_masks(
    "masks_exchanged",
    "The masks have changed places: self_mask arrives at the cross-attention, memory_mask at the self-attention. Look "
    "at the order of the arguments, in the signature and in the calls.",
    lambda own, theirs, x: (theirs, own),
)
_masks("masks_ignored", "The result depends on neither mask.", lambda own, theirs, x: (None, None))
_masks(
    "self_mask_ignored",
    "The result does not depend on self_mask: every position of the target sees the future. Training looks wonderful, "
    "and generation is rubbish.",
    lambda own, theirs, x: (None, theirs),
)
_masks(
    "memory_mask_ignored",
    "The result does not depend on memory_mask: padding of the source is attended to.",
    lambda own, theirs, x: (own, None),
)
_masks(
    "self_mask_for_both",
    "self_mask is used in both attentions. The cross-attention has keys of its own, and memory_mask for them.",
    lambda own, theirs, x: (own, own),
)
_masks(
    "memory_mask_for_both",
    "memory_mask is used in both attentions. The self-attention has keys of its own, and self_mask for them.",
    lambda own, theirs, x: (theirs, theirs),
)
_masks(
    "masks_only_together",
    "A mask is used only where the other one is given too. Either may come alone.",
    lambda own, theirs, x: (own, theirs) if own is not None and theirs is not None else (None, None),
)
_masks(
    "masks_turned_round",
    "Attention goes exactly where the masks forbid it. True means *may attend*, in the course's attention as here; "
    "only `nn.MultiheadAttention` has it the other way round.",
    lambda own, theirs, x: (_if(own, torch.logical_not), _if(theirs, torch.logical_not)),
)
_masks(
    "self_mask_turned_round",
    "self_mask is turned round, memory_mask is not. True means *may attend* in both.",
    lambda own, theirs, x: (_if(own, torch.logical_not), theirs),
)
_masks(
    "memory_mask_turned_round",
    "memory_mask is turned round, self_mask is not. True means *may attend* in both.",
    lambda own, theirs, x: (own, _if(theirs, torch.logical_not)),
)
_masks(
    "self_mask_transposed",
    "The last two axes of self_mask are exchanged. Rows are queries, columns are keys, in the mask as in the scores.",
    lambda own, theirs, x: (_if(own, lambda m: m.transpose(-2, -1)), theirs),
)
_masks(
    "causal_always",
    "The layer hides the future by itself, whatever self_mask says. In the course a layer attends where its mask "
    "allows; who calls it decides.",
    lambda own, theirs, x: (_no_future(own, x), theirs),
)
_masks(
    "causal_by_default",
    "Without self_mask, the layer hides the future by itself. None means that everything may be attended to.",
    lambda own, theirs, x: (_causal(x.shape[1]) if own is None else own, theirs),
)
_masks(
    "causal_instead",
    "Whatever self_mask is given, a causal one is used.",
    lambda own, theirs, x: (_causal(x.shape[1]), theirs),
)
_masks(
    "masks_as_numbers",
    "A mask is turned into numbers on the way. It is bool, and the attention takes it as it is.",
    lambda own, theirs, x: (_if(own, torch.Tensor.float), _if(theirs, torch.Tensor.float)),
)
_masks(
    "if_mask",
    "`if mask:` asks a whole tensor for one truth value, which it does not have. What you want to know is whether "
    "there is a mask.",
    lambda own, theirs, x: (own if own else None, theirs if theirs else None),
)
_masks(
    "masks_get_head_axis",
    "The masks are given an axis for the heads. They broadcast to (B, H, …) as they come; pass them on as they are.",
    lambda own, theirs, x: (_if(own, lambda m: m.unsqueeze(1)), _if(theirs, lambda m: m.unsqueeze(1))),
)
_masks(
    "masks_get_batch_axis",
    "The masks are given one axis more, in front. They broadcast to (B, H, …) as they come; pass them on as they are.",
    lambda own, theirs, x: (_if(own, lambda m: m.unsqueeze(0)), _if(theirs, lambda m: m.unsqueeze(0))),
)
_masks(
    "masks_get_two_axes",
    "The masks are taken for masks of shape (B, L) and given two axes. They broadcast to (B, H, …) as they come; pass "
    "them on as they are.",
    lambda own, theirs, x: (_if(own, lambda m: m[:, None, None]), _if(theirs, lambda m: m[:, None, None])),
)
_masks(
    "memory_mask_gets_two_axes",
    "memory_mask is taken for a mask of shape (B, L_memory) and given two axes. It broadcasts to (B, H, L, L_memory) "
    "as it comes; pass it on as it is.",
    lambda own, theirs, x: (own, _if(theirs, lambda m: m[:, None, None])),
)
_masks(
    "self_mask_gets_head_axis",
    "self_mask is given an axis for the heads. It broadcasts to (B, H, L, L) as it comes; pass it on as it is.",
    lambda own, theirs, x: (_if(own, lambda m: m.unsqueeze(1)), theirs),
)
_masks(
    "memory_mask_gets_head_axis",
    "memory_mask is given an axis for the heads. It broadcasts to (B, H, L, L_memory) as it comes; pass it on as it "
    "is.",
    lambda own, theirs, x: (own, _if(theirs, lambda m: m.unsqueeze(1))),
)
_masks(
    "masks_of_three_axes_by_sequence",
    "Masks of three axes are taken for one per sequence and given a head axis in the middle. Masks broadcast from the "
    "right, so the first axis is that of the heads; pass them on as they are.",
    lambda own, theirs, x: tuple(_if(m, lambda m: m[:, None] if m.dim() == 3 else m) for m in (own, theirs)),
)
_masks(
    "masks_of_two_axes_by_sequence",
    "Masks of two axes are taken for (B, L), which sequence has which keys. They say for every query which keys it "
    "sees, and broadcast as they come.",
    lambda own, theirs, x: tuple(_if(m, lambda m: m[:, None, None] if m.dim() == 2 else m) for m in (own, theirs)),
)
_masks(
    "memory_mask_of_two_axes_by_sequence",
    "A memory_mask of two axes is taken for (B, L_memory), which sequence has which keys. It is (L, L_memory), and "
    "broadcasts as it comes.",
    lambda own, theirs, x: (own, _if(theirs, lambda m: m[:, None, None] if m.dim() == 2 else m)),
)
_masks(
    "memory_mask_transposed",
    "The last two axes of memory_mask are exchanged. Rows are queries, columns are keys, in the mask as in the scores.",
    lambda own, theirs, x: (own, _if(theirs, lambda m: m.transpose(-2, -1))),
)
_masks(
    "self_mask_where_memory_mask_is_missing",
    "Where no memory_mask is given, self_mask is used in its place. None means that the whole source may be attended "
    "to.",
    lambda own, theirs, x: (own, own if theirs is None else theirs),
)
_masks(
    "self_mask_needed",
    "The layer does not work without self_mask. None means that everything may be attended to.",
    lambda own, theirs, x: (own.bool(), theirs),
)
_masks(
    "memory_mask_needed",
    "The layer does not work without memory_mask. None means that everything may be attended to.",
    lambda own, theirs, x: (own, theirs.bool()),
)
_masks(
    "masks_needed",
    "The layer does not work where a mask is None. None means that everything may be attended to.",
    lambda own, theirs, x: (own.bool(), theirs.bool()),
)


for _key, _change in (
    ("masks_exchanged", lambda own, theirs, x: (theirs, own)),
    ("self_mask_for_both", lambda own, theirs, x: (own, own)),
    ("memory_mask_for_both", lambda own, theirs, x: (theirs, theirs)),
    ("self_mask_where_memory_mask_is_missing", lambda own, theirs, x: (own, own if theirs is None else theirs)),
    ("masks_get_head_axis", lambda own, theirs, x: tuple(_if(m, lambda m: m.unsqueeze(1)) for m in (own, theirs))),
    ("masks_get_two_axes", lambda own, theirs, x: tuple(_if(m, lambda m: m[:, None, None]) for m in (own, theirs))),
    (
        "masks_of_three_axes_by_sequence",
        lambda own, theirs, x: tuple(_if(m, lambda m: m[:, None] if m.dim() == 3 else m) for m in (own, theirs)),
    ),
):
    _says = next(known.says for known in DECODER.misconceptions if known.key == _key)
    DECODER.misconception(f"{_key}_in_own_attention", f"{_says} {OWN}", look=IN_DECODER)(
        _decoder(masks=_change, base=_with(DecoderLayer))
    )
for _key, _says, _changes in WITH_A_MASK_MISTAKE:
    for _name, _words, _change in (
        ("masks_ignored", "neither mask has an effect", lambda own, theirs, x: (None, None)),
        ("self_mask_ignored", "self_mask has no effect", lambda own, theirs, x: (None, theirs)),
        ("memory_mask_ignored", "memory_mask has no effect", lambda own, theirs, x: (own, None)),
        (
            "masks_turned_round",
            "attention goes where the masks forbid it",
            lambda own, theirs, x: (_if(own, torch.logical_not), _if(theirs, torch.logical_not)),
        ),
    ):
        DECODER.misconception(f"{_key}_and_{_name}", f"Two things: {_says}, and {_words}.", look=POST)(
            _decoder(masks=_change, **_everywhere(3, _changes))
        )


def _wrong(key, says, look=""):
    return _forward(DECODER, DecoderLayer, key, says, look)


def _layer(cross_query=None, inputs=lambda x, memory: (x, memory, memory), own=lambda x, memory: (x, x, x)):
    """The decoder layer with other tensors in its attentions."""

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(*own(x, memory), self_mask)[0])
        x = self.norm2(x + self.cross_attention(*inputs(x, memory), memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

    return forward


_wrong(
    "memory_asks",
    "In the cross-attention, memory asks and the target answers. The result has a row for every query: whose rows are "
    "wanted?",
)(_layer(inputs=lambda x, memory: (memory, x, x)))
_wrong(
    "memory_alone",
    "In the cross-attention, queries come from memory like keys and values, so nothing crosses over. Who asks the "
    "source: the source, or the target?",
)(_layer(inputs=lambda x, memory: (memory, memory, memory)))
_wrong(
    "memory_not_used",
    "The result does not depend on memory: the second attention looks at the target again. Where do its keys and "
    "values come from?",
)(_layer(inputs=lambda x, memory: (x, x, x)))
_wrong(
    "values_from_target",
    "In the cross-attention, keys come from memory and values from the target. A weight belongs to a source position; "
    "so does the value that it weighs.",
)(_layer(inputs=lambda x, memory: (x, memory, x)))
_wrong(
    "keys_from_target",
    "In the cross-attention, values come from memory and keys from the target. Each key has its value: both are of the "
    "source.",
)(_layer(inputs=lambda x, memory: (x, x, memory)))
_wrong(
    "inputs_exchanged",
    "The first attention looks at memory and the second at the target. The order is the other way round.",
)(_layer(own=lambda x, memory: (x, memory, memory), inputs=lambda x, memory: (x, x, x)))
_wrong(
    "memory_in_both",
    "Both attentions look at memory. The first is self-attention: the target looks at itself.",
)(_layer(own=lambda x, memory: (x, memory, memory)))
_wrong(
    "memory_detached",
    "The values are right, but no gradient reaches memory: the encoder would learn nothing from the target.",
)(_layer(inputs=lambda x, memory: (x, memory.detach(), memory.detach())))


@_wrong(
    "cross_attention_causal",
    "The cross-attention hides later positions of the source. The source is known as a whole: every target position "
    "may "
    "look at all of it that memory_mask allows.",
    look=IN_DECODER,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    earlier = _true(x.shape[1], memory.shape[1]).tril()
    memory_mask = earlier if memory_mask is None else earlier & memory_mask
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask)


@_wrong(
    "pre_norm_of_memory_too",
    "This is pre-norm, and memory goes through norm2 as well. In the paper, and here, each norm is applied to the sum "
    "that comes out of its sub-layer.",
    look=POST,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = x + _attend(self, self.norm1(x), self_mask)
    x = x + _cross(self, self.norm2(x), self.norm2(memory), memory_mask)
    return x + self.feed_forward(self.norm3(x))


@_wrong(
    "memory_normed",
    "memory goes through norm2 before it is attended to. It comes ready from the encoder; norms stand after sums.",
    look=POST,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    memory = self.norm2(memory)
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask)


@_wrong(
    "arguments_exchanged",
    "x and memory have changed places: x, the target, is the first argument, and the result has its length.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    return DecoderLayer.forward(self, memory, x, self_mask, memory_mask)


@_wrong(
    "self_attention_for_both",
    "`self_attention` does both attentions. The second one has weights of its own: `cross_attention`.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + _attend(self, x, self_mask))
    x = self.norm2(x + self.self_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.feed_forward(x))


@_wrong(
    "cross_attention_for_both",
    "`cross_attention` does both attentions; `self_attention`, with weights of its own, is not used.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + self.cross_attention(x, x, x, self_mask)[0])
    x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.feed_forward(x))


@_wrong(
    "attentions_exchanged",
    "`cross_attention` looks at the target and `self_attention` at memory: the two modules have changed places.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + self.cross_attention(x, x, x, self_mask)[0])
    x = self.norm2(x + self.self_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.feed_forward(x))


def _cross(layer, x, memory, mask):
    return layer.cross_attention(x, memory, memory, mask)[0]


@_wrong(
    "cross_attention_first",
    "The cross-attention comes before the self-attention, with the norms in their order. The target looks at itself "
    "first.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + _cross(self, x, memory, memory_mask))
    x = self.norm2(x + _attend(self, x, self_mask))
    return self.norm3(x + self.feed_forward(x))


@_wrong(
    "cross_attention_first_with_norm",
    "The cross-attention and its norm come before the self-attention and its norm. The target looks at itself first.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm2(x + _cross(self, x, memory, memory_mask))
    x = self.norm1(x + _attend(self, x, self_mask))
    return self.norm3(x + self.feed_forward(x))


@_wrong(
    "feed_forward_in_the_middle",
    "The feed-forward network comes before the cross-attention. It is the last of the three.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + _attend(self, x, self_mask))
    x = self.norm2(x + self.feed_forward(x))
    return self.norm3(x + _cross(self, x, memory, memory_mask))


@_wrong(
    "cross_attention_of_input",
    "The cross-attention's queries are the layer's input. They are what the self-attention and norm1 have made of it.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x + _attend(self, x, self_mask))
    y = self.norm2(y + _cross(self, x, memory, memory_mask))
    return self.norm3(y + self.feed_forward(y))


@_wrong(
    "attentions_side_by_side",
    "Both attentions start from the layer's input and are added in one sum. Here the second works on what the first "
    "has made.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm2(self.norm1(x + _attend(self, x, self_mask) + _cross(self, x, memory, memory_mask)))
    return self.norm3(x + self.feed_forward(x))


@_wrong(
    "residual_never_updated",
    "All residual connections start at the layer's input. Each starts where its sub-layer does: at the output of the "
    "norm before.",
    look=NORM,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x + _attend(self, x, self_mask))
    y = self.norm2(x + _cross(self, y, memory, memory_mask))
    return self.norm3(x + self.feed_forward(y))


@_wrong(
    "cross_residual_from_input",
    "The residual connection around the cross-attention starts at the layer's input. It starts at the output of norm1.",
    look=NORM,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x + _attend(self, x, self_mask))
    y = self.norm2(x + _cross(self, y, memory, memory_mask))
    return self.norm3(y + self.feed_forward(y))


@_wrong(
    "feed_forward_residual_from_input",
    "The residual connection around the feed-forward network starts at the layer's input. It starts at the output of "
    "norm2.",
    look=NORM,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x + _attend(self, x, self_mask))
    y = self.norm2(y + _cross(self, y, memory, memory_mask))
    return self.norm3(x + self.feed_forward(y))


@_wrong(
    "feed_forward_residual_from_norm1",
    "The residual connection around the feed-forward network starts at the output of norm1, past the cross-attention. "
    "It starts at the output of norm2.",
    look=NORM,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x + _attend(self, x, self_mask))
    z = self.norm2(y + _cross(self, y, memory, memory_mask))
    return self.norm3(y + self.feed_forward(z))


@_wrong(
    "feed_forward_of_norm1",
    "The feed-forward network works on the output of norm1, past the cross-attention. Its input is the output of "
    "norm2.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + _attend(self, x, self_mask))
    return self.norm3(self.norm2(x + _cross(self, x, memory, memory_mask)) + self.feed_forward(x))


@_wrong(
    "feed_forward_of_input",
    "The feed-forward network works on the layer's input. Its input is the output of norm2.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    y = self.norm1(x + _attend(self, x, self_mask))
    y = self.norm2(y + _cross(self, y, memory, memory_mask))
    return self.norm3(y + self.feed_forward(x))


@_wrong(
    "residual_from_memory",
    "memory is added to the output of the cross-attention. The residual connection belongs to x, the target.",
    look=NORM,
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + _attend(self, x, self_mask))
    x = self.norm2(memory + _cross(self, x, memory, memory_mask))
    return self.norm3(x + self.feed_forward(x))


@_wrong(
    "tuple_added",
    "Attention returns a pair, `(output, weights)`, and a pair cannot be added to a tensor.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + self.self_attention(x, x, x, self_mask))
    x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask))
    return self.norm3(x + self.feed_forward(x))


@_wrong("weights_too", "Attention weights come back as well. The contract asks for the output only.")
def _(self, x, memory, self_mask=None, memory_mask=None):
    x = self.norm1(x + _attend(self, x, self_mask))
    attended, weights = self.cross_attention(x, memory, memory, memory_mask)
    x = self.norm2(x + attended)
    return self.norm3(x + self.feed_forward(x)), weights


@_wrong("memory_too", "memory comes back as well. The contract asks for the output only.")
def _(self, x, memory, self_mask=None, memory_mask=None):
    return DecoderLayer.forward(self, x, memory, self_mask, memory_mask), memory


@_wrong(
    "residual_in_place",
    "The result is right, but x is changed on the way, and x belongs to the caller: `+=` works in place.",
)
def _(self, x, memory, self_mask=None, memory_mask=None):
    x += _attend(self, x, self_mask)
    x = self.norm1(x)
    x = self.norm2(x + _cross(self, x, memory, memory_mask))
    return self.norm3(x + self.feed_forward(x))


DECODER.misconception(
    "no_norm3",
    "There is no norm3. A decoder layer has three sub-layers, and each has a norm of its own.",
    look=NORM,
)(_with(DecoderLayer, norm3=None))
DECODER.misconception(
    "no_cross_attention",
    "`cross_attention` has no parameters of its own: it is not there, or it is the same module as `self_attention`. "
    "What to look for in the source has to be learned apart.",
)(_with(DecoderLayer, cross_attention=None))
DECODER.misconception(
    "encoder_layer",
    "This is an encoder layer: it has neither `cross_attention` nor a norm for it.",
)(_with(DecoderLayer, cross_attention=None, norm3=None))


# Parameter count

COUNT = Exercise(
    name="transformer_parameter_count",
    title="How many parameters a transformer has",
    statement="""\
Before you train a model, know its size. Count the parameters of an encoder–decoder transformer made of the two layers
above:

- `num_layers` encoder layers, and `num_layers` decoder layers;
- the layers are those of the exercises `EncoderLayer` and `DecoderLayer`: every `nn.Linear` in them has a bias, the
  four of each attention are `d_model` to `d_model`, and every `nn.LayerNorm` has a gain and a bias of `d_model`
  features;
- one embedding matrix of `vocab_size` rows and `d_model` columns, which source, target and output projection share;
  the output projection has no bias;
- sinusoidal positions, so no parameters for them, and no norm after the last layer.

Return an int. The number of heads is not needed: why?""",
    difficulty=2,
    minutes=10,
    stub='''\
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    """Parameters of an encoder-decoder with one shared embedding."""
    raise NotImplementedError
''',
    hints=(
        "Count from the inside: one Linear, one attention, one feed-forward network, one norm. Then a layer of each "
        "kind, then the whole.",
        "A Linear from n to m features has n · m weights and m biases. So an attention has four times d_model² + "
        "d_model.",
        "A decoder layer is an encoder layer with one attention and one norm more.",
        "`sum(p.numel() for p in EncoderLayer(8, 2, 16).parameters())` counts a layer for you; compare it with your "
        "formula, part by part.",
    ),
    reference=transformer_parameter_count,
    shapes={},
    returns=("parameters",),
    look=COUNTING,
    differentiable=False,
)


@COUNT.holds("Every matrix, bias, gain and embedding is counted once", weight=3)
def _(draw):
    yield Case(args=(3, 2, 1, 5), note="one layer of each kind; 6 parameters are the embedding")
    for _ in range(4):
        yield Case(args=tuple(draw.sizes(4, 2, 40)))


@COUNT.holds("It is an exact int, for large models too")
def _(draw):
    yield Case(args=(37000, 512, 6, 2048), note="the base model of the paper")
    yield Case(args=(37000, 1024, 6, 4096), note="the big model of the paper")
    yield Case(args=(999_999_937, 16_777_259, 3, 33_554_467), note="more parameters than a float counts exactly")


def _count(
    attention=lambda d: 4 * d * d + 4 * d,
    feed_forward=lambda d, f: 2 * d * f + f + d,
    norm=lambda d: 2 * d,
    attentions=(1, 2),
    norms=(2, 3),
    embeddings=1,
    stacks=(1, 1),
    more=lambda v, d, n, f: 0,
):
    """The count with one part exchanged; pairs are for encoder and decoder."""

    def count(vocab_size, d_model, num_layers, d_ff):
        layers = sum(
            stack * (a * attention(d_model) + feed_forward(d_model, d_ff) + b * norm(d_model))
            for stack, a, b in zip(stacks, attentions, norms, strict=True)
        )
        return embeddings * vocab_size * d_model + num_layers * layers + more(vocab_size, d_model, num_layers, d_ff)

    return count


COUNT.misconception(
    "two_embeddings",
    "The embedding is counted twice. Source, target and output projection share one matrix.",
)(_count(embeddings=2))
COUNT.misconception(
    "three_embeddings",
    "The embedding is counted three times: for source, target and output projection, which share one matrix.",
)(_count(embeddings=3))
COUNT.misconception("no_embedding", "The embedding is not counted. It is shared, but it is there once.")(
    _count(embeddings=0)
)
COUNT.misconception(
    "embedding_in_every_layer",
    "The embedding is multiplied by the number of layers. It stands before the first layer only.",
)(_count(more=lambda v, d, n, f: (n - 1) * v * d))
COUNT.misconception(
    "output_bias",
    "vocab_size too many: the output projection has no bias here.",
)(_count(more=lambda v, d, n, f: v))
COUNT.misconception(
    "output_projection_with_bias",
    "An output projection of its own is counted, with a bias. It is the embedding matrix once more, without a bias.",
)(_count(embeddings=2, more=lambda v, d, n, f: v))
COUNT.misconception(
    "three_embeddings_and_bias",
    "Source embedding, target embedding and an output projection with a bias are counted. All three share one matrix, "
    "and there is no output bias.",
)(_count(embeddings=3, more=lambda v, d, n, f: v))
COUNT.misconception(
    "final_norms",
    "A norm after each stack is counted. Post-norm layers end in a norm already, and there is no other.",
)(_count(more=lambda v, d, n, f: 4 * d))
COUNT.misconception(
    "final_norm",
    "One norm too many: there is none after the last layer.",
)(_count(more=lambda v, d, n, f: 2 * d))
COUNT.misconception(
    "no_biases",
    "No Linear has its bias counted. All of them have one, of as many numbers as features go out.",
)(_count(attention=lambda d: 4 * d * d, feed_forward=lambda d, f: 2 * d * f))
COUNT.misconception(
    "no_biases_no_norms",
    "Only matrices are counted: biases and norms are missing.",
)(_count(attention=lambda d: 4 * d * d, feed_forward=lambda d, f: 2 * d * f, norms=(0, 0)))
COUNT.misconception(
    "no_attention_biases",
    "The four projections of an attention are counted without their biases.",
)(_count(attention=lambda d: 4 * d * d))
COUNT.misconception(
    "no_biases_in_attention_no_norms",
    "The biases of the attention's projections and all norms are missing.",
)(_count(attention=lambda d: 4 * d * d, norms=(0, 0)))
COUNT.misconception(
    "no_feed_forward_biases",
    "The feed-forward network is counted without its biases. How many hidden features does it have, and how many go "
    "out?",
)(_count(feed_forward=lambda d, f: 2 * d * f))
COUNT.misconception(
    "one_attention_bias",
    "An attention has four projections, and each has a bias of its own.",
)(_count(attention=lambda d: 4 * d * d + d))
COUNT.misconception(
    "three_projections",
    "An attention is counted with three projections: query, key and value. Which one comes after the heads?",
    look="multi_head: The code",
)(_count(attention=lambda d: 3 * d * d + 3 * d))
COUNT.misconception(
    "out_projection_without_bias",
    "Only three of the attention's four projections have their bias counted.",
)(_count(attention=lambda d: 4 * d * d + 3 * d))
COUNT.misconception(
    "one_projection",
    "An attention is counted with one matrix. It has four.",
    look="multi_head: The code",
)(_count(attention=lambda d: d * d + d))
COUNT.misconception(
    "one_matrix_in_feed_forward",
    "The feed-forward network is counted with one of its two Linears.",
)(_count(feed_forward=lambda d, f: d * f + f))
COUNT.misconception(
    "second_matrix_in_feed_forward_only",
    "Of the feed-forward network only the second Linear is counted.",
)(_count(feed_forward=lambda d, f: d * f + d))
COUNT.misconception(
    "feed_forward_biases_of_width",
    "Both biases of the feed-forward network are counted with d_ff numbers. How many features go out of the second?",
)(_count(feed_forward=lambda d, f: 2 * d * f + 2 * f))
COUNT.misconception(
    "feed_forward_biases_of_model",
    "Both biases of the feed-forward network are counted with d_model numbers. How many features go out of the first?",
)(_count(feed_forward=lambda d, f: 2 * d * f + 2 * d))
COUNT.misconception(
    "feed_forward_output_bias_only",
    "The feed-forward network has another bias, of its first Linear.",
)(_count(feed_forward=lambda d, f: 2 * d * f + d))
COUNT.misconception(
    "width_ignored",
    "The feed-forward network is counted as four times as wide as the model. Its width is d_ff.",
)(_count(feed_forward=lambda d, f: 8 * d * d + 5 * d))
COUNT.misconception("no_feed_forward", "The feed-forward networks are not counted.")(
    _count(feed_forward=lambda d, f: 0)
)
COUNT.misconception("no_attention", "The attentions are not counted.")(_count(attentions=(0, 0)))
COUNT.misconception(
    "no_cross_attention",
    "A decoder layer is counted with one attention. It looks at the target and at the source, with weights of their "
    "own.",
    look=DECODING,
)(_count(attentions=(1, 1)))
COUNT.misconception(
    "two_encoders",
    "The decoder's layers are counted as encoder layers. What do they have in addition?",
    look=DECODING,
)(_count(attentions=(1, 1), norms=(2, 2)))
COUNT.misconception(
    "two_decoders",
    "The encoder's layers are counted as decoder layers. What do they not have?",
    look=ENCODING,
)(_count(attentions=(2, 2), norms=(3, 3)))
COUNT.misconception(
    "two_norms_in_decoder",
    "2 · d_model are missing from each pair of layers: the third norm of the decoder layer, or else the biases of "
    "both second Linears.",
    look=DECODING,
)(_count(norms=(2, 2)))
COUNT.misconception(
    "three_norms_in_encoder",
    "An encoder layer is counted with three norms. One follows each of its two sub-layers.",
    look=ENCODING,
)(_count(norms=(3, 3)))
COUNT.misconception(
    "one_norm_a_layer",
    "Each layer is counted with one norm. One follows each sub-layer.",
    look=NORM,
)(_count(norms=(1, 1)))
COUNT.misconception("no_norms", "The norms are not counted. Each has a gain and a bias.", look=NORM)(
    _count(norms=(0, 0))
)
COUNT.misconception(
    "gain_only",
    "Each norm is counted with d_model numbers. It has a gain and a bias.",
    look=NORM,
)(_count(norm=lambda d: d))
COUNT.misconception(
    "two_numbers_a_norm",
    "Each norm is counted with two numbers. It has a gain and a bias for every feature.",
    look=NORM,
)(_count(norm=lambda d: 2))
COUNT.misconception(
    "encoder_only",
    "Only the encoder's layers are counted.",
    look=ENCODING,
)(_count(stacks=(1, 0)))
COUNT.misconception(
    "decoder_only",
    "Only the decoder's layers are counted.",
    look=DECODING,
)(_count(stacks=(0, 1)))
COUNT.misconception(
    "layers_shared",
    "The number of layers makes no difference. Each layer has weights of its own.",
)(lambda vocab_size, d_model, num_layers, d_ff: transformer_parameter_count(vocab_size, d_model, 1, d_ff))
COUNT.misconception(
    "layers_in_all",
    "num_layers layers are counted in all. The encoder has that many, and so has the decoder.",
)(
    lambda vocab_size, d_model, num_layers, d_ff: (
        vocab_size * d_model + (transformer_parameter_count(0, d_model, 1, d_ff) * num_layers) // 2
    )
)
COUNT.misconception(
    "float_on_the_way",
    "Right for small models; for a large one some digits are lost, since a float has come in on the way. `/` makes "
    "one; products and sums of ints do not.",
)(lambda *sizes: int(float(transformer_parameter_count(*sizes))))
COUNT.misconception(
    "tensor_result",
    "The number comes back in a tensor. A count is a Python int.",
)(lambda *sizes: torch.tensor(transformer_parameter_count(*sizes)))
COUNT.misconception(
    "float_result",
    "The number is right, its type is not: a count is an int. `/` and `**` with a fraction give a float, and large "
    "numbers are not exact in it.",
)(lambda *sizes: float(transformer_parameter_count(*sizes)))
for _key, _says, _solution in two_slips(_count):
    COUNT.misconception(_key, _says)(_solution)
COUNT.misconception(
    "no_biases_no_norms_two_embeddings",
    "Only matrices are counted, without biases and norms, and the embedding twice, though all share one.",
)(
    _count(
        attention=lambda d: 4 * d * d,
        feed_forward=lambda d, f: 2 * d * f,
        norms=(0, 0),
        embeddings=2,
    )
)
COUNT.misconception(
    "no_biases_no_norms_three_embeddings",
    "Only matrices are counted, without biases and norms, and the embedding three times, though all share one.",
)(
    _count(
        attention=lambda d: 4 * d * d,
        feed_forward=lambda d, f: 2 * d * f,
        norms=(0, 0),
        embeddings=3,
    )
)
for _embeddings, _words in ((2, "twice"), (3, "three times")):
    COUNT.misconception(
        f"no_biases_and_{_embeddings}_embeddings",
        f"Two things: no Linear has its bias counted, and the embedding is counted {_words}, though all share one.",
    )(_count(attention=lambda d: 4 * d * d, feed_forward=lambda d, f: 2 * d * f, embeddings=_embeddings))
COUNT.misconception(
    "heads_counted_apart",
    "The attention is counted once per head, or with d_ff features. Its four matrices are d_model × d_model together, "
    "however many heads share them.",
    look="multi_head: The code",
)(_count(attention=lambda d: 8 * (4 * d * d + 4 * d)))
COUNT.misconception(
    "positions_learned",
    "Learned positions are counted, 512 of them. These are sinusoidal: nothing to learn.",
)(_count(more=lambda v, d, n, f: 512 * d))
