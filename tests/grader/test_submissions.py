"""Files that students hand in: whatever shape they are in, the code that counts is found, and nothing else is run."""

import __future__

import json
import os
import textwrap
from pathlib import Path

import pytest

from course_lib.grader._submissions import (
    Submission,
    needed,
    read_notebook,
    read_python,
    read_submission,
    read_submissions,
)


def code(text: str):
    return read_python("week.py", textwrap.dedent(text).encode())


def notebook_bytes(*cells) -> bytes:
    """Cells are code, or pairs of a type and a text."""
    pairs = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    listed = [{"cell_type": kind, "source": text, "metadata": {}} for kind, text in pairs]
    return json.dumps({"cells": listed, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}).encode()


def notebook(*cells):
    return read_notebook("week.ipynb", notebook_bytes(*cells))


def run(pieces) -> dict:
    """What is defined after the pieces were run in their order, without annotations, as a submission's process does."""
    module = {"__name__": "submission"}
    for piece in pieces:
        text = "\n" * (piece.line - 1) + piece.code
        exec(compile(text, piece.file, "exec", __future__.annotations.compiler_flag, dont_inherit=True), module)
    return module


def answer(source, name: str = "f"):
    """What the function of that name returns."""
    return run(needed(source, name))[name]()


def texts(source, name: str = "f") -> str:
    """Everything that is run for a definition."""
    return "\n".join(piece.code for piece in needed(source, name))


# What a definition needs


def test_a_definition_alone_needs_nothing_else():
    assert texts(code("x = 1 / 0\ndef f(): return 1\nprint('no')")) == "def f(): return 1"


def test_what_a_function_calls_comes_with_it_wherever_it_stands():
    source = code("""
        def f(): return helper() + SCALE
        SCALE = 2
        def helper(): return inner()
        inner = lambda: OFFSET
        OFFSET = 40
        unused = 1 / 0
    """)
    assert answer(source) == 42
    assert "unused" not in texts(source)


def test_the_last_definition_of_a_name_counts():
    source = code(
        "def f(): return 'first'\ndef f(): return 'second'\nhelper = 1\nclass f:\n    def __new__(cls): return 3"
    )
    assert answer(source) == 3
    assert "first" not in texts(source)


def test_the_last_definition_of_a_helper_counts():
    assert answer(code("def g(): return 'old'\ndef f(): return g()\ndef g(): return 'new'")) == "new"


def test_training_plots_and_checks_are_left_alone():
    source = notebook(
        "import matplotlib.pyplot as plt\nimport math",
        "def f():\n    return math.floor(math.pi)",
        "for epoch in range(10**12):\n    pass",
        "plt.plot([1, 2]); plt.show()",
        "check('f', f)\nprogress()",
        "assert f() == 4",
        "input('press a key')",
        "result = f()",
    )
    assert answer(source) == 3
    assert sorted(texts(source).split("\n")) == ["    return math.floor(math.pi)", "def f():", "import math"]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    out = 1\n    return out",
        "def f(out=1):\n    return out",
        "def f(*out, **more):\n    return out, more",
        "def f():\n    def out(): return 1\n    return out()",
        "def f():\n    return [out for out in (1, 2)][0]",
        "def f():\n    return (lambda out: out)(1)",
        "def f():\n    for out in (1,): return out",
        "def f():\n    with open('x') as out: return out",
        "def f():\n    import math as out\n    return out.floor(1.5)",
        "def f():\n    out = 1\n    def inner(): return out\n    return inner()",
        "class f:\n    out = 1\n    x = out",
        "f = lambda out=1: out",
    ],
)
def test_a_training_loop_is_left_alone_whose_variable_has_the_name_of_a_local_one(text):
    assert texts(code(f"for out in range(10**12): pass\n{text}\nfor out in range(10**12): pass")) == text


