"""A training step of `Transformer` against `nn.Transformer` between the same embedding and output projection."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.timing import compare, matmul_peak
from course_lib import Transformer, TransformerConfig, sinusoidal_encoding

BATCH, LENGTH = 32, 32
CONFIG = TransformerConfig(vocab_size=8000, d_model=256, num_heads=8, num_layers=3, d_ff=1024, dropout=0.1)


class Theirs(nn.Module):
    """`nn.Transformer` with what it lacks: a tied embedding, positions, masks, and no final norms, as in the paper."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.register_buffer("table", sinusoidal_encoding(LENGTH, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        sizes = config.d_model, config.num_heads, config.num_layers, config.num_layers, config.d_ff, config.dropout
        self.transformer = nn.Transformer(*sizes, batch_first=True)
        self.transformer.encoder.norm = self.transformer.decoder.norm = None

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Logits, `(B, L_target, vocabulary)`."""
        source_padding, target_padding = source == self.config.pad_id, target == self.config.pad_id
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.transformer(
            self._embed(source),
            self._embed(target),
            tgt_mask=future,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
        )
        return F.linear(x, self.embedding.weight)

    def _embed(self, tokens: torch.Tensor) -> torch.Tensor:
        scaled = self.embedding(tokens) * math.sqrt(self.config.d_model)
        return self.dropout(scaled + self.table[: tokens.shape[1]])


def rows() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """The ratio of the steps, and each side's share of the machine's matrix-product peak."""
    torch.manual_seed(0)
    source, target = torch.randint(1, CONFIG.vocab_size, (2, BATCH, LENGTH)).unbind(0)
    source[::3, -5:] = CONFIG.pad_id
    target[::4, -7:] = CONFIG.pad_id
    models = Transformer(CONFIG), Theirs(CONFIG)
    result = compare(*(_step(model, source, target) for model in models))
    flops, peak = _flops(), matmul_peak()
    shape = f"batch {BATCH}, length {LENGTH}, d_model {CONFIG.d_model}, 3 + 3 layers"
    yield f"training step {shape}", result.ratio, result.spread
    for name, times in (("ours", result.ours), ("nn.Transformer", result.theirs)):
        shares = sorted(flops / t / peak for t in times)
        low, _, high = statistics.quantiles(shares, n=4)
        yield f"share of the matrix-product peak, {name}", statistics.median(shares), (low, high)


def _step(model: nn.Module, source: torch.Tensor, target: torch.Tensor) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def run() -> None:
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=CONFIG.pad_id)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


def _flops() -> int:
    """Operations of the matrix products of one step: twice the forward's again for the backward."""
    d, d_ff, layers = CONFIG.d_model, CONFIG.d_ff, CONFIG.num_layers
    source, target = BATCH * LENGTH, BATCH * (LENGTH - 1)
    attention = 2 * 2 * LENGTH * d  # for each query position, both products
    encoder = source * (8 * d * d + 4 * d * d_ff + attention)
    decoder = target * (8 * d * d + 4 * d * d + 4 * d * d_ff + 2 * attention) + source * 4 * d * d
    output = target * 2 * d * CONFIG.vocab_size
    return 3 * (layers * (encoder + decoder) + output)
