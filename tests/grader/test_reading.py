"""Files and notebooks in whatever shape they are: the code that counts is found, and nothing is run."""

import json

import pytest
from handed_in import answer, notebook, notebook_bytes

from course_grade.submission.submissions import Submission, needed, read_notebook, read_python, read_submission

# Notebooks as they come


@pytest.mark.parametrize(
    "text",
    [
        *("%matplotlib inline\ndef f(): return 1", "def f(): return 1\n%timeit f()"),
        "def f(): return 1\n%time y = f()",
        *("!pip install torch\ndef f(): return 1", "if True:\n    !pip install torch\ndef f(): return 1"),
        "    \n%load_ext autoreload\n%autoreload 2\ndef f(): return 1",
        *("files = !ls\nhere = %pwd\ndef f(): return 1", "a, b = %who\ndef f(): return 1"),
        *("def f(): return 1\nf?", "def f(): return 1\nf??\n?f\n??f\nmath.pi?"),
        "!pip install \\\n  torch\ndef f(): return 1",
        "%pip install \\\n  torch \\\n  x\nfiles = !ls \\\n  -l\ndef f(): return 1",
        "%time\ndef f():\n    '''Says\n    % of all, # and\n    !not more\n    '''\n    return 1",
        *("%%time\ndef f(): return 1", "%%time -q\n%matplotlib inline\ndef f(): return 1"),
        *("%%capture out\ndef f(): return 1", "\n\n%%timeit -n 1\ndef f(): return 1"),
        *("def f(): return 1\nawait something", "def f(): return 1;", "def f():\n\treturn 1"),
        *("def f():\r\n    return 1\r\n", "def f():\r    return 1\r", "def f():\n    return 1\n\x0c\nx = 2"),
    ],
)
def test_what_only_ipython_understands_does_no_harm(text):
    assert answer(notebook(text)) == 1


@pytest.mark.parametrize(
    ("text", "returned"),
    [
        ("files = !ls\ndef f(): return files", None),
        ('%time\ntext = """\n% one\n!two\n"""\ndef f(): return text', "\n% one\n!two\n"),
        ("%time\nx = '''\na''' + \\\n'b'\ndef f(): return x", "\nab"),
        ("def f():\n    return (7\n        % 4\n        != 2)", True),
        ("def f():\n    return '''\n%d\n!x\n'''", "\n%d\n!x\n"),
    ],
)
def test_what_looks_like_a_magic_in_ordinary_python_is_python(text, returned):
    assert answer(notebook(text)) == returned


def test_lines_keep_their_numbers_around_magics():
    (piece,) = needed(notebook("%%time\n%matplotlib inline\n!ls\ndef f(): return 1"), "f")
    assert piece.line == 4


def test_a_cell_in_another_language_is_left_out():
    for magic in ("%%bash", "%%html", "%%writefile f.py", "%%javascript", "%%latex", "%%script python"):
        source = notebook("def f(): return 1", f"{magic}\ndef f(): return 2")
        assert answer(source) == 1
        assert not source.broken


def test_cells_that_were_moved_work_in_any_order():
    cells = ["import math", "BASE = math.floor(2.5)", "class A:\n    x = BASE", "def f(): return A.x"]
    assert {answer(notebook(*cells[n:], *cells[:n])) for n in range(4)} == {2}
    assert answer(notebook(*reversed(cells))) == 2


def test_cells_that_were_copied_count_once():
    cell = "import math\ndef f(): return math.floor(2.5)"
    assert answer(notebook(cell, "x = f()", cell, cell)) == 2
    assert len(needed(notebook(cell, cell), "f")) == 2


def test_a_broken_cell_costs_only_itself():
    source = notebook("def f(): return 1", "def g(:\n    return 2", "def h(): return 3", "def k(): return deleted()")
    assert (answer(source), answer(source, "h")) == (1, 3)
    ((place, why, names),) = source.broken
    assert (place, names) == ("week.ipynb, cell 2", {"g"})
    assert "line 1" in why