@pytest.mark.parametrize(
    "text",
    [
        "[0 for D in (1, 2)]",
        "print({0: 1 for D in (1, 2)})",
        "print(sum(1 for D in (1, 2)))",
        "print(lambda D: D)",
        "def other(D=4):\n    D = 5",
        "class Other:\n    D = 4",
    ],
)
def test_a_name_inside_of_something_else_does_not_hide_a_definition(text):
    assert answer(code(f"D = 3\ndef f(): return D\n{text}")) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SCALE = 3\ndef f(scale=SCALE): return scale", 3),
        ("def f(*, scale=SCALE): return scale\nSCALE = 3", 3),
        ("@twice\ndef f(): return 2\ndef twice(g): return lambda: 2 * g()", 4),
        ("class f(Base):\n    pass\nclass Base:\n    def __new__(cls): return 5", 5),
        ("class f:\n    size = SIZE\n    def __new__(cls): return cls.size\nSIZE = 7", 7),
        ("class f(metaclass=Meta): pass\nclass Meta(type):\n    def __call__(cls): return 8", 8),
        ("f = g\ndef g(): return 9", 9),
        ("import functools\nf = functools.partial(g, 1)\ndef g(x): return x", 1),
        ("def f():\n    def inner(x=LATE): return x\n    return inner()\nLATE = 6", 6),
        ("a, (b, *c) = 1, (2, 3)\ndef f(): return a, b, c", (1, 2, [3])),
        ("if (n := 3): pass\ndef f(): return n", 3),
        ("with open(__import__('os').devnull) as n: pass\ndef f(): return n.closed", True),
        ("x: int = 4\ndef f(): return x", 4),
        ("a = b = 4\ndef f(): return a", 4),
        ("x = 1; y = 2\ndef f(): return x + y", 3),
        ("def f(): return µ\nµ = 3", 3),
        ("from math import *\ndef f(): return floor(pi)", 3),
        ("import os.path\ndef f(): return os.path.basename('a/b')", "b"),
        ("import os.path as p\ndef f(): return p.basename('a/b')", "b"),
        (
            "try:\n    import no_such as m\nexcept ImportError:\n    import math as m\ndef f(): return m.tau > 6",
            True,
        ),
        ("def f(n=3): return n and g(n)\ndef g(n): return f(n - 1)", 0),
        ("async def g(): pass\ndef f(): return g.__name__", "g"),
        ("def f(x: Missing = 1) -> Missing: return x", 1),
    ],
)
def test_definitions_work_in_whatever_way_they_need_others(text, expected):
    assert answer(code(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scale = 1\nscale += 4\ndef f(): return scale", 5),
        ("table = {}\ntable['a'] = 3\ndef f(): return table['a']", 3),
        ("table = {}\nfor i in range(3):\n    table[i] = i\ndef f(): return table", {0: 0, 1: 1, 2: 2}),
        ("class A: pass\nA.size = 3\ndef f(): return A.size", 3),
        ("class A: pass\nsetattr(A, 'size', 3)\ndef f(): return A.size", 3),
        ("table = []\ntable.append(3)\ndef f(): return table", [3]),
        ("table = {}\nfor i in range(2):\n    table.update({i: i})\ndef f(): return table", {0: 0, 1: 1}),
        ("def f(): return A().go()\nclass A: pass\ndef go(self): return 5\nA.go = go", 5),
    ],
)
def test_changes_to_what_is_needed_are_made_too(text, expected):
    assert answer(code(text)) == expected


def test_what_is_called_for_its_effect_on_a_package_is_left_alone():
    source = code("import math\nmath.seed(1)\nmath.show().now()\ndef f(): return math.floor(1.5)")
    assert texts(source) == "import math\ndef f(): return math.floor(1.5)"


@pytest.mark.parametrize(
    "hiding",
    ["f: int", "if __name__ == '__main__':\n    f = None", "x = [f for f in range(3)]", "x = {f: 1 for f in 'ab'}"],
)
def test_what_defines_nothing_hides_no_definition(hiding):
    assert answer(code(f"def f(): return 1\n{hiding}")) == 1


def test_a_name_in_a_walrus_of_a_comprehension_is_defined():
    assert answer(code("y = [last := i for i in range(3)]\ndef f(): return last")) == 2


