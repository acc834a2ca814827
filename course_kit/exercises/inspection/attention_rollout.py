"""Exercise `attention_rollout`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.inspection import attention_rollout

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def attention_rollout(weights):
    """Rollout over all layers: (num_layers, B, H, L, L) to (B, L, L)."""
    raise NotImplementedError
''',
    reference=attention_rollout,
    shapes={"weights": "num_layers batch heads length length"},
    returns=("rollout",),
    read_next="attention_rollout: Attention rollout",
    single_sign_args=("weights",),
    sum_to_one=("weights",),
)


@exercise.holds("The layers are multiplied as matrices, with the last layer leftmost", weight=2)
def _(draw):
    first, second = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    yield Case(
        args=(torch.stack((first, second))[:, None, None],),
        note="two layers",
        degenerate_because="to be worked out by hand",
    )
    for num_layers, dtype in ((2, torch.float32), (3, torch.float64), (4, torch.float32)):
        batch, heads, length = draw.sizes(3, 2, 8, but=(num_layers,))
        weights = draw.weights(num_layers, batch, heads, length, length, dtype=dtype)
        yield Case(args=(weights,), note=f"{num_layers} layers")


@exercise.holds("In each layer the heads are averaged, and the mean is mixed half and half with the identity", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        batch, heads, length = draw.sizes(3, 2, 7)
        yield Case(
            args=(draw.weights(1, batch, heads, length, length, dtype=dtype),),
            note="one layer",
            degenerate_because="one layer",
        )


@exercise.holds("It works for one head, one sentence, one token, a deep model, and any layout in memory")
def _(draw):
    num_layers, batch, heads, length = draw.sizes(4, 2, 7)
    yield Case(
        args=(draw.weights(num_layers, batch, 1, length, length),), note="one head", degenerate_because="one head"
    )
    yield Case(
        args=(draw.weights(num_layers, 1, heads, length, length),),
        note="one sentence",
        degenerate_because="one sentence",
    )
    yield Case(args=(torch.ones(3, 2, 4, 1, 1),), note="one token", degenerate_because="one token")
    yield Case(args=(draw.weights(12, batch, heads, length, length, dtype=torch.float64),), note="12 layers")
    turned = draw.weights(length, heads, num_layers, batch, length).permute(2, 3, 1, 0, 4)
    yield Case(args=(turned,), note="axes in another order in memory")


@exercise.holds("With causal masks, no token reaches an earlier position")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        num_layers, batch, heads, length = draw.sizes(4, 2, 7)
        future = ~torch.ones(length, length).tril().bool()
        scores = draw.normal(num_layers, batch, heads, length, length, dtype=dtype).masked_fill(future, -torch.inf)
        yield Case(args=(scores.softmax(-1),), note="a causal mask")
