"""Exercise `kernel_regression`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.attention import kernel_regression

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def kernel_regression(x_query, x_key, y_key, bandwidth):
    """Estimates (n,): the average of y_key, weighted by a Gaussian kernel."""
    raise NotImplementedError
''',
    reference=kernel_regression,
    shapes={"x_query": "n", "x_key": "m", "y_key": "m"},
    returns=("estimates",),
    read_next="kernel_regression: A query far from every reading",
)


def _points(draw: Draw, n=None, m=None, dtype=torch.float32):
    """Queries, keys that keep a distance, and values; none of them sorted."""
    a, b = draw.sizes(2, 3, 8)
    n, m = n or a, m or b
    grid = torch.arange(m, dtype=torch.float64) - (m - 1) / 2
    order = torch.randperm(m, generator=draw.generator)
    x_key = (0.7 * grid[order] + draw.uniform(m, low=-0.2, high=0.2, dtype=torch.float64)).to(dtype)
    return draw.normal(n, dtype=dtype, scale=1.3), x_key, draw.normal(m, dtype=dtype, scale=2.0)


def _width(draw: Draw, low, high):
    """A bandwidth that no float32 has."""
    return draw.uniform(1, low=low, high=high, dtype=torch.float64).item()


@exercise.holds("The estimate is the average of the known values, weighted by the Gaussian kernel", weight=3)
def _(draw):
    small = torch.tensor([0.0]), torch.tensor([-1.0, 1.0]), torch.tensor([2.0, -4.0]), 1.0
    yield Case(args=small, degenerate_because="the smallest case, to be read by eye", note="midway between two keys")
    for dtype in (torch.float32, torch.float64, torch.float32, torch.float64):
        yield Case(args=(*_points(draw, dtype=dtype), _width(draw, 0.4, 1.6)))


@exercise.holds("The bandwidth sets how fast the weights fall with distance")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield Case(args=(*_points(draw, dtype=dtype), _width(draw, 2.0, 4.0)), note="a wide kernel")
    yield Case(args=(*_points(draw), 40.0), note="so wide that all keys count alike")
    yield Case(args=(*_points(draw, dtype=torch.float64), 2), note="a bandwidth that is an int")
    yield Case(args=(*_points(draw, dtype=torch.float64), _width(draw, 0.15, 0.25)), note="a narrow kernel")


@exercise.holds("A single query, a single key, and as many queries as keys work too")
def _(draw):
    yield Case(args=(*_points(draw, n=1), 0.9), degenerate_because="a length of one on purpose", note="n = 1")
    yield Case(args=(*_points(draw, m=1), 0.9), degenerate_because="a length of one on purpose", note="m = 1")
    yield Case(args=(*_points(draw, n=4, m=4), 0.6), degenerate_because="equal lengths on purpose", note="n = m")


@exercise.holds("Far from every key the estimate is finite and right", weight=2)
def _(draw):
    note = "queries far from every key"
    for dtype in (torch.float32, torch.float64):
        x_query, x_key, y_key = _points(draw, n=3, m=5, dtype=dtype)
        x_query = x_query + torch.tensor([60.0, 40.0, -80.0], dtype=dtype)
        yield Case(args=(x_query, x_key, y_key, 0.5), note=note, tolerance=50)
        x_query, x_key, y_key = _points(draw, n=4, m=6, dtype=dtype)
        x_query = x_query + torch.tensor([300.0, -250.0, 280.0, 0.0], dtype=dtype)
        yield Case(args=(x_query, x_key, y_key, 5.2), note=f"{note}, of which several count", tolerance=50)
    x_query, x_key, y_key = _points(draw, n=3, m=5, dtype=torch.float64)
    x_query = x_query.clamp(-1.0, 1.0) + torch.tensor([7.0, -10.0, 14.0], dtype=torch.float64)
    yield Case(args=(x_query, x_key, y_key, 1.1), note="queries some way from every key")
