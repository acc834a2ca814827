"""Exercise `warmup_rate`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.training import warmup_rate

__all__ = ["exercise", "warmup_rate"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def warmup_rate(step, d_model, warmup_steps):
    """The learning rate of update number `step`, counted from 1: a float."""
    raise NotImplementedError
''',
    reference=warmup_rate,
    returns=("rate",),
    read_next="training: The learning rate",
    differentiable=False,
)


@exercise.holds("During the warm-up the rate rises in a straight line", weight=2)
def _(draw):
    yield Case(args=(1, 4, 9), note="the first update", degenerate_because="small numbers, to be read by eye")
    for _ in range(3):
        d_model, warmup_steps = draw.sizes(2, 5, 24)
        yield Case(args=(draw.integer(2, warmup_steps - 2), d_model, warmup_steps), note="inside the warm-up")


@exercise.holds("After it, the rate falls with the root of the step", weight=2)
def _(draw):
    yield Case(args=(16, 4, 9), note="after the warm-up", degenerate_because="small numbers, to be read by eye")
    for _ in range(3):
        d_model, warmup_steps = draw.sizes(2, 3, 12)
        yield Case(args=(draw.integer(warmup_steps + 2, 40), d_model, warmup_steps), note="after the warm-up")
    yield Case(args=(90, 6, 3), note="long after the warm-up")


@exercise.holds("Both pieces meet at the peak, step = warmup_steps")
def _(draw):
    for _ in range(2):
        d_model, warmup_steps = draw.sizes(2, 3, 12)
        for step in (warmup_steps - 1, warmup_steps, warmup_steps + 1):
            yield Case(args=(step, d_model, warmup_steps), note=f"{step - warmup_steps:+d} steps from the peak")
    yield Case(args=(1, 2, 1), note="a warm-up of one update")


@exercise.holds("It gives the rates of the paper's own settings")
def _(draw):
    for step in (1, 400, 4000, 100_000):
        yield Case(args=(step, 512, 4000), note=f"d_model 512, 4,000 steps of warm-up, step {step:,}")
