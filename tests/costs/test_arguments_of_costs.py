"""One wrong argument in each formula and count of what a layer costs: refused by name, or computed as it may be."""

from __future__ import annotations

import torch
from wrong_arguments import Call, floats, right_and_wrong

from course_kit.costs import counting, formulas, layers

LAYER = {"kind": "restricted", "length": 9, "window": 3, "kernel_size": 2}


def attention():
    """A layer that is the same in each run."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return layers.CausalAttention(4)


CALLS = {
    "kept_numbers": Call(formulas.kept_numbers, LAYER | {"d_model": 4}),
    "longest_path": Call(formulas.longest_path, LAYER),
    "operations": Call(formulas.operations, LAYER | {"d_model": 4}),
    "sequential_steps": Call(formulas.sequential_steps, {"kind": "restricted", "length": 9}),
    "counted_operations": Call(
        counting.counted_operations,
        {"module": attention(), "x": floats(2, 5, 4)},
        open={"x": "double"},  # the module itself refuses a dtype that is not its own
    ),
    "measured_path": Call(counting.measured_path, LAYER | {"d_model": 5, "seed": 0}),
    "CausalAttention": Call(layers.CausalAttention, {"d_model": 4, "window": 3}, draws=True),
    "CausalConvolution": Call(layers.CausalConvolution, {"d_model": 4, "kernel_size": 2, "dilation": 1}, draws=True),
    "GatedRecurrence": Call(layers.GatedRecurrence, {"d_model": 4}, draws=True),
    "check_kind": Call(layers.check_kind, {"kind": "restricted"}),
    "mixing_layer": Call(
        layers.mixing_layer,
        {"kind": "restricted", "d_model": 4, "number": 0, "window": 3, "kernel_size": 2},
        draws=True,
    ),
    "window_attention": Call(
        layers.window_attention,
        {"query": floats(2, 5, 4), "key": floats(2, 5, 4), "value": floats(2, 5, 4), "window": 3},
    ),
}

test_right_arguments_are_taken, test_a_wrong_argument_is_refused_or_computed = right_and_wrong(CALLS)
