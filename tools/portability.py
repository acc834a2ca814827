"""Run the notebooks again as on other processors: one and two threads, old and newer instruction sets.

    python -m tools.portability

The same sums in another order differ in the last digits, and training multiplies the difference. A page may print only
what survives that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tools.publisher import ROOT

INSTRUCTION_SETS = {
    "default": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
THREADS = (1, 2)


def main() -> None:
    """Run all combinations and exit with the number of those that failed."""
    command = [sys.executable, "-m", "pytest", "-c", "tests/notebooks/nbval.ini", "--rootdir", ".", "-q"]
    command += ["--nbval-cell-timeout", "1200", "book"]
    failed = []
    for name, settings in INSTRUCTION_SETS.items():
        for threads in THREADS:
            label = f"{name} instructions, {threads} thread{'s' * (threads > 1)}"
            print(f"--- {label}", flush=True)
            start = time.monotonic()
            environment = {**os.environ, **settings, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
            if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
                failed.append(label)
            print(f"--- {label}: {time.monotonic() - start:.0f} s", flush=True)
    if failed:
        sys.exit(f"Not reproduced: {'; '.join(failed)}. Print less, or make the statement weaker.")


if __name__ == "__main__":
    main()
