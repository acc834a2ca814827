"""`make bench`: print all ratios. Below 1 the course's code is faster than the peer."""

from __future__ import annotations

import torch

from benchmarks import attention, decoding, efficiency, encoder, language_model, training_step


def main() -> None:
    """Run all benchmarks."""
    torch.manual_seed(0)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads; ours / theirs, median of 30 pairs (quartiles)"
    )
    for module in (attention, efficiency, training_step, decoding, encoder, language_model):
        print(f"\n{module.__doc__.strip().splitlines()[0]}")
        for name, value, (low, high) in module.rows():
            print(f"  {name:88} {value:.2f}  ({low:.2f} – {high:.2f})", flush=True)


if __name__ == "__main__":
    main()
