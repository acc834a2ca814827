"""Models with nothing wrong, from this package, from PyTorch and from Hugging Face, each with a batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit.nn import (
    LanguageModel,
    SinusoidalPositionalEncoding,
    Transformer,
    TransformerConfig,
    TransformerEncoder,
)
from course_kit.recurrent import RecurrentEncoderDecoder
from course_lib.masking import causal_mask

VOCAB, WIDTH, HEADS, LENGTH, ROWS = 47, 24, 4, 8, 3  # no two of them equal
PAD = 0


def tokens(length: int = LENGTH, *, padded: bool = False) -> Tensor:
    """`(ROWS, length)`; the last row ends in two padding tokens if wanted."""
    found = torch.randint(1, VOCAB, (ROWS, length))
    if padded:
        found[-1, -2:] = PAD
    return found


def config(**options) -> TransformerConfig:
    sizes = {"vocab_size": VOCAB, "d_model": WIDTH, "num_heads": HEADS, "num_layers": 2, "d_ff": 40}
    return TransformerConfig(**{**sizes, **options})


class Tagger(nn.Module):
    """An encoder of this package with a score for each word of the vocabulary."""

    def __init__(self, **options):
        super().__init__()
        self.encoder = TransformerEncoder(config(**options))
        self.output = nn.Linear(WIDTH, VOCAB)

    def forward(self, tokens):
        return self.output(self.encoder(tokens))


class PytorchLanguageModel(nn.Module):
    """nn.TransformerEncoder with a causal mask, or without one as an encoder; padding is read off the tokens."""

    def __init__(self, *, causal: bool, norm_first: bool = False, dropout: float = 0.1, tied: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.positions = SinusoidalPositionalEncoding(WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 40, dropout, batch_first=True, norm_first=norm_first)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)
        self.output = nn.Linear(WIDTH, VOCAB, bias=not tied)
        if tied:
            self.output.weight = self.embedding.weight
        self.causal = causal

    def forward(self, tokens):
        future = ~causal_mask(tokens.shape[1]).to(tokens.device) if self.causal else None
        x = self.positions(self.embedding(tokens))
        return self.output(self.layers(x, mask=future, src_key_padding_mask=tokens == PAD))


class PytorchTransformer(nn.Module):
    """nn.Transformer with embeddings and a projection."""

    def __init__(self, *, norm_first: bool = False):
        super().__init__()
        self.source, self.target = nn.Embedding(VOCAB, WIDTH), nn.Embedding(VOCAB, WIDTH)
        self.positions = SinusoidalPositionalEncoding(WIDTH)
        self.core = nn.Transformer(WIDTH, HEADS, 2, 2, 40, batch_first=True, norm_first=norm_first)
        self.output = nn.Linear(WIDTH, VOCAB)

    def forward(self, source, target):
        masks = {"src_key_padding_mask": source == PAD, "memory_key_padding_mask": source == PAD}
        masks |= {"tgt_mask": ~causal_mask(target.shape[1]).to(target.device), "tgt_key_padding_mask": target == PAD}
        x, y = self.positions(self.source(source)), self.positions(self.target(target))
        return self.output(self.core(x, y, **masks))


class PytorchDecoder(nn.Module):
    """nn.TransformerDecoder over a bag of source vectors with a mask that the caller passes; returns a tuple."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCAB, WIDTH), SinusoidalPositionalEncoding(WIDTH)
        self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, HEADS, 40, batch_first=True), 2)
        self.output = nn.Linear(WIDTH, VOCAB)

    def forward(self, source, target, source_padding_mask=None):
        memory, x = self.positions(self.embedding(source)), self.positions(self.embedding(target))
        future = ~causal_mask(target.shape[1]).to(target.device)
        x = self.layers(x, memory, tgt_mask=future, memory_key_padding_mask=source_padding_mask)
        return self.output(x), memory


class Recurrent(nn.Module):
    """A recurrent language model; in both directions it is a tagger."""

    def __init__(self, kind, *, layers=1, dropout=0.0, both=False, tied=False):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.layers = kind(WIDTH, WIDTH, layers, batch_first=True, dropout=dropout, bidirectional=both)
        self.output = nn.Linear(WIDTH * (1 + both), VOCAB)
        if tied:
            nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
            self.output.weight = self.embedding.weight

    def forward(self, tokens):
        return self.output(self.layers(self.embedding(tokens))[0])


class Convolutional(nn.Module):
    """Two convolutions with kernels of three tokens: around each position, or the last three up to it."""

    def __init__(self, *, causal: bool):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3) for _ in range(2))
        self.output = nn.Linear(WIDTH, VOCAB)
        self.sides = (2, 0) if causal else (1, 1)

    def forward(self, tokens):
        x = self.embedding(tokens).transpose(1, 2)
        for layer in self.layers:
            x = x + F.gelu(layer(F.pad(x, self.sides)))
        return self.output(x.transpose(1, 2))


class FusedLanguageModel(nn.Module):
    """Fused attention with is_causal, learned positions that end with the batch, a frozen embedding."""

    def __init__(self, *, zero_output: bool = False):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.embedding.weight.requires_grad_(False)
        self.norm, self.qkv, self.merge = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, VOCAB)
        if zero_output:
            nn.init.zeros_(self.merge.weight)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return {"logits": self.output(x + self.merge(attended))}


class MaskPassed(Tagger):
    """An encoder whose caller passes the mask, True = may attend."""

    def forward(self, tokens, mask):
        return self.output(self.encoder.encoder(self.encoder.embedding(tokens), mask[:, None, None, :]))


