"""Submissions that are too large, or too oddly named, to lie here: `make(folder)` writes them.

Each tries to make the grader slow, or end, by reading it. Success: more than a few seconds, a traceback, or no results for
the others. Here is also `softmax`, so that this file is a submission itself, of 0 points.
"""

import json
import os
from pathlib import Path

HONEST = "def softmax(scores, dim=-1):\n    return scores * 0\n"


def softmax(scores, dim=-1):
    return scores * 0


def cell(text, kind="code"):
    return {"cell_type": kind, "source": text, "metadata": {}, "outputs": []}


def notebook(*cells):
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def _chain(n):
    lines = "".join(f"x{i} = x{i - 1}\n" for i in range(1, n))
    return f"x0 = 0\n{lines}def softmax(scores, dim=-1):\n    return x{n - 1}\n".encode()


def _wide(n):
    names = ", ".join(f"x{i}" for i in range(n))
    return ("".join(f"x{i} = 0\n" for i in range(n)) + f"def softmax(scores, dim=-1):\n    return [{names}]\n").encode()


def _deep_notebook():
    return b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


FILES = {  # name: bytes
    "chain_of_statements.py": lambda: _chain(3000),
    "helper_functions_in_circle.py": lambda: (
        "".join(f"def f{i}():\n    return f{(i + 1) % 3000}()\n" for i in range(3000))
        + "def softmax(scores, dim=-1):\n    return f0()\n"
    ).encode(),
    "many_definitions.py": lambda: (HONEST + "softmax = (lambda f: lambda *a: f(*a))(softmax)\n" * 2000).encode(),
    "ordinary_but_large.py": lambda: ("# notes of the lecture\n" * 14_000 + HONEST).encode(),
    "many_names.py": lambda: _wide(5000),
    "one_line_of_statements.py": lambda: ("x=0;" * 20_000 + "\n" + HONEST).encode(),
    "newlines_and_syntax_error.py": lambda: b"def softmax(scores, dim=-1:\n" + b"\n" * 40_000,
    "spaces_and_syntax_error.py": lambda: b"def softmax(scores, dim=-1:\n" + b" " * 500_000,
    "fence_and_newlines.ipynb": lambda: notebook(cell(HONEST + "```" + "\n" * 20_000, "markdown")),
    "fences_without_end.ipynb": lambda: notebook(cell(HONEST + "```python\nx\n" * 50_000, "markdown")),
    "cells_100000.ipynb": lambda: notebook(*[cell("x = 1")] * 100_000, cell(HONEST)),
    "markdown_cells_20000.ipynb": lambda: notebook(*[cell("def f():\n  pass", "markdown")] * 20_000, cell(HONEST)),
    "cell_type_list.ipynb": lambda: notebook(cell(HONEST), cell("text", ["markdown"])),
    "cell_type_number.ipynb": lambda: notebook({"cell_type": 5, "source": {"a": HONEST}}, cell(HONEST)),
    "cell_of_null.ipynb": lambda: b'{"cells": [null, 1, "x", {}, []]}',
    "surrogates_in_cell.ipynb": lambda: notebook(cell(HONEST + "# \ud800\n")),
    "surrogates_in_markdown.ipynb": lambda: notebook(cell("def \ud800():\n" + HONEST, "markdown"), cell(HONEST)),
    "deep_notebook.ipynb": _deep_notebook,
    "damaged_notebook.ipynb": lambda: notebook(cell(HONEST))[:-20],
    "huge_number_notebook.ipynb": lambda: b'{"cells": ' + b"9" * 100_000 + b"}",
    "magic_line.ipynb": lambda: notebook(cell("%x\n" + "a" * 900_000 + " = \n" + HONEST)),
    "parentheses_50000.py": lambda: ("x = " + "(" * 50_000 + ")" * 50_000 + "\n" + HONEST).encode(),
    "minus_signs_100000.py": lambda: ("x = " + "-" * 100_000 + "1\n" + HONEST).encode(),
    "sum_100000.py": lambda: ("x = " + "1+" * 100_000 + "1\n" + HONEST).encode(),
    "attributes_100000.py": lambda: ("x = a" + ".a" * 100_000 + "\n" + HONEST).encode(),
    "if_100000.py": lambda: ("if 1:\n  pass\n" + "elif 1:\n  pass\n" * 30_000 + HONEST).encode(),
    "long_line.py": lambda: (HONEST + "# " + "x" * 1_000_000).encode(),
    "long_string.py": lambda: ("x = '" + "x" * 900_000 + "'\ndef softmax(scores, dim=-1):\n    return x\n").encode(),
    "wrong_escapes.py": lambda: (HONEST + "x = '\\d'\n" * 3000).encode(),
    "huge_hex_number.py": lambda: ("x = 0x" + "f" * 900_000 + "; y = 1\n" + HONEST).encode(),
    "null_bytes.py": lambda: HONEST.encode() + b"\0\0",
    "byte_order_mark.py": lambda: b"\xef\xbb\xbf" + HONEST.encode(),
    "utf_16.py": lambda: HONEST.encode("utf-16"),
    "latin_1.py": lambda: b"# caf\xe9\n" + HONEST.encode(),
    "utf_7_cookie.py": lambda: b"# -*- coding: utf-7 -*-\n# +AAo-import os+AAo-\n" + HONEST.encode(),
    "carriage_returns.py": lambda: HONEST.replace("\n", "\r").encode(),
    "form_feeds.py": lambda: HONEST.replace("    ", "\f    \x0b\x1c").encode(),
    "empty.py": lambda: b"",
    "random_bytes.py": lambda: bytes(range(256)) * 200,
}
NAMES = (  # of files with an ordinary, wrong softmax
    b"caf\xe9.py",
    b"\x1b[2Jscreen.py",
    b"line\nbreak.py",
    b"<script>alert(1)<\xe2\x81\x84script>.py",
    b"=HYPERLINK(1).py",
    b"--seed=2.py",
    b"-e.py",
    b"%s%n{0}.py",
    b"x" * 240 + b".py",
    "\u202egnp.py".encode(),
    b"..py",
    b" .py",
    b"random.py",
    b"numpy.py",
    b"submission.py",
    b"course_lib.py",
)


def make(folder: Path) -> list[Path]:
    """Write all of them; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, content in FILES.items():
        (folder / name).write_bytes(content())
        made.append(folder / name)
    odd = folder / "names"
    odd.mkdir(exist_ok=True)
    for name in NAMES:
        path = os.path.join(os.fsencode(odd), name)
        with open(path, "wb") as file:
            file.write(HONEST.encode())
        made.append(Path(os.fsdecode(path)))
    links = folder / "links"
    links.mkdir(exist_ok=True)
    for name, target in (("loop.py", "loop.py"), ("gone.py", "nothing.py"), ("zero.py", "/dev/zero")):
        path = links / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        made.append(path)
    for name, target in (("neighbour.py", "../latin_1.py"), ("processes.py", "/proc/self/status")):
        path = links / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        made.append(path)
    option = folder / "--out"
    (option / "x.py").mkdir(parents=True, exist_ok=True)
    (option / "attention.py").write_text(HONEST)
    made.append(option)
    sparse = folder / "sparse.py"
    with open(sparse, "wb") as file:
        file.truncate(6 * 2**30)
    made.append(sparse)
    return made
