"""The corpus Multi30k, task 1, German–English: from a folder, from the cache, or from its public repository.

Elliott, Frank, Sima'an & Specia (2016): 31,014 captions of photographs, written in English and translated into German
by professionals. Test sets of 2017: Elliott, Frank, Barrault, Bougares & Specia (2017).
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import urllib.error
import urllib.request
import warnings
import zlib
from pathlib import Path
from typing import NamedTuple

from course_kit._files import write_whole
from course_kit.data.corpus import Pairs, ParallelCorpus, built_in_corpus

__all__ = ["load_corpus", "multi30k"]

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
ADDRESS = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw/"
LICENCE = (
    "Multi30k (Elliott et al., 2016): captions of Flickr30k, from Flickr photographs, for research and teaching, not "
    "commercial; see the dataset's repository github.com/multi30k/dataset before you use it elsewhere"
)
# Number of pairs; SHA-256 of the German and of the English file, as they are at that commit.
SPLITS = {
    "train": (
        29_000,
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    ),
    "val": (
        1_014,
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    ),
    "test_2016_flickr": (
        1_000,
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    ),
    # Their sums are not known to us: checked by gzip's own sum and the number of lines.
    "test_2017_flickr": (1_000, None, None),
    "test_2017_mscoco": (461, None, None),
}
FOLDER_VARIABLE = "COURSE_LIB_DATA"


def multi30k(*, download: bool = True) -> ParallelCorpus:
    """German and English captions: "train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco".

    A file is taken from the folder that the environment variable COURSE_LIB_DATA names (or its subfolder multi30k),
    else from the user's cache, else downloaded into it from the public repository at a pinned commit. Every file is
    checked before it is used, wherever it comes from; what is interrupted or damaged never enters the cache.

    Args:
        download: False for folder and cache only.

    Raises (when a split is read):
        FileNotFoundError: a file is neither in the folder nor in the cache, and cannot be downloaded.
        ValueError: a file in the folder is not the one of the corpus.
    """

    def read(split: str) -> Pairs:
        number, *sums = SPLITS[split]
        sides = [
            _lines(_content(f"{split}.{language}.gz", _Expected(number, expected), download))
            for language, expected in zip(("de", "en"), sums, strict=True)
        ]
        return list(zip(*sides, strict=True))

    return ParallelCorpus(
        name="Multi30k",
        source_language="de",
        target_language="en",
        licence=LICENCE,
        splits=tuple(SPLITS),
        read=read,
    )


def load_corpus(name: str = "auto", *, download: bool = True) -> ParallelCorpus:
    """A German–English corpus by its name.

    Args:
        name: "multi30k", "built-in", or "auto" for Multi30k where it can be had and the built-in captions where not.
        download: False for what is on this machine.

    Raises:
        ValueError: another name.
        FileNotFoundError: "multi30k" cannot be had.
    """
    if name not in ("multi30k", "built-in", "auto"):
        raise ValueError(f'name must be "multi30k", "built-in" or "auto", got {name!r}')
    if name == "built-in":
        return built_in_corpus()
    corpus = multi30k(download=download)
    try:
        corpus["train"], corpus["val"]  # here rather than in the middle of something
    except FileNotFoundError:
        if name == "multi30k":
            raise
        return built_in_corpus()
    return corpus


class _Expected(NamedTuple):
    lines: int
    sha256: str | None


def _content(name: str, expected: _Expected, download: bool) -> bytes:
    """A file that has been checked, from the first place that has it."""
    folder = os.environ.get(FOLDER_VARIABLE)
    for path in (Path(folder) / name, Path(folder) / "multi30k" / name) if folder else ():
        if path.is_file():
            content = path.read_bytes()
            if problem := _problem(content, expected):
                raise ValueError(
                    f"{path} is not the file of Multi30k at commit {COMMIT[:7]}: {problem}; replace it, or unset "
                    f"{FOLDER_VARIABLE} to download it"
                )
            return content
    cached = _cache() / name
    if cached.is_file() and not _problem(content := cached.read_bytes(), expected):
        return content
    if not download:
        raise FileNotFoundError(
            f"{name} of Multi30k is neither in the folder {FOLDER_VARIABLE}={folder or '(not set)'} nor in the cache "
            f"{_cache()}; set {FOLDER_VARIABLE} to a folder that has it, or allow the download"
        )
    return _download(name, expected, cached)


def _cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("course_lib")) / "multi30k" / COMMIT[:12]


def _download(name: str, expected: _Expected, target: Path) -> bytes:
    """Into the cache under its own name only when it is whole: a reader never meets half a file.

    Where the cache cannot be written (a home that is read-only, a full disk) the content is used without being kept.
    """
    failure = None
    for _ in range(3):
        try:
            with urllib.request.urlopen(ADDRESS + name, timeout=20) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            failure = str(error)
            error.close()
            if error.code < 500 and error.code not in (408, 429):
                break  # not there, or not allowed: asking again does not help
            continue
        except (OSError, http.client.HTTPException) as error:  # no network, refused; interrupted
            reason = getattr(error, "reason", error)
            failure = getattr(reason, "strerror", None) or str(reason)
            continue
        failure = _problem(content, expected)
        if failure:
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, content)
        except OSError as error:
            warnings.warn(f"{name} of Multi30k cannot be cached for the next time: {error}", stacklevel=2)
        return content
    raise FileNotFoundError(
        f"{name} of Multi30k could not be downloaded from {ADDRESS}: {failure}. Try again with a network, set "
        f'{FOLDER_VARIABLE} to a folder that has the files, or use the built-in corpus (load_corpus("built-in"))'
    )


def _problem(content: bytes, expected: _Expected) -> str:
    """Why this is not the file; empty if it is."""
    if expected.sha256 is not None:
        found = hashlib.sha256(content).hexdigest()
        wrong = f"expected SHA-256 {expected.sha256}, got {found} ({len(content)} bytes)"
        return "" if found == expected.sha256 else wrong
    try:
        number = len(_lines(content))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        return f"it cannot be unpacked ({error})"
    return "" if number == expected.lines else f"expected {expected.lines} lines, got {number}"


def _lines(content: bytes) -> list[str]:
    # Not splitlines(), which cuts at other characters of Unicode too.
    return [line.strip() for line in gzip.decompress(content).decode().removesuffix("\n").split("\n")]
