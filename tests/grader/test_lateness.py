"""Late is what the platform says: its exports are read, students found in them, and what is unclear is listed."""

import itertools
import json
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path

import pytest

from course_grade.command import main
from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.dates import day_first, moment_of
from course_grade.grading.lateness import Times, judge_lateness
from course_grade.grading.platform_timestamps import read_times
from course_grade.grading.results import Result, TaskResult
from course_grade.output.student_page import feedback_page
from course_grade.submission.submissions import Submission

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

ZONE = timezone(timedelta(hours=1))
DUE = datetime(2026, 11, 30, 23, 59, tzinfo=ZONE)
LATE = datetime(2026, 12, 1, 8, 5, tzinfo=ZONE)

MOODLE_COLUMNS = "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
MOODLE_COLUMNS += "Last modified (submission),Last modified (grade),Feedback comments"
MOODLE = f"""\
{MOODLE_COLUMNS}
Participant 101,Ada Lovelace,ada@uni.example,Submitted for grading,,10,Yes,"Tuesday, 1 December 2026, 8:05 AM",-,
Participant 102,Zoë Müller,zoe@uni.example,Submitted for grading,,10,Yes,"Monday, 30 November 2026, 11:58 PM",-,
Participant 103,Bob Ray,bob@uni.example,No submission,,10,Yes,-,-,
"""
MOODLE_GERMAN = """\
\ufeffID;Vollständiger Name;E-Mail-Adresse;Status;Bewertung;Zuletzt geändert (Abgabe)
Teilnehmer/in101;Ada Lovelace;ada@uni.example;Zur Bewertung abgegeben;;"Dienstag, 1. Dezember 2026, 08:05"
Teilnehmer/in102;Zoë Müller;zoe@uni.example;Zur Bewertung abgegeben;;"Montag, 30. November 2026, 23:58"
Teilnehmer/in103;Bob Ray;bob@uni.example;Keine Abgabe;;-
"""
GRADESCOPE = """\
First Name,Last Name,SID,Email,Sections,Total Score,Max Points,Status,Submission ID,Submission Time,Lateness (H:M:S)
Ada,Lovelace,4000101,ada@uni.example,,8.0,10.0,Graded,900001,2026-12-01 08:05:00 +0100,08:06:00
Zoë,Müller,4000102,zoe@uni.example,,8.0,10.0,Graded,900002,2026-11-30 14:58:00 -0800,00:00:00
Bob,Ray,4000103,bob@uni.example,,,10.0,Missing,,,
"""
CANVAS = """\
user_id,student_name,sis_login_id,submitted_at,late
101,"Lovelace, Ada",al101,2026-12-01T07:05:00Z,true
102,"Müller, Zoë",zm102,2026-11-30T22:58:00Z,false
103,"Ray, Bob",br103,,false
"""
METADATA = """\
submission_900001:
  :submitters:
  - :name: Ada Lovelace
    :sid: '4000101'
    :email: ada@uni.example
  :created_at: 2026-12-01 07:05:00.123456000 Z
  :score: 8.0
submission_900002:
  :submitters:
  - :name: Zoë Müller
    :sid:
    :email: zoe@uni.example
  :created_at: '2026-11-30 22:58:00 UTC'
submission_900003:
  :submitters:
  - :name: Bob Ray
    :email: bob@uni.example
  :created_at:
"""
BY_MOODLE = ["Ada Lovelace_101_assignsubmission_file", "Zoe\u0308 Mu\u0308ller_102_assignsubmission_file_hw"]
BY_CANVAS = ["lovelaceada_LATE_101_55501_homework-2", "mullerzoe_102_55502_homework"]
BY_GRADESCOPE = ["submission_900001", "submission_900002"]
EXPORTS = {  # file, content, and the names that the platform gives to two submissions
    "Moodle": ("grades.csv", MOODLE, BY_MOODLE),
    "Moodle in German": ("grades.csv", MOODLE_GERMAN, BY_MOODLE),
    "Gradescope": ("scores.csv", GRADESCOPE, BY_GRADESCOPE),
    "Gradescope's metadata": ("submission_metadata.yml", METADATA, BY_GRADESCOPE),
    "Canvas": ("submissions.csv", CANVAS, BY_CANVAS),
}
BY_HAND = {
    "names": ["Ada Lovelace", "zoe_müller"],
    "names in the other order": ["lovelace_ada", "MüllerZoë"],
    "addresses": ["ada@uni.example", "zoe@uni.example"],
    "the part before the @": ["ada", "zoe"],
    "names among other words": ["hw3-Ada-Lovelace-final", "Zoë Müller (1)"],
    "the folder that tells two apart": ["a/Ada Lovelace.py", "b/Zoë Müller.py"],
}


@pytest.fixture
def times(tmp_path):
    def read(kind, students, text=None):
        name, content, _ = EXPORTS[kind]
        (tmp_path / name).write_text(content if text is None else text, encoding="utf-8")
        return read_times(tmp_path / name, students, ZONE)

    return read


