"""Build the book: put the notebooks' verified outputs into the cache, run Jupyter Book, check that every page is there,
and add the translator's weights.

python -m tools.build_book [--output DIR] [--quiet]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

from tools import export_translator
from tools.notebooks import code_cells
from tools.pages import Page, all_pages, notebook_pages
from tools.publisher import ROOT, find_publisher

BUILD = ROOT / "_build"


def prime_cache(pages: list[Page], folder: Path) -> list[str]:
    """Give Jupyter Book the outputs of the committed notebooks; returns the pages that it will have to execute.

    A page whose code differs from its notebook's is left out: its outputs would not be those of its code.
    """
    cache = get_cache(folder)
    stale = []
    for page in pages:
        as_sphinx_reads_it = read_myst_markdown_notebook(page.text, MdParserConfig(), path=page.source)
        if not _fill(as_sphinx_reads_it, page):
            stale.append(page.name)
            continue
        cache.cache_notebook_bundle(
            CacheBundleIn(as_sphinx_reads_it, uri=str(page.source)), check_validity=False, overwrite=True
        )
    return stale


def _fill(notebook: nbformat.NotebookNode, page: Page) -> bool:
    if not page.notebook.exists():
        return False
    executed = code_cells(nbformat.read(page.notebook, as_version=4))[1:]  # without the cell that installs
    cells = code_cells(notebook)
    if [cell.source for cell in cells] != [cell.source for cell in executed]:
        return False
    for number, (cell, done) in enumerate(zip(cells, executed, strict=True), 1):
        cell.outputs, cell.execution_count = done.outputs, number
    return True


def build(output: Path = BUILD, *, quiet: bool = False) -> Path:
    """Build into `output`/html with warnings as errors, and return that folder.

    Raises:
        ValueError: `output` has another name than _build.
        RuntimeError: the build failed, or a page of the table of contents was not written.
    """
    if output.name != "_build":
        raise ValueError(f"the folder must be called _build, as Jupyter Book calls it, got {output}")
    output.mkdir(parents=True, exist_ok=True)
    stale = prime_cache(notebook_pages(), output / ".jupyter_cache")
    for name in stale:
        print(f"{name}: its code differs from its notebook's, so it is executed now (then run `make notebooks`)")
    command = [_jupyter_book(), "build", str(ROOT), "--path-output", str(output.parent)]
    command += ["-W", "-n", "--keep-going", *(["-q"] if quiet else [])]
    stamp, look = output / ".look", _fingerprint_of_look()
    if not stamp.exists() or stamp.read_text() != look:
        command.append("--all")  # Sphinx copies style sheets and templates only along with a page that has changed
    stamp.unlink(missing_ok=True)
    done = subprocess.run(command, cwd=ROOT, env=_environment(output), check=False)
    html = output / "html"
    missing = [page.name for page in all_pages() if not (html / f"{page.name}.html").exists()]
    if done.returncode or missing:
        raise RuntimeError(
            f"The book was not built: Jupyter Book ended with status {done.returncode}"
            + (f", pages not written: {', '.join(missing)}" if missing else "; the warnings above are errors")
        )
    export_translator.write(html / "_static/translator")
    stamp.write_text(look)
    return html


def _fingerprint_of_look() -> str:
    """Changes with everything that the pages' look is made of, and with who publishes them."""
    digest = hashlib.sha256(repr(find_publisher()).encode())
    folders = ("book/_static", "book/_templates", "tools")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    for path in (ROOT / "_config.yml", *files):
        if "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def check_links() -> int:
    """Ask every other site that the book links to; returns Sphinx's status, and prints what is broken."""
    output = BUILD / "linkcheck"
    prime_cache(notebook_pages(), output / "_build/.jupyter_cache")
    command = [_jupyter_book(), "build", str(ROOT), "--path-output", str(output), "--builder", "linkcheck"]
    return subprocess.run(command, cwd=ROOT, env=_environment(output / "_build"), check=False).returncode


def _jupyter_book() -> str:
    return str(Path(sys.executable).with_name("jupyter-book"))  # the one of this environment


def _environment(output: Path) -> dict[str, str]:
    """Says where our cache is; Jupyter Book would look for one at a place of its own."""
    return {**os.environ, "COURSE_BOOK_CACHE": str(output / ".jupyter_cache")}


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=BUILD, help="a folder called _build")
    parser.add_argument("--linkcheck", action="store_true", help="check links to other sites instead of building")
    parser.add_argument("--quiet", action="store_true", help="print warnings only")
    options = parser.parse_args()
    if options.linkcheck:
        sys.exit(check_links())
    free = shutil.disk_usage(ROOT).free
    if free < 200 * 2**20:
        sys.exit(f"Not enough disk space to build the book: expected 200 MB free, got {free // 2**20} MB; free some.")
    start = time.monotonic()
    try:
        html = build(options.output.resolve(), quiet=options.quiet)
    except RuntimeError as error:
        sys.exit(str(error))
    print(f"\nBuilt in {time.monotonic() - start:.0f} s. Open {html / 'index.html'} in a browser,")
    print("or run `make serve` (python -m http.server --directory _build/html) and open http://localhost:8000.")


if __name__ == "__main__":
    main()
