"""Changes of a reference that change nothing that the contract promises, each with the reason.

The key is what `tools.mutants` prints; everything else that survives is a hole in the cases.
"""

TRANSPOSE = "exchanging two axes is the same in either order"
DEVICE = "the same on a CPU; where tensors lie on a GPU, tests/test_gpu.py looks"
ONE_AXIS = "logits have one axis, which is the first and the last"
LARGER = "the larger of two numbers is the same in either order"
INTEGERS = "integers are exact, and the float64 or Python numbers that they meet make float64 of them"

EQUIVALENT = {
    "kernel_regression": {
        "distance = x_query.unsqueeze(-1) - x_key → distance = x_key - x_query.unsqueeze(-1)": (
            "only the square is used"
        ),
    },
    "scaled_dot_product_attention": {
        "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → "
        "scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])": TRANSPOSE,
    },
    "self_attention": {
        "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → "
        "scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])": TRANSPOSE,
    },
    "fix_head_split": {
        "return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2) → "
        "return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)": TRANSPOSE,
    },
    "fix_loss": {"by_class = logits.transpose(1, 2) → by_class = logits.transpose(2, 1)": TRANSPOSE},
    "fix_decoder_mask": {
        "ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device) → "
        "ones = torch.ones(length, length, dtype=torch.bool)": DEVICE,
    },
    "split_heads": {"return x.transpose(-3, -2) → return x.transpose(-2, -3)": TRANSPOSE},
    "merge_heads": {"x = x.transpose(-3, -2) → x = x.transpose(-2, -3)": TRANSPOSE},
    "MultiHeadAttention": {
        "return (self.out_proj(heads.transpose(1, 2).flatten(-2)), weights) → "
        "return (self.out_proj(heads.transpose(2, 1).flatten(-2)), weights)": TRANSPOSE,
        "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) → "
        "scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])": TRANSPOSE,
        "q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in projected) → "
        "q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(2, 1) for x in projected)": TRANSPOSE,
    },
    "decoder_mask": {
        "past = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril() → "
        "past = torch.ones(length, length, dtype=torch.bool).tril()": DEVICE,
    },
    "sinusoidal_encoding": {
        "position = torch.arange(length, dtype=torch.float64, device=device)[:, None] → "
        "position = torch.arange(length, device=device)[:, None]": INTEGERS,
        "position = torch.arange(length, dtype=torch.float64, device=device)[:, None] → "
        "position = torch.arange(length, dtype=torch.float64)[:, None]": DEVICE,
        "two_i = torch.arange(0, d_model, 2, dtype=torch.float64, device=device) → "
        "two_i = torch.arange(0, d_model, 2, device=device)": (
            "divided by d_model in float32 at worst, which the result's own float32 hides"
        ),
        "two_i = torch.arange(0, d_model, 2, dtype=torch.float64, device=device) → "
        "two_i = torch.arange(0, d_model, 2, dtype=torch.float64)": DEVICE,
    },
    "LearnedPositionalEmbedding": {
        "positions = torch.arange(length, device=x.device) → positions = torch.arange(length)": DEVICE,
    },
    "shift_matrix": {
        "angle = float(offset) * 10000.0 ** (-two_i / d_model) → angle = offset * 10000.0 ** (-two_i / d_model)": (
            "a number is multiplied as a float either way"
        ),
        "two_i = torch.arange(0, d_model, 2, dtype=torch.float64) → two_i = torch.arange(0, d_model, 2)": (
            "divided by d_model in float32 at worst, within what is allowed for large offsets"
        ),
    },
    "apply_rotary": {
        "even, odd = (x[..., 0::2], x[..., 1::2]) → even, odd = (x[..., ::2], x[..., 1::2])": "a slice begins at 0",
        "two_i = torch.arange(0, d, 2, dtype=torch.float64, device=x.device) → "
        "two_i = torch.arange(0, d, 2, dtype=torch.float64)": DEVICE,
    },
    "alibi_bias": {
        "distance = (position[:, None] - position).abs() → distance = (position - position[:, None]).abs()": (
            "only the absolute value is used"
        ),
        **{
            f"{line} → {changed}": reason
            for line, without_dtype, without_device in (
                (
                    "head = torch.arange(1, num_heads + 1, dtype=torch.float64, device=device)",
                    "head = torch.arange(1, num_heads + 1, device=device)",
                    "head = torch.arange(1, num_heads + 1, dtype=torch.float64)",
                ),
                (
                    "position = torch.arange(length, dtype=torch.float64, device=device)",
                    "position = torch.arange(length, device=device)",
                    "position = torch.arange(length, dtype=torch.float64)",
                ),
            )
            for changed, reason in ((without_dtype, INTEGERS), (without_device, DEVICE))
        },
    },
    "label_smoothing_loss": {
        "of_target = log_probs.gather(1, targets[:, None])[:, 0] → "
        "of_target = log_probs.gather(1, targets[:, None])[:, -1]": "of one column, the first is the last",
    },
    "warmup_rate": {
        "return min(1 / math.sqrt(step), step / warmup_steps ** 1.5) / math.sqrt(d_model) → "
        "return min(step / warmup_steps ** 1.5, 1 / math.sqrt(step)) / math.sqrt(d_model)": (
            "the smaller of two numbers, in either order"
        ),
    },
    "token_batches": {
        f"if not 0 <= length <= max_tokens: → if not {least} length <= max_tokens:": (
            "a sentence has a start token and an end token, so no length is below 2"
        )
        for least in ("0 <", "1 <=", "-1 <=")
    },
    "beam_search": {
        "candidates = [([*tokens, token], total + log_prob) for tokens, total in open_ for token, log_prob in "
        "enumerate(next_log_probs([bos_id, *tokens]).tolist())] → "
        "candidates = [([*tokens, token], total + log_prob) for tokens, total in open_ for token, log_prob in "
        "enumerate(next_log_probs([bos_id, *tokens]))]": (
            "sums are tensors of float32 then, and no decision of a case is as close as that"
        ),
    },
    "top_p_filter": {
        "keep = before < p → keep = before <= p": "the contract leaves a threshold met to the last bit open",
        "before = probs.cumsum(-1) - probs → before = probs.cumsum(0) - probs": ONE_AXIS,
        "before = probs.cumsum(-1) - probs → before = probs.cumsum(-0) - probs": ONE_AXIS,
        "probs = logits.softmax(-1)[order] → probs = logits.softmax(0)[order]": ONE_AXIS,
        "probs = logits.softmax(-1)[order] → probs = logits.softmax(-0)[order]": ONE_AXIS,
    },
    "corpus_bleu": {
        "return 100 * min(1.0, math.exp(1 - r / h)) * math.exp(logs / 4) → "
        "return 100 * min(math.exp(1 - r / h), 1.0) * math.exp(logs / 4)": (
            "the smaller of two numbers, in either order"
        ),
        **{
            "pairs = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True)] → "
            f"pairs = [(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references{strict})]": (
                "both lists have the same length by contract"
            )
            for strict in ("", ", strict=False")
        },
    },
    "cached_attention": {
        "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → "
        "scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])": TRANSPOSE,
    },
    "attention_entropy": {
        "logarithms = torch.where(weights > 0, weights, 1).log() → "
        "logarithms = torch.where(weights > 0, weights, 2).log()": "the logarithm is multiplied by a weight of zero",
    },
    "attention_rollout": {
        "identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device) → "
        "identity = torch.eye(weights.shape[-1], device=weights.device)": (
            "zeros and ones are exact in float32, and the sum with float64 weights is float64"
        ),
        "identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device) → "
        "identity = torch.eye(weights.shape[-1], dtype=weights.dtype)": DEVICE,
        "identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device) → "
        "identity = torch.eye(weights.shape[-2], dtype=weights.dtype, device=weights.device)": "the maps are square",
    },
    "attention_between_words": {
        "number = torch.arange(words.max() + 1, device=words.device) → number = torch.arange(words.max() + 1)": DEVICE,
    },
    "head_switched_off": {
        "merged = remaining.transpose(1, 2).flatten(2) → merged = remaining.transpose(2, 1).flatten(2)": TRANSPOSE,
    },
    "grouped_query_attention": {
        "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → "
        "scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])": TRANSPOSE,
    },
    "linear_attention": {
        "for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True): → "
        f"for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2){strict}):": (
            "all three have the same length by contract"
        )
        for strict in ("", ", strict=False")
    },
    "online_softmax_step": {
        "larger = torch.maximum(maximum, scores.amax(dim=-1)) → "
        "larger = torch.maximum(scores.amax(dim=-1), maximum)": LARGER,
    },
    "tiled_attention": {
        "scores = query @ keys.transpose(-2, -1) → scores = query @ keys.transpose(-1, -2)": TRANSPOSE,
        "larger = torch.maximum(maximum, scores.amax(dim=-1)) → "
        "larger = torch.maximum(scores.amax(dim=-1), maximum)": LARGER,
        **{
            "blocks = zip(key.split(block_size, -2), value.split(block_size, -2), strict=True) → "
            f"blocks = zip(key.split(block_size, -2), value.split(block_size, -2){strict})": (
                "there are as many values as keys"
            )
            for strict in ("", ", strict=False")
        },
        **{
            f"{line}query.shape[:-1]{rest} → {line}query.shape[:{end}]{rest}": (
                "the axes that are missing at the start come with the first block, by broadcasting"
            )
            for line, rest in (
                ("maximum = query.new_full(", ", -math.inf)"),
                ("output = query.new_zeros(*", ", value.shape[-1])"),
            )
            for end in ("0", "-0")
        },
    },
    **{
        name: {
            "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → "
            "scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])": TRANSPOSE,
        }
        for name in ("fix_scaled_attention", "fix_attention_weights")
    },
    "fix_cached_attention": {
        "past = torch.ones(len_q, len_k, dtype=torch.bool, device=query.device).tril(len_k - len_q) → "
        "past = torch.ones(len_q, len_k, dtype=torch.bool).tril(len_k - len_q)": DEVICE,
    },
}
