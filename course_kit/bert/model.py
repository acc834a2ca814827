"""An encoder of the BERT family, made of the course's `EncoderLayer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit.bert.config import ACTIVATIONS, BertConfig, Pooling
from course_kit.bert.tokens import SentenceTokenizer, TokenBatch
from course_kit.nn import EncoderLayer, record_attention
from course_lib._typing import Bool, Float, Int

__all__ = ["BertEmbedding", "BertEncoder", "EncoderOutput"]


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoder computes for a batch."""

    states: tuple[Float[Tensor, "batch length d_model"], ...]  # of the embedding, then of each layer
    pooled: Float[Tensor, "batch d_model"] | None  # tanh of a projection of the first token; None without a pooler

    @cached_property
    def hidden(self) -> Float[Tensor, "states batch length d_model"]:
        """The embedding and the output of each layer, `(num_layers + 1, B, L, d_model)`."""
        return torch.stack(self.states)

    @property
    def last(self) -> Float[Tensor, "batch length d_model"]:
        """The output of the last layer, `(B, L, d_model)`."""
        return self.states[-1]


class BertEmbedding(nn.Module):
    """Tokens to vectors: token, segment and position embedding, summed and then layer-normed.

    x = norm(token + segment + position), without the factor √d_model of the original transformer.

    Args:
        config: sizes; without segments the middle term is left out.

    Source: Devlin et al. (2019), section 3 and figure 2; the layer norm is in their code only.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        # Padding learns nothing: the rows that belong to it collect no gradient.
        row_of_padding = config.pad_id if config.family == "roberta" else None
        self.token = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        self.position = nn.Embedding(config.max_positions, config.d_model, padding_idx=row_of_padding)
        self.segment = nn.Embedding(config.num_segments, config.d_model) if config.num_segments else None
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, token_ids: Int[Tensor, "batch length"], segment_ids: Int[Tensor, "batch length"] | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """`(B, L)` ids to `(B, L, d_model)`; segments are all 0 if not given."""
        x = self.token(token_ids)  # (B, L, d_model)
        if self.segment is not None:
            x = x + (self.segment.weight[0] if segment_ids is None else self.segment(segment_ids))
        return self.dropout(self.norm(x + self.position(self._positions(token_ids))))

    def _positions(self, token_ids: Tensor) -> Tensor:
        if self.config.family == "roberta":  # padding has a row of its own, and is not counted
            is_token = token_ids != self.config.pad_id
            return is_token.cumsum(-1) * is_token + self.config.pad_id  # (B, L)
        return torch.arange(token_ids.shape[-1], device=token_ids.device)  # (L,)


class BertEncoder(nn.Module):
    """Token ids to contextual vectors, as BERT, MiniLM, DistilBERT and RoBERTa compute them.

    The blocks are the course's `EncoderLayer`: post-norm, with GELU. `load_encoder` makes one from a folder of weights.

    Args:
        config: sizes and choices.
        tokenizer: needed by `tokenize` and `embed` only.
        pooler: whether there is a projection of the first token.
        pooling: how `embed` makes one vector of a sentence.

    Source: Devlin et al. (2019), section 3; Sanh et al. (2019) for DistilBERT; Liu et al. (2019) for RoBERTa.
    """

    def __init__(
        self,
        config: BertConfig,
        tokenizer: SentenceTokenizer | None = None,
        *,
        pooler: bool = True,
        pooling: Pooling | None = None,
    ):
        super().__init__()
        self.config = config
        self.tokenizer = tokenizer
        self.pooling = pooling or Pooling()
        self.embedding = BertEmbedding(config)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.num_layers))
        self.pooler = nn.Linear(config.d_model, config.d_model) if pooler else None

    def forward(
        self,
        token_ids: TokenBatch | Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"] | None = None,
        segment_ids: Int[Tensor, "batch length"] | None = None,
    ) -> EncoderOutput:
        """The vectors of all tokens after the embedding and after each layer.

        Args:
            token_ids: `(B, L)`, or a batch from `tokenize`, which has the other two with it.
            mask: bool `(B, L)`, True = a token, False = padding, which no token attends to.
            segment_ids: `(B, L)`, 0 for the first and 1 for the second sentence of a pair; all 0 if not given.

        Raises:
            TypeError: the mask is not bool, or token_ids or segment_ids are not integers.
            ValueError: a shape does not fit, the sequence is too long, or (on a CPU) an id is out of range.
        """
        if isinstance(token_ids, TokenBatch):
            token_ids, mask, segment_ids = token_ids.token_ids, token_ids.mask, token_ids.segment_ids
        if self.embedding.segment is None:
            segment_ids = None
        self._check(token_ids, mask, segment_ids)
        states = [self.embedding(token_ids, segment_ids)]
        allowed = None if mask is None or _allows_all(mask) else mask[:, None, None, :]  # (B, 1, 1, L)
        for layer in self.layers:
            states.append(layer(states[-1], allowed))  # (B, L, d_model)
        pooled = None if self.pooler is None else torch.tanh(self.pooler(states[-1][:, 0]))  # (B, d_model)
        return EncoderOutput(tuple(states), pooled)

    def tokenize(self, sentences: Sequence[str], second: Sequence[str] | None = None, **options: Any) -> TokenBatch:
        """A batch of sentences, or of pairs of them, on the model's device.

        Args:
            sentences: at least one.
            second: the second sentence of each pair.
            options: `truncate` and `max_length` of `SentenceTokenizer`.

        Raises:
            TypeError: sentences are not a list of texts.
            ValueError: there are none, their numbers differ, one is too long, or the model has no tokenizer.
        """
        if self.tokenizer is None:
            raise ValueError("this encoder was made without a tokenizer; load_encoder gives it one")
        return self.tokenizer(sentences, second, **options).to(self.embedding.token.weight.device)

    @torch.no_grad()
    def attention(
        self,
        token_ids: TokenBatch | Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"] | None = None,
        segment_ids: Int[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "layers batch heads length length"]:
        """The attention weights of all heads of all layers, `(num_layers, B, H, L, L)`; arguments as in `forward`."""
        with record_attention(self) as maps:
            self(token_ids, mask, segment_ids)
        return torch.stack([maps[f"layers.{number}.self_attention"] for number in range(len(self.layers))])

    @torch.no_grad()
    def embed(
        self, sentences: Sequence[str], *, batch_size: int = 32, normalise: bool = True
    ) -> Float[Tensor, "sentences d_model"]:
        """One vector per sentence: the mean of its tokens' last vectors, padding left out, scaled to length 1.

        Args:
            sentences: at least one; what is longer than the model's card allows is cut.
            batch_size: sentences computed side by side.
            normalise: False leaves the length of the mean.

        Returns:
            `(N, d_model)`.

        Raises:
            ValueError: the model's folder says that its sentences are pooled in another way.

        Source: Reimers & Gurevych (2019), section 3.
        """
        if self.pooling.mode != "mean":
            raise ValueError(f"embed takes the mean over tokens, but this model is pooled by {self.pooling.mode}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        # Sentences of like length side by side leave little padding.
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        if not order or isinstance(sentences, str):
            self.tokenize(sentences)  # raises the error that says what is wrong
        vectors = torch.empty(len(order), self.config.d_model, device=self.embedding.token.weight.device)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            batch = self.tokenize([sentences[i] for i in rows], max_length=self.pooling.max_length, truncate=True)
            weights = batch.mask[..., None].to(vectors)  # (B, L, 1)
            vectors[rows] = ((self(batch).last * weights).sum(1) / weights.sum(1)).to(vectors)  # (B, d_model)
        return F.normalize(vectors, dim=-1) if normalise else vectors

    def _check(self, token_ids: Tensor, mask: Tensor | None, segment_ids: Tensor | None) -> None:
        _check_ids("token_ids", token_ids, self.config.vocab_size)
        if token_ids.shape[-1] > self.config.max_length:
            raise ValueError(
                f"a sequence must have at most {self.config.max_length} tokens, got {token_ids.shape[-1]}; the model "
                f"has no embeddings for later positions"
            )
        if mask is not None and mask.dtype != torch.bool:
            raise TypeError(f"mask must be bool, True = a token, got {mask.dtype}; write mask.bool()")
        for name, x in (("mask", mask), ("segment_ids", segment_ids)):
            if x is not None and x.shape != token_ids.shape:
                raise ValueError(
                    f"{name} must have the shape of token_ids, {tuple(token_ids.shape)}, got {tuple(x.shape)}"
                )
        if segment_ids is not None:
            _check_ids("segment_ids", segment_ids, self.config.num_segments)


def _layer(config: BertConfig) -> EncoderLayer:
    layer = EncoderLayer(
        config.d_model,
        config.num_heads,
        config.d_ff,
        dropout=config.dropout,
        activation=ACTIVATIONS[config.activation],
        norm_eps=config.norm_eps,
    )
    # BERT drops attention weights with a probability of their own, and no hidden features.
    layer.self_attention.dropout = config.attention_dropout
    layer.feed_forward.dropout.p = 0.0
    return layer


def _allows_all(mask: Tensor) -> bool:
    # Reading a value off an accelerator would wait for it.
    return mask.device.type == "cpu" and bool(mask.all())


def _check_ids(name: str, ids: Tensor, size: int) -> None:
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, got {ids.dtype}")
    if ids.dim() != 2 or not ids.numel():
        raise ValueError(f"{name} must be (batch, length), neither of them 0, got {tuple(ids.shape)}")
    if ids.device.type == "cpu":
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= size:
            raise ValueError(f"{name} must lie in 0 … {size - 1}, got {low} … {high}")
