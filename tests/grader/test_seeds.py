"""The cases of a line tell nothing about the seed or the cases of other lines."""

import zlib

import torch

from course_grade.grading.assignment import draw_seed
from course_grade.grading.one_submission import _chance
from course_kit.checker.verdict.sheet import Sheet
from course_kit.checker.verdict.trials import _drawn_for, trials_of
from course_kit.exercises import all_exercises, find

SOFTMAX = all_exercises()["softmax"]


def arguments(seed: int) -> list[torch.Tensor]:
    return [
        value.flatten() for trial in trials_of(SOFTMAX, seed) for value in trial.case.args if torch.is_tensor(value)
    ]


def same(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
    return len(one) == len(two) and all(map(torch.equal, one, two))


def test_one_seed_gives_the_same_cases():
    seed = draw_seed()
    assert same(arguments(seed), arguments(seed))


def test_every_bit_of_a_seed_counts():
    seed = draw_seed()
    for bit in (0, 31, 32, 63, 64, 100, 127):
        assert not same(arguments(seed), arguments(seed ^ (1 << bit)))
        assert _chance(seed, SOFTMAX, 0) != _chance(seed ^ (1 << bit), SOFTMAX, 0)


def test_the_generator_of_one_line_does_not_give_that_of_another():
    """A checksum is linear: from one line's generator follow all others, without the seed. A keyed hash is not."""
    seed = 47114711
    known = _drawn_for(seed, "softmax", 0) & 0xFFFFFFFF
    this = f"{'0' * len(str(seed))} softmax 0".encode()
    for line in (1, 3):
        foreseen = known ^ zlib.crc32(this) ^ zlib.crc32(this[:-1] + str(line).encode())
        assert foreseen != _drawn_for(seed, "softmax", line) & 0xFFFFFFFF


def test_lines_and_exercises_have_generators_of_their_own():
    seeds = {_drawn_for(7, name, line) for name in all_exercises() for line in range(20)}
    assert len(seeds) == 20 * len(all_exercises())
    assert _drawn_for(7, "a", 11) != _drawn_for(7, "a\x001", 1)


def test_what_a_mistake_draws_depends_on_nothing_but_the_case():
    exercise, numbers = find("EncoderLayer"), []
    (dropout,) = (m.solution for m in exercise.misconceptions if m.key == "dropout")
    for state in (1, 2):
        torch.manual_seed(state)
        sheet = Sheet(exercise, 0, trials_of(exercise, 0))
        of_mistakes, of_solutions = sheet.misconception("dropout"), sheet.run(dropout)
        numbers.append([seen.training for seen in of_mistakes + of_solutions if seen.training is not None])
        assert torch.initial_seed() == state  # and the caller's own draws are as before
    assert len(numbers[0]) >= 2
    torch.testing.assert_close(*numbers, rtol=0, atol=0)
