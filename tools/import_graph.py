"""Draw which rooms of the packages import which, from the top layer to the bottom.

    python -m tools.import_graph            each package, and the checker
    python -m tools.import_graph --dot      the same for Graphviz

The layers are those of the contracts in pyproject.toml, which `tests/test_imports.py` holds.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict

import grimp
import tomllib

from tools.publisher import ROOT


def layers(container: str) -> list[list[str]]:
    """The modules of a container, a list for each layer of its contract, top first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract.get("containers") == [container])
    return [[f"{container}.{name}" for name in re.findall(r"\w+", layer)] for layer in contract["layers"]]


def arrows(graph: grimp.ImportGraph, modules: list[str]) -> dict[str, list[str]]:
    """For each module or package, those of the others that something in it imports, in the order of `modules`."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in graph.modules:
        importer = next((m for m in modules if f"{name}.".startswith(f"{m}.")), None)
        for imported in graph.find_modules_directly_imported_by(name) if importer else ():
            target = next((m for m in modules if f"{imported}.".startswith(f"{m}.")), None)
            if target not in (None, importer):
                found[importer].add(target)
    return {module: [m for m in modules if m in found[module]] for module in modules}


def upward(levels: list[list[str]], imports: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Arrows that do not run down: to a layer above, or to another module of the same layer."""
    level = {module: number for number, row in enumerate(levels) for module in row}
    return [(one, other) for one, others in imports.items() for other in others if level[other] <= level[one]]


def main() -> None:
    """Print the graphs."""
    parser = argparse.ArgumentParser(description="Draw which rooms of the package import which.")
    parser.add_argument("--dot", action="store_true", help="for Graphviz")
    dot = parser.parse_args().dot
    graph = grimp.build_graph("course_lib", "course_kit", "course_grade", cache_dir=None)
    for container in ("course_lib", "course_kit", "course_kit.checker", "course_grade"):
        levels = layers(container)
        imports = arrows(graph, [module for row in levels for module in row])
        short = {module: module.removeprefix(f"{container}.") for module in imports}
        if dot:
            edges = [f'  "{short[a]}" -> "{short[b]}";' for a, others in imports.items() for b in others]
            rows = [f"  {{rank=same; {'; '.join(chr(34) + short[m] + chr(34) for m in row)}}}" for row in levels]
            print("\n".join([f'digraph "{container}" {{', *rows, *edges, "}"]))
            continue
        print(container)
        for row in levels:
            for module in row:
                print(f"  {short[module]:20} → {', '.join(short[other] for other in imports[module]) or '–'}")
            print()
        wrong = upward(levels, imports)
        print(f"  {sum(map(len, imports.values()))} arrows, {len(wrong)} that do not run down {wrong or ''}\n")


if __name__ == "__main__":
    main()
