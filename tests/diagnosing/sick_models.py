"""Models that run, and most of which train, with one plausible fault each; `SICK` says which check has to name it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from healthy_models import PAD, VOCAB, WIDTH, tokens
from torch import Tensor, nn

HEADS = 4


class Attention(nn.Module):
    """Multi-head attention with a switch for each fault."""

    def __init__(self, fault: str = ""):
        super().__init__()
        self.query, self.key, self.value, self.merge = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fault = fault

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(memory), self.value(memory)
        if self.fault == "heads by view":
            q, k, v = (y.reshape(len(y), HEADS, -1, WIDTH // HEADS) for y in (q, k, v))
        elif self.fault == "batch and time":
            q, k, v = (y.reshape(y.shape[1], len(y), HEADS, -1).transpose(0, 1).transpose(1, 2) for y in (q, k, v))
        else:
            q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L_q, L_k)
        fill = {"-1e9": -1e9, "weak mask": -5.0}.get(self.fault, -math.inf)
        if self.fault == "one head":
            mask = mask | (torch.arange(HEADS) == 2)[:, None, None]
        if self.fault == "saturated":
            scores = scores * 1e4
        scores = scores.masked_fill(~mask, fill)
        weights = scores.softmax(dim=-1)
        if self.fault == "softmax over the batch":
            weights = (q @ k.transpose(-2, -1)).softmax(dim=0) * mask
        if self.fault == "softmax over the queries":
            weights = scores.softmax(dim=-2).nan_to_num()
        output = (weights @ v).transpose(1, 2).flatten(2)
        return self.merge(output)


class Layer(nn.Module):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, fault: str = ""):
        super().__init__()
        self.fault = fault
        self.attention = Attention(fault)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 40), nn.Linear(40, WIDTH)
        self.dropout = nn.Dropout(0.1)
        if fault == "dead ReLU":
            nn.init.constant_(self.up.bias, -100.0)
        if fault == "batch norm":
            self.norm1 = nn.BatchNorm1d(WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.norm1(x.transpose(1, 2)).transpose(1, 2) if self.fault == "batch norm" else self.norm1(x)
        if self.fault == "mean over the batch":
            y = y - y.mean(dim=0)
        attended = self.attention(y, y, mask)
        if self.fault == "detached":
            attended = attended.detach()
        if self.fault == "no_grad":
            with torch.no_grad():
                attended = self.attention(y, y, mask)
        x = x + (attended if self.fault == "dropout not used" else self.dropout(attended))
        if self.fault == "functional dropout":
            x = F.dropout(x, 0.1)
        if self.fault == "noise":
            x = x + 0.01 * torch.randn_like(x)
        if self.fault == "built in forward":
            return x + nn.Linear(WIDTH, WIDTH)(self.norm2(x)) + self.down(self.up(x).relu())
        if self.fault == "not called":
            return x
        return x + self.down(self.up(self.norm2(x)).relu())


class Decoder(nn.Module):
    """A language model of two layers; a fault is in both layers, or in the second one only."""

    def __init__(self, fault: str = "", *, second_only: bool = False):
        super().__init__()
        self.fault = fault
        self.embedding, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(64, WIDTH)
        layers = [Layer("" if second_only else fault), Layer(fault)]
        if fault == "one layer":
            layers = layers[:1]
        self.layers = layers if fault == "plain list" else nn.ModuleList(layers)
        if fault == "plain dict":
            self.layers, self.by_name = nn.ModuleList(), {"first": layers[0], "second": layers[1]}
        self.output = nn.Linear(WIDTH, VOCAB)
        self.calls, self.state = 0, None
        self.second_only = second_only
        if fault == "closure":
            inner = nn.Linear(WIDTH, WIDTH)
            self.extra = lambda x: x + inner(x)
        if fault == "table":
            self.table = torch.randn(64, WIDTH)
        if fault == "parameter in a tensor":
            self.gain = torch.ones(WIDTH, requires_grad=True)
        if fault == "all zero":
            for parameter in self.parameters():
                nn.init.zeros_(parameter)
        if fault == "frozen":
            self.requires_grad_(False)
        if fault == "tied, not scaled":
            self.output.weight = self.embedding.weight
        if fault == "running count":
            self.register_buffer("count", torch.zeros(()))

    def mask(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        square = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
        diagonal = {"off by one": 1, "two ahead": 2}.get(self.fault, 0)
        mask = square if self.fault == "no mask" else square.tril(diagonal)
        if self.fault == "inverted":
            mask = square.triu()
        if self.fault == "future only":
            mask = ~square.tril() | torch.eye(length, dtype=torch.bool, device=tokens.device)
        return mask

    def forward(self, tokens: Tensor) -> Tensor:
        if self.fault == "shifts the input in place":
            tokens[:, 1:] = tokens[:, :-1].clone()
            tokens[:, 0] = 1
        with torch.no_grad() if self.fault == "all under no_grad" else nullcontext():
            x = self.embedding(tokens)
            if self.fault not in ("no positions", "one layer"):
                x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
            if self.fault == "table":
                x = x + self.table[: tokens.shape[1]]
            if self.fault == "float32 inside":
                x = x.float() + torch.zeros(1)
            if self.fault == "closure":
                x = self.extra(x)
            if self.fault == "parameter in a tensor":
                x = x * self.gain
            if self.fault == "running count":
                self.count += 1
                x = x * (1 + 1 / self.count)
            if self.fault == "scales its weights":
                self.embedding.weight.data.mul_(0.99)
            if self.fault == "state":
                x = x if self.state is None else x + 0.1 * self.state.mean()
                self.state = x
            mask = self.mask(tokens)
            layers = self.by_name.values() if self.fault == "plain dict" else self.layers
            for number, layer in enumerate(layers):
                own = mask.tril() if self.second_only and number == 0 else mask
                x = layer(x, own)
            if self.fault == "summary of all positions":
                x = x + x.mean(dim=1, keepdim=True)
            logits = self.output(x)
        if self.fault == "softmax":
            return logits.softmax(dim=-1)
        if self.fault == "logarithm":
            return logits.log()
        if self.fault == "rounded":
            return F.one_hot(logits.argmax(dim=-1), VOCAB).float()
        if self.fault == "cancellation":
            return (logits + 1e6) - 1e6
        if self.fault == "ignores its input":
            return self.output.bias.expand_as(logits)
        if self.fault == "clamped":
            return logits.clamp(-0.01, 0.01)
        if self.fault == "overflow":
            return (logits * 300) ** 2 / 9e4
        if self.fault == "always in train mode":
            return logits
        return logits * (100 if self.fault == "scaled" else 1)

    def train(self, mode: bool = True):
        return super().train(True if self.fault == "always in train mode" else mode)


class Encoder(Decoder):
    """Reads in both directions; padding is masked, unless the fault is there."""

    def mask(self, tokens: Tensor) -> Tensor:
        real = tokens != PAD
        if self.fault == "padding not masked":
            real = torch.ones_like(real)
        if self.fault == "padding mask inverted":
            real = ~real
            real = real | ~real.any(dim=-1, keepdim=True)
        if self.fault == "queries masked":
            return real[:, None, :, None] | torch.zeros_like(real)[:, None, None, :] | ~real[:, None, :, None]
        return real[:, None, None, :]


class Translator(nn.Module):
    """Encoder and decoder of one layer each, with a fault in one of the masks."""

    def __init__(self, fault: str):
        super().__init__()
        self.fault = fault
        self.embedding, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(64, WIDTH)
        self.encoder, self.decoder, self.cross = Layer(), Layer(), Attention()
        self.output = nn.Linear(WIDTH, VOCAB)

    def embed(self, tokens: Tensor, *, positions: bool = True) -> Tensor:
        x = self.embedding(tokens)
        return x + self.positions(torch.arange(tokens.shape[1], device=tokens.device)) if positions else x

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real = (source != PAD)[:, None, None, :]
        all_keys = torch.ones_like(real)
        length = target.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).tril()
        memory = self.encoder(
            self.embed(source, positions=self.fault != "no source positions"),
            all_keys if self.fault == "source padding" else real,
        )
        if self.fault == "no target mask":
            future = torch.ones_like(future)
        x = self.decoder(self.embed(target), future)
        x = x + self.cross(x, memory, all_keys if self.fault == "memory padding" else real)
        if self.fault == "memory of the neighbour":
            x = x + self.cross(x, memory.roll(1, dims=0), all_keys)
        return self.output(x)


def decoder(fault: str, *, second_only: bool = False, **options) -> Callable:
    return lambda: (Decoder(fault, second_only=second_only), tokens(), {"pad_id": PAD, "causal": True, **options})


def encoder(fault: str) -> Callable:
    return lambda: (Encoder(fault), tokens(padded=True), {"pad_id": PAD})


def translator(fault: str) -> Callable:
    return lambda: (Translator(fault), (tokens(9, padded=True), tokens(7)), {"pad_id": PAD})


# The fault, how it is built, and the check that has to name it.
SICK: dict[str, tuple[Callable, str]] = {
    "no causal mask": (decoder("no mask"), "causality"),
    "a causal mask that is the wrong way round": (decoder("inverted"), "causality"),
    "the same, when causality is not asked for": (decoder("inverted", causal=None), "causality"),
    "a causal mask that lets only the future through": (decoder("future only"), "causality"),
    "a causal mask that is off by one": (decoder("off by one"), "causality"),
    "off by one, when causality is not asked for": (decoder("off by one", causal=None), "causality"),
    "two tokens ahead": (decoder("two ahead"), "causality"),
    "no causal mask in the second layer": (decoder("no mask", second_only=True), "causality"),
    "no causal mask in one head of the second layer": (decoder("one head", second_only=True), "causality"),
    "a mask of −5 instead of −∞": (decoder("weak mask"), "causality"),
    "a summary of all positions": (decoder("summary of all positions"), "causality"),
    "softmax over the queries": (decoder("softmax over the queries"), "causality"),
    "heads split by a view without a transpose": (decoder("heads by view"), "causality"),
    "a translator without a causal mask": (translator("no target mask"), "causality"),
    "padding not masked in self-attention": (encoder("padding not masked"), "padding"),
    "a padding mask that is the wrong way round": (encoder("padding mask inverted"), "padding"),
    "a padding mask on the queries": (encoder("queries masked"), "padding"),
    "source padding not masked in the encoder": (translator("source padding"), "padding"),
    "source padding not masked in cross-attention": (translator("memory padding"), "padding"),
    "no positions in the source": (translator("no source positions"), "order"),
    "no positions in an encoder": (encoder("no positions"), "order"),
    "no positions in a decoder of one layer": (decoder("one layer"), "order"),
    "softmax over the batch": (decoder("softmax over the batch"), "batch independence"),
    "a reshape that mixes batch and time": (decoder("batch and time"), "batch independence"),
    "a mean over the batch": (decoder("mean over the batch"), "batch independence"),
    "batch norm": (decoder("batch norm"), "batch independence"),
    "attention to the neighbour's source": (translator("memory of the neighbour"), "batch independence"),
    "a saturated softmax in the second layer": (decoder("saturated", second_only=True), "attention weights"),
    "layers in a plain list": (decoder("plain list"), "unregistered parameters"),
    "layers in a plain dict": (decoder("plain dict"), "unregistered parameters"),
    "a plain tensor as parameter": (decoder("parameter in a tensor"), "unregistered parameters"),
    "a layer that only a function refers to": (decoder("closure"), "unregistered parameters"),
    "all parameters frozen": (decoder("frozen"), "trainable parameters"),
    "a detached branch": (decoder("detached"), "unused parameters"),
    "a branch under no_grad": (decoder("no_grad"), "unused parameters"),
    "all under no_grad": (decoder("all under no_grad"), "unused parameters"),
    "a rounded result": (decoder("rounded"), "unused parameters"),
    "a feed-forward network that is not called": (decoder("not called"), "unused parameters"),
    "a ReLU that never fires": (decoder("dead ReLU"), "dead gradients"),
    "everything starts at zero": (decoder("all zero"), "dead gradients"),
    "logits that ignore the tokens": (decoder("ignores its input"), "tokens"),
    "logits times 100": (decoder("scaled"), "start loss"),
    "an embedding of variance 1 as output projection": (decoder("tied, not scaled"), "start loss"),
    "a softmax before the loss": (decoder("softmax"), "logits"),
    "a logarithm of negative numbers": (decoder("logarithm"), "logits"),
    "logits that are cut off": (decoder("clamped"), "one batch"),
    "functional dropout in eval mode": (decoder("functional dropout"), "determinism"),
    "noise in eval mode": (decoder("noise"), "determinism"),
    "a layer that is built in each call": (decoder("built in forward"), "determinism"),
    "a state that is kept between calls": (decoder("state"), "determinism"),
    "a counter that takes part": (decoder("running count"), "side effects"),
    "dropout that is never called": (decoder("dropout not used"), "train and eval mode"),
    "a model that stays in train mode": (decoder("always in train mode"), "train and eval mode"),
    "an input that is shifted in place": (decoder("shifts the input in place"), "side effects"),
    "weights that are scaled in each call": (decoder("scales its weights"), "side effects"),
    "float32 in the middle": (decoder("float32 inside"), "float64"),
    "digits lost in a difference": (decoder("cancellation"), "float64"),
    "−1e9 in half precision": (decoder("-1e9"), "half precision"),
    "an intermediate result beyond 65,504": (decoder("overflow"), "half precision"),
    "a table that is not a buffer": (decoder("table"), "device"),
}

# Faults that some models have on purpose, so that they are only suspicious.
SUSPICIOUS = {
    *("the same, when causality is not asked for", "off by one, when causality is not asked for"),
    *("no positions in the source", "no positions in an encoder", "no positions in a decoder of one layer"),
    *("batch norm", "all parameters frozen", "a detached branch", "a branch under no_grad"),
    *("a feed-forward network that is not called", "logits that ignore the tokens", "a counter that takes part"),
    *("a saturated softmax in the second layer", "dropout that is never called", "digits lost in a difference"),
}
