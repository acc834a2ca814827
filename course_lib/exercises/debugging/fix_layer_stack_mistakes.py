"""The mistakes in `fix_layer_stack`."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _linears(d_model, num_layers):
    return [nn.Linear(d_model, d_model) for _ in range(num_layers)]


def _plain_step(layer, x):
    return x + torch.relu(layer(x))


def _stack(layers=lambda d_model, num_layers: nn.ModuleList(_linears(d_model, num_layers)), step=_plain_step):
    """A stack whose layers or whose step are replaced."""

    class Stack(nn.Module):
        def __init__(self, d_model, num_layers):
            super().__init__()
            self.layers = layers(d_model, num_layers)

        def forward(self, x):
            for layer in self.layers:
                x = step(layer, x)
            return x

    return Stack


@mistake.built
def as_given():
    """`parameters()` and `state_dict()` are still empty, so an optimizer trains none of the layers, and a checkpoint
    contains none."""
    return _stack(_linears)


@mistake
class LayersUnderAnotherName(nn.Module):
    """The layers are registered, but under another name: the parameters should be called `layers.0.weight` and so on,
    since that is how a checkpoint finds them."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.blocks = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        for layer in self.blocks:
            x = _plain_step(layer, x)
        return x


@mistake
class LayersOnTheModuleItself(nn.Module):
    """Each layer is an attribute of the stack itself, so it is trained, but the parameters have other names than
    `layers.0.weight`. They belong into one container that is called `layers`."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.kept = _linears(d_model, num_layers)
        for i, layer in enumerate(self.kept):
            self.add_module(f"layer{i}", layer)

    def forward(self, x):
        for layer in self.kept:
            x = _plain_step(layer, x)
        return x


@mistake
class NumberedOnTheModuleItself(nn.Module):
    """The layers are registered by their numbers, but on the stack itself: the parameters are called `0.weight` and not
    `layers.0.weight`."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.kept = _linears(d_model, num_layers)
        for i, layer in enumerate(self.kept):
            self.add_module(str(i), layer)

    def forward(self, x):
        for layer in self.kept:
            x = _plain_step(layer, x)
        return x


@mistake
class WeightsWithoutLayers(nn.Module):
    """The parameters are registered one by one, as a list of tensors: they are trained, but are called `layers.0`,
    `layers.1` and so on. The contract asks for layers with a weight and a bias each."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        tensors = [p for layer in _linears(d_model, num_layers) for p in layer.parameters()]
        self.layers = nn.ParameterList(tensors)

    def forward(self, x):
        pairs = iter(self.layers)
        for weight in pairs:
            x = x + torch.relu(nn.functional.linear(x, weight, next(pairs)))
        return x


@mistake.built
def one_layer_for_all():
    """The stack has the parameters of a single layer, whatever `num_layers` is: either there is only one, or the
    same one is used num_layers times. Each layer needs a weight and a bias of its own."""
    return _stack(lambda d_model, num_layers: nn.ModuleList([nn.Linear(d_model, d_model)] * num_layers))


@mistake
class FirstLayerOnly(nn.Module):
    """The layers are registered, but only the first one has an effect: x comes back before the others are applied."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        return _plain_step(self.layers[0], x)


@mistake.built
def one_layer_too_few():
    """One layer is missing."""
    return _stack(lambda d_model, num_layers: nn.ModuleList(_linears(d_model, num_layers - 1)))


@mistake.built
def one_layer_too_many():
    """There is one layer too many."""
    return _stack(lambda d_model, num_layers: nn.ModuleList(_linears(d_model, num_layers + 1)))


@mistake.built
def layers_without_bias():
    """The layers have no bias. `nn.Linear(d_model, d_model)` has one."""
    return _stack(
        lambda d_model, num_layers: nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(num_layers))
    )


@mistake.built
def activations_between_the_layers():
    """The layers are registered, but ReLUs lie between them in the container, so the second layer is called `layers.2`.
    Only the linear layers belong into `layers`."""

    def layers(d_model, num_layers):
        return nn.ModuleList(part for layer in _linears(d_model, num_layers) for part in (layer, nn.ReLU()))

    def step(part, x):
        return part(x) if isinstance(part, nn.Linear) else x + part(x)

    return _stack(layers, step)


