"""When a learning platform received each submission, from what it exports: Moodle, Canvas, Gradescope."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from course_grade.grading.dates import day_first, moment_of, plain_text
from course_grade.grading.lateness import Times
from course_kit._files import read_whole

__all__ = ["read_times"]

# Headers without accents, capitals and punctuation, in English and German.
TIME = ("last modified submission", "zuletzt geandert abgabe", "submission time", "submitted at", "submission date")
TIME += ("time submitted", "date submitted", "submitted on", "submitted", "created at", "abgegeben am", "abgabezeit")
NUMBERS = ("identifier", "user id", "canvas user id", "student id", "id", "sid", "sis user id", "sis login id")
NUMBERS += ("login id", "id number", "username", "user name", "student number")
NUMBERS += ("anmeldename", "matrikelnummer", "id nummer")
MAIL = ("email", "email address", "e mail", "e mail address", "e mail adresse")
NAME = ("full name", "name", "student", "student name", "vollstandiger name", "sortable name")
PARTS = (("first name", "last name"), ("vorname", "nachname"))
EMPTY = {"", "-", "–", "none", "n/a", "null"}

MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_", re.DOTALL)
CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<number>\d+)_\d+_", re.DOTALL)
GRADESCOPE = re.compile(r"submission_(?P<number>\d+)$")


@dataclass(frozen=True)
class Row:
    """One submission in an export.

    Args:
        when: as it is written; "" where there is none.
        numbers: identifiers of the student.
        submission: identifier of the submission.
        names: of the student, in each order of first and last name, as words.
    """

    when: str
    numbers: frozenset[str]
    submission: str
    names: tuple[tuple[str, ...], ...]


def read_times(path: Path, students: Iterable[str], zone: tzinfo) -> Times:
    """The time at which each student's submission was received.

    A student is found by the number that the platform writes into names of files (`Name_123_assignsubmission_` by
    Moodle, `name_123_456_` by Canvas, `submission_123` by Gradescope), else by identifier, e-mail address or name.

    Args:
        path: the CSV file that the platform exports, or Gradescope's submission_metadata.yml.
        students: names of files and folders.
        zone: that of times that name none.

    Raises:
        ValueError: the file has no column with times, or none that tells students apart.
    """
    rows = _from_gradescope(path) if path.suffix.lower() in {".yml", ".yaml"} else _from_csv(path)
    first = day_first([row.when for row in rows])
    times = Times(path.name)
    by_name: dict[int, list[str]] = {}
    for student in students:
        found, certain = _rows_of(student, rows)
        moments = {row.when: moment_of(row.when, zone, first=first) for row in found}
        unclear = [when for when, moment in moments.items() if moment is None]
        if not found:
            times.unknown[student] = f"{path.name} has no line for this name"
        elif len({row.numbers | {row.submission} for row in found}) > 1 and len(set(moments.values())) > 1:
            times.unknown[student] = f"{len(found)} lines of {path.name} fit this name"
        elif unclear:
            why = f"cannot tell which moment {unclear[0]!r} is" if unclear[0] else "has no time for this student"
            times.unknown[student] = f"{path.name} {why}"
        else:
            times.moments[student] = max(moments.values())
            if not certain:
                by_name.setdefault(id(found[0]), []).append(student)
    for same in by_name.values():  # a name that two submissions share says nothing about either
        if len(same) > 1:
            for student in same:
                del times.moments[student]
                times.unknown[student] = f"{', '.join(same)} fit the same line of {path.name}"
    return times


def _rows_of(student: str, rows: list[Row]) -> tuple[list[Row], bool]:
    """The rows that fit a student, and whether a number says so rather than a name."""
    label = student.rpartition("/")[2]
    if match := GRADESCOPE.match(label):
        return [row for row in rows if row.submission == match["number"]], True
    for form in (MOODLE, CANVAS):
        if match := form.match(label):
            if found := [row for row in rows if match["number"] in row.numbers]:
                return found, True
            label = match["name"]
            break
    words, whole = _words(label), plain_text(label)
    joined = "".join(words)
    by_number = [row for row in rows if joined in map(_joined, row.numbers)]
    exact = [row for row in rows if row in by_number or joined in map("".join, row.names)]
    if exact:
        return exact, bool(by_number)
    if found := [row for row in rows if any(_contains(whole, number) for number in row.numbers)]:
        return found, True
    return [row for row in rows if any(len(name) > 1 and set(name) <= set(words) for name in row.names)], False


def _contains(text: str, number: str) -> bool:
    """Whether an identifier of some length occurs in a text as a separate word."""
    return len(number) > 3 and re.search(rf"(?<![a-z0-9]){re.escape(number)}(?![a-z0-9])", text) is not None


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", plain_text(text)))


def _joined(text: str) -> str:
    return "".join(_words(text))


def _row(when: str, numbers: Iterable[str], mail: str, submission: str, names: Iterable[str]) -> Row:
    known = {plain_text(number).removeprefix("participant ").removeprefix("teilnehmer/in") for number in numbers}
    mail = plain_text(mail)
    known |= {mail, mail.partition("@")[0]}
    written = [words for name in names if (words := _words(name))]
    # "Lovelace, Ada" is Ada Lovelace; Canvas writes lovelaceada, Moodle Ada Lovelace.
    orders = {
        order for words in written for order in (words, words[::-1], (*words[1:], words[0]), (words[-1], *words[:-1]))
    }
    when = "" if plain_text(when) in EMPTY else when.strip()
    return Row(when, frozenset(known - EMPTY), submission.strip(), tuple(sorted(orders)))


def _from_csv(path: Path) -> list[Row]:
    raw = read_whole(path)
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"{path}: expected a CSV file in UTF-8, as the platform exports it, not a spreadsheet"
        ) from None
    first = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=first.count), restkey="", restval="")
    headers = {" ".join(_words(header)): header for header in reader.fieldnames or ()}
    time = next((headers[name] for name in TIME if name in headers), None)
    parts = next((pair for pair in PARTS if set(pair) <= set(headers)), None)
    known = [headers[name] for name in (*NUMBERS, *MAIL, *NAME, "submission id") if name in headers]
    if time is None or not (known or parts):
        raise ValueError(
            f"{path}: expected the CSV export of Moodle (grading worksheet), Canvas or Gradescope, with names or "
            "identifiers and a column such as “Last modified (submission)”, “Submitted At” or “Submission Time”; got "
            f"the columns {', '.join(reader.fieldnames or ['(none)'])}"
        )
    rows = []
    for line in reader:
        names = [line[headers[name]] for name in NAME if name in headers]
        if parts:
            names.append(" ".join(line[headers[part]] for part in parts))
        numbers = [line[headers[name]] for name in NUMBERS if name in headers]
        mail = next((line[headers[name]] for name in MAIL if name in headers), "")
        rows.append(_row(line[time], numbers, mail, line.get(headers.get("submission id", ""), ""), names))
    return rows


def _from_gradescope(path: Path) -> list[Row]:
    """Gradescope's submission_metadata.yml: one entry per folder, with submitters and a time."""
    import yaml

    try:
        content = yaml.safe_load(read_whole(path).decode("utf-8"))
        return [_entry(folder, about) for folder, about in content.items()]
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected Gradescope's submission_metadata.yml: {error}") from None


def _entry(folder: str, about: dict[str, Any]) -> Row:
    when = about[":created_at"] or ""
    if isinstance(when, datetime):  # YAML's own times without a zone are UTC
        when = when.isoformat() if when.tzinfo else f"{when.isoformat()}Z"
    people = [{key.lstrip(":"): str(value or "") for key, value in one.items()} for one in about[":submitters"]]
    rows = [_row(str(when), [one.get("sid", "")], one.get("email", ""), "", [one.get("name", "")]) for one in people]
    numbers = frozenset().union(*(row.numbers for row in rows))
    names = tuple(name for row in rows for name in row.names)
    return Row(str(when), numbers, folder.rpartition("_")[2], names)
