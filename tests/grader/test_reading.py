"""Files and notebooks in whatever shape they are: the code that counts is found, and nothing is run."""

import json

import pytest
from handed_in import answer, notebook, notebook_bytes

from course_grade.submission.submissions import Submission, needed, read_notebook, read_python, read_submission

# Notebooks as they come


@pytest.mark.parametrize(
    "text",
    [
        "%matplotlib inline\ndef f(): return 1",
        "def f(): return 1\n%timeit f()",
        "def f(): return 1\n%time y = f()",
        "!pip install torch\ndef f(): return 1",
        "if True:\n    !pip install torch\ndef f(): return 1",
        "    \n%load_ext autoreload\n%autoreload 2\ndef f(): return 1",
        "files = !ls\nhere = %pwd\ndef f(): return 1",
        "a, b = %who\ndef f(): return 1",
        "def f(): return 1\nf?",
        "def f(): return 1\nf??\n?f\n??f\nmath.pi?",
        "!pip install \\\n  torch\ndef f(): return 1",
        "%pip install \\\n  torch \\\n  x\nfiles = !ls \\\n  -l\ndef f(): return 1",
        "%time\ndef f():\n    '''Says\n    % of all, # and\n    !not more\n    '''\n    return 1",
        "%%time\ndef f(): return 1",
        "%%time -q\n%matplotlib inline\ndef f(): return 1",
        "%%capture out\ndef f(): return 1",
        "\n\n%%timeit -n 1\ndef f(): return 1",
        "def f(): return 1\nawait something",
        "def f(): return 1;",
        "def f():\n\treturn 1",
        "def f():\r\n    return 1\r\n",
        "def f():\r    return 1\r",
        "\ufeffdef f(): return 1",
        "def f():\n    return 1\n\x0c\nx = 2",
    ],
)
def test_what_only_ipython_understands_does_no_harm(text):
    if text.startswith("\ufeff"):
        assert answer(read_python("week.py", text.encode())) == 1
    else:
        assert answer(notebook(text)) == 1


def test_what_a_magic_assigned_is_none():
    assert answer(notebook("files = !ls\ndef f(): return files")) is None


def test_a_text_with_percent_signs_is_kept_beside_a_magic():
    source = notebook('%time\ntext = """\n% one\n!two\n"""\ndef f(): return text')
    assert answer(source) == "\n% one\n!two\n"


def test_a_cell_that_became_text_counts_although_its_imports_are_elsewhere():
    source = notebook(
        "import math",
        ("markdown", "import math\ndef f(): return math.floor(2.5)\ndef g(): return 1"),
        "def g(): return 2",
    )
    assert answer(source) == 2
    assert answer(source, "g") == 2


def test_lines_keep_their_numbers_around_magics():
    (piece,) = needed(notebook("%%time\n%matplotlib inline\n!ls\ndef f(): return 1"), "f")
    assert piece.line == 4


@pytest.mark.parametrize(
    "magic", ["%%bash", "%%html", "%%writefile f.py", "%%javascript", "%%latex", "%%script python"]
)
def test_a_cell_in_another_language_is_left_out(magic):
    source = notebook("def f(): return 1", f"{magic}\ndef f(): return 2")
    assert answer(source) == 1
    assert not source.broken


def test_what_looks_like_a_magic_in_ordinary_python_is_python():
    assert answer(notebook("def f():\n    return (7\n        % 4\n        != 2)")) is True
    assert answer(notebook("def f():\n    return '''\n%d\n!x\n'''")) == "\n%d\n!x\n"


def test_cells_that_were_moved_work_in_any_order():
    cells = [
        "import math",
        "BASE = math.floor(2.5)",
        "class A:\n    x = BASE",
        "def f(): return A.x",
    ]
    assert {answer(notebook(*cells[n:], *cells[:n])) for n in range(4)} == {2}
    assert answer(notebook(*reversed(cells))) == 2


def test_cells_that_were_copied_count_once():
    cell = "import math\ndef f(): return math.floor(2.5)"
    assert answer(notebook(cell, "x = f()", cell, cell)) == 2
    assert len(needed(notebook(cell, cell), "f")) == 2