def test_two_files_of_one_name_stay_two(tmp_path):
    for folder, number in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "week.py").write_text(f"def g(): return {number}\ndef {folder}(): return g()")
    submission = read_submission("ada", sorted(tmp_path.rglob("*.py")))
    assert [source.name for source in submission.sources] == ["a/week.py", "b/week.py"]
    assert len(submission.request({"a": "", "b": ""})["files"]) == 2


def test_names_that_differ_in_bytes_that_are_no_text_stay_two(tmp_path):
    for name in (b"caf\xe8.py", b"caf\xe9.py"):
        with open(os.fsencode(tmp_path) + b"/" + name, "w") as file:
            file.write("def f(): return 1")
    (tmp_path / "eve.py").write_text("def f(): return 1")
    students = [s.student for s in read_submissions([tmp_path])]
    assert len(set(students)) == 3
    assert "eve" in students  # who shares no name keeps it


@pytest.mark.parametrize("wrap", ["f = wrap(f)", "f = wrap(wrap(f))"])
def test_a_function_may_be_wrapped_after_it_was_defined(wrap):
    source = code(f"def f(): return 1\ndef wrap(g): return lambda: g() + 1\n{wrap}")
    assert answer(source) == 1 + wrap.count("wrap(")


def test_an_import_of_the_packages_own_does_not_replace_the_students():
    for text in (
        "from course_lib import f\ndef f(): return 'mine'",
        "def f(): return 'mine'\nfrom course_lib import f",
    ):
        assert answer(code(text)) == "mine"
        assert "course_lib" not in texts(code(text))


def test_an_import_of_the_packages_own_does_not_replace_a_helper():
    assert answer(code("def g(): return 'mine'\ndef f(): return g()\nfrom course_lib import g")) == "mine"


def test_an_import_is_no_definition():
    source = code("from course_lib import softmax\nimport torch as f")
    assert needed(source, "softmax") == needed(source, "f") == []


def test_statements_that_share_a_line_are_told_apart():
    source = code("x = 1 / 0; y = 2; z = 1 / 0\ndef f(): return y")
    assert [piece.code for piece in needed(source, "f")] == ["y = 2", "def f(): return y"]


def test_a_future_import_comes_first():
    pieces = needed(notebook("import math", "from __future__ import annotations\ndef f(): return math.pi"), "f")
    assert pieces[0].code == "from __future__ import annotations"


def test_a_name_that_nobody_defines_is_left_to_the_process_that_runs_it():
    with pytest.raises(NameError):
        answer(code("def f(): return nobody"))


@pytest.mark.parametrize(
    "text",
    [
        "def f(): return x3000\n" + "\n".join(f"x{n + 1} = x{n}" for n in range(3000)) + "\nx0 = 1",
        "def f(): return g0()\n" + "\n".join(f"def g{n}(): return g{n + 1}()" for n in range(3000)),
        "\n".join("def f(): return f" for _ in range(20_000)),
        "\n".join(f"x{n} = 0" for n in range(20_000)) + "\ndef f(): return x5",
        "x = 0\n" + "x += 1\n" * 4000 + "def f(): return x",
    ],
    ids=["a chain of values", "a chain of calls", "many copies", "much else", "many changes"],
)
def test_long_files_are_read_within_seconds(text):
    assert 1 <= len(needed(code(text), "f")) <= 4002  # the suite's own time limit would tell if it took long


def test_more_statements_than_anybody_writes_are_refused_in_words(tmp_path):
    names = ", ".join(f"x{n}" for n in range(6000))
    path = tmp_path / "s.py"
    path.write_text("\n".join(f"x{n} = 0" for n in range(6000)) + f"\ndef f(): return [{names}]\ndef g(): return 1\n")
    submission = read_submission("s", [path])
    request = submission.request({"f": "week", "g": "week"})
    assert any("f: a definition that needs more than 5000 statements is not run" in p for p in submission.problems)
    assert [piece["names"] for piece in request["pieces"]] == [["g"]]


# Where a line stands


