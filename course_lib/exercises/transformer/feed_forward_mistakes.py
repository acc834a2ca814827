"""The mistakes in `FeedForward`."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises._headings import RESIDUALS
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.feed_forward import FeedForward
from course_lib.exercises.transformer.variants import built_with, hidden

mistake = Mistakes()


@mistake.built
def no_activation():
    """There is nothing between the Linears. Two linear functions in a row are one linear function, so d_ff has no
    effect."""
    return hidden(lambda h: h)


@mistake.built
def activation_at_the_end():
    """The ReLU comes after the second Linear instead of between the two, so no output is ever negative."""
    return hidden(lambda h: h, after=lambda y, x: y.relu())


@mistake.built
def activation_twice():
    """There is a second ReLU at the end. With it, the network can only increase a feature, never decrease it."""
    return hidden(after=lambda y, x: y.relu())


@mistake.built
def activation_first():
    """The ReLU is applied to the input, not to the hidden features: the negative half of the input is lost before the
    first Linear."""
    return hidden(lambda h: h, before=torch.relu)


@mistake.built
def activation_first_too():
    """The ReLU is applied to the input as well. It belongs in one place: on the hidden features."""
    return hidden(before=torch.relu)


for _key, _name, _activation in (
    ("gelu", "GELU, as in BERT and GPT", nn.functional.gelu),
    ("gelu_tanh", "GELU in its tanh approximation, as in GPT-2", lambda h: nn.functional.gelu(h, approximate="tanh")),
    ("silu", "SiLU (Swish), as in many current models", nn.functional.silu),
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
    mistake.named(_key, f"Between the Linears is {_name}. The contract, like the paper of 2017, asks for max(0, ·).")(
        hidden(_activation)
    )


@mistake.built(look=RESIDUALS)
def residual_inside():
    """The input is added to the output. The residual connection belongs to the layer around this network, where it
    would be added a second time."""
    return hidden(after=lambda y, x: x + y)


@mistake.built(look=RESIDUALS)
def residual_and_norm_inside():
    """A residual connection and a norm are built in. They belong to the layer around this network, where they would be
    applied a second time."""
    return hidden(after=lambda y, x: nn.functional.layer_norm(x + y, y.shape[-1:]))


@mistake.built
def python_max():
    """Python's `max` compares two objects as a whole and keeps one of them. The larger of 0 and each single number is
    wanted."""
    return hidden(lambda h: max(0, h))


@mistake.built
def max_over_axis():
    """`torch.max(h, 0)` is the largest number along axis 0, together with its index: the 0 is read as an axis. The
    larger of 0 and each single number is wanted."""
    return hidden(lambda h: torch.max(h, 0))


@mistake.built
def first_bias_forgotten():
    """The bias of linear1 is not used. Calling the module, instead of using only its weight, adds it."""
    return type(
        "Network", (FeedForward,), {"forward": lambda self, x: self.linear2((x @ self.linear1.weight.T).relu())}
    )


@mistake.built
def second_bias_forgotten():
    """The bias of linear2 is not used. Calling the module, instead of using only its weight, adds it."""
    return type("Network", (FeedForward,), {"forward": lambda self, x: self.linear1(x).relu() @ self.linear2.weight.T})


@mistake.built
def biases_forgotten():
    """Both biases are not used. Calling the modules, instead of using only their weights, adds them."""
    return type(
        "Network",
        (FeedForward,),
        {"forward": lambda self, x: (x @ self.linear1.weight.T).relu() @ self.linear2.weight.T},
    )


@mistake
class ThreeAxesUnpacked(FeedForward):
    """The shape of x is unpacked into three names, so only one number of axes works. A Linear works on the last axis
    and leaves the others as they are."""

    def forward(self, x):
        _batch, _length, _d = x.shape
        return super().forward(x)


@mistake
class Dropout(FeedForward):
    """There is a dropout, which the contract does not ask for, so train and eval mode differ."""

    def forward(self, x):
        return self.linear2(nn.functional.dropout(self.linear1(x).relu(), 0.1, self.training))


@mistake.built(look=RESIDUALS)
def normed_inside():
    """The hidden features go through a norm. There is none in this network; it belongs to the layer around it."""
    return hidden(lambda h: nn.functional.layer_norm(h.relu(), h.shape[-1:]))


@mistake.built
def hidden_detached():
    """The values are right, but the gradient is detached between the Linears, so the first never learns."""
    return hidden(lambda h: h.relu().detach())


@mistake.built
def only_hidden():
    """The hidden features are returned. The second Linear should bring them back to d_model."""
    return type("Network", (FeedForward,), {"forward": lambda self, x: self.linear1(x).relu()})


@mistake.built
def linears_exchanged():
    """The sizes of the Linears are exchanged: `nn.Linear` takes the number of input features first, then the number of
    output features."""
    return built_with(FeedForward, linear1=lambda d, f: nn.Linear(f, d), linear2=lambda d, f: nn.Linear(d, f))


@mistake.built
def second_as_first():
    """linear2 has the sizes of linear1. It takes the output of linear1 and brings it back to d_model."""
    return built_with(FeedForward, linear2=lambda d, f: nn.Linear(d, f))


@mistake.built
def width_ignored():
    """Both Linears go from d_model to d_model; d_ff, the number of hidden features, is not used."""
    return built_with(FeedForward, linear1=lambda d, f: nn.Linear(d, d), linear2=lambda d, f: nn.Linear(d, d))


@mistake.built
def second_stays_wide():
    """linear2 goes from d_ff to d_ff. The output has to be added to x later: how wide is x?"""
    return built_with(FeedForward, linear2=lambda d, f: nn.Linear(f, f))


@mistake.built
def no_bias():
    """The Linears are built without their biases. The formula has a b₁ and a b₂."""
    return built_with(
        FeedForward,
        linear1=lambda d, f: nn.Linear(d, f, bias=False),
        linear2=lambda d, f: nn.Linear(f, d, bias=False),
    )


@mistake.built
def sequential():
    """The Linears are in an `nn.Sequential`, so they are called `net.0` and `net.2`. The contract names them linear1
    and linear2, so that weights can be loaded."""
    return built_with(
        FeedForward,
        linear1=None,
        linear2=None,
        net=lambda d, f: nn.Sequential(nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d)),
    )


@mistake.built
def not_registered():
    """The module has no parameters at all: its Linears are in local variables or in a plain list, where neither an
    optimizer nor `load_state_dict` finds them. They belong on `self`, under the names linear1 and linear2."""
    return built_with(FeedForward, linear1=None, linear2=None)