def hugging_face(family: str, *, masked: bool = False, **sizes) -> Callable:
    """A small random model of `transformers`, called by name with labels."""

    def build():
        transformers = pytest.importorskip("transformers")
        settings = getattr(transformers, f"{family.partition('For')[0].removesuffix('LMHeadModel')}Config")
        model = getattr(transformers, family)(settings(vocab_size=VOCAB, **sizes))
        ids = tokens(padded=True)
        batch = {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": ids.masked_fill(ids == PAD, -100)}
        if masked:  # every fourth token is to be found
            hidden = (torch.arange(LENGTH) % 4 == 1).expand_as(ids)
            batch["labels"] = ids.where(hidden, -100)
            batch["input_ids"] = ids.masked_fill(hidden, VOCAB - 1)
        return model, batch, {"pad_id": PAD}

    return build


def padded(build, **options) -> Callable:
    return lambda: (build(), tokens(padded=True), {"pad_id": PAD, **options})


def ours(**options) -> Callable:
    return padded(lambda: LanguageModel(config(**options)))


def pair(build) -> Callable:
    return lambda: (build(), (tokens(9, padded=True), tokens(7)), {"pad_id": PAD})


def plain(build, **options) -> Callable:
    return lambda: (build(), tokens(), options)


def _decoder():
    source = tokens(9, padded=True)
    return PytorchDecoder(), (source, tokens(7), source == PAD), {"pad_id": PAD}


def _mask_passed():
    ids = tokens(padded=True)
    return MaskPassed(), (ids, ids != PAD), {"pad_id": PAD, "causal": False}


_BERT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
_LLAMA = {**_BERT, "num_key_value_heads": 1, "max_position_embeddings": 32}
_HALF = {"decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "encoder_attention_heads": 3}

HEALTHY: dict[str, Callable] = {
    "language model": ours(),
    "language model, pre-norm, learned positions, not tied": ours(
        norm="pre", positions="learned", tie_embeddings=False
    ),
    "language model, rotary positions": ours(positions="rotary", dropout=0.0),
    "language model, ALiBi": ours(positions="alibi"),
    "transformer": pair(lambda: Transformer(config())),
    "transformer, pre-norm, two vocabularies, not tied": pair(
        lambda: Transformer(config(norm="pre", target_vocab_size=VOCAB + 2, tie_embeddings=False))
    ),
    "encoder": padded(Tagger, causal=False),
    "encoder, pre-norm": padded(lambda: Tagger(norm="pre")),
    "encoder with a mask that is passed": _mask_passed,
    "recurrent translator with attention": pair(lambda: RecurrentEncoderDecoder(VOCAB, WIDTH, attention=True)),
    "recurrent translator": pair(lambda: RecurrentEncoderDecoder(VOCAB, WIDTH, attention=False)),
    "nn.Transformer": pair(PytorchTransformer),
    "nn.Transformer, pre-norm": pair(lambda: PytorchTransformer(norm_first=True)),
    "nn.TransformerEncoder": padded(lambda: PytorchLanguageModel(causal=False)),
    "nn.TransformerEncoder, causal": plain(
        lambda: PytorchLanguageModel(causal=True, norm_first=True, dropout=0.0), pad_id=PAD, causal=True
    ),
    "nn.TransformerEncoder, causal, tied": padded(lambda: PytorchLanguageModel(causal=True, tied=True), causal=True),
    "nn.TransformerDecoder": _decoder,
    "LSTM": plain(lambda: Recurrent(nn.LSTM), pad_id=PAD, causal=True),
    "LSTM of two layers with dropout": plain(lambda: Recurrent(nn.LSTM, layers=2, dropout=0.2)),
    "LSTM in both directions": plain(lambda: Recurrent(nn.LSTM, both=True), causal=False),
    "GRU, tied": plain(lambda: Recurrent(nn.GRU, tied=True)),
    "convolutions around each token": plain(lambda: Convolutional(causal=False)),
    "causal convolutions": plain(lambda: Convolutional(causal=True), causal=True),
    "fused attention, frozen embedding": plain(FusedLanguageModel, pad_id=PAD, causal=True),
    "fused attention, a branch that starts at zero": plain(lambda: FusedLanguageModel(zero_output=True), causal=True),
    "GPT-2": hugging_face("GPT2LMHeadModel", n_embd=24, n_layer=2, n_head=3, n_positions=32),
    "Llama": hugging_face("LlamaForCausalLM", **_LLAMA),
    "Mistral": hugging_face("MistralForCausalLM", **_LLAMA),
    "OPT": hugging_face(
        *("OPTForCausalLM",),
        **{"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 40},
        **{"max_position_embeddings": 32, "word_embed_proj_dim": 24},
    ),
    "BERT": hugging_face("BertForMaskedLM", masked=True, **_BERT),
    "RoBERTa": hugging_face("RobertaForMaskedLM", masked=True, pad_token_id=PAD, **_BERT),
    "DistilBERT": hugging_face("DistilBertForMaskedLM", masked=True, dim=24, n_layers=2, n_heads=3, hidden_dim=40),
    "T5": hugging_face(
        "T5ForConditionalGeneration", d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, decoder_start_token_id=PAD
    ),
    "BART": hugging_face(
        *("BartForConditionalGeneration",),
        **{"d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "pad_token_id": PAD, "bos_token_id": 1, **_HALF},
        **{"eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2},
    ),
}
