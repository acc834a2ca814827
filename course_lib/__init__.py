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

# ruff: noqa: F403 -- the names of a chapter are those in its own `__all__`
from course_lib._version import __version__ as __version__
from course_lib.attention import *
from course_lib.decoding import *
from course_lib.efficiency import *
from course_lib.inspection import *
from course_lib.language_model import *
from course_lib.masking import *
from course_lib.multi_head import *
from course_lib.positional_encoding import *
from course_lib.scaled_dot_product import *
from course_lib.training import *
from course_lib.transformer import *

# The names that the chapters export; the chapters themselves are modules, and have no `__module__`.
__all__ = sorted(
    name for name, thing in globals().items() if getattr(thing, "__module__", "").startswith("course_lib.")
)
