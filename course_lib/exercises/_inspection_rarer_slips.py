"""Rarer mistakes in the exercises on the inside of a trained model, most of them made from the right function."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise
from course_lib.exercises._inspection_switched_off_slips import output_with, project, side_by_side, without

__all__ = [
    "add_rarer_between_slips",
    "add_rarer_entropy_slips",
    "add_rarer_previous_slips",
    "add_rarer_rollout_slips",
    "add_rarer_switched_off_slips",
]


def add_rarer_entropy_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_entropy`."""
    entropy = exercise.reference
    exercise.misconception(
        "share_of_the_keys",
        "This is the exponential of the entropy, divided by the number of keys: roughly, which share of the keys the "
        "query attends to. The entropy itself is wanted.",
    )(lambda weights: entropy(weights).exp() / weights.shape[-1])
    exercise.misconception(
        "entropy_of_the_mean_query",
        "The weights are averaged over the queries first, so there is one entropy per map, that of the mean. Each "
        "query has its own entropy.",
    )(lambda weights: entropy(weights.mean(-2)))
    exercise.misconception(
        "first_key_left_out",
        "The first key is left out of the sum. All keys count, special tokens included.",
    )(lambda weights: entropy(weights[..., 1:]))
    exercise.misconception(
        "last_key_left_out",
        "The last key is left out of the sum. All keys count.",
    )(lambda weights: entropy(weights[..., :-1]))
    exercise.misconception(
        "half_the_entropy",
        "The result is half of the entropy. There is no factor in front of the sum except −1.",
    )(lambda weights: entropy(weights) / 2)
    for small in ("1e-3", "1e-4", "1e-5", "1e-6"):
        exercise.misconception(
            f"log_of_at_least_{small}",
            f"Inside the logarithm, weights below {small} are raised to it. This prevents NaN, but small positive "
            f"weights get a wrong logarithm. Only a weight of exactly 0 needs care.",
        )(lambda weights, small=float(small): -(weights * weights.clamp(min=small).log()).sum(-1))
    for small in ("1e-2", "1e-4", "1e-5", "1e-7"):
        exercise.misconception(
            f"added_in_the_log_{small}",
            f"A number near {small} is added inside the logarithm. It prevents NaN at a zero weight, but it also "
            f"changes the entropy. Treat the zero weights separately, and leave the others as they are.",
        )(lambda weights, small=float(small): -(weights * (weights + small).log()).sum(-1))
    exercise.misconception(
        "both_factors_with_one_minus_w",
        "The terms are those of 1 − w, the weight on all *other* keys. The terms of the entropy are −w log w.",
    )(lambda weights: entropy(1 - weights))