@pytest.mark.parametrize("kind", EXPORTS)
def test_students_are_found_by_the_names_that_the_platform_writes_and_by_others(times, kind):
    for how, (ada, zoe) in {"its own": EXPORTS[kind][2], **({} if kind == "Canvas" else BY_HAND)}.items():
        found = times(kind, [ada, zoe])
        assert found.unknown == {}, how
        assert abs(found.moments[ada] - LATE) < timedelta(seconds=1), how
        assert found.moments[zoe] == DUE - timedelta(minutes=1), how


def test_a_student_number_in_a_name_is_found(times):
    assert "hw3_4000101_v2" in times("Gradescope", ["hw3_4000101_v2"]).moments
    assert "hw3_40001011_v2" in times("Gradescope", ["hw3_40001011_v2"]).unknown


@pytest.mark.parametrize("kind", EXPORTS)
def test_a_student_without_a_time_or_without_a_line_is_listed(times, kind):
    found = times(kind, ["Bob Ray", "Nobody Else", "submission_1", "x_999_assignsubmission_file"])
    assert found.moments == {}
    assert "has no time for this student" in found.unknown["Bob Ray"]
    assert len(found.unknown) == 4
    assert all("no line for this name" in why for name, why in found.unknown.items() if name != "Bob Ray")


def test_a_time_of_yaml_without_a_zone_is_utc(times):
    """PyYAML reads `2026-12-01 07:05:00` as a time without a zone, where YAML means UTC; a column's text differs."""
    kind = "Gradescope's metadata"
    bare = METADATA.replace("2026-12-01 07:05:00.123456000 Z", "2026-12-01 07:05:00")
    assert times(kind, ["submission_900001"], bare).moments == {"submission_900001": LATE}


def test_two_lines_for_one_name_are_listed_unless_they_agree(times):
    two = GRADESCOPE + "Ada,Lovelace,4000109,ada2@uni.example,,,10.0,Graded,900009,{},\n"
    found = times("Gradescope", ["Ada Lovelace"], two.format("2026-11-01 08:05:00 +0100"))
    assert "2 lines of scores.csv fit this name" in found.unknown["Ada Lovelace"]
    found = times("Gradescope", ["Ada Lovelace"], two.format("2026-12-01 08:05:00 +0100"))
    assert found.moments["Ada Lovelace"] == LATE
    one = times("Gradescope", ["submission_900009"], two.format("2026-11-01 08:05 +0100"))
    assert "submission_900009" in one.moments


def test_two_submissions_of_one_name_are_listed_and_of_one_number_are_not(times):
    found = times("Moodle", ["Ada Lovelace", "Lovelace Ada"])
    assert set(found.unknown) == {"Ada Lovelace", "Lovelace Ada"}
    same = ["Ada Lovelace_101_assignsubmission_file_a", "Ada Lovelace_101_assignsubmission_file_b"]
    assert set(times("Moodle", same).moments) == set(same)


def test_separators_and_encodings_of_spreadsheets_are_read(tmp_path):
    path = tmp_path / "times.csv"
    for separator, encoding in itertools.product(",;\t", ["utf-8", "utf-8-sig", "utf-16"]):
        path.write_text(f"Name{separator}Submitted At\nZoë Müller{separator}2026-12-01 08:05\n", encoding=encoding)
        assert read_times(path, ["Zoë Müller"], ZONE).moments == {"Zoë Müller": LATE}, (separator, encoding)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Name,Grade\nAda,3\n", "got the columns Name, Grade"),
        (b"Submitted At,Grade\n2026-12-01 08:05,3\n", "expected the CSV export"),
        (b"", r"got the columns \(none\)"),
        (b"PK\x03\x04\xff\xfe\x80", "not a spreadsheet"),
    ],
)
def test_another_file_is_an_error_that_names_what_is_expected(tmp_path, content, message):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_times(tmp_path / "x.csv", ["Ada"], ZONE)
    (tmp_path / "x.yml").write_bytes(content)
    with pytest.raises(ValueError, match=r"expected Gradescope's submission_metadata\.yml"):
        read_times(tmp_path / "x.yml", ["Ada"], ZONE)


SAME = [
    "Tuesday, 1 December 2026, 8:05 AM",
    "Tuesday, December 1, 2026, 8:05\u202fAM",
    "Dienstag, 1. Dezember 2026, 08:05",
    "Dienstag, 1. Dezember 2026, 08:05 Uhr",
    "mardi 1 décembre 2026, 08:05",
    "martes, 1 de diciembre de 2026, 08:05",
    "Dec 1, 2026 at 8:05am",
    "1 Dec 2026 08:05:00",
    "2026-12-01 08:05:00 +0100",
    "2026-12-01T08:05:00+01:00",
    "2026-12-01T07:05:00Z",
    "2026-12-01T07:05:00.123Z",
    "2026-12-01 07:05:00 UTC",
    "2026-11-30 23:05:00 PST",
    "2026-12-01 08:05:00 CET",
    "01.12.2026 08:05",
    "2026-12-01 08:05",
]


