"""A small exercise for tests of what judges solutions, names mistakes and writes reports."""

from course_kit.exercises import Exercise, Misconception


def toy(reference, shapes: dict[str, str], *cases, mistakes=(), name: str = "toy", **changes) -> Exercise:
    """An exercise whose report has one line about values, with these cases.

    Args:
        mistakes: each a `Misconception`, or a function where key and message do not matter.
        changes: of its other fields.
    """
    options = {
        "title": name,
        "statement": "",
        "difficulty": 1,
        "minutes": 1,
        "stub": f"def {name}({', '.join(shapes)}):\n    raise NotImplementedError\n",
        "hints": ("One.", "Two."),
        "read_next": f"attention: {name}",
    }
    exercise = Exercise(**{**options, "name": name, "reference": reference, "shapes": shapes, **changes})
    exercise.holds("It holds.")(lambda draw: iter(cases))
    exercise.misconceptions += [
        mistake if isinstance(mistake, Misconception) else Misconception(f"wrong_{n}", f"Wrong in way {n}.", mistake)
        for n, mistake in enumerate(mistakes)
    ]
    return exercise
