"""Exercise `softmax_backward`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.scaled_dot_product import softmax_backward

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=15,
    stub='''\
def softmax_backward(weights, grad_weights):
    """Gradient with respect to the scores, from that with respect to the weights."""
    raise NotImplementedError
''',
    reference=softmax_backward,
    shapes={"weights": "... length", "grad_weights": "... length"},
    returns=("gradient",),
    read_next="softmax_saturation: The gradient of a softmax, by hand",
    single_sign_args=("weights",),
    no_gradient_for=("weights",),
    forbidden=(
        "_softmax_backward_data",
        "torch.autograd.grad",
        "torch.autograd.backward",
        "torch.autograd.functional.vjp",
        "torch.autograd.functional.jacobian",
        "torch.func.grad",
        "torch.func.vjp",
        "torch.func.jvp",
        "torch.func.jacrev",
        "torch.func.jacfwd",
        "torch.func.grad_and_value",
    ),
)


def _weights(draw, *shape, dtype=torch.float32, scale=1.0):
    return torch.softmax(draw.normal(*shape, dtype=dtype, scale=scale), -1)


@exercise.holds("It is the gradient that autograd finds, for one row of weights", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([0.25, 0.75]), torch.tensor([2.0, -2.0])),
        note="two weights",
        degenerate_because="to be read by eye",
    )
    for length in draw.sizes(2, 3, 9):
        yield Case(args=(_weights(draw, length), draw.normal(length)))


@exercise.holds("Each row is treated separately, with any number of batch dimensions", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([[2.0, -2], [4, 1]])),
        note="two rows",
        degenerate_because="to be read by eye",
    )
    for batch in draw.batches():
        for dtype in (torch.float32, torch.float64):
            rows, length = draw.sizes(2, but=batch)
            shape = (*batch, rows, length)
            yield Case(args=(_weights(draw, *shape, dtype=dtype), draw.normal(*shape, dtype=dtype)))
    shape = (2, 1, 3, 2, 4)
    yield Case(
        args=(_weights(draw, *shape), draw.normal(*shape)),
        note="three batch dimensions",
        degenerate_because="some are short",
    )
    turned = _weights(draw, 2, 4, 3).mT, draw.normal(2, 4, 3).mT
    yield Case(args=(turned[0] / turned[0].sum(-1, keepdim=True), turned[1]), note="transposed in memory")


@exercise.holds("Saturated weights send nothing back, beside rows that do")
def _(draw):
    rows, length = draw.sizes(2, 3, 7)
    scores = draw.normal(rows, length)
    scores[0] *= 60.0
    yield Case(args=(torch.softmax(scores, -1), draw.normal(rows, length)), note="one row of weights near 0 and 1")
    weights = _weights(draw, rows, length)
    weights[-1] = torch.nn.functional.one_hot(torch.tensor(1), length)
    yield Case(args=(weights, draw.normal(rows, length)), note="one row of weights exactly 0 and 1")
