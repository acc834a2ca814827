"""Exercise `cache_bytes`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.efficiency import cache_bytes

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def cache_bytes(
    num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2
):
    """Bytes of the keys and values of `length` tokens, in all layers."""
    raise NotImplementedError
''',
    reference=cache_bytes,
    returns=("bytes",),
    read_next="efficiency: How large a key–value cache is",
    differentiable=False,
)


@exercise.holds("A key and a value are counted for each layer, head and token", weight=2)
def _(draw):
    yield Case(
        args=(1, 1, 3, 5), note="one layer with one head", degenerate_because="the smallest case, to be read by eye"
    )
    for _ in range(3):
        yield Case(args=tuple(draw.sizes(4, 2, 40)))
    yield Case(args=(32, 8, 128, 8192), note="a model of the usual size, with 8,192 tokens")


@exercise.holds("Each sequence of a batch has its own cache")
def _(draw):
    for _ in range(2):
        yield Case(args=tuple(draw.sizes(5, 2, 40)), note="a batch")
    yield Case(args=(*draw.sizes(4, 2, 40), 1), note="a batch of one, said aloud")


@exercise.holds("Each number takes the bytes that are given")
def _(draw):
    for width, dtype in ((4, "float32"), (1, "eight bits"), (2, "half precision"), (8, "float64")):
        yield Case(args=(*draw.sizes(5, 2, 40), width), note=f"bytes of {dtype}")
    yield Case(args=(*draw.sizes(4, 2, 40), 1, 4), note="one sequence in float32")


@exercise.holds("It is an exact int, for large caches too")
def _(draw):
    # No longer: a wrong solution that counts tokens in a loop has to end, too. Below 2⁶³, so that int64 is enough.
    yield Case(args=(127, 131, 1021, 20_011, 100_003), note="a hundred thousand sequences of 20,000 tokens")
    yield Case(args=(126, 8, 128, 20_011, 999_983, 1), note="a million sequences, one byte per number")
    yield Case(args=(101, 103, 107, 20_011, 1_000_003, 4), note="a million sequences in float32")
