"""Mistakes in `apply_rotary`: how a pair is rotated."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.apply_rotary import apply_rotary
from course_lib.exercises.positional_encoding.apply_rotary_mistakes.parts import rotary, turned_pair

mistake = Mistakes()


@mistake
def partner_without_minus(x, positions, base=10000.0):
    """To its own cosine term, each feature of a pair adds the sine times its partner. With a plus in both rows, the
    length of a vector changes; a rotation keeps it. Which of the two sines needs a minus?"""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos + odd * sin, even * sin + odd * cos))(x, positions, base)


@mistake
def turned_clockwise(x, positions, base=10000.0):
    """The pairs turn clockwise: the minus is at the other sine, or the matrix is transposed. Where does (1, 0)
    go at a small angle?"""
    return rotary(turn=lambda even, odd, cos, sin: turned_pair(even, odd, cos, -sin))(x, positions, base)


@mistake
def minus_twice(x, positions, base=10000.0):
    """Both sines have a minus, which changes the length of vectors. Look at the second row of the matrix."""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos - odd * sin, odd * cos - even * sin))(x, positions, base)


@mistake
def minus_at_the_cosine(x, positions, base=10000.0):
    """A cosine has the minus: each pair is reflected instead of rotated. At position 0 nothing should change."""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos + odd * sin, even * sin - odd * cos))(x, positions, base)


@mistake
def roles_exchanged(x, positions, base=10000.0):
    """The second feature of a pair is turned as if it were the first, and the first as if it were the second. At
    position 0 nothing should change, but here the two change places."""
    return rotary(turn=lambda even, odd, cos, sin: turned_pair(odd, even, cos, sin))(x, positions, base)


@mistake
def sine_and_cosine_swapped(x, positions, base=10000.0):
    """Sine and cosine are exchanged. At position 0 nothing should change."""
    return rotary(turn=lambda even, odd, cos, sin: turned_pair(even, odd, sin, cos))(x, positions, base)


@mistake
def cosines_only(x, positions, base=10000.0):
    """Every feature is only multiplied by a cosine: its partner is not used."""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos, odd * cos))(x, positions, base)


@mistake
def cosine_for_one_sine_for_the_other(x, positions, base=10000.0):
    """The first partner is multiplied by the cosine, the second by the sine. Both rows need both: see the matrix."""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos, odd * sin))(x, positions, base)


@mistake
def cosine_taken_twice(x, positions, base=10000.0):
    """In the second row the first partner is used with the cosine, the second with the sine. Which entries does the
    second row of the matrix have?"""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos - odd * sin, even * cos + odd * sin))(x, positions, base)


@mistake
def first_partner_overwritten(x, positions, base=10000.0):
    """The second partner is computed from the *new* first one. Keep the old values until both are computed; a slice is
    not a copy, but shows the current contents of x."""
    return rotary(turn=lambda even, odd, cos, sin: ((new := even * cos - odd * sin), new * sin + odd * cos))(
        x, positions, base
    )


@mistake
def second_partner_overwritten(x, positions, base=10000.0):
    """The first partner is computed from the *new* second one. Keep the old values until both are computed."""
    return rotary(
        turn=lambda even, odd, cos, sin: (even * cos - (even * sin + odd * cos) * sin, even * sin + odd * cos),
    )(x, positions, base)


@mistake
def second_partners_unchanged(x, positions, base=10000.0):
    """Only the first partner of each pair is rotated; the second is unchanged."""
    return rotary(turn=lambda even, odd, cos, sin: (even * cos - odd * sin, odd))(x, positions, base)


@mistake
def added_instead_of_turned(x, positions, base=10000.0):
    """Sine and cosine are *added* to x. Rotary positions rotate x; nothing is added."""
    return rotary(turn=lambda even, odd, cos, sin: (even + sin, odd + cos))(x, positions, base)


@mistake
def x_kept(x, positions, base=10000.0):
    """The rotated x is added to x. It should replace x."""
    return x + apply_rotary(x, positions, base)


@mistake
def first_pair_only(x, positions, base=10000.0):
    """Only the first pair is rotated. All pairs should be, each at its own rate."""
    return rotary(lambda position, two_i, d, base: position * (two_i == 0))(x, positions, base)
