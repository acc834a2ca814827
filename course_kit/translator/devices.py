"""Where and in which precision a training run computes: Lightning Fabric, with the settings of the course."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

with warnings.catch_warnings():
    # In a notebook without ipywidgets, tqdm warns when a library imports its automatic bar; ours is plain text.
    warnings.filterwarnings("ignore", "IProgress not found")
    from lightning_fabric import Fabric
    from lightning_fabric.loggers import CSVLogger
    from lightning_fabric.plugins import Precision
    from lightning_fabric.utilities.exceptions import MisconfigurationException
    from lightning_fabric.utilities.rank_zero import rank_zero_only

__all__ = ["Fabric", "Precision", "best_precision", "deterministic", "fabric", "is_first_process", "on_cpu"]

logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # without what it says about the machine


def fabric(*, accelerator: str, devices: int | str, strategy: str, precision: str, log: Path | None = None) -> Fabric:
    """Lightning's access to the devices; names as in Lightning.

    Args:
        log: folder that gets what is logged, as metrics.csv.

    Raises:
        ValueError: the machine has no such devices, or Lightning knows no such name.
    """
    asked = {"accelerator": accelerator, "devices": devices, "strategy": strategy, "precision": precision}
    loggers = [] if log is None else [CSVLogger(log.parent, name="", version=log.name)]
    try:
        return Fabric(**asked, loggers=loggers)
    except (MisconfigurationException, ModuleNotFoundError, RuntimeError, TypeError, ValueError) as error:
        names = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        raise ValueError(f"Lightning does not take {names} on this machine: {error}") from None


def best_precision(accelerator: str = "auto") -> str:
    """Lightning's name of the fastest precision that this machine trains well in.

    bfloat16 where a GPU or the processor multiplies it (AMX, or AVX-512 with BF16, which saves a third of the
    time of the translator's step); float16 on older GPUs; else float32.

    Args:
        accelerator: as in Lightning; with "cpu", a GPU is not looked at.
    """
    if torch.cuda.is_available() and accelerator != "cpu":
        return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "16-mixed"
    instructions = "_is_amx_tile_supported", "_is_avx512_bf16_supported"
    multiplies = any(getattr(torch.cpu, name, lambda: False)() for name in instructions)
    return "bf16-mixed" if multiplies else "32-true"


def is_first_process() -> bool:
    """Whether this is the process that writes files; of several, known even before they are connected."""
    return rank_zero_only.rank == 0


def on_cpu(accelerator: str) -> bool:
    """Whether Lightning's accelerator, "auto" included, is the processor of this machine."""
    other = torch.cuda.is_available() or torch.backends.mps.is_available()
    return accelerator == "cpu" or (accelerator == "auto" and not other)


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Ask PyTorch for algorithms that always add in the same order; afterwards the setting is as before."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before or wanted)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
