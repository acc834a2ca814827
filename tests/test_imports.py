"""Imports of the package run one way, and a graph shows it."""

import grimp
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tools.import_graph import arrows, layers, upward
from tools.publisher import ROOT


def test_imports_keep_the_contracts_of_pyproject():
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None) == EXIT_STATUS_SUCCESS


def test_the_graph_names_an_arrow_that_runs_up():
    graph = grimp.build_graph("course_kit", cache_dir=None)
    levels = layers("course_kit")
    modules = [module for row in levels for module in row]
    assert upward(levels, arrows(graph, modules)) == []
    graph.add_import(importer="course_kit.viz.style", imported="course_kit.translator.recipe")
    assert upward(levels, arrows(graph, modules)) == [("course_kit.viz", "course_kit.translator")]
