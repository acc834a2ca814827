"""Keep each page's notebook in step with its source, and render the notebooks for publishing.

    python -m tools.notebooks                 regenerate what has changed, in parallel
    python -m tools.notebooks --force [PAGE]  execute again, for instance after a change of the package
    python -m tools.notebooks --check         say what is out of step and change nothing
    python -m tools.notebooks --publish DIR   write the notebooks with the publisher's links into DIR

Committed notebooks know no publisher, so that they are the same in every fork.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from course_kit._files import write_whole
from tools.page_to_notebook import to_notebook
from tools.pages import Page, notebook_pages
from tools.publisher import ROOT, Publisher, find_publisher

TIMEOUT = 600  # seconds for one cell


class OutOfStepError(RuntimeError):
    """A page's notebook is missing, or has other code than the page."""


def in_step(page: Page) -> str:
    """Why the notebook does not belong to the source: "missing", "code", "text", or "" where it does."""
    if not page.notebook.exists():
        return "missing"
    committed = nbformat.read(page.notebook, as_version=4)
    fresh = to_notebook(page, publisher=None)
    if _code(committed) != _code(fresh):
        return "code"
    return "" if _without_outputs(committed) == _without_outputs(fresh) else "text"


def regenerate(page: Page, *, execute: bool) -> nbformat.NotebookNode:
    """Write the page's notebook: executed, or with the outputs of the one that is there."""
    notebook = to_notebook(page, publisher=None)
    if execute:
        execute_notebook(notebook, page.name)
    else:
        copy_outputs(nbformat.read(page.notebook, as_version=4), notebook)
    write_notebook(notebook, page.notebook)
    return notebook


def execute_notebook(notebook: nbformat.NotebookNode, name: str, kernel_name: str = "python3") -> None:
    """Run all cells in an empty folder and keep their outputs.

    Raises:
        RuntimeError: a cell raised, or wrote to standard error; a page shows no warnings.
    """
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            kernel_name=kernel_name,
            resources={"metadata": {"path": folder}},
            record_timing=False,
            coalesce_streams=True,  # how often the kernel flushes is no part of the page
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise RuntimeError(f"{name}: a cell failed\n{error}") from None
    notebook.metadata["language_info"] = {"name": "python"}  # the exact Python version is no part of the page
    for cell in code_cells(notebook):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
        for output in cell.outputs:
            if alt and "image/png" in output.get("data", {}):  # the book reads the cell's, notebooks the output's
                output.metadata["image/png"] = {**output.metadata.get("image/png", {}), "alt": alt.strip()}
            if output.get("name") == "stderr":
                raise RuntimeError(f"{name}: a cell wrote to standard error\n{cell.source}\n---\n{output.text}")


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells that run, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def copy_outputs(source: nbformat.NotebookNode, target: nbformat.NotebookNode) -> None:
    """Give the code cells of `target` the outputs of the same cells of `source`."""
    for old, new in zip(code_cells(source), code_cells(target), strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write all of it or nothing."""
    nbformat.validate(notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, nbformat.writes(notebook).rstrip("\n") + "\n")


def render(page: Page, publisher: Publisher | None) -> nbformat.NotebookNode:
    """The committed notebook as this publisher gives it away: its links, its installation, the outputs as they are.

    Raises:
        OutOfStepError: there is no notebook, or the page's code is no longer that of the notebook.
    """
    committed = nbformat.read(page.notebook, as_version=4) if page.notebook.exists() else None
    notebook = to_notebook(page, publisher)
    # The first code cell installs; it is the publisher's.
    if committed is None or _code(committed)[1:] != _code(notebook)[1:]:
        raise OutOfStepError(f"{page.name}: its notebook is missing or has other code; run `make notebooks` first")
    copy_outputs(committed, notebook)
    for cell in notebook.cells if publisher else ():
        cell.metadata["id"] = cell.id  # Colab takes its anchors from there
    return notebook


def publish(folder: Path) -> None:
    """Write every notebook with the publisher's links and pinned installation, outputs included."""
    publisher = find_publisher()
    if publisher is None:
        sys.exit(
            "No publisher is known: expected GITHUB_REPOSITORY, a GitHub remote named origin, or repository.url in "
            "_config.yml, and found none. Notebooks are published from a repository only."
        )
    for page in notebook_pages():
        write_notebook(render(page, publisher), folder / f"{page.name}.ipynb")
        print(f"{page.name}: written for {publisher.repository_url}")


def _work(name: str, reason: str) -> float:
    # One thread a page, since pages run side by side: more threads than cores would only wait for each other.
    os.environ["OMP_NUM_THREADS"] = "1"
    start = time.monotonic()
    regenerate(Page(name), execute=reason != "text")
    return time.monotonic() - start


def _code(notebook: nbformat.NotebookNode) -> list:
    return [(cell.source, cell.metadata) for cell in code_cells(notebook)]


def _without_outputs(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    stripped = copy.deepcopy(notebook)
    for cell in code_cells(stripped):
        cell.outputs, cell.execution_count = [], None
    return stripped


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="names of pages, such as attention; all if none is given")
    parser.add_argument("--force", action="store_true", help="execute even what has not changed")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a notebook is out of step")
    parser.add_argument("--publish", type=Path, metavar="DIR", help="write notebooks for publishing into DIR")
    options = parser.parse_args()
    if options.publish:
        return publish(options.publish)
    pages = notebook_pages(ROOT)
    known = {Path(page.name).name: page for page in pages}
    if unknown := set(options.pages) - set(known):
        parser.error(f"no page with code is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = [page for short, page in known.items() if not options.pages or short in options.pages]
    reasons = {page.name: "code" if options.force else in_step(page) for page in chosen}
    stale = {name: reason for name, reason in reasons.items() if reason}
    for name in reasons.keys() - stale.keys():
        print(f"{name}: in step")
    if options.check:
        for name, reason in stale.items():
            print(f"{name}: out of step ({reason}); run `make notebooks`")
        sys.exit(bool(stale))
    failures = []
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        futures = {pool.submit(_work, name, reason): name for name, reason in stale.items()}
        for name, reason in stale.items():
            print(f"{name}: {'refreshing its text' if reason == 'text' else 'executing'} …", flush=True)
        for future in as_completed(futures):
            try:
                print(f"{futures[future]}: done in {future.result():.0f} s", flush=True)
            except Exception as error:
                failures.append(futures[future])
                print(f"{futures[future]}: FAILED, its notebook is as it was\n{error}", flush=True)
    if failures:
        sys.exit(f"Not regenerated: {', '.join(failures)}")


if __name__ == "__main__":
    main()
