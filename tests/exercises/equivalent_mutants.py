"""Changes of a reference that change nothing that the contract promises, each with the reason.

The key is what `tools.mutants` prints; everything else that survives is a hole in the cases.
"""

TRANSPOSE = "exchanging two axes is the same in either order"
DEVICE = "the same on a CPU; where tensors lie on a GPU, tests/test_gpu.py looks"
ONE_AXIS = "logits have one axis, which is the first and the last"
LARGER = "the larger of two numbers is the same in either order"
HALF = "matters in half precision only, where tests/test_efficiency.py looks"
INTEGERS = "integers are exact, and the float64 or Python numbers that they meet make float64 of them"

EQUAL_MODELS = "there are no equal distributions by contract; for them, tests/test_efficiency.py looks"
NO_KEYS = "there are keys by contract; without any, tests/test_efficiency.py looks"
IN_HALF_PRECISION = {
    **{
        f"query, key, value = (query.to(wide), key.to(wide), value.to(wide)) → {new}": HALF
        for new in (
            "pass",
            "query, key, value = (query, key.to(wide), value.to(wide))",
            "query, key, value = (query.to(wide), key, value.to(wide))",
            "query, key, value = (query.to(wide), key.to(wide), value)",
        )
    },
    "dtype, wide = (query.dtype, torch.promote_types(query.dtype, torch.float32)) → "
    "dtype, wide = (query.dtype, torch.promote_types(torch.float32, query.dtype))": (
        "the wider of two dtypes is the same in either order"
    ),
}

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
        "of_target = log_probs.gather(1, targets[real].long()[:, None])[:, 0] → "
        "of_target = log_probs.gather(1, targets[real].long()[:, None])[:, -1]": "of one column, the first is the last",
        "of_target = log_probs.gather(1, targets[real].long()[:, None])[:, 0] → "
        "of_target = log_probs.gather(1, targets[real][:, None])[:, 0]": "the targets of the cases are int64",
        "of_all = log_probs.mean(dim=-1) → of_all = log_probs.mean()": (
            "rows of padding are out, and the mean of the rows' means is the mean of all"
        ),
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
    "greedy_decode": {
        "token = int(next_log_probs(list(tokens)).argmax()) → token = int(next_log_probs(tokens).argmax())": (
            "no model of a case changes the list that it is given"
        ),
    },
    "beam_search": {
        **dict.fromkeys(
            ("without: if max_length == 0:", "if max_length == 0: → if max_length == -1:"),
            "the contract begins with one step",
        ),
        "candidates = [([*tokens, token], total + log_prob) for tokens, total in open_ for token, log_prob in "
        "enumerate(next_log_probs([bos_id, *tokens]).tolist())] → "
        "candidates = [([*tokens, token], total + log_prob) for tokens, total in open_ for token, log_prob in "
        "enumerate(next_log_probs([bos_id, *tokens]))]": (
            "sums are tensors of float32 then, and no decision of a case is as close as that"
        ),
    },
    "top_p_filter": {
        "keep[..., 0] = True → pass": "p is above 0 by contract, and nothing is before the first token",
        **{
            f"keep = (before < p) | (p == 1) → keep = {changed}": reason
            for changed, reason in (
                ("(before <= p) | (p == 1)", "the contract leaves a threshold met to the last bit open"),
                ("(before < p) | (p == 2)", "p is below 1 by contract"),
                ("(before < p) | (p == 0)", "p is between 0 and 1 by contract"),
            )
        },
        **{
            f"before = probs.cumsum(-1) - probs → before = probs.cumsum({axis}) - probs": ONE_AXIS
            for axis in ("0", "-0")
        },
        **{
            f"keep = keep.gather(-1, order.argsort()) → keep = keep.gather({axis}, order.argsort())": ONE_AXIS
            for axis in ("0", "-0")
        },
        **{
            "probs, order = logits.double().softmax(-1).sort(descending=True, stable=True) → "
            f"probs, order = {changed}": reason
            for changed, reason in (
                ("logits.double().softmax(0).sort(descending=True, stable=True)", ONE_AXIS),
                ("logits.double().softmax(-0).sort(descending=True, stable=True)", ONE_AXIS),
                ("logits.double().softmax(-1).sort(descending=True)", "no two logits of a case are equal"),
                (
                    "logits.double().softmax(-1).sort(descending=True, stable=False)",
                    "no two logits of a case are equal",
                ),
                (
                    "logits.softmax(-1).sort(descending=True, stable=True)",
                    "in float32, too, no case is as close to its p as rounding",
                ),
            )
        },
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
    "speculative_acceptance": {
        **{
            f"return (accept, torch.where(same, target, excess / total.masked_fill(same, 1.0))) → {new}": EQUAL_MODELS
            for new in (
                "return (accept, torch.where(same, target, excess / total))",
                "return (accept, torch.where(same, target, excess / total.masked_fill(same, 2.0)))",
                "return (accept, torch.where(same, target, excess / total.masked_fill(same, -1.0)))",
            )
        },
        "same = total == 0 → same = total == 1": EQUAL_MODELS,
        "same = total == 0 → same = total == -1": EQUAL_MODELS,
        **{
            "accept = (target / draft.masked_fill(never, 1.0)).clamp(max=1.0).masked_fill(never, 1.0) → "
            f"accept = (target / draft{divisor}).clamp(max=1.0).masked_fill(never, 1.0)": (
                "what it divides by is masked afterwards; gradients at zeros are asked for in tests/test_efficiency.py"
            )
            for divisor in ("", ".masked_fill(never, 2.0)", ".masked_fill(never, -1.0)")
        },
    },
    "linear_attention": {
        **IN_HALF_PRECISION,
        "return torch.stack(outputs, dim=-2).to(dtype) → return torch.stack(outputs, dim=-2)": HALF,
        **{
            "for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True): → "
            f"for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2){strict}):": (
                "all three have the same length by contract"
            )
            for strict in ("", ", strict=False")
        },
    },
    "online_softmax_step": {
        "larger = torch.maximum(maximum, scores.amax(dim=-1)) → "
        "larger = torch.maximum(scores.amax(dim=-1), maximum)": LARGER,
    },
    "tiled_attention": {
        **IN_HALF_PRECISION,
        "return (output / total[..., None]).to(dtype) → return output / total[..., None]": HALF,
        "without: if not key.shape[-2]:": NO_KEYS,
        "if not key.shape[-2]: → if not key.shape[-1]:": NO_KEYS,
        "return output.to(dtype) → return output": NO_KEYS,
        "scores = query @ keys.transpose(-2, -1) → scores = query @ keys.transpose(-1, -2)": TRANSPOSE,
        **{
            "blocks = zip(key.split(block_size, -2), value.split(block_size, -2), strict=True) → "
            f"blocks = zip(key.split(block_size, -2), value.split(block_size, -2){strict})": (
                "there are as many values as keys"
            )
            for strict in ("", ", strict=False")
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
