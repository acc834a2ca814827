"""Exercise `fix_layer_stack`: metadata, stub and cases."""

import torch
from torch import nn

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to

__all__ = ["exercise", "fix_layer_stack"]


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        layers = [nn.Linear(d_model, d_model) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=4,
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
    read_next="debugging: Gradients that are exactly zero",
)


def _stack(draw: Draw, d_model, num_layers, shape, dtype=torch.float32, **more):
    state = exercise.draw_state(draw, d_model, num_layers, dtype=dtype)
    return Case(init=(d_model, num_layers), state=state, args=(draw.normal(*shape, d_model, dtype=dtype),), **more)


@exercise.holds("The optimizer and the checkpoint get every layer, and each layer is x + ReLU(layer(x))", weight=3)
def _(draw):
    yield Case(
        init=(2, 1),
        state={"layers.0.weight": torch.tensor([[1.0, 2.0], [-1.0, 0.0]]), "layers.0.bias": torch.tensor([0.5, -1.0])},
        args=(torch.tensor([[3.0, -1.0]]),),
        note="one layer of two features",
        degenerate_because="the smallest case, to be read by eye",
    )
    yield Case(
        init=(2, 2),
        state={
            "layers.0.weight": torch.tensor([[1.0, 2.0], [-1.0, 0.0]]),
            "layers.0.bias": torch.tensor([0.5, -1.0]),
            "layers.1.weight": torch.tensor([[0.0, 1.0], [1.0, -1.0]]),
            "layers.1.bias": torch.tensor([2.0, 0.5]),
        },
        args=(torch.tensor([[3.0, -1.0]]),),
        note="two layers of two features",
        degenerate_because="to be read by eye",
    )
    for dtype in (torch.float32, torch.float64):
        d_model, num_layers, batch = draw.sizes(3, 2, 6)
        yield _stack(draw, d_model, num_layers, (batch,), dtype, note=f"{num_layers} layers")


@exercise.holds("The number of layers is num_layers, from one to many, in their order", weight=2)
def _(draw):
    for num_layers in (1, 2, 7):
        d_model, batch = draw.sizes(2, 3, 6)
        yield _stack(
            draw,
            d_model,
            num_layers,
            (batch,),
            torch.float64,
            note=f"{num_layers} layers",
            degenerate_because="one layer",
        )
    yield _stack(draw, 1, 3, (5,), note="one feature", degenerate_because="one feature")


@exercise.holds("It works with any number of batch dimensions, and in any layout in memory")
def _(draw):
    for batch in ((), *draw.batches(but=(3, 4))[1:]):
        yield _stack(draw, 4, 3, batch, note=f"batch dimensions: {len(batch)}")
    yield _stack(
        draw, 4, 2, (3, 1, 5), note="batch dimensions: 3", degenerate_because="a batch dimension of length one"
    )
    case = _stack(draw, 4, 3, (5,), torch.float64)
    turned = case.args[0].mT.contiguous().mT
    yield Case(init=case.init, state=case.state, args=(turned,), note="a tensor that is transposed in memory")
