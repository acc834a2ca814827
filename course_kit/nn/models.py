"""Whole models that a configuration describes: encoder–decoder, encoder only, decoder only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from course_kit._checks import check_finite, check_floats, check_instance, check_tokens, check_whole
from course_kit.nn.cache import DecoderCache, KeyValueCache
from course_kit.nn.layers import DecoderLayer, EncoderLayer, FeedForward
from course_kit.nn.positions import (
    AlibiPosition,
    LearnedPositionalEmbedding,
    RotaryPosition,
    SinusoidalPositionalEncoding,
)
from course_lib._typing import Bool, Float, Int
from course_lib.masking import decoder_mask, padding_mask
from course_lib.transformer import check_in_vocabulary

__all__ = [
    "Decoder",
    "Encoder",
    "LanguageModel",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "TransformerEncoder",
]

_EMBEDDED = {
    "sinusoidal": lambda config: SinusoidalPositionalEncoding(config.d_model),
    "learned": lambda config: LearnedPositionalEmbedding(config.max_length, config.d_model),
    "none": lambda config: nn.Identity(),
}
_IN_ATTENTION = {"rotary": RotaryPosition, "alibi": AlibiPosition}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes and choices of a transformer. The defaults are the base model of Vaswani et al. (2017), table 3.

    The paper states that this model has 65 million parameters. The layers as described, with one shared embedding of
    37,000 rows, have 63,082,496 (by `transformer_parameter_count`, and by counting the model's own). Rounding to whole
    millions explains at most half a million of the difference, and the paper does not explain the other 1.4 million:
    the vocabulary of "about 37000" tokens would have to have some 39,800, and a second embedding would add about
    ten times too many.

    Raises:
        TypeError: a size is not a whole number, or dropout is not a number.
        ValueError: a size is less than 1, num_heads does not divide d_model or does not suit the positions, dropout is
            not in [0, 1), pad_id is not in the vocabulary, or a choice is not among those that exist.
    """

    vocab_size: int = 37_000  # shared byte-pair vocabulary of WMT 2014 English–German (section 5.1)
    target_vocab_size: int | None = None  # None: source and target share vocabulary and embedding
    d_model: int = 512  # features of a token between layers
    num_heads: int = 8  # of 64 features each
    num_layers: int = 6  # in the encoder, and as many in the decoder
    d_ff: int = 2048  # four times d_model
    dropout: float = 0.1  # of the base model (section 5.4); also on attention weights and hidden features
    norm: Literal["post", "pre"] = "post"  # "pre" trains without warm-up (Xiong et al., 2020)
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = "sinusoidal"  # the position code
    max_length: int = 512  # limits learned positions only; the others have no longest sequence
    tie_embeddings: bool = True  # the output projection is the target embedding (section 3.4)
    pad_id: int = 0  # the token that fills up short sequences; masked wherever tokens are given

    def __post_init__(self):
        sizes = {
            n: getattr(self, n) for n in ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_length")
        }
        if self.target_vocab_size is not None:
            sizes["target_vocab_size"] = self.target_vocab_size
        check_whole(**sizes)
        check_whole(pad_id=self.pad_id, least=-math.inf)  # its range is checked below
        check_finite("dropout", self.dropout)
        if self.d_model % self.num_heads:
            raise ValueError(
                f"num_heads must divide d_model, got num_heads = {self.num_heads} for d_model = {self.d_model}"
            )
        if self.positions == "rotary" and (self.d_model // self.num_heads) % 2:
            raise ValueError(
                f"rotary positions rotate features in pairs, so d_model / num_heads must be even, got "
                f"{self.d_model} / {self.num_heads}"
            )
        if self.positions == "alibi" and self.num_heads & (self.num_heads - 1):
            raise ValueError(f"ALiBi positions need a power of two of heads, got num_heads = {self.num_heads}")
        smallest = min(self.vocab_size, self.target_vocab_size or self.vocab_size)
        if not 0 <= self.pad_id < smallest:
            raise ValueError(f"pad_id must be a token of the vocabulary, 0 … {smallest - 1}, got {self.pad_id}")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout must be a probability in [0, 1), got {self.dropout}")
        for name, choices in (("norm", ("post", "pre")), ("positions", (*_EMBEDDED, *_IN_ATTENTION))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def layer_options(self) -> dict:
        """Keyword arguments of `EncoderLayer` and `DecoderLayer` that follow from the choices."""
        make_position = _IN_ATTENTION.get(self.positions)
        return {
            "dropout": self.dropout,
            "norm_first": self.norm == "pre",
            "position": make_position() if make_position else None,
        }


class TokenEmbedding(nn.Module):
    """Tokens to vectors: `embedding · √d_model`, plus positions, then dropout.

    The matrix starts with variance `1 / d_model`, which suits an output projection; the factor `√d_model` brings its
    rows back to variance 1, about the size of the position codes (their mean square is ½).

    Args:
        embedding: `(vocab_size, d_model)`, possibly shared with other modules.
        config: determines the positions and the dropout.

    Source: Vaswani et al. (2017), section 3.4.
    """

    def __init__(self, embedding: nn.Embedding, config: TransformerConfig):
        super().__init__()
        check_instance(nn.Embedding, embedding=embedding)
        check_instance(TransformerConfig, config=config)
        self.embedding = embedding
        self.positions = _EMBEDDED.get(config.positions, _EMBEDDED["none"])(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: Int[Tensor, "batch length"], *, offset: int = 0) -> Float[Tensor, "batch length d_model"]:
        """`(B, L)` ids to `(B, L, d_model)`; the first of them is at position `offset`."""
        check_tokens(tokens)
        check_in_vocabulary(tokens, self.embedding.num_embeddings)
        scaled = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        if offset and not isinstance(self.positions, nn.Identity):
            return self.dropout(self.positions(scaled, offset=offset))
        return self.dropout(self.positions(scaled))


class Encoder(nn.Module):
    """A stack of encoder layers; pre-norm adds a last norm, since its residual stream is never normed otherwise."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        check_instance(TransformerConfig, config=config)
        self.layers, self.norm = _stack(EncoderLayer, config)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: list[KeyValueCache] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` through all layers; arguments as in `EncoderLayer`, with one cache per layer."""
        for number, layer in enumerate(self.layers):
            x = layer(x, mask) if cache is None else layer(x, mask, cache=cache[number])
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers; pre-norm adds a last norm."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        check_instance(TransformerConfig, config=config)
        self.layers, self.norm = _stack(DecoderLayer, config)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: Float[Tensor, "batch len_memory d_model"],
        self_mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: list[tuple[KeyValueCache, KeyValueCache]] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` through all layers; arguments as in `DecoderLayer`, with a pair of caches per layer."""
        for number, layer in enumerate(self.layers):
            options = {} if cache is None else {"cache": cache[number]}
            x = layer(x, memory, self_mask, memory_mask, **options)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder with embeddings and output projection: from token ids to logits.

    Args:
        config: sizes and choices; `TransformerConfig()` is the paper's base model.

    Source: Vaswani et al. (2017), section 3.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        check_instance(TransformerConfig, config=config)
        self.config = config
        source_embedding = _new_embedding(config.vocab_size, config)
        target_embedding = source_embedding
        if config.target_vocab_size is not None:
            target_embedding = _new_embedding(config.target_vocab_size, config)
        self.source_embedding = TokenEmbedding(source_embedding, config)
        self.target_embedding = TokenEmbedding(target_embedding, config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = _output_projection(target_embedding, config)
        _xavier_feed_forward(self)

    def forward(
        self, source: Int[Tensor, "batch len_source"], target: Int[Tensor, "batch len_target"]
    ) -> Float[Tensor, "batch len_target vocab"]:
        """Logits of the next token after each target position, padding and future masked.

        Args:
            source: ids `(B, L_source)`, padded with `config.pad_id`.
            target: ids `(B, L_target)`, starting with the token that begins a sentence.

        Returns:
            `(B, L_target, target vocabulary)`.
        """
        return self.decode(target, self.encode(source), source)

    def encode(self, source: Int[Tensor, "batch len_source"]) -> Float[Tensor, "batch len_source d_model"]:
        """Contextual vectors of the source, `(B, L_source)` to `(B, L_source, d_model)`; padding is not attended to."""
        return self.encoder(self.source_embedding(source), padding_mask(source, self.config.pad_id))

    def decode(
        self,
        target: Int[Tensor, "batch len_target"],
        memory: Float[Tensor, "batch len_source d_model"],
        source: Int[Tensor, "batch len_source"],
    ) -> Float[Tensor, "batch len_target vocab"]:
        """Logits of the next token after each target position, given the encoder's output.

        Args:
            target: ids `(B, L_target)`.
            memory: `(B, L_source, d_model)`, from `encode`.
            source: ids `(B, L_source)`, for the padding mask of the memory.

        Returns:
            `(B, L_target, target vocabulary)`.

        Raises:
            ValueError: memory and source differ in batch size or length.
        """
        check_tokens(source)
        check_floats(memory=memory)
        if memory.shape != (*source.shape, self.config.d_model):
            wanted = (*source.shape, self.config.d_model)
            raise ValueError(f"memory must be encode(source), {wanted}, got {tuple(memory.shape)}; encode source again")
        x = self.decoder(
            self.target_embedding(target),
            memory,
            decoder_mask(target, self.config.pad_id),
            padding_mask(source, self.config.pad_id),
        )
        return self.output(x)

    def begin(self, source: Int[Tensor, "batch len_source"]) -> DecoderCache:
        """Encode a source `(B, L_source)`, to be decoded token by token with `step`.

        Raises:
            TypeError: the model's class overrides `decode`, so its results could differ from those of `step`.
        """
        if type(self).decode is not Transformer.decode:
            raise TypeError(
                f"expected a Transformer with the course's own decode, got {type(self).__name__}, which overrides it, "
                f"so single steps would not match; decode it without a cache"
            )
        return DecoderCache(self.encode(source), padding_mask(source, self.config.pad_id), len(self.decoder.layers))

    def step(
        self,
        tokens: Int[Tensor, "batch width"],
        cache: DecoderCache,
        *,
        parents: Int[Tensor, "batch width"] | None = None,
    ) -> Float[Tensor, "batch width vocab"]:
        """One step of decoding, without gradients: the last position of `decode`, from its new tokens alone.

        Args:
            tokens: `(B, W)`, the last tokens of W hypotheses for each source; at first those that begin a sentence.
            cache: from `begin`; the step adds to it.
            parents: `(B, W)`, which of the last step's hypotheses each one continues; each its own if not given.

        Returns:
            Logits of the next token, `(B, W, target vocabulary)`.

        Raises:
            ValueError: the cache is for another number of sentences, or parents are missing, have the wrong shape, or
                (checked on a CPU only) are not among the last step's hypotheses.
        """
        check_tokens(tokens)
        batch, width = tokens.shape
        if batch != len(cache.memory):
            raise ValueError(
                f"tokens must have a row for each of the cache's {len(cache.memory)} sentences, got {batch}; "
                f"cache.select(rows) leaves sentences out"
            )
        # All of them are at the same position, so each is a sequence of length one for the embedding.
        x = self.target_embedding(tokens.reshape(-1, 1), offset=cache.steps)  # (B * W, 1, d_model)
        mask = cache.mask_for_next_step(width, parents)
        x = x.view(batch, width, -1)  # (B, W, d_model)
        return self.output(self.decoder(x, cache.memory, mask, cache.memory_mask, cache=cache.layers))


class TransformerEncoder(nn.Module):
    """Encoder only, as in BERT: token ids to contextual vectors.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        check_instance(TransformerConfig, config=config)
        self.config = config
        self.embedding = TokenEmbedding(_new_embedding(config.vocab_size, config), config)
        self.encoder = Encoder(config)
        _xavier_feed_forward(self)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """`(B, L)` ids to `(B, L, d_model)`; every token attends to every other that is not padding."""
        return self.encoder(self.embedding(tokens), padding_mask(tokens, self.config.pad_id))


class LanguageModel(nn.Module):
    """Decoder only, as in GPT: the encoder's layers under a causal mask, since there is nothing to cross-attend to.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        check_instance(TransformerConfig, config=config)
        self.config = config
        embedding = _new_embedding(config.vocab_size, config)
        self.embedding = TokenEmbedding(embedding, config)
        self.layers = Encoder(config)
        self.output = _output_projection(embedding, config)
        _xavier_feed_forward(self)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocab"]:
        """Logits of the next token after each position, `(B, L)` ids to `(B, L, vocab_size)`.

        No position attends to its future or to padding.
        """
        return self.output(self.layers(self.embedding(tokens), decoder_mask(tokens, self.config.pad_id)))

    def step(
        self, tokens: Int[Tensor, "batch new"], past: Int[Tensor, "batch before"], cache: list[KeyValueCache]
    ) -> Float[Tensor, "batch new vocab"]:
        """The last positions of `forward` on `past` and `tokens` together, from the new tokens alone; no gradients.

        Args:
            tokens: `(B, new)`, what comes after `past`.
            past: `(B, before)`, all tokens that the cache has seen.
            cache: `[KeyValueCache() for _ in range(num_layers)]` at first, when `past` is `(B, 0)`.

        Returns:
            Logits `(B, new, vocab_size)`.

        Raises:
            ValueError: the number of tokens in the cache differs from that of `past`.
        """
        before = past.shape[1]
        if len(cache[0]) != before:
            raise ValueError(
                f"past must be the {len(cache[0])} tokens that the cache has seen, got {before}; "
                f"append the tokens of each step to it"
            )
        mask = decoder_mask(torch.cat((past, tokens), dim=1), self.config.pad_id)[:, :, before:]
        return self.output(self.layers(self.embedding(tokens, offset=before), mask, cache=cache))


def _stack(kind: type[nn.Module], config: TransformerConfig) -> tuple[nn.ModuleList, nn.Module]:
    """The layers, and what comes after them: a norm, if the layers' sums are not normed."""
    sizes = config.d_model, config.num_heads, config.d_ff
    layers = nn.ModuleList(kind(*sizes, **config.layer_options()) for _ in range(config.num_layers))
    return layers, nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()


def _new_embedding(vocab_size: int, config: TransformerConfig) -> nn.Embedding:
    embedding = nn.Embedding(vocab_size, config.d_model)
    nn.init.normal_(embedding.weight, std=config.d_model**-0.5)
    return embedding


def _output_projection(embedding: nn.Embedding, config: TransformerConfig) -> nn.Linear:
    output = nn.Linear(config.d_model, embedding.num_embeddings, bias=False)
    if config.tie_embeddings:
        output.weight = embedding.weight
    else:
        nn.init.xavier_uniform_(output.weight)
    return output


def _xavier_feed_forward(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, FeedForward):
            for linear in (module.linear1, module.linear2):
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)