def test_cells_that_were_deleted_are_missed_only_by_what_needs_them():
    source = notebook("def f(): return 1", "def g(): return deleted()")
    assert answer(source) == 1


def test_a_broken_cell_costs_only_itself():
    source = notebook("def f(): return 1", "def g(:\n    return 2", "def h(): return 3")
    assert (answer(source), answer(source, "h")) == (1, 3)
    ((place, why, names),) = source.broken
    assert (place, names) == ("week.ipynb, cell 2", {"g"})
    assert "line 1" in why


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_cell_that_has_become_text_by_mistake_counts(kind):
    assert answer(notebook("x = 1", (kind, "def f():\n    return 1"))) == 1


def test_python_between_fences_counts():
    for fence in ("```python", "```py", "```"):
        text = f"Here is mine:\n\n{fence}\nimport math\n\ndef f():\n    return math.floor(2.5)\n```\n\nDone."
        assert answer(notebook(("markdown", text))) == 2


def test_a_text_does_not_count_where_code_defines_the_name():
    assert answer(notebook("def f(): return 'code'", ("raw", "def f(): return 'text'"))) == "code"
    assert answer(notebook(("raw", "def f(): return 'text'"), "def f(): return 'code'")) == "code"


def test_prose_about_definitions_is_no_code():
    source = notebook(("markdown", "Write\n\ndef your own function, and\nclass it as done."))
    assert source.pieces == []


