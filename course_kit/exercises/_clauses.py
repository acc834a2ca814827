"""The clauses of an exercise's statement, each with wrong solutions that break just this one. For example:

    ## scores as large as ±1e4 give finite weights
    = unstable largest_of_all

    ## it works on any number of axes
    - dim=-1
    + dim=1

A heading is a clause. Below it come the keys of mistakes that break it, or a change to the solution that does, in the
format of `_mistakes`.
"""

from __future__ import annotations

import re

from course_kit.exercises._mistakes import changes_in, patched

__all__ = ["breaches_in"]


def breaches_in(text: str, name: str, solution: str) -> list[tuple[str, str, str]]:
    """Clause, key of the mistake that breaks it ("" for none), and otherwise the code that does.

    Args:
        text: of the file.
        name: of the file, for messages.
        solution: the right code.

    Raises:
        ValueError: a clause has neither keys nor a change, or a passage that changes is not in the solution once.
    """
    found = []
    title, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    if not re.fullmatch(r"# .*\s*", title):
        raise ValueError(f"{name}: expected a title and then '## clause', got {title.strip()[-60:]!r}")
    for section in sections:
        clause, _, body = section.partition("\n")
        where = f"{name}: {clause}"
        if re.match(r"= +\S", body):
            found += [(clause, key, "") for key in body[2:].split()]
        elif body.strip():
            found.append((clause, "", patched(solution, changes_in(body.rstrip().split("\n"), where), where)))
        else:
            raise ValueError(f"{where}: expected '= key' of a mistake, or a change")
    return found
