"""The command `course-lib`: grading for teachers; training, translating, inspecting and generating for everyone."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator

import torch

from course_grade import cli as grading
from course_kit._files import why
from course_kit.bert import commands as inspecting
from course_kit.language_model import commands as generating
from course_kit.translator import commands as translating
from course_lib._version import __version__

__all__ = ["main"]

NEEDS = "course-lib needs {0}, which is not installed: pip install {1}, or the package with its extra [{2}]"
LIBRARIES = {
    "rich": ("rich", "grading"),
    "yaml": ("pyyaml", "grading"),
    "distributed": ("distributed", "dask"),
    "lightning_fabric": ("pytorch-lightning", "training"),
    "tokenizers": ("tokenizers", "training"),
    "safetensors": ("safetensors", "training"),
    "huggingface_hub": ("huggingface-hub", "models"),
    "sacrebleu": ("sacrebleu", "training"),
    "platformdirs": ("platformdirs", "training"),
}
GO_ON = {
    "grade": "What has been graded is kept; the same command continues from here.",
    "train": "The results of the last complete epoch are kept; the same command with --resume continues from there.",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status.

    0: done. 1: done, and something did not pass (`--strict`). 2: wrong use. 3: done, but something could not be graded.
    4: the machine has too few walls to run submissions. 130, 141 and 143: stopped by Ctrl-C, by the end of a pipe that
    it writes to, or by SIGTERM.
    """
    with _stopped_by_sigterm():
        return _main(arguments)


class _Terminated(KeyboardInterrupt):
    """SIGTERM: stop as after Ctrl-C, so that everything that was started is ended and cleared away."""


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # clearing away is not to be interrupted
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _main(arguments: list[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command not in (*translating.COMMANDS, *inspecting.COMMANDS, *generating.COMMANDS):
            warnings.simplefilter("ignore", SyntaxWarning)  # about students' code
            torch.set_num_threads(1)  # many small tensors; several submissions run side by side
        status = options.run(options)
        sys.stdout.flush()  # here, so that a reader who has left is noticed here
        return status
    except BrokenPipeError:  # `course-lib list | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still in the buffer goes nowhere
        return 141
    except (ValueError, KeyError, FloatingPointError) as error:
        print(f"course-lib: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in LIBRARIES:
            raise
        print(NEEDS.format(missing, *LIBRARIES[missing]), file=sys.stderr)
        return 2
    except OSError as error:
        print(f"course-lib: {why(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nStopped. {GO_ON.get(options.command, '')}", file=sys.stderr)
        return 143 if isinstance(stop, _Terminated) else 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="course-lib",
        description="Commands of the course “Attention, Proven”: grade its exercises; train and use its translator; "
        "look inside a trained encoder; let a language model write.",
    )
    parser.add_argument("--version", action="version", version=f"course-lib {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    grading.add_commands(commands)
    translating.add_commands(commands)
    inspecting.add_commands(commands)
    generating.add_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
