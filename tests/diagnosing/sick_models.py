"""Models that run, and most of which train, with one plausible fault each; `SICK` says which check has to name it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from healthy_models import HEADS, PAD, VOCAB, WIDTH, tokens
from torch import Tensor, nn

SPLITS = {
    "heads by view": lambda y: y.reshape(len(y), HEADS, -1, WIDTH // HEADS),
    "batch and time": lambda y: y.reshape(y.shape[1], len(y), HEADS, -1).transpose(0, 1).transpose(1, 2),
}
CAUSAL_MASKS = {  # from a square of True
    "no mask": lambda square: square,
    "inverted": lambda square: square.triu(),
    "future only": lambda square: square.triu(1) | square.triu().tril(),
    "off by one": lambda square: square.tril(1),
    "two ahead": lambda square: square.tril(2),
}
AFTER_THE_EMBEDDING = {  # what becomes of the features
    "table": lambda model, x: x + model.table[: x.shape[1]],
    "float32 inside": lambda model, x: x.float() + torch.zeros(1),
    "closure": lambda model, x: model.extra(x),
    "parameter in a tensor": lambda model, x: x * model.gain,
    "running count": lambda model, x: x * (1 + 1 / model.count.add_(1)),
    "state": lambda model, x: model.remember(x if model.state is None else x + 0.1 * model.state.mean()),
}
OF_THE_LOGITS = {
    "softmax": lambda logits: logits.softmax(dim=-1),
    "logarithm": lambda logits: logits.log(),
    "rounded": lambda logits: F.one_hot(logits.argmax(dim=-1), VOCAB).float(),
    "cancellation": lambda logits: (logits + 1e6) - 1e6,
    "clamped": lambda logits: logits.clamp(-0.01, 0.01),
    "overflow": lambda logits: (logits * 300) ** 2 / 9e4,
    "scaled": lambda logits: logits * 100,
}


class Attention(nn.Module):
    """Multi-head attention with a switch for each fault."""

    def __init__(self, fault: str = ""):
        super().__init__()
        self.query, self.key, self.value, self.merge = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fault = fault

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        split = SPLITS.get(self.fault, lambda y: y.unflatten(-1, (HEADS, -1)).transpose(1, 2))
        q, k, v = split(self.query(x)), split(self.key(memory)), split(self.value(memory))
        raw = scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L_q, L_k)
        if self.fault == "one head":
            mask = mask | (torch.arange(HEADS) == 2)[:, None, None]
        if self.fault == "saturated":
            scores = scores * 1e4
        scores = scores.masked_fill(~mask, {"-1e9": -1e9, "weak mask": -5.0}.get(self.fault, -math.inf))
        weights = scores.softmax(dim=-1)
        if self.fault == "softmax over the batch":
            weights = raw.softmax(dim=0) * mask
        if self.fault == "softmax over the queries":
            weights = scores.softmax(dim=-2).nan_to_num()
        return self.merge((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, fault: str = ""):
        super().__init__()
        self.fault = fault
        self.attention = Attention(fault)
        self.norm1 = nn.BatchNorm1d(WIDTH) if fault == "batch norm" else nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 40), nn.Linear(40, WIDTH)
        self.dropout = nn.Dropout(0.1)
        if fault == "dead ReLU":
            nn.init.constant_(self.up.bias, -100.0)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = self.norm1(x.transpose(1, 2)).transpose(1, 2) if self.fault == "batch norm" else self.norm1(x)
        if self.fault == "mean over the batch":
            y = y - y.mean(dim=0)
        with torch.no_grad() if self.fault == "no_grad" else nullcontext():
            attended = self.attention(y, y, mask)
        if self.fault == "detached":
            attended = attended.detach()
        x = x + (attended if self.fault == "dropout not used" else self.dropout(attended))
        if self.fault == "functional dropout":
            x = F.dropout(x, 0.1)
        if self.fault == "noise":
            x = x + 0.01 * torch.randn_like(x)
        if self.fault == "built in forward":
            return x + nn.Linear(WIDTH, WIDTH)(self.norm2(x)) + self.down(self.up(x).relu())
        return x if self.fault == "not called" else x + self.down(self.up(self.norm2(x)).relu())


class Embedding(nn.Module):
    """What a decoder and a translator begin and end with."""

    def __init__(self, fault: str):
        super().__init__()
        self.fault = fault
        self.embedding, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(64, WIDTH)
        self.output = nn.Linear(WIDTH, VOCAB)

    def embed(self, tokens: Tensor, *, positions: bool = True) -> Tensor:
        x = self.embedding(tokens)
        return x + self.positions(torch.arange(tokens.shape[1], device=tokens.device)) if positions else x

    def mask(self, tokens: Tensor) -> Tensor:
        square = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device)
        return CAUSAL_MASKS.get(self.fault, torch.tril)(square)


class Decoder(Embedding):
    """A language model of two layers; a fault is in both layers, or in the second one only."""

    def __init__(self, fault: str = "", *, second_only: bool = False):
        super().__init__(fault)
        layers = [Layer("" if second_only else fault), Layer(fault)][: 1 if fault == "one layer" else 2]
        self.layers = layers if fault == "plain list" else nn.ModuleList(layers)
        if fault == "plain dict":
            self.layers, self.by_name = nn.ModuleList(), {"first": layers[0], "second": layers[1]}
        self.state, self.second_only = None, second_only
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

    def remember(self, x: Tensor) -> Tensor:
        self.state = x
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        if self.fault == "shifts the input in place":
            tokens[:, 1:] = tokens[:, :-1].clone()
            tokens[:, 0] = 1
        if self.fault == "scales its weights":
            self.embedding.weight.data.mul_(0.99)
        with torch.no_grad() if self.fault == "all under no_grad" else nullcontext():
            x = self.embed(tokens, positions=self.fault not in ("no positions", "one layer"))
            x = AFTER_THE_EMBEDDING.get(self.fault, lambda _, x: x)(self, x)
            mask = self.mask(tokens)
            for number, layer in enumerate(self.by_name.values() if self.fault == "plain dict" else self.layers):
                x = layer(x, mask.tril() if self.second_only and number == 0 else mask)
            if self.fault == "summary of all positions":
                x = x + x.mean(dim=1, keepdim=True)
            logits = self.output(x)
        if self.fault == "ignores its input":
            return self.output.bias.expand_as(logits)
        return OF_THE_LOGITS.get(self.fault, lambda logits: logits)(logits)

    def train(self, mode: bool = True):
        return super().train(True if self.fault == "always in train mode" else mode)


class Encoder(Decoder):
    """Reads in both directions; padding is masked, unless the fault is there."""

    def mask(self, tokens: Tensor) -> Tensor:
        real = tokens != PAD
        if self.fault in ("padding not masked", "queries masked"):
            real = torch.ones_like(real)
        if self.fault == "padding mask inverted":
            real = ~real | real.all(dim=-1, keepdim=True)
        return real[:, None, None, :]


class Translator(Embedding):
    """Encoder and decoder of one layer each, with a fault in one of the masks."""

    def __init__(self, fault: str):
        super().__init__(fault)
        self.encoder, self.decoder, self.cross = Layer(), Layer(), Attention()

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real = (source != PAD)[:, None, None, :]
        all_keys = torch.ones_like(real)
        embedded = self.embed(source, positions=self.fault != "no source positions")
        memory = self.encoder(embedded, all_keys if self.fault == "source padding" else real)
        x = self.decoder(self.embed(target), self.mask(target))
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
    "a translator without a causal mask": (translator("no mask"), "causality"),
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
