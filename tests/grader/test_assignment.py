"""An instructor's YAML: what it may say, and an answer to everything else that says where and what was expected."""

import dataclasses
import json
from datetime import datetime, timedelta, timezone
from fractions import Fraction

import pytest

from course_grade.grading.assignment import (
    EXAMPLE,
    AssignedExercise,
    Assignment,
    draw_seed,
    read_assignment,
    tasks_for,
)
from course_grade.output.export_assignment import assignment_yaml
from course_grade.sandbox.walls import Limits


@pytest.fixture
def read(tmp_path):
    def from_text(text):
        path = tmp_path / "week3.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_assignment(path)

    return from_text


# What it may say


def test_the_example_of_the_help_is_read_as_it_looks(read):
    given = read(EXAMPLE)
    assert given.title == "Week 3"
    assert given.seed == 4711
    assert given.due == datetime(2026, 11, 30, 23, 59, tzinfo=timezone(timedelta(hours=1)))
    assert given.late_penalty == pytest.approx(0.1)
    assert given.tasks == (
        AssignedExercise("softmax", 2.0),
        AssignedExercise("attend", 3.0),
        AssignedExercise("scaled_dot_product_attention", 5.0, allow_twins=True),
    )
    assert given.points == 10
    assert given.limits == Limits(seconds=5, memory_mb=1024)


def test_everything_may_be_left_out(read):
    for text in ("", "# nothing\n", "title:\nexercises:\nlimits:\ndue:\nseed:\n"):
        assert dataclasses.replace(read(text), seed=0) == Assignment()


def test_without_a_seed_one_is_drawn(read):
    assert read("title: x").seed != read("title: x").seed
    seeds = [draw_seed() for _ in range(64)]
    assert all(0 <= seed < 2**128 for seed in seeds)
    assert max(seeds) >= 2**120


ATTEND = "exercises:\n  attend: {}"
READ = {  # what an assignment has then
    "seed: -1": {"seed": -1},
    "seed: 2147483648": {"seed": 2**31},
    "title: 3": {"title": "3"},
    "title: 'Übung „drei“ 😀'": {"title": "Übung „drei“ 😀"},
    "exercises: [attend, softmax]": {"tasks": (AssignedExercise("attend"), AssignedExercise("softmax")), "points": 2},
    "exercises: {layer_norm: 1, attend: 1}": {"tasks": (AssignedExercise("layer_norm"), AssignedExercise("attend"))},
    ATTEND.format("0"): {"tasks": (AssignedExercise("attend", 0),)},
    ATTEND.format("2.5"): {"tasks": (AssignedExercise("attend", 2.5),)},
    ATTEND.format("{points: 4}"): {"tasks": (AssignedExercise("attend", 4),)},
    ATTEND.format("{allow_twins: true}"): {"tasks": (AssignedExercise("attend", 1, allow_twins=True),)},
    ATTEND.format("{}"): {"tasks": (AssignedExercise("attend"),)},
    **{f"limits: {{{f.name}: 7}}": {"limits": Limits(**{f.name: 7})} for f in dataclasses.fields(Limits)},
    **{
        f"late_penalty: {text}": {"late_penalty": Fraction(share)}
        for text, share in {"10%": "0.1", "0.1": "0.1", "'12.5 %'": "0.125", "0": 0, "1": 1, "100%": 1, "0%": 0}.items()
    },
}


@pytest.mark.parametrize("text", READ)
def test_a_value_is_read_as_it_looks(read, text):
    given = read(text)
    assert {name: getattr(given, name) for name in READ[text]} == READ[text]


DUE = {  # and what it is in UTC
    "2026-11-30 23:59 +0100": "2026-11-30T22:59:00",
    "2026-11-30 23:59 +01:00": "2026-11-30T22:59:00",
    "2026-11-30T23:59+0100": "2026-11-30T22:59:00",
    "2026-11-30 23:59:30 -0500": "2026-12-01T04:59:30",
    "2026-11-30T23:59:30Z": "2026-11-30T23:59:30",
    "'2026-11-30 23:59:00 +0100'": "2026-11-30T22:59:00",
    "2026-11-30 23:59": "2026-11-30T23:59:00",
    "2026-11-30 23:59:30": "2026-11-30T23:59:30",
    "2026-11-30": "2026-11-30T23:59:59",
}


def test_a_due_date_in_each_usual_form_and_without_a_zone_it_is_utc(read):
    utc = {text: read(f"due: {text}").due.astimezone(timezone.utc).replace(tzinfo=None).isoformat() for text in DUE}
    assert utc == DUE


