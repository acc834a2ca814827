"""The reference of the course "Attention, Proven": attention and transformers in PyTorch. `import course_lib as cl`.

What a learner writes and what the pages show is this code, without its decorators and checks of arguments. The model
itself, `attention` to `transformer`, takes an hour to read. Each chapter is a module; in the order of the book:

    attention               softmax, attend, dot_product_score, additive_score, kernel_regression
    scaled_dot_product      scaled_dot_product_attention, self_attention, softmax_backward
    multi_head              MultiHeadAttention, split_heads, merge_heads
    masking                 causal_mask, padding_mask, decoder_mask, sliding_window_mask, masked_softmax
    positional_encoding     sinusoidal_encoding, apply_rotary, alibi_bias, LearnedPositionalEmbedding
    transformer             layer_norm, FeedForward, EncoderLayer, DecoderLayer, and the whole model: Transformer
    training                teacher_forcing_pair, label_smoothing_loss, warmup_rate, token_batches
    debugging               (import it from its module) start_loss, fit_one_batch, token_influence …
    decoding                greedy_decode, beam_search, top_p_filter, corpus_bleu, cached_attention
    inspection              attention_entropy, attention_rollout, head_scores, head_switched_off
    efficiency              tiled_attention, grouped_query_attention, cache_bytes, linear_attention
    language_model          rms_norm, swiglu, RotaryAttention, LanguageModel, next_token_loss, induction_score, lora …

Every mask is a bool tensor with True = may attend. Signatures state the expected shapes, and every call is compared
with them (`_checks.checked`). The package needs only PyTorch. Two packages build on it: `course_kit` has the same
layers with all that practice needs (`course_kit.nn`), the exercises and their `check`, views, `diagnose` and the
translator; `course_grade` grades classes.
"""

import importlib

from course_lib._version import __version__ as __version__
from course_lib.attention import (
    AdditiveScore,
    additive_score,
    attend,
    dot_product_score,
    kernel_regression,
    softmax,
)
from course_lib.decoding import beam_search, cached_attention, corpus_bleu, greedy_decode, top_p_filter
from course_lib.efficiency import (
    cache_bytes,
    convolution_layers,
    grouped_query_attention,
    linear_attention,
    online_softmax_step,
    speculative_acceptance,
    tiled_attention,
)
from course_lib.inspection import (
    attention_between_words,
    attention_entropy,
    attention_rollout,
    head_scores,
    head_switched_off,
    previous_token_score,
)
from course_lib.language_model import (
    LanguageBlock,
    LanguageModel,
    RMSNorm,
    RotaryAttention,
    SwiGLU,
    dequantise,
    induction_score,
    load_balancing_loss,
    lora,
    next_token_loss,
    rms_norm,
    swiglu,
)
from course_lib.masking import causal_mask, decoder_mask, masked_softmax, padding_mask, sliding_window_mask
from course_lib.multi_head import MultiHeadAttention, merge_heads, multi_head_parameter_count, split_heads
from course_lib.positional_encoding import (
    LearnedPositionalEmbedding,
    alibi_bias,
    apply_rotary,
    shift_matrix,
    sinusoidal_encoding,
)
from course_lib.scaled_dot_product import (
    attention_flops,
    scaled_dot_product_attention,
    self_attention,
    softmax_backward,
)
from course_lib.training import label_smoothing_loss, teacher_forcing_pair, token_batches, warmup_rate
from course_lib.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Transformer,
    layer_norm,
    transformer_parameter_count,
)

# Names that have moved to `course_kit`: notebooks that ask for them here keep working.
_MOVED = {
    "": "RecurrentEncoderDecoder Recipe Translator anomaly assemble assemble_set_encoder check copy diagnose hint "
    "pretrained progress reversal solution sort train_on",
    ".nn": "AlibiPosition RotaryPosition SinusoidalPositionalEncoding TransformerConfig "
    "TransformerEncoder fused_attention record_attention",
}


def __getattr__(name: str):
    for home, names in _MOVED.items():
        if name in names.split():
            return getattr(importlib.import_module(f"course_kit{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AdditiveScore",
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "LanguageBlock",
    "LanguageModel",
    "LearnedPositionalEmbedding",
    "MultiHeadAttention",
    "RMSNorm",
    "RotaryAttention",
    "SwiGLU",
    "Transformer",
    "additive_score",
    "alibi_bias",
    "apply_rotary",
    "attend",
    "attention_between_words",
    "attention_entropy",
    "attention_flops",
    "attention_rollout",
    "beam_search",
    "cache_bytes",
    "cached_attention",
    "causal_mask",
    "convolution_layers",
    "corpus_bleu",
    "decoder_mask",
    "dequantise",
    "dot_product_score",
    "greedy_decode",
    "grouped_query_attention",
    "head_scores",
    "head_switched_off",
    "induction_score",
    "kernel_regression",
    "label_smoothing_loss",
    "layer_norm",
    "linear_attention",
    "load_balancing_loss",
    "lora",
    "masked_softmax",
    "merge_heads",
    "multi_head_parameter_count",
    "next_token_loss",
    "online_softmax_step",
    "padding_mask",
    "previous_token_score",
    "rms_norm",
    "scaled_dot_product_attention",
    "self_attention",
    "shift_matrix",
    "sinusoidal_encoding",
    "sliding_window_mask",
    "softmax",
    "softmax_backward",
    "speculative_acceptance",
    "split_heads",
    "swiglu",
    "teacher_forcing_pair",
    "tiled_attention",
    "token_batches",
    "top_p_filter",
    "transformer_parameter_count",
    "warmup_rate",
]
