"""What the line of a solution in which an exception was raised reveals."""

from __future__ import annotations

import ast
from functools import cached_property

__all__ = ["CodeLine"]

REDUCTIONS = {"sum", "mean", "max", "amax", "min", "amin", "prod", "norm", "logsumexp", "var", "std"}
TURNED = {"transpose", "permute", "swapaxes", "t"}


class CodeLine:
    """The operators and calls of a line; none where the line is only a part of a statement.

    Args:
        code: the line as written in the solution, without its indent.
    """

    def __init__(self, code: str):
        self.code = code

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of its syntax tree."""
        if "\\" in self.code:  # a line that is continued, or a string whose escapes Python would warn about
            return []
        # The head of a loop or condition, or a line with closing brackets of an earlier one, is not a statement.
        for text in (self.code, f"{self.code}\n    pass", self.code.removesuffix(","), self.code.rstrip(":)],")):
            try:
                return list(ast.walk(ast.parse(text)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return []

    @cached_property
    def calls(self) -> dict[str, ast.Call]:
        """Calls by the last part of the function's name."""
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Call):
                found[_name(node)] = node
        return found

    @cached_property
    def layers(self) -> list[str]:
        """Sub-modules that the line calls, `self.q_proj(…)`."""
        return [
            node.func.attr
            for node in self.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "self"
        ]

    def has_operator(self, kind: type[ast.operator]) -> bool:
        """Whether the line contains a binary operator."""
        return any(isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, kind) for n in self.nodes)

    @property
    def has_matrix_product(self) -> bool:
        """Whether the line contains `@` or a function for a matrix product."""
        return self.has_operator(ast.MatMult) or bool({"matmul", "mm", "bmm", "einsum", "dot"} & self.calls.keys())

    @property
    def inserts_an_axis(self) -> str:
        """How the line inserts an axis; "" if it does not."""
        if {"unsqueeze", "unsqueeze_"} & self.calls.keys():
            return "unsqueeze"
        for node in self.nodes:
            if isinstance(node, ast.Subscript):
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                if any(isinstance(part, ast.Constant) and part.value is None for part in parts):
                    return "None"
        return ""

    @property
    def drops_an_axis(self) -> str:
        """The name of a reduction along some axis without keepdim that an operator combines with something else; "" if
        there is none, or if an operator inside it may have failed."""
        operators = [node for node in self.nodes if isinstance(node, ast.BinOp | ast.AugAssign)]
        for call in (inner for operator in operators for inner in ast.walk(operator) if isinstance(inner, ast.Call)):
            if _drops_an_axis(call) and not any(isinstance(node, ast.BinOp) for node in ast.walk(call)):
                return _name(call)
        return ""

    @property
    def multiplies_a_turned_tensor(self) -> bool:
        """Whether `*` is applied to a transposed tensor, as if it were a matrix product."""
        return any(
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and (_turned(node.left) or _turned(node.right))
            for node in self.nodes
        )

    @property
    def reads_a_shape(self) -> bool:
        """Whether the line unpacks or reads a tensor's shape."""
        return "size" in self.calls or any(isinstance(n, ast.Attribute) and n.attr == "shape" for n in self.nodes)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _drops_an_axis(call: ast.Call) -> bool:
    if _name(call) not in REDUCTIONS:
        return False
    options = {keyword.arg for keyword in call.keywords}
    is_method = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") not in {"torch", "np"}
    args = call.args if is_method else []  # the first argument of a function is the tensor
    # A second positional number after the axis is keepdim, too.
    return bool(args or options & {"dim", "axis"}) and len(args) < 2 and not options & {"keepdim", "keepdims"}


def _turned(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"T", "mT", "H", "mH"}
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TURNED