def test_a_cell_that_has_become_text_by_mistake_counts():
    for kind in ("markdown", "raw"):
        assert answer(notebook("x = 1", (kind, "def f():\n    return 1"))) == 1
    text = "import math\ndef f(): return math.floor(2.5)\ndef g(): return 1"
    source = notebook("import math", ("markdown", text), "def g(): return 2")
    assert answer(source) == answer(source, "g") == 2
    for fence in ("```python", "```py", "```"):
        text = f"Here is mine:\n\n{fence}\nimport math\n\ndef f():\n    return math.floor(2.5)\n```\n\nDone."
        assert answer(notebook(("markdown", text))) == 2


def test_a_text_does_not_count_where_code_defines_the_name_or_it_is_prose():
    assert answer(notebook("def f(): return 'code'", ("raw", "def f(): return 'text'"))) == "code"
    assert answer(notebook(("raw", "def f(): return 'text'"), "def f(): return 'code'")) == "code"
    assert not notebook(("markdown", "Write\n\ndef your own function, and\nclass it as done.")).pieces


F = "def f(): return 1"
ODD = [{"cell_type": "heading", "source": "T"}, {"source": "def g(): pass"}, {"cell_type": "code"}]
SHAPES = {
    "source as lines": {"cells": [{"cell_type": "code", "source": ["def f():\n", "    return 1"]}]},
    "version 3": {"worksheets": [{"cells": [{"cell_type": "code", "input": ["def f():\n", "    return 1"]}]}]},
    "cells of odd types": {"cells": [*ODD, {"cell_type": "code", "source": F}]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_notebooks_of_all_versions_are_read(shape):
    assert answer(read_notebook("n.ipynb", json.dumps(SHAPES[shape]).encode())) == 1


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"def f(): return 1", b"[]", b"null", b"3", b"{}", b"[" * 100_000, b"\xff\xfe{\x00"),
        *(b'{"cells": null}', b'{"cells": [null]}', b'{"cells": [3]}', b'{"cells": {"a": 1}}', b'{"worksheets": []}'),
        b'{"cells": [{"cell_type": "code", "source": [1]}]}',
        notebook_bytes(F)[:-20],
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


def test_no_cell_type_stops_the_reading():
    for cell_type in (["code"], {"a": 1}, 3, None):
        cells = json.dumps({"cells": [{"cell_type": cell_type, "source": "x"}]})
        assert read_notebook("n.ipynb", cells.encode()).pieces == []


def test_half_a_character_in_a_notebook_costs_its_cell_only():
    source = notebook(F, "x = '\ud800'\ndef g(): pass")
    assert answer(source) == 1
    assert source.broken[0][0] == "week.ipynb, cell 2"


# Python files as they come


@pytest.mark.parametrize(
    "text",
    [
        *("def f():\nreturn 1", "def f(: return 1", "def f():\n    return 1\n\tx = 2", "print 'x'\ndef f(): return 1"),
        *("<<<<<<< HEAD\ndef f(): return 1\n=======", "x = '\x00'\ndef f(): return 1", "x\u00a0= 1\ndef f(): return 1"),
        "x = " + "(" * 400 + ")" * 400 + "\ndef f(): return 1",
        "x = " + "-" * 100_000 + "1\ndef f(): return 1",
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


def test_a_long_run_of_empty_lines_takes_no_time():
    empty = "\n" * 100_000
    assert read_python("s.py", f"def f(:{empty}".encode()).broken
    assert not notebook(("markdown", f"def f\n```{empty}"), f"def f(:{empty}").pieces


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    (tmp_path / "s.py").write_text("x = 1\n" * 200_000)
    (tmp_path / "n.ipynb").write_bytes(notebook_bytes("x = 1\n" * 200_000))
    with (tmp_path / "t.py").open("wb") as file:
        file.truncate(2**33)
    submission = read_submission("s", [tmp_path / name for name in ("n.ipynb", "s.py", "t.py")])
    assert submission.problems == [
        "n.ipynb: it has 1171 KB of code; more than 1024 are not read",
        "s.py: it has 1171 KB of code; more than 1024 are not read",
        "t.py: it has 8192 MB; more than 20 are not read",
    ]
    assert submission.digest


def test_a_text_with_many_pictures_costs_only_itself():
    assert answer(notebook(F, ("markdown", "def g(): return 2\n" + "A" * (3 * 2**20)))) == 1


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
