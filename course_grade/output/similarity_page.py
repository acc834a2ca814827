"""The report on submissions that are nearly the same: a page with the code side by side, and a table for programs."""

from __future__ import annotations

import csv
import html
import io

from course_grade.grading.similarity import LEAST, NEARLY, SHARED_BY, Pair, Script
from course_grade.output.result_files import harmless
from course_grade.output.student_page import PAGE
from course_lib._version import __version__

__all__ = ["similarity_csv", "similarity_page"]

SHOWN = 50  # pairs with their code
STYLE = (
    "<style>body{max-width:none}.pair{display:grid;grid-template-columns:1fr 1fr;gap:1em}.pair pre{margin:0}"
    "mark{background:#fd08;color:inherit}</style>"
)
MEANING = (
    "This page compares the code that the graded exercises run, without comments and without the names that its "
    "author chose. Code that the course provides, and code that more than {most} submissions share, does not count. "
    "The list contains pairs that have at least {least} pieces of the remaining code in common, and {nearly:.0%} or "
    "more of all such pieces. A high value is only a reason to read both: there are few ways to write a short "
    "exercise, and students may have been allowed to work together."
)


def similarity_csv(pairs: list[Pair]) -> str:
    """One row per pair; opens in a spreadsheet like the results."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["student", "other student", "in common", "pieces in common"])
    for pair in pairs:
        names = map(harmless, (pair.one.student, pair.other.student))
        writer.writerow([*names, f"{pair.share:.0%}", len(pair.shared)])
    return "\ufeff" + buffer.getvalue()


def similarity_page(pairs: list[Pair], number: int) -> str:
    """A table of all pairs, then the code of the most similar ones, with the shared parts marked.

    Args:
        number: of submissions that were compared.
    """
    meaning = MEANING.format(most=max(2, min(SHARED_BY, number // 3)), least=LEAST, nearly=NEARLY)
    rows = "".join(
        f"<tr><td>{_link(place, pair)}</td><td>{html.escape(pair.other.student)}</td>"
        f'<td class="number">{pair.share:.0%}</td></tr>'
        for place, pair in enumerate(pairs)
    )
    head = '<tr><th scope="col">student</th><th scope="col">other student</th><th scope="col">in common</th></tr>'
    table = f'<table class="points">{head}{rows}</table>' if pairs else "<p>No pair is nearly the same.</p>"
    sections = "".join(_section(place, pair) for place, pair in enumerate(pairs[:SHOWN]))
    body = f"{STYLE}<p>{meaning}</p><p>{number} submissions were compared.</p>{table}{sections}"
    return PAGE.format(title="Similar submissions", body=body, footer=f"course-lib {html.escape(__version__)}")


def _link(place: int, pair: Pair) -> str:
    name = html.escape(pair.one.student)
    return f'<a href="#pair-{place}">{name}</a>' if place < SHOWN else name


def _section(place: int, pair: Pair) -> str:
    title = f"{html.escape(pair.one.student)} and {html.escape(pair.other.student)}: {pair.share:.0%} in common"
    columns = "".join(f"<pre>{_marked(script, pair.shared)}</pre>" for script in (pair.one, pair.other))
    return f'<section id="pair-{place}"><h2>{title}</h2><div class="pair">{columns}</div></section>'


def _marked(script: Script, shared: frozenset[int]) -> str:
    """The code, with the lines marked that the other submission also has."""
    spans = [span for mark in shared for span in script.fingerprints.get(mark, ())]
    lines = {line for first, last in spans for line in range(first, last + 1)}
    return "\n".join(
        f"<mark>{html.escape(text)}</mark>" if number in lines else html.escape(text)
        for number, text in enumerate(script.code.split("\n"), 1)
    )
