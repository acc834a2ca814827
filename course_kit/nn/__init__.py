"""Layers and models with all that practice needs, built on the plain ones of `course_lib`.

    attention       attention with a bias and dropout, and PyTorch's fused kernels
    multi_head      MultiHeadAttention with dropout, position codes and a cache
    positions       position codes as modules
    layers          EncoderLayer, DecoderLayer, FeedForward with pre-norm, dropout, caches
    models          Transformer, TransformerEncoder, LanguageModel, described by a TransformerConfig
    cache           keys and values kept from one step of decoding to the next
    recording       record_attention: the weights of every layer while a model runs

Without its further options, each computes what the class of the same name in `course_lib` does, with the same weights.
"""

from course_kit.nn.attention import attention_with_bias, fused_attention
from course_kit.nn.cache import DecoderCache, KeyValueCache
from course_kit.nn.layers import DecoderLayer, EncoderLayer, FeedForward
from course_kit.nn.models import (
    Decoder,
    Encoder,
    LanguageModel,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    TransformerEncoder,
)
from course_kit.nn.multi_head import MultiHeadAttention
from course_kit.nn.positions import (
    AlibiPosition,
    AttentionPosition,
    LearnedPositionalEmbedding,
    RotaryPosition,
    SinusoidalPositionalEncoding,
)
from course_kit.nn.recording import named_attentions, record_attention

__all__ = [
    "AlibiPosition",
    "AttentionPosition",
    "Decoder",
    "DecoderCache",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "KeyValueCache",
    "LanguageModel",
    "LearnedPositionalEmbedding",
    "MultiHeadAttention",
    "RotaryPosition",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "TransformerEncoder",
    "attention_with_bias",
    "fused_attention",
    "named_attentions",
    "record_attention",
]
