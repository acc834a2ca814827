"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import torch
from contract_clauses import breaks
from torch import nn

import clauses._transformer_layers  # noqa: F401 - the two layers
from course_lib.exercises.transformer.feed_forward import FeedForward
from course_lib.transformer import layer_norm, transformer_parameter_count

# layer_norm


def norm(name, **changes):
    """Layer norm over `dims(x)`, with one step exchanged; the breach is called `name`."""
    step = {
        "dims": lambda x: -1,
        "variance": lambda x, dims: x.var(dims, keepdim=True, correction=0),
        "root": lambda variance, eps: (variance + eps).sqrt(),
        **changes,
    }

    def solution(x, gain, bias, eps=1e-5):
        dims = step["dims"](x)
        centred = x - x.mean(dims, keepdim=True)
        return centred / step["root"](step["variance"](x, dims), eps) * gain + bias

    solution.__name__ = name
    return solution


breaks("layer_norm", "over the last axis, however many axes precede it")(
    norm("over_both_of_two_axes", dims=lambda x: (-2, -1) if x.dim() == 2 else -1)
)
breaks("layer_norm", "over the last axis, however many axes precede it")(
    norm("third_axis_of_four", dims=lambda x: min(2, x.dim() - 1))
)
breaks("layer_norm", "over the last axis, however many axes precede it")(
    norm(
        "a_vector_alone_is_not_normed", variance=lambda x, dims: x.var(dims, keepdim=True, correction=int(x.dim() < 2))
    )
)
breaks("layer_norm", "biased variance")(
    norm("biased_for_wide_vectors_only", variance=lambda x, dims: x.var(dims, keepdim=True, correction=x.shape[-1] < 5))
)
breaks("layer_norm", "eps under the root")(
    norm("eps_beside_the_root", root=lambda variance, eps: variance.sqrt() + eps)
)
breaks("layer_norm", "eps as it is given")(
    norm("zero_taken_for_not_given", root=lambda variance, eps: (variance + (eps or 1e-5)).sqrt())
)
breaks("layer_norm", "eps as it is given")(
    norm("at_most_a_tenth", root=lambda variance, eps: (variance + min(eps, 0.1)).sqrt())
)
breaks("layer_norm", "accurate to 1e-5 in float32, even with a large mean")(
    norm(
        "difference_of_squares",
        variance=lambda x, dims: (x * x).mean(dims, keepdim=True) - x.mean(dims, keepdim=True) ** 2,
    )
)


@breaks("layer_norm", "the default of eps is 1e-5")
def another_default(x, gain, bias, eps=1e-6):
    return layer_norm(x, gain, bias, eps)


@breaks("layer_norm", "right to 1e-10 in float64")
def float32_inside(x, gain, bias, eps=1e-5):
    return layer_norm(x.float(), gain.float(), bias.float(), eps).to(x.dtype)


@breaks("layer_norm", "keeps the dtype")
def always_float32(x, gain, bias, eps=1e-5):
    return layer_norm(x, gain, bias, eps).float()


@breaks("layer_norm", "keeps the dtype")
def always_float64(x, gain, bias, eps=1e-5):
    return layer_norm(x.double(), gain.double(), bias.double(), eps)


@breaks("layer_norm", "leaves x unchanged")
def centres_x(x, gain, bias, eps=1e-5):
    x -= x.mean(-1, keepdim=True)
    return layer_norm(x, gain, bias, eps)


@breaks("layer_norm", "leaves gain unchanged")
def scales_the_gain(x, gain, bias, eps=1e-5):
    result = layer_norm(x, gain, bias, eps)
    gain.mul_(2)
    return result


@breaks("layer_norm", "leaves bias unchanged")
def sums_into_the_bias(x, gain, bias, eps=1e-5):
    result = layer_norm(x, gain, bias, eps)
    bias += 1
    return result


@breaks("layer_norm", "lets gradients through, to x")
def statistics_detached(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True).detach()
    return centred / (x.var(-1, keepdim=True, correction=0).detach() + eps).sqrt() * gain + bias


@breaks("layer_norm", "lets gradients through, to gain")
def gain_detached(x, gain, bias, eps=1e-5):
    return layer_norm(x, gain.detach(), bias, eps)


@breaks("layer_norm", "lets gradients through, to bias")
def bias_detached(x, gain, bias, eps=1e-5):
    return layer_norm(x, gain, bias.detach(), eps)


# FeedForward


def network(forward, **parts):
    """The network with another forward, or with parts that are made otherwise."""

    class Solution(FeedForward):
        def __init__(self, d_model, d_ff):
            super().__init__(d_model, d_ff)
            for name, make in parts.items():
                setattr(self, name, make(d_model, d_ff))

    if forward is not None:
        Solution.forward = forward
    return Solution


def right(self, x):
    return self.linear2(self.linear1(x).relu())


