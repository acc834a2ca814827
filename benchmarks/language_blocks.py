"""What each change from the block of 2017 to today's is worth: small decoders on the book's prose, five seeds each.

    python -m benchmarks.language_blocks          run what is missing, one line of results per run
    python -m benchmarks.language_blocks --table  print the table

All models have the same number of parameters (the width of the feed-forward network makes up the difference), see the
same batches in the same order, and take the same number of steps. Results are kept as they come. The page
`language_model` shows them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit._files import write_whole
from course_kit.data import Vocabulary
from course_kit.data.course_prose import course_prose
from course_lib import apply_rotary, merge_heads, sinusoidal_encoding, split_heads
from course_lib.language_model import RMSNorm, SwiGLU, next_token_loss

RESULTS = Path(__file__).parents[1] / "course_kit/pretrained/language_blocks/ablation.json"
SEEDS = (0, 1, 2, 3, 4)
CHANGES = ("rms norm", "no biases", "swiglu", "rotary", "grouped query")
VARIANTS = {"2017": (), **{change: (change,) for change in CHANGES}, "all five": CHANGES}
VOCAB, D_MODEL, HEADS, LAYERS, D_FF = 1024, 96, 4, 2, 384
LENGTH, ROWS, STEPS, RATE, WARM_UP = 64, 8, 600, 4e-3, 50
BETAS, DECAY = (0.9, 0.98), 0.1
STD = 0.02  # of the embedding at the start


class Block(nn.Module):
    """A pre-norm block of 2017 with any of the five changes."""

    def __init__(self, changes: Sequence[str], d_ff: int):
        super().__init__()
        bias = "no biases" not in changes
        self.rotary = "rotary" in changes
        self.num_kv_heads = HEADS // 2 if "grouped query" in changes else HEADS
        d_kv = D_MODEL // HEADS * self.num_kv_heads
        self.q_proj, self.out_proj = (nn.Linear(D_MODEL, D_MODEL, bias=bias) for _ in range(2))
        self.k_proj, self.v_proj = (nn.Linear(D_MODEL, d_kv, bias=bias) for _ in range(2))
        self.feed_forward = feed_forward(changes, d_ff, bias)
        self.norm1, self.norm2 = norm(changes), norm(changes)

    def forward(self, x: Tensor) -> Tensor:
        """Causal self-attention, then the feed-forward network, each added to what it reads."""
        y = self.norm1(x)
        q = split_heads(self.q_proj(y), HEADS)
        k, v = (split_heads(project(y), self.num_kv_heads) for project in (self.k_proj, self.v_proj))
        if self.rotary:
            positions = torch.arange(x.shape[1])
            q, k = apply_rotary(q, positions), apply_rotary(k, positions)
        k, v = (shared.repeat_interleave(HEADS // self.num_kv_heads, dim=1) for shared in (k, v))
        x = x + self.out_proj(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        return x + self.feed_forward(self.norm2(x))


def feed_forward(changes: Sequence[str], d_ff: int, bias: bool) -> nn.Module:
    """SwiGLU, which has biases where the others have them, or the network with one ReLU."""
    if "swiglu" not in changes:
        return nn.Sequential(nn.Linear(D_MODEL, d_ff, bias=bias), nn.ReLU(), nn.Linear(d_ff, D_MODEL, bias=bias))
    network = SwiGLU(D_MODEL, d_ff)
    if bias:
        network.gate, network.up = nn.Linear(D_MODEL, d_ff), nn.Linear(D_MODEL, d_ff)
        network.down = nn.Linear(d_ff, D_MODEL)
    return network


def norm(changes: Sequence[str]) -> nn.Module:
    """RMS norm, or layer norm, whose bias goes with the others."""
    return RMSNorm(D_MODEL) if "rms norm" in changes else nn.LayerNorm(D_MODEL, bias="no biases" not in changes)


class Decoder(nn.Module):
    """A decoder-only model with one table for input and output."""

    def __init__(self, changes: Sequence[str], d_ff: int):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, D_MODEL)
        nn.init.normal_(self.embedding.weight, std=STD)
        self.layers = nn.Sequential(*(Block(changes, d_ff) for _ in range(LAYERS)))
        self.norm = norm(changes)
        code = sinusoidal_encoding(LENGTH, D_MODEL) * STD * 2**0.5  # as large as the embedding
        self.register_buffer("code", torch.zeros_like(code) if "rotary" in changes else code)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the token after each token."""
        x = self.embedding(tokens) + self.code[: tokens.shape[1]]
        return self.norm(self.layers(x)) @ self.embedding.weight.T


