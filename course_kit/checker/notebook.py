"""For learners, in a notebook: `check`, `hint`, `solution`, `progress`, `yours`.

A check runs in the learner's own process and is not a grade: it helps, and could be fooled. Grades come from
`course-lib grade`.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import io
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import torch

from course_kit.checker.progress_file import Progress
from course_kit.checker.report.html_report import box, html_of, marked_up
from course_kit.checker.report.plain_report import plain_words, text_of
from course_kit.checker.report.report import Report, report_on
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.checker.verdict.style_notes import source_of
from course_kit.exercises import Exercise, all_exercises, find

__all__ = ["check", "hint", "progress", "solution", "yours"]

SELF_CHECK_SEED = 2017  # the same cases at every check, so that the smallest failing case stays the same
HEADING = "self-check, no grade"


class _Shown:
    """Text, and HTML for those who can show it."""

    def __init__(self, text: str, markup: str):
        self.text, self.markup = text, markup if "course-lib-report" in markup else box([markup])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.markup


def _show(text: str, markup: str) -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        display(_Shown(text, markup))
        return
    try:
        print(text)
    except UnicodeEncodeError:  # a terminal of another encoding
        print(text.encode("ascii", "replace").decode())


def check(solution: Callable, name: str | None = None) -> None:
    """Check your own solution: what holds, what does not, and which mistake it looks like.

        check(softmax)

    Args:
        solution: your function or class, not what it returns.
        name: of the exercise, if your solution has another name.

    Raises:
        TypeError: the argument is not a function or class.
        KeyError: there is no exercise of that name.
    """
    exercise = _exercise_of(solution, name)
    report = self_check(exercise, solution)
    notebook = Progress()
    if report.verdict.status != "not attempted":
        notebook.record(exercise.name, report.verdict.status, float(report.verdict.score))
    text, markup = text_of(report, HEADING), html_of(report, HEADING)
    if notebook.warning:
        text, markup = f"{text}\n\n{notebook.warning}", f"{markup}<p>{marked_up(notebook.warning)}</p>"
    _show(text, markup)


def self_check(exercise: Exercise, solution: Callable) -> Report:
    """The report that `check` shows."""
    written = io.StringIO()
    with torch.random.fork_rng(devices=[]):  # building modules draws numbers; the learner's own come as without a check
        sheet = sheet_of(exercise, SELF_CHECK_SEED)
        with contextlib.redirect_stdout(written):  # two dozen calls of a function that prints would hide the report
            observations = sheet.run(solution)
        return report_on(sheet, observations, printed=written.getvalue(), sources=source_of(solution))


def _exercise_of(solution: Any, name: str | None) -> Exercise:
    if isinstance(solution, str):
        raise TypeError(
            f"expected your function or class, got the text {solution!r}; write check({solution}) without quotes"
        )
    if not callable(solution):
        raise TypeError(
            f"expected your function or class itself, got what looks like its result, a {type(solution).__name__}; "
            f"write its name without calling it, for example check(softmax), not check(softmax(x))"
        )
    given = name is not None
    if not given:
        name = getattr(solution, "__name__", None) or getattr(getattr(solution, "func", None), "__name__", None)
    if name is None and type(solution).__name__ in all_exercises():
        raise TypeError(f"expected the class {type(solution).__name__}, got an object of it; leave out the parentheses")
    if name is None:
        raise TypeError(
            "expected a function or class with a name, got one without; add the exercise's: check(f, 'softmax')"
        )
    if not given and name not in all_exercises():
        raise KeyError(_named_otherwise(name))
    exercise = find(name)
    if exercise.is_class != inspect.isclass(solution):
        kinds = {True: "a class", False: "a function"}
        raise TypeError(
            f"expected {kinds[exercise.is_class]} for {exercise.name}, got {kinds[inspect.isclass(solution)]}"
        )
    return exercise


def _named_otherwise(name: str) -> str:
    """What to do about a solution whose own name is not that of an exercise."""
    meant = next(iter(get_close_matches(name, all_exercises(), 1, 0.5)), "")
    own, rename = (name, f"rename it to {meant}, or " if meant else "") if name.isidentifier() else ("f", "")
    return (
        f"expected the name of an exercise, got a function or class called {name}; {rename}pass the exercise's name: "
        f'check({own}, "{meant or "softmax"}"). `progress()` shows all names.'
    )


def hint(name: str, number: int | None = None) -> None:
    """Show the next hint for an exercise; each call gives one more.

    Args:
        name: of the exercise.
        number: of a hint to see again, from 1.

    Raises:
        KeyError: there is no exercise of that name.
        ValueError: the exercise has no hint of that number.
    """
    exercise = find(getattr(name, "__name__", name))
    hints = exercise.hints
    notebook = Progress()
    if number is None:
        stored = notebook.read().get(exercise.name, {}).get("hints", 0)
        shown = stored if isinstance(stored, int) and 0 <= stored <= len(hints) else 0
        number = min(shown + 1, len(hints))
        if number > shown:
            notebook.change(exercise.name, hints=number)
    if not 1 <= number <= len(hints):
        raise ValueError(f"{exercise.name} has hints 1 to {len(hints)}, got {number}")
    more = (
        "Call it again for the next one."
        if number < len(hints)
        else f'That is the last hint; solution("{exercise.name}") shows a solution.'
    )
    head = f"Hint {number} of {len(hints)} to {exercise.name}"
    text = f"{head}: {plain_words(hints[number - 1])}\n{more}"
    _show(text, f"<p><b>{head}.</b> {marked_up(hints[number - 1])}</p><p>{marked_up(more)}</p>")


def solution(name: str) -> None:
    """Show a solution of an exercise.

    Raises:
        KeyError: there is no exercise of that name.
    """
    exercise = find(getattr(name, "__name__", name))
    code = exercise.solution.rstrip()
    head = f"A solution of {exercise.name}. There are others; check() accepts any that is right."
    _show(f"{head}\n\n{code}", f"<p>{marked_up(head)}</p><pre><code>{html.escape(code)}</code></pre>")


def yours(solution: Callable) -> Callable:
    """Your own solution if it passes its check, so that a page can use it; otherwise the course's, which it says.

        translate = yours(greedy_decode)

    Raises:
        TypeError: the argument is not a function or class.
        KeyError: there is no exercise of that name.
    """
    exercise = _exercise_of(solution, None)
    passed = self_check(exercise, solution).verdict.status == "passed"
    print(f"{exercise.name}:", "your own" if passed else "the course's own, until yours passes its check")
    return solution if passed else exercise.reference


def progress() -> None:
    """Show a table of all exercises: what you have passed, tried, and not begun."""
    notebook = Progress()
    entries = notebook.read()
    rows = [(exercise, entries.get(exercise.name, {})) for exercise in all_exercises().values()]
    passed = sum(entry.get("status") == "passed" for _, entry in rows)
    head = f"{passed} of {len(rows)} exercises passed"
    lines, table, last = [head], [], None
    for exercise, entry in rows:
        if exercise.stem != last:
            last = exercise.stem
            lines.append(f"\n{last}")
            table.append(f'<tr><th colspan="4" style="text-align:left">{last}</th></tr>')
        mark, message, checks = _state(entry)
        lines.append(f"  {mark} {exercise.name:<32} {message:<30} {checks}")
        cells = (mark, f"<code>{exercise.name}</code>", html.escape(message), html.escape(checks))
        table.append(
            "<tr>" + "".join(f'<td style="text-align:left;padding:.1em .8em .1em 0">{c}</td>' for c in cells) + "</tr>"
        )
    notes = [note for note in (f"Kept in {notebook.path}.", notebook.note, notebook.warning) if note]
    lines += [("\n" if note.startswith("Kept in ") else "") + note for note in notes]
    below = "".join(f"<p>{marked_up(note)}</p>" for note in notes)
    # On a phone the table scrolls by itself; who uses the keyboard has to reach it.
    scrolling = '<div tabindex="0" role="group" aria-label="Exercises" style="overflow-x:auto">'
    shown = f"<p><b>{head}</b></p>{scrolling}<table>{''.join(table)}</table></div>{below}"
    _show("\n".join(line.rstrip() for line in lines), shown)


def _state(entry: dict) -> tuple[str, str, str]:
    checks = entry.get("checks", 0)
    tried = f"{checks} check{'s' if checks != 1 else ''}" if checks else ""
    hints = f"{entry['hints']} hint{'s' if entry['hints'] != 1 else ''}" if entry.get("hints") else ""
    rest = ", ".join(filter(None, (tried, hints)))
    if entry.get("status") == "passed":
        return "✓", f"passed {entry.get('passed', '')}".strip(), rest
    if checks:
        best = entry.get("best", 0.0)
        share = f"{best:.0%}" if isinstance(best, int | float) else "?"
        return "·", f"best so far {share} of the points", rest
    return " ", "not begun", rest
