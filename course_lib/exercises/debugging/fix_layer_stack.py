"""Exercise `fix_layer_stack`: metadata, stub and cases."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_layer_stack"]


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


exercise = Exercise(
    **beside(__file__),
    name="fix_layer_stack",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
class fix_layer_stack(nn.Module):
    """num_layers layers, each x + ReLU(W x + b), in `layers`."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        raise NotImplementedError  # delete this line once you have decided
        self.layers = [nn.Linear(d_model, d_model) for _ in range(num_layers)]

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x
''',
    reference=fix_layer_stack,
    shapes={"x": "... d_model"},
    look="debugging: Gradients that are exactly zero",
)


@exercise.holds("The result is right")
def _(draw):
    for _ in range(3):
        d_model, num_layers, batch = draw.sizes(3, 2, 5)
        state = exercise.draw_state(draw, d_model, num_layers)
        yield Case(init=(d_model, num_layers), state=state, args=(draw.normal(batch, d_model),))