# What it may not say


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # the file
        ("just words", "the file: expected names and values, got 'just words'; for example:\ntitle: Week 3"),
        ("- softmax", r"the file: expected names and values, got \['softmax'\]"),
        ("excercises: [softmax]", "expected due, exercises, late_penalty, limits, seed, title, got 'excercises'"),
        ("3: 4\nb: 5", "got '3', 'b'"),
        ("title: {", "is not YAML: "),
        ("a:\n\tb: 1", "is not YAML: "),
        ("due: *nothing", "is not YAML: .*undefined alias"),
        (b"title: \xff\xfe", "is not YAML: "),
        (b"title: \x00", "is not YAML: "),
        ("!!python/object/apply:os.getcwd []", "is not YAML: "),
        ("title: [a]", r"title must be text, got \['a'\]"),
        ("seed: 1\nseed: 2", "'seed' is given twice"),
        ("exercises:\n  softmax: 1\n  softmax: 2", "'softmax' is given twice"),
        ("due: 2026-02-30", "an impossible date or number: day"),
        ("exercises: {3: 1}", "expected names of exercises, got 3"),
        # seed
        ("seed: '4711'", "seed must be an integer, got '4711'"),
        ("seed: 1.0", "seed must be an integer, got 1.0"),
        ("seed: true", "seed must be an integer, got True"),
        # due
        ("due: tomorrow", "due: expected a date and time such as 2026-11-30 23:59 .0100, got 'tomorrow'"),
        ("due: 2026-11-30 23:59 CET", "due: expected a date and time .* got '2026-11-30 23:59 CET'"),
        ("due: 30.11.2026", "due: expected a date and time .* got '30.11.2026'"),
        ("due: ''", "due: expected a date and time .* got ''"),
        # late_penalty
        ("late_penalty: 10", "late_penalty: expected a share such as 10% or 0.1, got 10"),
        ("late_penalty: 101%", "late_penalty: expected a share .* got '101%'"),
        ("late_penalty: -0.1", "late_penalty: expected a share .* got -0.1"),
        ("late_penalty: .nan", "late_penalty: expected a share .* got nan"),
        ("late_penalty: '%'", "late_penalty: expected a share .* got '%'"),
        ("late_penalty: true", "late_penalty: expected a share .* got True"),
        # exercises
        ("exercises: softmax", "exercises: expected names with points, got 'softmax'"),
        ("exercises: [sofmax]", "expected the name of an exercise, got 'sofmax'. Did you mean softmax"),
        ("exercises: [{softmax: 2}]", "expected the name of an exercise, got"),
        ("exercises: {softmax: -1}", "exercises: softmax: points must be a number of at least 0, got -1"),
        ("exercises: {softmax: two}", "exercises: softmax: points must be a number of at least 0, got 'two'"),
        ("exercises: {softmax: }", "exercises: softmax: points must be a number of at least 0, got None"),
        ("exercises: {softmax: true}", "exercises: softmax: points must be a number of at least 0, got True"),
        ("exercises: {softmax: {point: 2}}", "exercises: softmax: expected allow_twins, points, got 'point'"),
        ("exercises: {softmax: {allow_twins: 'no'}}", "softmax: allow_twins must be true or false, got 'no'"),
        # limits
        ("limits: 5", "limits: expected names and values, got 5"),
        (
            "limits: {time: 5}",
            "limits: expected load_seconds, memory_mb, output_mb, seconds, threads, total_seconds, got 'time'",
        ),
        ("limits: {memory_mb: 1.5}", "limits: memory_mb must be a number above 0, got 1.5"),
        ("limits: {seconds: 0}", "limits: seconds must be a number above 0, got 0"),
        ("limits: {seconds: 5s}", "limits: seconds must be a number above 0, got '5s'"),
        ("limits: {seconds: }", "limits: seconds must be a number above 0, got None"),
        ("limits: {memory_mb: true}", "limits: memory_mb must be a number above 0, got True"),
        ("limits: {output_mb: -.inf}", "limits: output_mb must be a number above 0, got -inf"),
    ],
)
def test_a_bad_value_is_answered_with_its_place_and_what_was_expected(read, text, message):
    with pytest.raises(ValueError, match=f"(?s)week3.yaml.*{message}"):
        read(text)


# Around it


EXPORTED = [
    EXAMPLE,
    "seed: 1\nexercises: [softmax]",
    "title: 'Übung: #3 \"x\"'\nseed: 2\nexercises: {attend: 0.5}\nlimits: {seconds: 0.25, output_mb: 3}",
    "seed: -4\ndue: 2026-11-30\nlate_penalty: 100%\nexercises: {softmax: {points: 10/3, allow_twins: true}}",
]


def test_what_is_exported_reads_back_the_same(read):
    for text in EXPORTED:
        given = read(text)
        assert read(assignment_yaml(given)) == given


def test_the_seed_of_a_caller_is_taken_last_and_only_where_the_file_has_none(tmp_path):
    path, calls = tmp_path / "week.yaml", []

    def seed():
        calls.append(1)
        return 7

    for text, expected in {"seed: 3": (3, 0), "title: x": (7, 1)}.items():
        path.write_text(text)
        assert (read_assignment(path, seed).seed, len(calls)) == expected
    path.write_text("exercises: {softmax: -1}")
    with pytest.raises(ValueError, match="points must be a number"):
        read_assignment(path, seed)
    assert len(calls) == 1


def test_as_data_it_fits_into_json_and_tells_assignments_apart(read):
    one = read(EXAMPLE)
    assert json.loads(json.dumps(one.as_dict())) == one.as_dict()
    changes = {
        "title": "other",
        "seed": 1,
        "due": None,
        "late_penalty": 0.2,
        "tasks": one.tasks[:1],
        "limits": Limits(seconds=1),
        "walls": ("limits",),
    }
    assert set(changes) == {field.name for field in dataclasses.fields(Assignment)}
    for name, value in changes.items():
        assert dataclasses.replace(one, **{name: value}).as_dict() != one.as_dict(), name


def test_names_become_tasks_in_reading_order_and_others_are_left_out():
    assert tasks_for({"layer_norm", "softmax", "print", "x"}) == (
        AssignedExercise("softmax"),
        AssignedExercise("layer_norm"),
    )
