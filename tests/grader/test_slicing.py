"""What a definition needs is found, in an order in which it works, and nothing else is run."""

import pytest
from handed_in import answer, code, notebook, texts

from course_grade.submission.submissions import needed


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
    source = code("def f(): return 1\ndef f(): return 2\nhelper = 1\nclass f:\n    def __new__(cls): return 3")
    assert answer(source) == 3
    assert "return 1" not in texts(source)
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
        *("def f():\n    out = 1\n    return out", "def f(out=1):\n    return out", "f = lambda out=1: out"),
        *("def f(*out, **more):\n    return out, more", "def f():\n    def out(): return 1\n    return out()"),
        *("def f():\n    return [out for out in (1, 2)][0]", "def f():\n    return (lambda out: out)(1)"),
        *("def f():\n    for out in (1,): return out", "def f():\n    with open('x') as out: return out"),
        "def f():\n    import math as out\n    return out.floor(1.5)",
        "def f():\n    out = 1\n    def inner(): return out\n    return inner()",
        "class f:\n    out = 1\n    x = out",
    ],
)
def test_a_training_loop_is_left_alone_whose_variable_has_the_name_of_a_local_one(text):
    assert texts(code(f"for out in range(10**12): pass\n{text}\nfor out in range(10**12): pass")) == text


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
        ("y = [last := i for i in range(3)]\ndef f(): return last", 2),
        ("with open(__import__('os').devnull) as n: pass\ndef f(): return n.closed", True),
        ("x: int = 4\ndef f(): return x", 4),
        ("a = b = 4\ndef f(): return a", 4),
        ("x = 1; y = 2\ndef f(): return x + y", 3),
        ("def f(): return µ\nµ = 3", 3),
        ("from math import *\ndef f(): return floor(pi)", 3),
        ("import os.path\ndef f(): return os.path.basename('a/b')", "b"),
        ("import os.path as p\ndef f(): return p.basename('a/b')", "b"),
        ("try:\n    import nowhere as m\nexcept ImportError:\n    import math as m\ndef f(): return m.tau > 6", True),
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


WRAP = "def f(): return 1\ndef wrap(g): return lambda: g() + 1\n"
REGISTERED = """
import functools
@functools.singledispatch
def size(x): return 0
@size.register
def _(x: int): return x
@size.register(str)
def _(x): return len(x)
def f(): return size(7), size("four"), size(None)
"""
DECORATED = """
import functools
def deco(g):
    @functools.wraps(g)
    def w(): return g()
    return w
@deco
def f(): return 3
"""
CHANGED = "def f(): return getattr(f, 'changed', False)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{WRAP}f = wrap(f)", 2),
        (f"{WRAP}f = wrap(wrap(f))", 3),
        ("import math\ndef g(): return math.pi\nX = g()\ndef f(): return round(X)", 3),
        (DECORATED, 3),
        ("t = {}\nt['h'] = 1\nt['h'] = 3\ndef f(): return t['h']", 3),
        ("s = 1\ns += 4\ns = 3\ndef f(): return s", 3),
        (REGISTERED, (7, 4, 0)),  # what is registered with a helper belongs to it
        ("def f(): return 'old'\nfirst = f\ndef f(): return f'new, built on {first()}'", "new, built on old"),
        (f"{CHANGED}f.changed = True\n{CHANGED}", False),  # changes of an earlier definition are not made to the last
        (f"{CHANGED}f.changed = True\n", True),
    ],
)
def test_what_runs_while_the_file_is_read_finds_what_it_needs(text, expected):
    assert answer(code(text)) == expected


def test_what_is_called_for_its_effect_on_a_package_is_left_alone():
    source = code("import math\nmath.seed(1)\nmath.show().now()\ndef f(): return math.floor(1.5)")
    assert texts(source) == "import math\ndef f(): return math.floor(1.5)"


@pytest.mark.parametrize(
    "hiding",
    [
        *("D: int", "if __name__ == '__main__':\n    D = None", "x = [D for D in range(3)]", "sum(1 for D in (1, 2))"),
        *("print({0: 1 for D in 'ab'})", "print(lambda D: D)", "def other(D=4):\n    D = 5", "class Other:\n    D = 4"),
    ],
)
def test_what_defines_nothing_hides_no_definition(hiding):
    assert answer(code(f"D = 3\ndef f(): return D\n{hiding}")) == 3
    assert answer(code(f"def D(): return 1\n{hiding}"), "D") == 1


def test_an_import_of_the_packages_own_does_not_replace_the_students():
    mine, theirs = "def g(): return 'mine'", "from course_lib import g"
    for text in (f"{theirs}\n{mine}", f"{mine}\n{theirs}"):
        assert answer(code(text), "g") == answer(code(f"def f(): return g()\n{text}")) == "mine"
        assert "course_lib" not in texts(code(text), "g")


def test_an_import_is_no_definition():
    source = code("from course_lib import softmax\nimport torch as f")
    assert needed(source, "softmax") == needed(source, "f") == []


def test_statements_that_share_a_line_are_told_apart():
    source = code("x = 1 / 0; y = 2; z = 1 / 0; w = 3\ndef f(): return y, w")
    assert [piece.code for piece in needed(source, "f")] == ["y = 2", "w = 3", "def f(): return y, w"]


def test_a_future_import_comes_first():
    pieces = needed(notebook("import math", "from __future__ import annotations\ndef f(): return math.pi"), "f")
    assert pieces[0].code == "from __future__ import annotations"


def test_a_name_that_nobody_defines_is_left_to_the_process_that_runs_it():
    with pytest.raises(NameError):
        answer(code("def f(): return nobody"))


@pytest.mark.thorough
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


# Where a line stands


def test_a_piece_knows_its_file_and_line():
    source = code("# a comment\n\n@property\n# another\ndef f():\n    pass\n\nx = 1\n")
    assert [(p.file, p.line) for p in source.pieces] == [("week.py", 3), ("week.py", 8)]


def test_a_piece_of_a_notebook_knows_its_cell():
    source = notebook("import math", ("markdown", "# Title"), "%matplotlib inline\n\ndef f(): pass")
    assert [(p.file, p.line) for p in source.pieces if "f" in p.binds] == [("week.ipynb, cell 3", 3)]


def test_the_text_of_a_cell_is_kept_for_tracebacks():
    assert notebook("x = 1", "y = 2").cells == {"week.ipynb, cell 1": "x = 1", "week.ipynb, cell 2": "y = 2"}