@mistake.built
def layers_in_pairs():
    """Each layer is wrapped together with its ReLU, so its weight is called `layers.0.0.weight`. The linear layers
    themselves belong into `layers`."""
    return _stack(
        lambda d_model, num_layers: nn.ModuleList(
            nn.Sequential(layer, nn.ReLU()) for layer in _linears(d_model, num_layers)
        ),
        lambda pair, x: x + pair(x),
    )


@mistake
class LayersInASequence(nn.Module):
    """The layers are registered and called one after the other, but without ReLU and without adding x: linear layers in
    a row are a single linear function."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.Sequential(*_linears(d_model, num_layers))

    def forward(self, x):
        return self.layers(x)


@mistake
class ContainerCalled(nn.Module):
    """The layers are registered, but their container is called as if it were a layer. It only holds the layers, and
    each of them has to be called in turn."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        return self.layers(x)


@mistake
class OneStepAroundTheSequence(nn.Module):
    """All layers are called as one sequence, with a single ReLU and a single sum at the end. Each layer has a ReLU and
    a sum of its own; linear layers in a row are a single linear function."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.Sequential(*_linears(d_model, num_layers))

    def forward(self, x):
        return x + torch.relu(self.layers(x))


@mistake.built
def residual_lost():
    """The layers are registered, but x is no longer added: each layer replaces it by ReLU(layer(x))."""
    return _stack(step=lambda layer, x: torch.relu(layer(x)))


@mistake.built
def activation_lost():
    """The layers are registered, but the ReLU is missing."""
    return _stack(step=lambda layer, x: x + layer(x))


@mistake.built
def activation_after_the_sum():
    """The ReLU is applied to the sum. It should be applied to the layer's output, before x is added, so that negative
    numbers of x get through."""
    return _stack(step=lambda layer, x: torch.relu(x + layer(x)))


@mistake.built
def activation_before_the_layer():
    """The ReLU is applied to what goes into the layer. It should be applied to the layer's output."""
    return _stack(step=lambda layer, x: x + layer(torch.relu(x)))


@mistake
class InputOfAllLayers(nn.Module):
    """Every layer gets the original x, and the results are added. Each layer should get what the layer before it
    returned."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        return x + sum(torch.relu(layer(x)) for layer in self.layers)


@mistake
class OneResidualForAll(nn.Module):
    """x is added once, after all layers. It should be added after each of them."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        y = x
        for layer in self.layers:
            y = torch.relu(layer(y))
        return x + y


@mistake
class OriginalAddedEachTime(nn.Module):
    """The original x is added after each layer. What should be added is what went into that layer."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        y = x
        for layer in self.layers:
            y = x + torch.relu(layer(y))
        return y


@mistake
class OnlyTheLastLayer(nn.Module):
    """Each layer gets the original x, and only the last one's result is returned. Each layer should get what the layer
    before it returned."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        for layer in self.layers:
            y = _plain_step(layer, x)
        return y


@mistake
class LayersFromTheBack(nn.Module):
    """The layers are applied in reverse order."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(_linears(d_model, num_layers))

    def forward(self, x):
        for layer in reversed(self.layers):
            x = _plain_step(layer, x)
        return x


@mistake.built
def layers_without_gradients():
    """The layers are registered, but they are called without a graph, so they still get no gradient and are never
    trained."""

    def step(layer, x):
        with torch.no_grad():
            added = torch.relu(layer(x))
        return x + added

    return _stack(step=step)


@mistake.built
def input_detached():
    """The layers get a detached x, so the gradient reaches the input and the earlier layers only along the residual
    path."""
    return _stack(step=lambda layer, x: x + torch.relu(layer(x.detach())))


@mistake.built
def caller_changed():
    """The numbers are right, but the caller's x is changed: `+=` works in place."""

    def step(layer, x):
        x.data += torch.relu(layer(x.clone()))
        return x

    return _stack(step=step)
