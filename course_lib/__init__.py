"""Reference implementations of the course "Attention, Proven": attention and transformers in PyTorch.

One module per chapter, in reading order: `attention`, `scaled_dot_product`, `multi_head`, `masking`,
`positional_encoding`, `transformer`, `training`, `decoding`, `inspection`. A real translator: `data` (corpora,
vocabulary, batches), `recipes` and `trainer` (PyTorch Lightning), `generating` (batched decoding with a cache),
`translator` (text in, text out, saved and loaded). Beside them `models` stacks the blocks, `recurrent` is the model
that attention was invented for, `bert` loads trained encoders into these blocks, `measuring` counts, and `viz` draws.
`tasks` has small tasks and trains a model on one (`train_on`), `assembling` makes a transformer from a learner's own
parts (`assemble`), which `fitting_parts` tries and puts in their places. `exercises` and `grader` are the course's
exercises and what checks them: `check`, `hint`, `solution`, `progress`. Every mask is a bool tensor with True = may
attend.
"""

from importlib.metadata import PackageNotFoundError, version

from course_lib.assembling import assemble, assemble_set_encoder
from course_lib.attention import (
    AdditiveScore,
    additive_score,
    attend,
    dot_product_score,
    kernel_regression,
    softmax,
)
from course_lib.decoding import beam_search, cached_attention, corpus_bleu, greedy_decode, top_p_filter
from course_lib.inspection import (
    attention_between_words,
    attention_entropy,
    attention_rollout,
    head_scores,
    head_switched_off,
    previous_token_score,
)
from course_lib.masking import causal_mask, decoder_mask, masked_softmax, padding_mask, sliding_window_mask
from course_lib.models import LanguageModel, Transformer, TransformerConfig, TransformerEncoder
from course_lib.multi_head import (
    MultiHeadAttention,
    merge_heads,
    multi_head_parameter_count,
    record_attention,
    split_heads,
)
from course_lib.positional_encoding import (
    AlibiPosition,
    LearnedPositionalEmbedding,
    RotaryPosition,
    SinusoidalPositionalEncoding,
    alibi_bias,
    apply_rotary,
    shift_matrix,
    sinusoidal_encoding,
)
from course_lib.recurrent import RecurrentEncoderDecoder
from course_lib.scaled_dot_product import (
    attention_flops,
    fused_attention,
    scaled_dot_product_attention,
    softmax_backward,
)
from course_lib.tasks import anomaly, reversal, train_on
from course_lib.training import label_smoothing_loss, teacher_forcing_pair, token_batches, warmup_rate
from course_lib.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    layer_norm,
    transformer_parameter_count,
)

try:
    __version__ = version("course_lib")
except PackageNotFoundError:  # read from a checkout that is not installed
    __version__ = "0+unknown"

_SELF_CHECK = ("check", "hint", "progress", "solution")


def __getattr__(name: str):
    # Loaded when asked for: whoever reads or runs the library needs no exercises.
    if name in _SELF_CHECK:
        from course_lib import grader

        return getattr(grader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AdditiveScore",
    "AlibiPosition",
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "LanguageModel",
    "LearnedPositionalEmbedding",
    "MultiHeadAttention",
    "RecurrentEncoderDecoder",
    "RotaryPosition",
    "SinusoidalPositionalEncoding",
    "Transformer",
    "TransformerConfig",
    "TransformerEncoder",
    "additive_score",
    "alibi_bias",
    "anomaly",
    "apply_rotary",
    "assemble",
    "assemble_set_encoder",
    "attend",
    "attention_between_words",
    "attention_entropy",
    "attention_flops",
    "attention_rollout",
    "beam_search",
    "cached_attention",
    "causal_mask",
    "check",
    "corpus_bleu",
    "decoder_mask",
    "dot_product_score",
    "fused_attention",
    "greedy_decode",
    "head_scores",
    "head_switched_off",
    "hint",
    "kernel_regression",
    "label_smoothing_loss",
    "layer_norm",
    "masked_softmax",
    "merge_heads",
    "multi_head_parameter_count",
    "padding_mask",
    "previous_token_score",
    "progress",
    "record_attention",
    "reversal",
    "scaled_dot_product_attention",
    "shift_matrix",
    "sinusoidal_encoding",
    "sliding_window_mask",
    "softmax",
    "softmax_backward",
    "solution",
    "split_heads",
    "teacher_forcing_pair",
    "token_batches",
    "top_p_filter",
    "train_on",
    "transformer_parameter_count",
    "warmup_rate",
]