def add_rarer_previous_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `previous_token_score`."""
    score = exercise.reference
    exercise.misconception(
        "compared_with_equal_weights",
        "1/L, the score of equal weights, is subtracted. The score itself is wanted.",
    )(lambda weights: score(weights) - 1 / weights.shape[-1])
    exercise.misconception(
        "multiple_of_equal_weights",
        "The score is divided by 1/L, the score of equal weights. The score itself is wanted.",
    )(lambda weights: score(weights) * weights.shape[-1])
    exercise.misconception(
        "only_where_largest",
        "A weight counts only where the previous token has the largest weight of the row. Every weight on a previous "
        "token counts, be it large or small.",
    )(
        lambda weights: (
            weights.diagonal(-1, -2, -1) * (weights[..., 1:, :].amax(-1) == weights.diagonal(-1, -2, -1))
        ).mean(-1)
    )
    exercise.misconception(
        "lower_triangle_averaged",
        "All weights on earlier tokens are averaged. Only those on the token directly before the query count.",
    )(lambda weights: weights.tril(-1).sum((-1, -2)) / (weights.shape[-1] * (weights.shape[-1] - 1) / 2))
    exercise.misconception(
        "all_before_over_all_queries",
        "All the weight on earlier tokens is counted, and divided by L. Only the token directly before the query is "
        "wanted, and L − 1 queries have one.",
    )(lambda weights: weights.tril(-1).sum((-1, -2)) / weights.shape[-1])
    exercise.misconception(
        "next_token_over_all_queries",
        "This is the sum of the weights on the *next* token, divided by L. The previous token is wanted, which L − 1 "
        "queries have.",
    )(lambda weights: weights.diagonal(1, -2, -1).sum(-1) / weights.shape[-1])
    exercise.misconception(
        "next_token_wrapped_around",
        "This is the mean weight on the *next* token, and the last query is counted with the first key. The previous "
        "token is wanted.",
    )(lambda weights: weights.roll(-1, -1).diagonal(0, -2, -1).mean(-1))
    exercise.misconception(
        "squeezed",
        "Axes of length 1 are squeezed away. With a batch of one, that removes the batch axis.",
    )(lambda weights: score(weights).squeeze())
    exercise.misconception(
        "two_back_over_two_fewer",
        "The diagonal is the right one, but it is divided by the number of tokens plus one.",
    )(lambda weights: weights.diagonal(-1, -2, -1).sum(-1) / (weights.shape[-1] + 1))


def add_rarer_rollout_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_rollout`."""
    rollout = exercise.reference

    def mixed(weights):
        return (weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2

    def product(matrices):
        result = matrices[0]
        for matrix in matrices[1:]:
            result = matrix @ result
        return result

    exercise.misconception(
        "identity_missing_but_halved",
        "The attention is halved, but the identity is not added, so the rows of each layer sum to one half.",
    )(lambda weights: product(weights.mean(2) / 2))
    exercise.misconception(
        "larger_of_attention_and_identity",
        "Of the attention and the identity, the larger entry is taken. The two are added, and the sum is halved.",
    )(
        lambda weights: product(
            (m := torch.maximum(weights.mean(2), torch.eye(weights.shape[-1], dtype=weights.dtype)))
            / m.sum(-1, keepdim=True)
        )
    )
    exercise.misconception(
        "partial_rollouts_averaged",
        "The rollouts up to each layer are averaged. Only that through all layers is wanted.",
    )(lambda weights: torch.stack([rollout(weights[: n + 1]) for n in range(len(weights))]).mean(0))
    exercise.misconception(
        "first_sentence_for_all",
        "The maps of the first sentence are used for the whole batch. Each sentence has its own.",
    )(lambda weights: rollout(weights[:, :1]).expand(weights.shape[1], -1, -1))
    exercise.misconception(
        "batch_averaged",
        "The sentences of the batch are averaged. Each sentence has a rollout of its own.",
    )(lambda weights: rollout(weights).mean(0))
    exercise.misconception(
        "identity_at_the_end_again",
        "The identity is mixed in once more after the last layer. Each layer has one residual connection.",
    )(lambda weights: (rollout(weights) + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2)
    exercise.misconception(
        "identity_taken_away_at_the_end",
        "The diagonal of the result is set to zero. What a position keeps of its own token belongs to the rollout.",
    )(lambda weights: rollout(weights) * (1 - torch.eye(weights.shape[-1], dtype=weights.dtype)))
    exercise.misconception(
        "divided_by_the_largest",
        "The result is divided by its largest entry. Its rows should sum to one, as they do without this step.",
    )(lambda weights: rollout(weights) / rollout(weights).amax((-1, -2), keepdim=True))
    exercise.misconception(
        "each_layer_with_itself",
        "Each layer is multiplied in twice.",
    )(lambda weights: product(mixed(weights) @ mixed(weights)))


def add_rarer_between_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_between_words`."""
    between = exercise.reference
    exercise.misconception(
        "first_word_lost",
        "Word 0 is missing on both sides. Words are numbered from 0.",
    )(lambda weights, query_words, key_words: between(weights, query_words, key_words)[..., 1:, 1:])
    exercise.misconception(
        "word_zero_left_out",
        "Word 0 is treated like the tokens that are left out: 0 counts as False in Python, and −1 as True. Ask whether "
        "a number is at least 0.",
    )(
        lambda weights, query_words, key_words: between(
            weights * ((query_words > 0)[:, None] & (key_words > 0)), query_words, key_words
        )
    )
    exercise.misconception(
        "dropped_weight_spread_evenly",
        "The weight on tokens that are left out is spread over all words. It should be dropped.",
    )(
        lambda weights, query_words, key_words: (
            (merged := between(weights, query_words, key_words)) + (1 - merged.sum(-1, keepdim=True)) / merged.shape[-1]
        )
    )

    @exercise.misconception(
        "averaged_two_at_a_time",
        "The mean over the pieces of a query word is built as (mean so far + next) / 2, so the last piece counts half, "
        "and the earlier ones less and less. All pieces count the same.",
    )
    def _(weights, query_words, key_words):
        columns = between(weights, torch.arange(len(query_words)), key_words)
        rows = []
        for word in range(int(query_words.max()) + 1):
            first, *others = (query_words == word).nonzero().flatten().tolist()
            mean = columns[..., first, :]
            for piece in others:
                mean = (mean + columns[..., piece, :]) / 2
            rows.append(mean)
        return torch.stack(rows, -2)

    exercise.misconception(
        "symmetric",
        "The attention in both directions is averaged. From word u to word v, only the weights from u to v count.",
    )(
        lambda weights, query_words, key_words: (
            (between(weights, query_words, key_words) + between(weights, query_words, key_words).mT) / 2
        )
    )
    exercise.misconception(
        "batch_averaged",
        "The first batch dimension is averaged. Each map has a result of its own.",
    )(lambda weights, query_words, key_words: between(weights, query_words, key_words).mean(0))
    exercise.misconception(
        "squeezed",
        "Axes of length 1 are squeezed away: a batch of one, or a single word, loses its axis.",
    )(lambda weights, query_words, key_words: between(weights, query_words, key_words).squeeze())
    exercise.misconception(
        "divided_by_the_pieces_of_the_key_as_well_as_all",
        "The whole result is divided by its sum. Nothing is scaled: the rows sum to one where no token is left out.",
    )(
        lambda weights, query_words, key_words: (
            (merged := between(weights, query_words, key_words)) / merged.sum((-1, -2), keepdim=True)
        )
    )


def add_rarer_switched_off_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `head_switched_off`."""
    switched_off = exercise.reference

    def others(heads, off):
        return torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)

    def full(heads, weight, bias):
        return project(side_by_side(heads), weight, bias)

    def zeroed_after_reshaping(heads, weight, bias, off):
        batch, num_heads, length, d_head = heads.shape
        merged = heads.reshape(batch, length, num_heads, d_head).clone()
        merged[:, :, off] = 0
        return project(merged.flatten(2), weight, bias)

    exercise.misconception(
        "columns_of_the_first_head",
        "The contribution that is subtracted has been computed with the columns of head 0. Each head has its own "
        "columns of the matrix.",
    )(lambda heads, weight, bias, off: full(heads, weight, bias) - heads[:, off] @ weight[:, : heads.shape[3]].T)
    exercise.misconception(
        "head_doubled",
        "The contribution of the head is added once more instead of subtracted, so the head counts twice.",
    )(output_with(lambda heads, off: 2 * heads - without(heads, off)))
    exercise.misconception(
        "zeros_in_front",
        "The head is removed and zeros are put in front, so the heads before it meet the columns of another head. The "
        "zeros belong where the head was.",
    )(output_with(lambda heads, off: torch.cat((0 * heads[:, :1], others(heads, off)), 1)))
    exercise.misconception(
        "zeroed_after_reshaping",
        "The heads are reshaped to `(B, L, H, d_head)` while H still comes before L, so the zeros do not meet the "
        "head, and positions are mixed up. The two axes have to be exchanged first.",
    )(zeroed_after_reshaping)
    exercise.misconception(
        "output_scaled_up",
        "The whole output is scaled up to make up for the missing head, the bias as well. Nothing should be scaled.",
    )(
        lambda heads, weight, bias, off: (
            switched_off(heads, weight, bias, off) * (heads.shape[1] / max(heads.shape[1] - 1, 1))
        )
    )
    exercise.misconception(
        "output_scaled_down",
        "The whole output is scaled down, as in an average over the heads. Nothing should be scaled.",
    )(lambda heads, weight, bias, off: switched_off(heads, weight, bias, off) * ((heads.shape[1] - 1) / heads.shape[1]))
    exercise.misconception(
        "head_zero_never_off",
        "Head 0 is never switched off: 0 counts as False in Python, so `if off` skips it.",
    )(lambda heads, weight, bias, off: switched_off(heads, weight, bias, off) if off else full(heads, weight, bias))
    exercise.misconception(
        "only_first_columns_of_the_others",
        "Every remaining head is projected with the columns of head 0. Each head has its own columns of the matrix.",
    )(lambda heads, weight, bias, off: others(heads, off).sum(1) @ weight[:, : heads.shape[3]].T + bias)
    exercise.misconception(
        "averaged_over_the_positions",
        "The output is averaged over the positions. Each position has its own, `(B, L, d_out)`.",
    )(lambda heads, weight, bias, off: switched_off(heads, weight, bias, off).mean(1))
    exercise.misconception(
        "residual_of_the_output",
        "The output of the head is subtracted *after* the projection, feature by feature, without being projected "
        "itself.",
    )(lambda heads, weight, bias, off: full(heads, weight, bias) - side_by_side(heads - without(heads, off)))
    exercise.misconception(
        "squeezed",
        "Axes of length 1 are squeezed away: a single sentence or a single position loses its axis.",
    )(lambda heads, weight, bias, off: switched_off(heads, weight, bias, off).squeeze())
