"""Exercise `convolution_layers`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import convolution_layers

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=10,
    stub='''\
def convolution_layers(length, kernel_size, dilated=False):
    """Causal convolutions until the last of `length` positions depends on the first."""
    raise NotImplementedError
''',
    reference=convolution_layers,
    returns=("layers",),
    read_next="attention_recurrence_convolution: Longest path: how often information is handed on",
    differentiable=False,
)


@exercise.holds("Each layer reaches k − 1 positions further back, and the last layer counts in full", weight=2)
def _(draw):
    yield Case(
        args=(5, 3), note="five positions, a kernel of three", degenerate_because="the smallest case, to be read by eye"
    )
    for kernel_size in draw.sizes(3, 3, 9):
        layers = draw.integer(2, 6)
        furthest = layers * (kernel_size - 1) + 1  # the longest sequence that so many layers span
        yield Case(args=(furthest, kernel_size), note="the layers reach exactly to the first position")
        yield Case(args=(furthest + 1, kernel_size), note="one position more than the layers before reach")
        yield Case(args=(furthest - 1, kernel_size, False), note="dilated=False is passed")
    yield Case(args=(draw.integer(11, 30), 2), note="a kernel of two")
    yield Case(args=(4, 11), note="a kernel that is longer than the sequence")


@exercise.holds("With dilation, each layer multiplies the number of positions that are reached by k", weight=2)
def _(draw):
    yield Case(args=(9, 3, True), note="nine positions, a kernel of three", degenerate_because="to be read by eye")
    for kernel_size in draw.sizes(3, 3, 7):
        layers = draw.integer(2, 5)
        furthest = kernel_size**layers
        yield Case(args=(furthest, kernel_size, True), note="the layers reach exactly to the first position")
        yield Case(args=(furthest + 1, kernel_size, True), note="one position more than the layers before reach")
        yield Case(args=(draw.integer(furthest - furthest // kernel_size, furthest - 1), kernel_size, True))
    yield Case(args=(draw.integer(40, 60), 2, True), note="a kernel of two")
    yield Case(args=(5, 12, True), note="a kernel that is longer than the sequence")


@exercise.holds("A single position needs no layer, and two positions need one")
def _(draw):
    for kernel_size in draw.sizes(2, 2, 9):
        for dilated in (False, True):
            yield Case(args=(1, kernel_size, dilated), note="a single position")
            yield Case(args=(2, kernel_size, dilated), note="two positions")


@exercise.holds("It is an exact int, for long sequences too")
def _(draw):
    yield Case(args=(125, 5, True), note="5³ positions, where logarithms are off by a rounding error")
    yield Case(args=(3**9, 3, True), note="3⁹ positions")
    yield Case(args=(2**14 + 1, 2, True), note="one position more than 2¹⁴")
    # No longer: a wrong solution that counts layers in a loop has to end, too.
    yield Case(args=(draw.integer(10_000, 20_000), 17), note="over ten thousand positions")