def num_parameters(model: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for p in model.parameters())


def equal_width(changes: Sequence[str]) -> int:
    """The d_ff with which a variant is nearest to the parameters of the block of 2017."""
    wanted = num_parameters(Decoder((), D_FF))
    return min(range(128, 640), key=lambda d_ff: abs(num_parameters(Decoder(changes, d_ff)) - wanted))


def packed_prose() -> tuple[Vocabulary, Tensor, Tensor, int]:
    """The vocabulary, the training and the validation text as ids, and the bytes of the latter."""
    train, val = course_prose()
    vocabulary = Vocabulary.learn([line for document in train for line in document.split("\n")], VOCAB)

    def packed(documents: list[str]) -> Tensor:
        lines = [vocabulary.encode(line) for document in documents for line in document.split("\n")]
        return torch.tensor([i for line in lines for i in (*line, vocabulary.eos_id)])

    return vocabulary, packed(train), packed(val), sum(len(document) + 1 for document in val)


def adamw(model: nn.Module) -> list[torch.optim.Optimizer]:
    """One rate for all parameters, as in the ablation."""
    return [torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=DECAY)]


def training(
    changes: Sequence[str],
    seed: int,
    tokens: Tensor,
    optimisers_of: Callable[[nn.Module], list[torch.optim.Optimizer]] = adamw,
    steps: int = STEPS,
) -> Iterator[Decoder]:
    """The model after each step; seed and step alone decide the batches."""
    torch.manual_seed(seed)
    model = Decoder(changes, equal_width(changes))
    batches = torch.Generator().manual_seed(seed)
    optimisers = optimisers_of(model)
    groups = [(group, group["lr"]) for optimiser in optimisers for group in optimiser.param_groups]
    for step in range(steps):
        for group, rate in groups:
            group["lr"] = rate * min(1, (step + 1) / WARM_UP) * (1 - step / steps)
        rows = torch.randint(len(tokens) - LENGTH, (ROWS, 1), generator=batches) + torch.arange(LENGTH)
        loss = next_token_loss(model(tokens[rows]), tokens[rows])
        model.zero_grad()
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
        yield model


def train(changes: Sequence[str], seed: int, tokens: Tensor) -> Decoder:
    """The model after the last step."""
    return deque(training(changes, seed, tokens), maxlen=1).pop()


@torch.no_grad()
def bits_per_byte(model: nn.Module, tokens: Tensor, num_bytes: int) -> float:
    """Of a text in rows that overlap by half, so that each token but the first ones has half a row before it."""
    half = LENGTH // 2
    rows = tokens.unfold(0, LENGTH, half)  # (N, LENGTH)
    counted = torch.ones_like(rows, dtype=torch.bool)
    counted[1:, :half] = False
    nats = float(next_token_loss(model(rows), rows, counted)) * len(tokens)
    return nats / num_bytes / math.log(2)


def run_missing(path: Path = RESULTS, seeds: Sequence[int] = SEEDS) -> None:
    """Every run that has no result yet, seed by seed: a stopped series has all variants."""
    results = json.loads(path.read_text()) if path.exists() else []
    done = {(r["variant"], r["seed"]) for r in results}
    _, tokens, held_out, num_bytes = packed_prose()
    for seed in seeds:
        for variant, changes in VARIANTS.items():
            if (variant, seed) in done:
                continue
            started = time.process_time()
            model = train(changes, seed, tokens)
            bits = round(bits_per_byte(model.eval(), held_out, num_bytes), 4)
            row = {"variant": variant, "seed": seed, "bits_per_byte": bits, "parameters": num_parameters(model)}
            results.append({**row, "d_ff": equal_width(changes), "steps": STEPS})
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(results, indent=1) + "\n")
            print(f"{row}  {time.process_time() - started:.0f} s", flush=True)


def table(path: Path = RESULTS) -> str:
    """Mean and range over the seeds of each variant, as text."""
    results = json.loads(path.read_text())
    lines = []
    for variant in VARIANTS:
        bits = [r["bits_per_byte"] for r in results if r["variant"] == variant]
        if bits:
            shown = f"{statistics.mean(bits):.3f} ({min(bits):.3f} – {max(bits):.3f})"
            lines.append(f"{variant:14} {len(bits)} seeds  {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print what is there")
    options = parser.parse_args()
    if options.table:
        print(table())
    else:
        torch.set_num_threads(1)
        run_missing()
