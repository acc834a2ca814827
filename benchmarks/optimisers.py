"""Muon against AdamW at equal compute: the decoder with today's block, five seeds each.

    python -m benchmarks.optimisers  measure what is missing, one line of results per run

The processor time of a step is measured first. Then both rates of each optimiser are chosen on a separate seed, with
the same grid for both, and five seeds run. Results are kept as they come. The page `muon` shows them.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import torch
from torch import nn

from benchmarks import language_blocks as blocks
from course_kit._files import write_whole

RESULTS = blocks.RESULTS.with_name("optimisers.json")
OPTIMISERS = ("AdamW", "Muon")
MATRIX_RATES = (1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3)
OTHER_RATES = (8e-3, 16e-3, 32e-3, 64e-3, 128e-3)
GRID_SEED = 100
ROUNDS, STEPS_PER_ROUND = 11, 30


def optimisers_of(name: str, matrix_rate: float, other_rate: float) -> Callable[[nn.Module], list]:
    """The named rule for the matrices of the blocks, and AdamW for the embedding and the gains."""
    kept = {"betas": blocks.BETAS, "weight_decay": blocks.DECAY}

    def of(model: nn.Module) -> list[torch.optim.Optimizer]:
        matrices = [p for p in model.layers.parameters() if p.ndim == 2]
        chosen = {id(p) for p in matrices}
        others = {"params": [p for p in model.parameters() if id(p) not in chosen], "lr": other_rate}
        if name == "AdamW":
            return [torch.optim.AdamW([{"params": matrices, "lr": matrix_rate}, others], **kept)]
        size = {"adjust_lr_fn": "match_rms_adamw"}  # updates as large as AdamW's, so one grid suits both
        muon = torch.optim.Muon(matrices, lr=matrix_rate, weight_decay=blocks.DECAY, **size)
        return [muon, torch.optim.AdamW([others], **kept)]

    return of


def time_per_step(tokens: torch.Tensor, rounds: int = ROUNDS, steps: int = STEPS_PER_ROUND) -> dict:
    """Milliseconds of processor time; steps alternate, so that other work on the machine affects both alike."""
    pair = [blocks.training(blocks.CHANGES, 0, tokens, optimisers_of(name, 4e-3, 4e-3), 10**6) for name in OPTIMISERS]
    per_round = []
    for _ in range(rounds + 1):
        spent = [0.0, 0.0]
        for _ in range(steps):
            for i, run in enumerate(pair):
                started = time.process_time()
                next(run)
                spent[i] += time.process_time() - started
        per_round.append([1000 * s / steps for s in spent])
    adamw, muon = zip(*per_round[1:], strict=True)  # the first round warms up
    ratios = sorted(round(m / a, 3) for a, m in zip(adamw, muon, strict=True))
    means = {name: round(statistics.median(t), 2) for name, t in zip(OPTIMISERS, (adamw, muon), strict=True)}
    return {"milliseconds": means, "ratios": ratios, "ratio": statistics.median(ratios)}


def best_rates(grid: Sequence[dict], name: str) -> tuple[float, float]:
    """The pair of rates with the fewest bits per byte on the seed for choosing."""
    best = min((g for g in grid if g["optimiser"] == name), key=lambda g: g["bits_per_byte"])
    return best["matrix_rate"], best["other_rate"]


def run_missing(path: Path = RESULTS, seeds: Sequence[int] = blocks.SEEDS, steps: int = blocks.STEPS) -> None:
    """The time per step, the grids and the runs, except those that have a result."""
    results = json.loads(path.read_text()) if path.exists() else {"grid": [], "runs": []}
    _, tokens, held_out, num_bytes = blocks.packed_prose()
    if "time" not in results:
        results["time"] = time_per_step(tokens)

    def run(part: str, name: str, seed: int, rates: tuple[float, float], steps: int) -> None:
        key = {"optimiser": name, "seed": seed, "steps": steps, "matrix_rate": rates[0], "other_rate": rates[1]}
        if any(key.items() <= row.items() for row in results[part]):
            return
        steps_made = blocks.training(blocks.CHANGES, seed, tokens, optimisers_of(name, *rates), steps)
        bits = blocks.bits_per_byte(deque(steps_made, maxlen=1).pop().eval(), held_out, num_bytes)
        results[part].append({**key, "bits_per_byte": round(bits, 4)})
        write_whole(path, json.dumps(results, indent=1) + "\n")
        print(part, results[part][-1], flush=True)

    for rates, name in product(product(MATRIX_RATES, OTHER_RATES), OPTIMISERS):
        run("grid", name, GRID_SEED, rates, steps)
    adamw, muon = (best_rates(results["grid"], name) for name in OPTIMISERS)
    for seed in seeds:
        run("runs", "Muon", seed, muon, steps)
        for number in (steps, round(steps * results["time"]["ratio"])):  # equal steps, equal compute
            run("runs", "AdamW", seed, adamw, number)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_missing()
