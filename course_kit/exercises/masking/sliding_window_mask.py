"""Exercise `sliding_window_mask`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.masking import sliding_window_mask

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def sliding_window_mask(length, window):
    """Bool (L, L): True where 0 <= query - key < window."""
    raise NotImplementedError
''',
    reference=sliding_window_mask,
    returns=("mask",),
    read_next="sliding_window_attention: The mask of a sliding window",
    differentiable=False,
)


@exercise.holds("A query sees itself and the window − 1 keys before it", weight=2)
def _(draw):
    yield Case(args=(3, 2), degenerate_because="a small case, to be read by eye")
    for window in (2, 3, 4):
        yield Case(args=(draw.integer(window + 3, 9), window), note=f"window {window}")


@exercise.holds("With a window of one, every query sees only itself")
def _(draw):
    for length in draw.sizes(2, 3, 8):
        yield Case(args=(length, 1), note="window 1")


@exercise.holds("With a window as long as the sequence or longer, it is the causal mask")
def _(draw):
    length, more = draw.sizes(2, 3, 7)
    yield Case(args=(length, length), note="window = length", degenerate_because="equal on purpose")
    yield Case(args=(more, more + 1), note="window = length + 1")
    yield Case(args=(more, 3 * more), note="window longer than the sequence")
    yield Case(args=(1, 2), note="one token")
    yield Case(args=(29, 12), note="29 tokens, window 12")
    yield Case(args=(300, 70), note="300 tokens, window 70")