SHAPES = {
    "source as lines": {"cells": [{"cell_type": "code", "source": ["def f():\n", "    return 1"]}]},
    "version 3": {"worksheets": [{"cells": [{"cell_type": "code", "input": ["def f():\n", "    return 1"]}]}]},
    "cells of odd types": {
        "cells": [
            {"cell_type": "heading", "source": "T"},
            {"source": "def g(): pass"},
            {"cell_type": "code"},
            {"cell_type": "code", "source": ""},
            {"cell_type": "code", "source": "def f(): return 1"},
        ]
    },
    "outputs": {
        "cells": [{"cell_type": "code", "source": "def f(): return 1", "outputs": [{"data": {"image/png": "A" * 99}}]}]
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_notebooks_of_all_versions_are_read(shape):
    assert answer(read_notebook("n.ipynb", json.dumps(SHAPES[shape]).encode())) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"def f(): return 1",
        b"[]",
        b"null",
        b"3",
        b"{}",
        b'{"cells": null}',
        b'{"cells": [null]}',
        b'{"cells": [3]}',
        b'{"cells": {"a": 1}}',
        b'{"worksheets": []}',
        b'{"cells": [{"cell_type": "code", "source": [1]}]}',
        b"\xff\xfe{\x00",
        b"[" * 100_000,
        notebook_bytes("def f(): return 1")[:-20],
        b"<<<<<<< HEAD\n" + notebook_bytes("x") + b"\n=======\n",
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_what_is_no_notebook_is_said_to_be_none(raw, tmp_path):
    with pytest.raises(ValueError, match="it is not a readable notebook"):
        read_notebook("n.ipynb", raw)
    (tmp_path / "n.ipynb").write_bytes(raw)
    submission = read_submission("s", [tmp_path / "n.ipynb"])
    assert submission.problems == ["n.ipynb: it is not a readable notebook (damaged, or saved incompletely?)"]


@pytest.mark.parametrize("cell_type", [["code"], {"a": 1}, 3, None])
def test_no_cell_type_stops_the_reading(cell_type, tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": cell_type, "source": "x"}]}))
    assert read_submission("s", [path]).defined() == set()


def test_half_a_character_in_a_notebook_costs_its_cell_only():
    source = notebook("def f(): return 1", "x = '\ud800'\ndef g(): pass")
    assert answer(source) == 1
    assert source.broken[0][0] == "week.ipynb, cell 2"


# Python files as they come


@pytest.mark.parametrize(
    "raw",
    [
        "def f(): return 'é'".encode(),
        "def f(): return 'é'".encode("latin-1"),
        "def f(): return 'é'".encode("utf-8-sig"),
        "# -*- coding: latin-1 -*-\ndef f(): return 'é'".encode("latin-1"),
        "#!/usr/bin/env python\r\ndef f():\r\n    return 'é'\r\n".encode(),
    ],
)
def test_files_from_all_editors_are_read(raw):
    assert answer(read_python("s.py", raw)) == "é"


@pytest.mark.parametrize(
    "text",
    [
        "def f():\nreturn 1",
        "def f(: return 1",
        "def f():\n    return 1\n\tx = 2",
        "<<<<<<< HEAD\ndef f(): return 1\n=======",
        "print 'x'\ndef f(): return 1",
        "x = " + "(" * 400 + ")" * 400 + "\ndef f(): return 1",
        "x = " + "-" * 100_000 + "1\ndef f(): return 1",
        "x = '\x00'\ndef f(): return 1",
        "x\u00a0= 1\ndef f(): return 1",
    ],
    ids=lambda text: repr(text[:16]),
)
def test_a_file_that_is_not_python_says_where_and_what_it_seems_to_define(text):
    source = read_python("s.py", text.encode())
    assert needed(source, "f") == []
    submission = Submission("s", [source])
    assert "f" in submission.defined()
    assert submission.broken("f").startswith("s.py could not be read: ")
    assert submission.broken("other") == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\n\ndef f():\n    nonlocal a\n    return a", "no binding for nonlocal 'a' found in line 4"),
        ("a = 1\nb = 2\ndef f(a, a): return a", "duplicate argument 'a' in function definition in line 3"),
        ("a = 1\ndef f():\n    a = 2\n    global a", "name 'a' is assigned to before global declaration in line 4"),
        ("a = 1\ndef f(:\n    return a", "invalid syntax in line 2"),
    ],
)
def test_the_line_of_a_mistake_is_that_of_the_file(text, reason):
    """Also of one that Python's parser accepts, and that is found when the statement is looked at alone."""
    submission = Submission("s", [read_python("s.py", text.encode())])
    assert submission.broken("f") == f"s.py could not be read: {reason}"


@pytest.mark.parametrize("kind", ["py", "cell", "markdown"])
def test_a_long_run_of_empty_lines_takes_no_time(kind):
    empty = "\n" * 100_000
    if kind == "py":
        assert read_python("s.py", f"def f(:{empty}".encode()).broken
    else:
        cell = ("markdown", f"def f\n```{empty}") if kind == "markdown" else f"def f(:{empty}"
        assert not notebook(cell).pieces


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    (tmp_path / "s.py").write_text("x = 1\n" * 200_000)
    (tmp_path / "n.ipynb").write_bytes(notebook_bytes("x = 1\n" * 200_000))
    submission = read_submission("s", [tmp_path / "n.ipynb", tmp_path / "s.py"])
    assert submission.problems == [
        f"{name}: it has 1171 KB of code; more than 1024 are not read" for name in ("n.ipynb", "s.py")
    ]


def test_a_notebook_with_many_pictures_is_read(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_bytes(notebook_bytes("def f(): return 1", ("markdown", "A" * (3 * 2**20))))
    assert read_submission("n", [path], names=["f"]).defined() == {"f"}


def test_a_giant_file_is_not_read(tmp_path):
    path = tmp_path / "s.py"
    with path.open("wb") as file:
        file.truncate(2**33)
    submission = read_submission("s", [path])
    assert submission.problems == ["s.py: it has 8192 MB; more than 20 are not read"]
    assert submission.digest


def test_a_students_bad_escape_warns_nobody(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("x = '\\d'\nassert (1, 'always')\ny = 1 is 1\ndef f(): return 1")
    names = ["x", "y", "f"]
    assert read_submission("s", [path], names).defined() == set(names)  # a warning is an error in this suite


def test_nothing_is_run_when_a_file_is_read(tmp_path):
    canary = tmp_path / "canary"
    path = tmp_path / "s.py"
    path.write_text(f"open({str(canary)!r}, 'w')\ndef f(x=open({str(canary)!r}, 'w')): return 1")
    submission = read_submission("s", [path], names=["f"])
    submission.request({"f": "week"})
    assert submission.defined() == {"f"}
    assert not canary.exists()
