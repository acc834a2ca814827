"""A published language model in the course's blocks against `transformers`' own, with a cache each.

Both have the same weights, dequantised once, and write the same tokens one by one on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.timing import compare
from course_kit.language_model import CausalLM, load_language_model
from course_kit.language_model.checkpoint import their_state

TOKENS, PAIRS = 32, 10


def rows() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """The ratio for SmolLM2-135M-Instruct."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        writer = load_language_model()
        theirs = their_model(writer)
        tokens = writer.encode(writer.chat_prompt("Write a short story about a lighthouse."))
        options = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "use_cache": True}
        result = compare(
            lambda: list(writer.generate_ids(tokens, TOKENS)),
            lambda: theirs.generate(tokens, attention_mask=torch.ones_like(tokens), **options),
            pairs=PAIRS,
            warm_up=1,
        )
        yield f"generate_ids / transformers' generate, {tokens.shape[1]} + {TOKENS} tokens", result.ratio, result.spread
    finally:
        torch.set_num_threads(threads)


def their_model(writer: CausalLM) -> torch.nn.Module:
    """The same model in `transformers`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = writer.config
    settings = LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads,
        max_position_embeddings=config.max_length,
        rms_norm_eps=config.eps,
        rope_theta=config.base,
        tie_word_embeddings=config.tied,
        bos_token_id=None,
        eos_token_id=min(writer.ends),
        pad_token_id=min(writer.ends),
    )
    model = LlamaForCausalLM(settings).eval()
    model.load_state_dict(their_state(writer.model, config), strict=False)
    model.tie_weights()
    return model
