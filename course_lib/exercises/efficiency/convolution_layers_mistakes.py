"""The mistakes in `convolution_layers`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _plain(length, k):
    return -(-(length - 1) // (k - 1))


def _dilated(length, k):
    layers = 0
    while k**layers < length:
        layers += 1
    return layers


def layers_with(plain=_plain, dilated=_dilated):
    """The number of layers with one of the two counts replaced."""

    def layers(length, kernel_size, is_dilated=False):
        return (dilated if is_dilated else plain)(length, kernel_size)

    return layers


def _until(reached, first=1):
    """Add layers until they reach the first position; `reached` is given the positions so far, k and the layer."""

    def count(length, k):
        layers, positions = 0, first
        while positions < length:
            positions = reached(positions, k, layers)
            layers += 1
        return layers

    return count


# Both counts.
@mistake
def one_layer_too_many(length, kernel_size, dilated=False):
    """The result is one too large throughout. How many layers does a single position need?"""
    return layers_with()(length, kernel_size, dilated) + 1


@mistake
def one_layer_too_few(length, kernel_size, dilated=False):
    """The result is one too small from two positions on: the last layer, which reaches the first position, has to be
    counted too."""
    return max(layers_with()(length, kernel_size, dilated) - 1, 0)


@mistake
def at_least_one_layer(length, kernel_size, dilated=False):
    """A single position gets a layer. It is first and last at once, so it depends on itself without any."""
    return max(layers_with()(length, kernel_size, dilated), 1)


@mistake
def last_not_counted(length, kernel_size, dilated=False):
    """Where the layers reach exactly to the first position, one more is counted. The last position itself is among the
    positions that are reached: is it counted?"""
    return layers_with()(length + 1, kernel_size, dilated)


@mistake
def one_position_short(length, kernel_size, dilated=False):
    """The layers stop one position short of the first. Is the distance between the first and the last position
    subtracted from twice?"""
    return layers_with()(max(length - 1, 1), kernel_size, dilated)


# `dilated`.
@mistake
def never_dilated(length, kernel_size, dilated=False):
    """`dilated` has no effect: the layers always reach k − 1 positions further."""
    return _plain(length, kernel_size)


@mistake
def always_dilated(length, kernel_size, dilated=False):
    """`dilated` has no effect: the number of layers grows with the logarithm of the length, which only dilated
    convolutions achieve."""
    return _dilated(length, kernel_size)


@mistake
def flag_turned_round(length, kernel_size, dilated=False):
    """The two counts are exchanged: the layers are dilated exactly when `dilated` is False."""
    return layers_with(_dilated, _plain)(length, kernel_size, dilated)


@mistake
def dilated_by_default(length, kernel_size, dilated=True):
    """A call without `dilated` counts dilated layers. In the contract the default is False."""
    return layers_with()(length, kernel_size, dilated)


# Without dilation.
@mistake
def last_layer_rounded_down(length, kernel_size, dilated=False):
    """Without dilation, a layer is missing for most lengths. The layers reach k, 2k − 1, 3k − 2, … positions; for a
    length in between, they stop short of the first position."""
    return layers_with(lambda n, k: (n - 1) // (k - 1))(length, kernel_size, dilated)


@mistake
def rounded_to_the_nearest(length, kernel_size, dilated=False):
    """Without dilation, the number of layers is rounded to the nearest int. If the layers stop short of the first
    position by however little, one more is needed."""
    return layers_with(lambda n, k: round((n - 1) / (k - 1)))(length, kernel_size, dilated)


@mistake
def reaches_k_further(length, kernel_size, dilated=False):
    """Without dilation, each layer is taken to reach k positions further back. The kernel's k positions include the
    position of the output: how many are left?"""
    return layers_with(_until(lambda positions, k, n: positions + k))(length, kernel_size, dilated)


@mistake
def length_by_kernel(length, kernel_size, dilated=False):
    """Without dilation, the length is divided by the kernel size, as if the kernels lay side by side in one layer.
    Stacked layers overlap: how much further does each one reach?"""
    return layers_with(lambda n, k: 0 if n == 1 else -(-n // k))(length, kernel_size, dilated)


@mistake
def length_for_distance(length, kernel_size, dilated=False):
    """Without dilation, the layers span as many steps as there are positions. From the first of n positions to the last
    it is one step fewer."""
    return layers_with(lambda n, k: 0 if n == 1 else -(-n // (k - 1)))(length, kernel_size, dilated)


@mistake
def one_side_of_a_centred_kernel(length, kernel_size, dilated=False):
    """Without dilation, each layer reaches only half a kernel back, as if the kernel were centred. The kernel here is
    causal: all of it lies at and before the position of the output."""
    return layers_with(lambda n, k: -(-(n - 1) // (k // 2)))(length, kernel_size, dilated)


# With dilation.
@mistake
def logarithm_rounded_down(length, kernel_size, dilated=False):
    """With dilation, a layer is missing for most lengths. The layers reach k, k², k³, … positions; for a length in
    between, they stop short of the first position."""
    return layers_with(dilated=lambda n, k: _dilated(n + 1, k) - 1)(length, kernel_size, dilated)


@mistake
def logarithm_plus_one(length, kernel_size, dilated=False):
    """With dilation, one layer too many is counted where the length is a power of k. There the layers before
    it reach exactly to the first position."""
    return layers_with(dilated=lambda n, k: 0 if n == 1 else _dilated(n + 1, k))(length, kernel_size, dilated)


@mistake
def logarithm_of_floats(length, kernel_size, dilated=False):
    """With dilation, one layer too many is counted for a few powers of k, such as 125 with k = 5, and for no other
    length. A logarithm in floats has such rounding errors: log(125) / log(5) is slightly more than 3. Powers of ints
    are exact."""
    return layers_with(dilated=lambda n, k: math.ceil(math.log(n, k)))(length, kernel_size, dilated)


@mistake
def logarithm_of_base_two(length, kernel_size, dilated=False):
    """With dilation, each layer doubles the number of positions that are reached, whatever the kernel. A kernel of k
    positions at distance kⁿ reaches further."""
    return layers_with(dilated=lambda n, k: _dilated(n, 2))(length, kernel_size, dilated)


@mistake
def natural_logarithm(length, kernel_size, dilated=False):
    """With dilation, the natural logarithm is used. Each layer multiplies the number of positions by k, so which base
    is right?"""
    return layers_with(dilated=lambda n, k: math.ceil(math.log(n)))(length, kernel_size, dilated)


@mistake
def dilation_doubles(length, kernel_size, dilated=False):
    """The dilation doubles from layer to layer. In this exercise it is kⁿ, a power of the kernel size."""
    return layers_with(dilated=_until(lambda positions, k, n: positions + (k - 1) * 2**n))(length, kernel_size, dilated)


@mistake
def dilation_grows_by_one(length, kernel_size, dilated=False):
    """The dilation grows by one per layer: 1, 2, 3. In this exercise it is kⁿ, a power of the kernel size."""
    return layers_with(dilated=_until(lambda positions, k, n: positions + (k - 1) * (n + 1)))(
        length, kernel_size, dilated
    )


@mistake
def same_dilation_in_every_layer(length, kernel_size, dilated=False):
    """Every layer has the dilation k. It grows from layer to layer: 1, k, k² and so on."""
    return layers_with(dilated=_until(lambda positions, k, n: positions + (k - 1) * k))(length, kernel_size, dilated)


@mistake
def first_layer_dilated(length, kernel_size, dilated=False):
    """The first dilated layer has the dilation k. The layers are counted from 0, so it is k⁰: no gaps yet."""
    return layers_with(dilated=_until(lambda positions, k, n: positions + (k - 1) * k ** (n + 1)))(
        length, kernel_size, dilated
    )


@mistake
def gaps_multiplied_by_k(length, kernel_size, dilated=False):
    """Each dilated layer is taken to reach k · kⁿ positions further back. The kernel's k positions include the position
    of the output, so there are k − 1 gaps between them."""
    return layers_with(dilated=_until(lambda positions, k, n: positions + k ** (n + 1)))(length, kernel_size, dilated)


@mistake
def newest_layer_only(length, kernel_size, dilated=False):
    """Only the reach of the newest dilated layer is compared with the length. The layers are stacked, so what the
    earlier ones reach comes on top."""
    return layers_with(dilated=_until(lambda positions, k, n: (k - 1) * k**n + (n == 0)))(length, kernel_size, dilated)


# What is returned.
@mistake
def float_result(length, kernel_size, dilated=False):
    """The number is right, but its type is not: a number of layers is an int. `/` gives a float, and so do the
    functions of NumPy and PyTorch that round."""
    return float(layers_with()(length, kernel_size, dilated))


@mistake
def float_without_dilation(length, kernel_size, dilated=False):
    """Without dilation the number is right, but it is a float. `/` gives one, and so does NumPy's rounding; a number of
    layers is an int."""
    return layers_with(lambda n, k: float(_plain(n, k)))(length, kernel_size, dilated)


@mistake
def float_with_dilation(length, kernel_size, dilated=False):
    """With dilation the number is right, but it is a float. NumPy's rounding of a logarithm gives one; a number of
    layers is an int."""
    return layers_with(dilated=lambda n, k: float(_dilated(n, k)))(length, kernel_size, dilated)


@mistake
def tensor_result(length, kernel_size, dilated=False):
    """The number is right, but it is a tensor. A number of layers is a plain int."""
    return torch.tensor(layers_with()(length, kernel_size, dilated))


@mistake
def positions_returned(length, kernel_size, dilated=False):
    """The number of positions that are reached is returned. The exercise asks for the number of layers."""
    layers = layers_with()(length, kernel_size, dilated)
    return kernel_size**layers if dilated else layers * (kernel_size - 1) + 1
