"""What PyTorch sets up at first use, set up once in the fork server, in front of the walls.

Behind the walls the first use would fail, since it reads files about the processor, makes folders for caches, or
imports modules for seconds. Every line below has been seen to fail or to take over a second in a submission.
"""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import torch
from torch import nn

__all__ = ["CACHES", "MODULES", "warm"]

# Variables of the environment that say where libraries keep caches; each becomes the scratch folder.
CACHES = (
    *("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLCONFIGDIR"),
    *("TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "NUMBA_CACHE_DIR"),
)

MODULES = (
    "numpy.random",
    "numpy.ma",
    "numpy.testing",
    "opt_einsum",  # of einsum with three operands, where it is installed
    "torch._dynamo",  # of torch.compile, torch.func, checkpoint, FlopCounterMode, export: two seconds
    "torch._functorch.aot_autograd",
    "torch._functorch.eager_transforms",
    "torch._higher_order_ops",
    "torch._inductor.config",
    "torch._refs",  # of modules on the meta device
    "torch._meta_registrations",
    "torch.distributions",
    "torch.nn.attention.flex_attention",
    "torch.nn.utils.parametrizations",
    "torch.testing",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.utils.flop_counter",
)


def warm() -> None:
    """Set up everything. Leaves no thread behind, since a process with threads cannot be forked safely."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODULES:
            try:
                importlib.import_module(name)
            except ImportError:  # not installed, or not in this version of PyTorch
                continue
        # Compiled functions are traced and run as they are: the compiler would be another process.
        torch.compiler.set_stance("default", force_backend="eager")
        state = torch.get_rng_state()
        for feature in (_number_formats, _meta, _gradients, _scripts, _linear_algebra):
            try:
                feature()
            except Exception:
                continue  # not in this version of PyTorch; a submission that uses it gets the same error
        torch.set_rng_state(state)


def _number_formats() -> None:
    numbers = torch.ones(2, 2)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        other = numbers.to(dtype)  # cpuinfo reads /proc and /sys
        other.to(torch.float32)
        other @ other  # oneDNN asks for the processor's abilities
    nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    repr(numbers.half())
    numbers.numpy().astype(np.float16) @ numbers.numpy()


def _meta() -> None:
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
        layer(torch.ones(1, 2)).softmax(-1)  # Python's decompositions are registered


def _gradients() -> None:
    numbers = torch.ones(2, 2, requires_grad=True)
    numbers.exp().sum().backward()
    torch.func.vmap(torch.func.grad(lambda row: row.exp().sum()))(numbers.detach())
    torch.func.jvp(torch.exp, (numbers.detach(),), (numbers.detach(),))
    torch.utils.checkpoint.checkpoint(torch.exp, numbers, use_reentrant=False).sum().backward()


def _scripts() -> None:
    torch.jit.script(nn.ReLU())(torch.ones(2))
    torch.fx.symbolic_trace(nn.ReLU())


def _linear_algebra() -> None:
    torch.linalg.svd(torch.eye(2))
    torch.einsum("ij,jk,kl->il", *[torch.eye(2)] * 3)
