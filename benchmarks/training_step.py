"""A training step of `Transformer` against `nn.Transformer` between the same embedding and output projection.

Once with the same loss and dropout for both, and once as the trainer takes it: the sizes of the committed recipe (with
sinusoidal positions, since the peer cannot rotate), the precision of this machine, the loss in chunks and
`ByteDropout`, against PyTorch's own. Then those two by themselves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.timing import Comparison, compare, matmul_peak
from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator.devices import best_precision
from course_kit.translator.dropout import ByteDropout
from course_kit.translator.fast_loss import chunked_label_smoothing_loss
from course_kit.translator.recipe import Recipe
from course_lib import sinusoidal_encoding

BATCH, LENGTH = 32, 32
CONFIG = TransformerConfig(vocab_size=8000, d_model=256, num_heads=8, num_layers=3, d_ff=1024, dropout=0.1)


class Theirs(nn.Module):
    """`nn.Transformer` with what it lacks: a tied embedding, positions, masks; final norms with pre-norm only."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.register_buffer("table", sinusoidal_encoding(LENGTH, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        sizes = config.d_model, config.num_heads, config.num_layers, config.num_layers, config.d_ff, config.dropout
        self.transformer = nn.Transformer(*sizes, batch_first=True, norm_first=config.norm == "pre")
        if config.norm == "post":
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
    models = Transformer(CONFIG), Theirs(CONFIG)
    batch = _batch(CONFIG)
    result = compare(*(_step(model, batch, _cross_entropy) for model in models))
    shape = f"batch {BATCH}, length {LENGTH}, d_model {CONFIG.d_model}, 3 + 3 layers"
    yield f"training step {shape}", *_of(result)
    yield from _shares(result, CONFIG, matmul_peak())

    config = dataclasses.replace(Recipe().model_config(), positions="sinusoidal")  # which the peer has too
    precision = best_precision("cpu")
    dtype = torch.bfloat16 if precision == "bf16-mixed" else None
    ours = Transformer(config)
    batch = _batch(config)
    with ByteDropout.inside(ours):
        result = compare(_step(ours, batch, _chunked, dtype), _step(Theirs(config), batch, _smoothed, dtype))
    yield f"the trainer's step, sizes of the recipe's model, {precision}", *_of(result)
    yield from _shares(result, config, matmul_peak(dtype=dtype or torch.float32))

    logits = torch.randn(BATCH * LENGTH, config.vocab_size, requires_grad=True)
    labels = torch.randint(1, config.vocab_size, (BATCH * LENGTH,))
    result = compare(lambda: _chunked(logits, labels).backward(), lambda: _smoothed(logits, labels).backward())
    yield f"loss in chunks / F.cross_entropy, {BATCH * LENGTH:,} × {config.vocab_size:,}, with gradient", *_of(result)
    x = torch.randn(BATCH, LENGTH, config.d_model, requires_grad=True)
    own, their = ByteDropout(config.dropout), nn.Dropout(config.dropout)
    result = compare(lambda: own(x).sum().backward(), lambda: their(x).sum().backward())
    yield f"ByteDropout / nn.Dropout, {BATCH} × {LENGTH} × {config.d_model}, with gradient", *_of(result)
    with ByteDropout.inside(ours):
        result = compare(_step(ours, batch, _chunked, dtype), _step(Transformer(config), batch, _chunked, dtype))
    yield "the trainer's step with ByteDropout / with nn.Dropout", *_of(result)


def _of(result: Comparison) -> tuple[float, tuple[float, float]]:
    return result.ratio, result.spread


def _shares(
    result: Comparison, config: TransformerConfig, peak: float
) -> Iterator[tuple[str, float, tuple[float, float]]]:
    for name, times in (("ours", result.ours), ("nn.Transformer", result.theirs)):
        shares = [_flops(config) / t / peak for t in times]
        low, _, high = statistics.quantiles(shares, n=4)
        yield f"  share of the matrix-product peak, {name}", statistics.median(shares), (low, high)


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, labels, ignore_index=CONFIG.pad_id)


def _smoothed(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, labels, ignore_index=CONFIG.pad_id, label_smoothing=0.1)


def _chunked(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return chunked_label_smoothing_loss(logits, labels, 0.1, CONFIG.pad_id)


def _batch(config: TransformerConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """Source and target with some padding."""
    source, target = torch.randint(1, config.vocab_size, (2, BATCH, LENGTH)).unbind(0)
    source[::3, -5:] = config.pad_id
    target[::4, -7:] = config.pad_id
    return source, target


def _step(
    model: nn.Module,
    batch: tuple[torch.Tensor, torch.Tensor],
    loss_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    dtype: torch.dtype | None = None,
) -> Callable[[], None]:
    """A step on a batch; with a dtype, under autocast."""
    source, target = batch
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run() -> None:
        with torch.autocast("cpu", dtype) if dtype else contextlib.nullcontext():
            loss = loss_of(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


def _flops(config: TransformerConfig) -> int:
    """Operations of the matrix products of one step: twice the forward's again for the backward."""
    d, d_ff, layers = config.d_model, config.d_ff, config.num_layers
    source, target = BATCH * LENGTH, BATCH * (LENGTH - 1)
    attention = 2 * 2 * LENGTH * d  # for each query position, both products
    encoder = source * (8 * d * d + 4 * d * d_ff + attention)
    decoder = target * (8 * d * d + 4 * d * d + 4 * d * d_ff + 2 * attention) + source * 4 * d * d
    output = target * 2 * d * config.vocab_size
    return 3 * (layers * (encoder + decoder) + output)
