"""Mutation testing of the exercises: change the reference in one place, and see whether its cases notice.

python -m tools.mutants [NAME…]     a line an exercise: mutants, killed, survivors
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import inspect
import io
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import Exercise, all_exercises, find

SEEDS = (0, 1)
OPERATORS = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


@dataclass(frozen=True)
class Mutant:
    """A changed reference.

    Args:
        change: "line: before → after", which identifies it.
        source: of the whole function or class.
    """

    change: str
    source: str


def mutants_of(exercise: Exercise) -> Iterator[Mutant]:
    """All automatic mutants of the exercise's reference, without changes to error messages and annotations."""
    tree = ast.parse(textwrap.dedent(exercise.solution))
    original = ast.unparse(tree)
    seen = {original}
    for path, replacement in _changes(tree):
        changed = copy.deepcopy(tree)
        _put(changed, path, replacement)
        try:
            source = ast.unparse(ast.fix_missing_locations(changed))
        except (ValueError, TypeError):
            continue
        if source not in seen:
            seen.add(source)
            yield Mutant(_difference(original, source), source)


def _difference(before: str, after: str) -> str:
    old, new = before.split("\n"), after.split("\n")
    first = next(i for i, (a, b) in enumerate(zip([*old, ""], [*new, ""], strict=False)) if a != b)
    if len(old) != len(new):
        return (
            f"without: {old[first].strip()}" if len(new) < len(old) else f"{old[first].strip()} → {new[first].strip()}"
        )
    return f"{old[first].strip()} → {new[first].strip()}"


Path = tuple  # of (field, index or None)


def _changes(tree: ast.AST) -> Iterator[tuple[Path, ast.AST | None]]:
    stack: list[tuple[ast.AST, Path]] = [(tree, ())]
    while stack:
        node, path = stack.pop()
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "bases"}:
                continue
            children = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, child in children:
                if not isinstance(child, ast.AST) or isinstance(child, ast.Raise):
                    continue
                here = (*path, (name, index))
                if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                    continue  # a docstring
                yield from ((here, new) for new in _variants(child))
                if name == "body" and isinstance(child, ast.Assign | ast.AugAssign | ast.Expr | ast.If):
                    yield here, ast.Pass()  # a dropped line
                stack.append((child, here))


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        yield from map(ast.Constant, _constants(node.value))
    elif isinstance(node, ast.BinOp):
        for operator in OPERATORS.get(type(node.op), ()):
            yield ast.BinOp(node.left, operator(), node.right)
        if isinstance(node.op, ast.Sub | ast.Div | ast.Pow | ast.FloorDiv):
            yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            for value in _constants(-node.operand.value):
                yield ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
        else:
            yield node.operand
    elif isinstance(node, ast.Compare):
        for operator in OPERATORS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [operator(), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(OPERATORS[type(node.op)][0](), node.values)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Slice):
        for name in ("lower", "upper", "step"):
            if getattr(node, name) is not None:
                yield ast.Slice(**{n: None if n == name else getattr(node, n) for n in ("lower", "upper", "step")})


def _constants(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        yield from (value + 1.0, value * 2.0 if value else 1.0, -value if value else -1.0)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    for index in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, node.keywords[:index] + node.keywords[index + 1 :])
    if len(node.args) >= 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
        yield ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    module = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    if isinstance(node.func, ast.Attribute) and not (
        module and node.func.value.id in {"torch", "nn", "F", "math", "self"}
    ):
        if not (isinstance(node.func.value, ast.Call) and getattr(node.func.value.func, "id", "") == "super"):
            yield node.func.value  # x.f(…) → x
    elif len(node.args) == 1 and not node.keywords:
        yield node.args[0]  # f(x) → x


def _put(tree: ast.AST, path: Path, replacement: ast.AST | None) -> None:
    node = tree
    for name, index in path[:-1]:
        value = getattr(node, name)
        node = value if index is None else value[index]
    name, index = path[-1]
    if index is None:
        setattr(node, name, replacement)
    else:
        getattr(node, name)[index] = replacement


def survives(exercise: Exercise, mutant: Mutant) -> bool:
    """Whether the mutant passes every case."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            solution = _loaded(exercise, mutant.source)
            for seed in SEEDS:
                sheet = sheet_of(exercise, seed)
                if judge(exercise, sheet.trials, sheet.run(solution), allow_twins=True).status != "passed":
                    return False
    except Exception:
        return False  # it cannot even be defined
    return True


def _loaded(exercise: Exercise, source: str) -> Callable:
    reference = inspect.unwrap(exercise.reference)
    module = sys.modules[reference.__module__]
    namespace = dict(vars(module))
    exec(compile(source, "<mutant>", "exec", dont_inherit=True), namespace)
    return namespace[reference.__name__]


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for exercise in [find(name) for name in options.names] or all_exercises().values():
        every = list(mutants_of(exercise))
        alive = [mutant for mutant in every if survives(exercise, mutant)]
        print(f"{exercise.name:<30} {len(every):>3} mutants, {len(every) - len(alive):>3} killed", flush=True)
        for mutant in alive:
            print(f"    survives: {mutant.change}")


if __name__ == "__main__":
    main()