def test_a_piece_knows_its_file_and_line():
    source = code("# a comment\n\n@property\n# another\ndef f():\n    pass\n\nx = 1\n")
    assert [(p.file, p.line) for p in source.pieces] == [("week.py", 3), ("week.py", 8)]


def test_a_piece_of_a_notebook_knows_its_cell():
    source = notebook("import math", ("markdown", "# Title"), "%matplotlib inline\n\ndef f(): pass")
    assert [(p.file, p.line) for p in source.pieces if "f" in p.binds] == [("week.ipynb, cell 3", 3)]


def test_the_text_of_a_cell_is_kept_for_tracebacks():
    assert notebook("x = 1", "y = 2").cells == {"week.ipynb, cell 1": "x = 1", "week.ipynb, cell 2": "y = 2"}


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
    with pytest.raises(ValueError, match="it is not a notebook that can be read"):
        read_notebook("n.ipynb", raw)
    (tmp_path / "n.ipynb").write_bytes(raw)
    submission = read_submission("s", [tmp_path / "n.ipynb"])
    assert submission.problems == ["n.ipynb: it is not a notebook that can be read (damaged, or saved half-way?)"]


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
    assert read_submission("n", [path]).defined() == {"f"}


def test_a_giant_file_is_not_even_opened(tmp_path):
    path = tmp_path / "s.py"
    with path.open("wb") as file:
        file.truncate(2**33)
    submission = read_submission("s", [path])
    assert submission.problems == ["s.py has 8192 MB; more than 20 are not read"]
    assert submission.digest