def test_a_moment_is_read_in_every_form():
    for text in SAME:
        assert moment_of(text, ZONE, first=None) == LATE, text


def test_noon_and_midnight_on_a_clock_of_twelve_hours():
    clock = {"12:05 AM": "00:05", "1:05 AM": "01:05", "11:59 AM": "11:59", "12:30 PM": "12:30", "1:00 p.m.": "13:00"}
    for twelve, hours in clock.items():
        moment = datetime.fromisoformat(f"2026-12-01T{hours}:00+01:00")
        assert moment_of(f"2026-12-01 {twelve}", ZONE, first=None) == moment, twelve


UNCLEAR = ["", "tomorrow", "2026-02-30 10:00", "01/12/2026 08:05", "2026-12-01 25:00", "1 Smarch 2026, 8:05"]
UNCLEAR += ["2026-12-01 08:05 CST", "2026-12-01 13:05 PM", "2026-12-01 08:05 +9900"]


def test_what_is_no_moment_or_could_be_two_is_not_guessed():
    assert [text for text in UNCLEAR if moment_of(text, ZONE, first=None) is not None] == []


def test_the_order_of_day_and_month_is_taken_from_other_lines():
    assert day_first(["01/12/2026 08:05", "13/12/2026 08:05"]) == "day"
    assert day_first(["12/01/2026 08:05", "12/13/2026 08:05"]) == "month"
    assert day_first(["01/12/2026 08:05"]) is None
    assert moment_of("01/12/2026 08:05", ZONE, first="day") == LATE
    assert moment_of("12/01/2026 8:05 am", ZONE, first="month") == LATE


# What follows from it

ASSIGNMENT = Assignment(tasks=(AssignedExercise("causal_mask", 10),), seed=1, due=DUE, late_penalty="1/10")


def judged(moment=None, times=None, due=DUE):
    result = Result("ada", [TaskResult("causal_mask", "passed", 10, 10)])
    submission = Submission("ada", modified=moment.timestamp() if moment else 0.0)
    judge_lateness(result, submission, Assignment(tasks=ASSIGNMENT.tasks, due=due, late_penalty="1/10"), times)
    return result


SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


def test_each_day_begun_costs_its_share_and_never_more_than_all():
    for after, days in {0 * DAY: 0, SECOND: 1, DAY - SECOND: 1, DAY: 2, 9 * DAY: 10, 40 * DAY: 41, -DAY: 0}.items():
        result = judged(times=Times("times.csv", {"ada": DUE + after}))
        assert (result.late_days, result.points) == (days, max(0, 10 - days))
        assert result.penalty == min(1, Fraction(days, 10))  # the page shows it: no 410 %
        assert result.lateness == ("late" if days else "on time") + " by times.csv"


def test_the_platform_goes_before_the_files():
    result = judged(DUE - timedelta(days=30), Times("times.csv", {"ada": LATE}))
    assert (result.late_days, result.points) == (1, 9)


def test_the_times_of_the_files_are_used_where_there_is_nothing_else_and_the_page_says_so():
    result = judged(LATE)
    assert result.late_days == 1
    page = feedback_page(result, ASSIGNMENT)
    assert "Lateness: late by the times of the files, which can be set back." in page
    assert "Lateness" not in feedback_page(judged(LATE, due=None), ASSIGNMENT)


def test_what_is_not_known_is_neither_late_nor_on_time_without_a_word():
    result = judged(LATE, Times("times.csv", {}, {"ada": "times.csv has no line for this name"}))
    assert (result.late_days, result.points, result.undecided) == (0, 10, True)
    page = feedback_page(result, ASSIGNMENT)
    assert "Lateness: could not decide whether this is on time: times.csv has no line" in page


def test_the_command_reads_an_export_and_lists_who_is_not_in_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    Path("class").mkdir()
    for name in ("Ada Lovelace", "Zoë Müller", "Nemo"):
        code = "import torch\ndef causal_mask(n):\n    return torch.ones(n, n).tril().bool()\n"
        Path("class", f"{name}.py").write_text(code)
    Path("moodle.csv").write_text(MOODLE, encoding="utf-8")
    week = "due: 2026-11-30 23:59 +0100\nlate_penalty: 10%\nexercises: {causal_mask: 10}\nseed: 1\n"
    Path("week.yaml").write_text(week)
    command = ["grade", "class", "-a", "week.yaml", "--out", "out"]
    for _ in range(2):  # lateness is judged anew where the verdict is from an earlier run
        assert main([*command, "--submitted-at", "moodle.csv"]) == 0
        why = "these 1 submission(s) are on time:\n  Nemo: moodle.csv has no line for this name"
        assert f"Could not decide whether {why}" in capsys.readouterr().out
        students = json.loads(Path("out/results.json").read_text())["submissions"]
        assert {s["student"]: s["points"] for s in students} == {"Ada Lovelace": 9, "Zoë Müller": 10, "Nemo": 10}
    (row,) = (line for line in Path("out/results.csv").read_text(encoding="utf-8-sig").splitlines() if "Nemo" in line)
    assert "could not decide whether" in row
