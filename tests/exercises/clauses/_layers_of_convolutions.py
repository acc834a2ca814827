"""Solutions to `convolution_layers` that break one clause of the contract each."""

import math

import torch
from contract_clauses import breaks

LAYERS = "convolution_layers"


def layers(length, kernel_size, dilated=False):
    count, reached = 0, 1
    while reached < length:
        reached = reached * kernel_size if dilated else reached + kernel_size - 1
        count += 1
    return count


@breaks(LAYERS, "int")
def layers_as_a_float(length, kernel_size, dilated=False):
    return float(layers(length, kernel_size, dilated))


@breaks(LAYERS, "int")
def layers_as_a_tensor(length, kernel_size, dilated=False):
    return torch.tensor(layers(length, kernel_size, dilated))


@breaks(LAYERS, "the smallest number of layers: plain layers that reach exactly to the first position")
def one_more_for_an_exact_fit(length, kernel_size, dilated=False):
    exact = not dilated and length > 1 and (length - 1) % (kernel_size - 1) == 0
    return layers(length, kernel_size, dilated) + exact


@breaks(LAYERS, "the smallest number of layers: plain layers of which the last is needed only in part")
def part_of_a_layer_left_out(length, kernel_size, dilated=False):
    return layers(length, kernel_size, True) if dilated else (length - 1) // (kernel_size - 1)


@breaks(LAYERS, "the smallest number of layers: dilated layers that reach exactly to the first position")
def one_more_for_an_exact_power(length, kernel_size, dilated=False):
    return layers(length + (length > 1), kernel_size, True) if dilated else layers(length, kernel_size)


@breaks(LAYERS, "the smallest number of layers: dilated layers, with a logarithm that has a rounding error")
def by_a_logarithm(length, kernel_size, dilated=False):
    return math.ceil(math.log(length, kernel_size)) if dilated else layers(length, kernel_size)


@breaks(LAYERS, "the output at i depends on inputs i − k + 1 … i: k − 1 positions before it")
def k_positions_before(length, kernel_size, dilated=False):
    return layers(length, kernel_size, True) if dilated else -(-(length - 1) // kernel_size)


@breaks(LAYERS, "causal")
def half_of_the_kernel_looks_ahead(length, kernel_size, dilated=False):
    return layers(length, kernel_size, True) if dilated else -(-(length - 1) // (kernel_size // 2))


@breaks(LAYERS, "layer n has dilation k to the power of n")
def powers_of_two(length, kernel_size, dilated=False):
    return layers(length, 2, True) if dilated else layers(length, kernel_size)


@breaks(LAYERS, "n = 0, 1, 2 …: the first layer has dilation 1")
def first_layer_has_gaps(length, kernel_size, dilated=False):
    if not dilated:
        return layers(length, kernel_size)
    count, reached = 0, 1
    while reached < length:
        count += 1
        reached += (kernel_size - 1) * kernel_size**count
    return count


@breaks(LAYERS, "dilated=False")
def dilated_unless_told(length, kernel_size, dilated=True):
    return layers(length, kernel_size, dilated)


@breaks(LAYERS, "dilated may be left out")
def dilated_is_needed(length, kernel_size, dilated):
    return layers(length, kernel_size, dilated)


@breaks(LAYERS, "0 for length 1")
def one_position_needs_a_layer(length, kernel_size, dilated=False):
    return max(1, layers(length, kernel_size, dilated))


@breaks(LAYERS, "kernel_size ≥ 2: a kernel of two")
def kernel_of_two_is_taken_for_three(length, kernel_size, dilated=False):
    return layers(length, max(kernel_size, 3), dilated)


@breaks(LAYERS, "length ≥ 1: shorter than the kernel")
def no_layer_for_short_sequences(length, kernel_size, dilated=False):
    return 0 if length < kernel_size else layers(length, kernel_size, dilated)