def test_a_students_bad_escape_warns_nobody(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("x = '\\d'\nassert (1, 'always')\ny = 1 is 1\ndef f(): return 1")
    assert read_submission("s", [path]).defined() == {"x", "y", "f"}  # a warning is an error in this suite


def test_nothing_is_run_when_a_file_is_read(tmp_path):
    canary = tmp_path / "canary"
    path = tmp_path / "s.py"
    path.write_text(f"open({str(canary)!r}, 'w')\ndef f(x=open({str(canary)!r}, 'w')): return 1")
    submission = read_submission("s", [path])
    submission.request({"f": "week"})
    assert submission.defined() == {"f"}
    assert not canary.exists()


# Several files of one student


@pytest.fixture
def files(tmp_path):
    """Files of one student, by name."""

    def write(**texts) -> Submission:
        folder = tmp_path / "student"
        for name, text in texts.items():
            path = folder / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        (submission,) = read_submissions([folder], as_one=True)
        return submission

    return write


def test_the_file_of_the_chapter_counts_and_otherwise_the_last_by_name(files):
    submission = files(a_dot_py="def f(): 1", masking_dot_py="def f(): 2", z_dot_py="def f(): 3\ndef g(): 3")
    assert submission.find("f", "masking").name == "masking.py"
    assert submission.find("f", "transformer").name == "z.py"
    assert submission.find("g", "masking").name == "z.py"
    assert submission.find("nobody", "masking") is None


def test_the_chapters_notebook_counts_as_its_file(files):
    submission = files(masking_dot_ipynb=notebook_bytes("def f(): 1"), z_dot_py="def f(): 3")
    assert submission.find("f", "masking").name == "masking.ipynb"


def test_one_file_may_import_another(files):
    submission = files(week_dot_py="from helpers import g\ndef f(): return g()", helpers_dot_py="def g(): return 1")
    request = submission.request({"f": "week"})
    assert [piece["code"] for piece in request["pieces"]] == ["from helpers import g", "def f(): return g()"]
    assert request["siblings"]["helpers"] == "def g(): return 1"


def test_a_statement_that_two_exercises_need_is_sent_once(files):
    submission = files(week_dot_py="import math\ndef f(): return math.pi\ndef g(): return math.e")
    pieces = submission.request({"f": "week", "g": "week", "missing": "week"})["pieces"]
    assert sorted(piece["code"] for piece in pieces) == [
        "def f(): return math.pi",
        "def g(): return math.e",
        "import math",
    ]


def test_a_request_travels_as_json(files):
    submission = files(n_dot_ipynb=notebook_bytes("def f(): return 'é\\ud800'", "x = '\ud800'"))
    assert json.loads(json.dumps(submission.request({"f": "n"})))["pieces"][0]["names"] == ["f"]


def test_broken_files_do_not_disturb_the_others(files):
    submission = files(a_dot_ipynb=b"{", b_dot_py="def f(: pass", c_dot_py="def f(): return 1", d_dot_py=b"\xff\x00")
    assert answer(submission.find("f", "week")) == 1
    assert submission.problems == ["a.ipynb: it is not a notebook that can be read (damaged, or saved half-way?)"]


# Folders of a class


@pytest.fixture
def class_folder(tmp_path):
    folder = tmp_path / "class"

    def write(*names, text="def f(): return 1"):
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(notebook_bytes(text) if name.endswith(".ipynb") else text.encode())
        return folder

    return write


def students(*paths, **options) -> list[str]:
    return [submission.student for submission in read_submissions(paths, **options)]


def test_each_file_and_each_folder_is_a_student_in_order_of_names(class_folder):
    folder = class_folder("zoe.py", "adam.ipynb", "mia/week/deep/a.py", "mia/b.ipynb", "read me.txt", "data.csv")
    found = list(read_submissions([folder]))
    assert [s.student for s in found] == ["adam", "mia", "zoe"]
    assert [source.name for source in found[1].sources] == ["b.ipynb", "a.py"]


def test_a_file_alone_is_a_student(class_folder):
    assert students(class_folder("zoe.py") / "zoe.py") == ["zoe"]


def test_a_whole_folder_may_be_one_students(class_folder):
    folder = class_folder("a.py", "sub/b.py")
    (submission,) = read_submissions([folder], as_one=True)
    assert (submission.student, len(submission.sources)) == ("class", 2)


def test_the_name_of_a_student_does_not_depend_on_how_the_path_is_written(class_folder, monkeypatch):
    folder = class_folder("zoe/a.py")
    monkeypatch.chdir(folder)
    assert students(Path()) == ["zoe"]
    assert students(Path(), as_one=True) == ["class"]
    assert students(Path("../class/")) == ["zoe"]


def test_several_paths_are_one_class(class_folder):
    folder = class_folder("zoe.py", "adam.py", "group/mia.py")
    assert students(folder / "zoe.py", folder / "adam.py", folder / "group") == ["adam", "mia", "zoe"]


def test_a_student_with_an_empty_folder_is_told_so(class_folder):
    folder = class_folder("zoe.py", "mia/notes.txt")
    (folder / "nils").mkdir()
    told = {s.student: s.problems for s in read_submissions([folder])}
    assert told == {
        "zoe": [],
        "mia": ["no .py or .ipynb file was handed in"],
        "nils": ["no .py or .ipynb file was handed in"],
    }


def test_what_computers_leave_in_folders_is_no_submission(class_folder):
    folder = class_folder(
        "zoe/a.py",
        "zoe/.ipynb_checkpoints/a-checkpoint.ipynb",
        "zoe/__pycache__/a.py",
        "zoe/__MACOSX/._a.py",
        "zoe/._a.py",
        "._zoe.py",
        ".git/config",
        "__MACOSX/._zoe.py",
        "zoe/module.py/readme",
    )
    (submission,) = read_submissions([folder])
    assert [source.name for source in submission.sources] == ["a.py"]


def test_folders_that_tools_leave_are_no_student(class_folder):
    folder = class_folder("zoe.py", ".ipynb_checkpoints/zoe-checkpoint.ipynb", "__pycache__/x.py", ".venv/lib/m.py")
    assert students(folder) == ["zoe"]


def test_suffixes_in_capitals_are_read(class_folder):
    folder = class_folder("zoe.PY", "mia/A.PY")
    (folder / "nils.IPYNB").write_bytes(notebook_bytes("def f(): return 1"))
    found = list(read_submissions([folder]))
    assert [s.student for s in found] == ["mia", "nils", "zoe"]
    assert all(s.defined() == {"f"} for s in found)


def test_two_students_of_one_name_stay_two(class_folder):
    folder = class_folder("monday/zoe.py", "tuesday/zoe.py", "wednesday/zoe.ipynb", "wednesday/zoe/a.py")
    assert len(students(folder / "monday", folder / "tuesday")) == 2
    assert len(students(folder / "wednesday")) == 2
    assert len(students(folder / "monday", folder / "tuesday", folder / "wednesday")) == 4


def test_a_link_leads_to_nobody_elses_work(class_folder, tmp_path):
    folder = class_folder("zoe.py", "mia/a.py")
    (tmp_path / "secret.py").write_text("def f(): return 'secret'")
    os.symlink("zoe.py", folder / "mallory.py")
    os.symlink(folder / "mia", folder / "eve")
    os.symlink(tmp_path / "secret.py", folder / "mia" / "b.py")
    os.symlink(tmp_path, folder / "mia" / "up")
    found = list(read_submissions([folder]))
    assert [s.student for s in found] == ["mia", "zoe"]
    assert [source.name for source in found[0].sources] == ["a.py"]


def test_links_in_a_circle_end(class_folder):
    folder = class_folder("mia/a.py")
    os.symlink(folder, folder / "mia" / "again")
    assert students(folder) == ["mia"]


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere, which does not exist"):
        students(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["notes.txt", "sub.zip", ".hidden.py"])
def test_a_path_without_submissions_is_named(class_folder, name):
    folder = class_folder(name)
    for path in (folder, folder / name):
        with pytest.raises(FileNotFoundError, match=r"expected \.py or \.ipynb files"):
            students(path)


def test_names_of_files_that_are_no_text_or_move_the_cursor_are_made_readable(class_folder):
    folder = class_folder("zoe.py")
    (folder / "\x1b[2J\u202escreen.py").write_text("")
    try:
        (folder / os.fsdecode(b"caf\xe9.py")).write_text("")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    names = students(folder)
    assert len(names) == 3
    assert all(name.isprintable() for name in names)
    json.dumps(names).encode()


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(class_folder):
    folder = class_folder("zoe.py")
    (folder / "zoe.py").chmod(0)
    assert read_submission("zoe", [folder / "zoe.py"]).problems == ["zoe.py cannot be read: Permission denied"]


def test_a_file_that_vanishes_meanwhile_is_named(tmp_path):
    assert read_submission("zoe", [tmp_path / "zoe.py"]).problems == [
        "zoe.py cannot be read: No such file or directory"
    ]


def test_the_digest_follows_names_and_bytes(tmp_path):
    def digest(**texts):
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return read_submission("s", sorted(tmp_path.iterdir())).digest

    different = [{"a": "x"}, {"b": "x"}, {"a": "y"}, {"a": "x", "b": ""}, {"a": "", "b": "x"}, {"a": "xb", "b": ""}]
    assert len({digest(**files) for files in different}) == len(different)
    assert digest(a="x") == digest(a="x")


def test_the_newest_file_tells_when_it_was_handed_in(tmp_path):
    for name, when in (("a.py", 1000), ("b.py", 3000), ("c.py", 2000)):
        (tmp_path / name).write_text("x = 1")
        os.utime(tmp_path / name, (when, when))
    assert read_submission("s", sorted(tmp_path.glob("*.py"))).modified == 3000


@pytest.mark.parametrize(
    "text",
    [
        "import math\ndef g(): return math.pi\nX = g()\ndef f(): return round(X)",
        "import functools\ndef deco(g):\n    @functools.wraps(g)\n    def w(): return g()\n    return w\n"
        "@deco\ndef f(): return 3",
        "t = {}\nt['h'] = 1\nt['h'] = 3\ndef f(): return t['h']",
        "s = 1\ns += 4\ns = 3\ndef f(): return s",
    ],
)
def test_what_runs_while_the_file_is_read_finds_what_it_needs(text):
    namespace: dict = {}
    for piece in needed(code(text), "f"):
        exec(piece.code, namespace)
    assert namespace["f"]() == 3