breaks("FeedForward", "ReLU between")(network(lambda self, x: self.linear2(nn.functional.gelu(self.linear1(x)))))
breaks("FeedForward", "ReLU between, and only there")(network(lambda self, x: right(self, x).relu()))
breaks("FeedForward", "ReLU, not bounded above")(network(lambda self, x: self.linear2(self.linear1(x).clamp(0, 6))))
breaks("FeedForward", "linear1 and linear2 are used with their biases")(
    network(lambda self, x: self.linear1(x).relu() @ self.linear2.weight.T)
)
breaks("FeedForward", "leading dimensions may be none")(
    network(lambda self, x: right(self, x if x.dim() > 1 else x[None]))
)
breaks("FeedForward", "leading dimensions may be many")(
    network(lambda self, x: right(self, x) if x.dim() < 3 else right(self, x.flatten(0, -2)))
)
breaks("FeedForward", "leading dimensions may be many: three")(
    network(lambda self, x: right(self, x) if x.dim() < 4 else right(self, x).flatten(0, 1))
)
breaks("FeedForward", "each position alone")(network(lambda self, x: right(self, x - x.mean(0) * (x.dim() > 2))))
breaks("FeedForward", "right to 1e-10 in float64")(
    network(lambda self, x: self.float() and right(self, x.float()).to(x.dtype))
)
breaks("FeedForward", "keeps the dtype")(network(lambda self, x: right(self, x).float()))
breaks("FeedForward", "leaves its argument unchanged")(network(lambda self, x: x.copy_(right(self, x))))
breaks("FeedForward", "lets gradients through, to x")(network(lambda self, x: right(self, x.detach())))
breaks("FeedForward", "lets gradients through, to its weights")(
    network(lambda self, x: self.linear2(self.linear1(x).relu().detach()))
)
breaks("FeedForward", "the named sub-modules")(
    type(
        "Renamed",
        (nn.Sequential,),
        {"__init__": lambda self, d, f: nn.Sequential.__init__(self, nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d))},
    )
)
breaks("FeedForward", "no other parameters")(network(None, scale=lambda d, f: nn.Parameter(torch.ones(()))))
breaks("FeedForward", "no other parameters")(network(None, norm=lambda d, f: nn.LayerNorm(d)))
breaks("FeedForward", "the sub-modules have biases")(network(None, linear2=lambda d, f: nn.Linear(f, d, bias=False)))
breaks("FeedForward", "d_ff hidden features")(
    network(None, linear1=lambda d, f: nn.Linear(d, 4 * d), linear2=lambda d, f: nn.Linear(4 * d, d))
)
breaks("FeedForward", "no dropout: train and eval are the same")(
    network(lambda self, x: nn.functional.dropout(right(self, x), 0.1, self.training))
)


# transformer_parameter_count


@breaks("transformer_parameter_count", "an int")
def a_float(vocab_size, d_model, num_layers, d_ff):
    return float(transformer_parameter_count(vocab_size, d_model, num_layers, d_ff))


@breaks("transformer_parameter_count", "an int, exact")
def through_a_float(vocab_size, d_model, num_layers, d_ff):
    return int(transformer_parameter_count(vocab_size, d_model, num_layers, d_ff) / 1)


@breaks("transformer_parameter_count", "an int, for any size")
def in_32_bits(vocab_size, d_model, num_layers, d_ff):
    return transformer_parameter_count(vocab_size, d_model, num_layers, d_ff) % 2**32


def count(extra):
    """The right count plus `extra(v, d, n, f)`."""

    def solution(vocab_size, d_model, num_layers, d_ff):
        return transformer_parameter_count(vocab_size, d_model, num_layers, d_ff) + extra(
            vocab_size, d_model, num_layers, d_ff
        )

    return solution


for says, extra in (
    ("encoder and decoder have num_layers each", lambda v, d, n, f: -(n - 1) * (4 * d * d + 2 * d * f + 9 * d + f)),
    ("one embedding matrix", lambda v, d, n, f: v * d),
    ("no output bias", lambda v, d, n, f: v),
    ("sinusoidal positions", lambda v, d, n, f: 512 * d),
    ("no final norm", lambda v, d, n, f: 2 * d),
    ("no final norm, of encoder and decoder", lambda v, d, n, f: 4 * d),
    ("every Linear has a bias: in attention", lambda v, d, n, f: -3 * n * 4 * d),
    ("every Linear has a bias: in the feed-forward network", lambda v, d, n, f: -2 * n * (d + f)),
    ("every Linear has a bias: as many as features go out", lambda v, d, n, f: 2 * n * (f - d)),
    ("the decoder layer has two attentions", lambda v, d, n, f: -n * (4 * d * d + 4 * d)),
    ("the decoder layer has three norms", lambda v, d, n, f: -n * 2 * d),
    ("the norms have a gain and a bias", lambda v, d, n, f: -5 * n * d),
    ("d_ff is any number", lambda v, d, n, f: 2 * n * (4 * d - f) * (2 * d + 1)),
):
    breaks("transformer_parameter_count", says)(count(extra))
