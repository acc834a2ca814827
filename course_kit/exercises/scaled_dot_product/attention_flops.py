"""Exercise `attention_flops`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.scaled_dot_product import attention_flops

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def attention_flops(len_q, len_k, d_k, d_v):
    """Operations of both matrix products, a multiply-add counted as 2."""
    raise NotImplementedError
''',
    reference=attention_flops,
    returns=("operations",),
    read_next="cost_of_attention: Counting the operations of attention",
    differentiable=False,
)


@exercise.holds("Both products are counted, with the axes that each sums over", weight=2)
def _(draw):
    for _ in range(4):
        yield Case(args=tuple(draw.sizes(4, 2, 40)))


@exercise.holds("It is an exact int, for long sequences too")
def _(draw):
    yield Case(args=(100_000_007, 99_999_989, 127, 61), note="a hundred million positions")
    yield Case(args=(7, 1, 3, 5), note="one key", degenerate_because="a length of one on purpose")
