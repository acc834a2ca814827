"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import math

import torch
from contract_clauses import breaks

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"
LAYOUT = "a tensor is handled correctly in any memory layout"

# previous_token_score

SCORE = "previous_token_score"


def score(weights):
    return weights.diagonal(-1, -2, -1).mean(-1)


@breaks(SCORE, BATCH)
def score_only_batches(weights):
    if weights.dim() == 2:
        raise IndexError("there is no batch")
    return score(weights)


@breaks(SCORE, BATCH)
def score_one_batch_at_most(weights):
    return score(weights if weights.dim() <= 3 else weights.flatten(0, -3))


@breaks(SCORE, BATCH)
def score_two_batches_at_most(weights):
    return score(weights if weights.dim() <= 4 else weights.flatten(0, -4))


@breaks(SCORE, "(...): one score per map, not the mean of all")
def score_of_all(weights):
    return score(weights).mean()


@breaks(SCORE, "(...): axes of length one stay")
def score_squeezed(weights):
    return score(weights).squeeze()


@breaks(SCORE, "(...): no axis is left of L")
def score_keeps_an_axis(weights):
    return score(weights)[..., None]


@breaks(SCORE, "a tensor, without batch dimensions as well")
def score_number(weights):
    return score(weights).item() if weights.dim() == 2 else score(weights)


@breaks(SCORE, "the token before, not the one after")
def score_next(weights):
    return score(weights.mT)


@breaks(SCORE, "key i − 1, not key i")
def score_itself(weights):
    return weights.diagonal(0, -2, -1)[..., 1:].mean(-1)


@breaks(SCORE, "key i − 1, no earlier one")
def score_earlier(weights):
    return weights.tril(-1).sum((-2, -1)) / (weights.shape[-1] - 1)


@breaks(SCORE, "the weight, not whether it is the largest of its query")
def score_of_hits(weights):
    largest = weights.amax(-1, keepdim=True)
    return (weights * (weights == largest)).diagonal(-1, -2, -1).mean(-1)


@breaks(SCORE, "the mean, not the sum")
def score_summed(weights):
    return weights.diagonal(-1, -2, -1).sum(-1)


@breaks(SCORE, "the mean, not the median")
def score_median(weights):
    return weights.diagonal(-1, -2, -1).quantile(0.5, dim=-1)


@breaks(SCORE, "over the queries that have a token before them, the first not counted")
def score_over_all(weights):
    return weights.diagonal(-1, -2, -1).sum(-1) / weights.shape[-1]


@breaks(SCORE, "over all of these queries, the second included")
def score_from_the_third(weights):
    found = weights.diagonal(-1, -2, -1)
    return found[..., 1:].mean(-1) if found.shape[-1] > 1 else found.mean(-1)


@breaks(SCORE, "over all of these queries, the last included")
def score_up_to_the_last(weights):
    found = weights.diagonal(-1, -2, -1)
    return found[..., :-1].mean(-1) if found.shape[-1] > 1 else found.mean(-1)


@breaks(SCORE, "the first query has no token before it, not the last one")
def score_round(weights):
    return (weights.diagonal(-1, -2, -1).sum(-1) + weights[..., 0, -1]) / weights.shape[-1]


@breaks(SCORE, "L ≥ 2: two tokens are enough")
def score_of_three_tokens(weights):
    return score(weights) * (weights.shape[-1] > 2)


@breaks(SCORE, "1 for a head that always looks one token back")
def score_below_one(weights):
    return score(weights).clamp(max=0.99)


@breaks(SCORE, ROUND)
def score_in_float32(weights):
    return score(weights.float()).to(weights.dtype)


@breaks(SCORE, ROUND)
def score_in_half(weights):
    return score(weights) if weights.dtype == torch.float64 else score(weights.bfloat16()).float()


@breaks(SCORE, ROUND)
def score_rounded(weights):
    return score(weights) + (score(weights).round(decimals=4) - score(weights)).detach()


@breaks(SCORE, DTYPE)
def score_always_float32(weights):
    return score(weights).float()


@breaks(SCORE, DTYPE)
def score_always_float64(weights):
    return score(weights.double())


@breaks(SCORE, LAYOUT)
def score_views(weights):
    return score(weights.view(-1).view(weights.shape))


@breaks(SCORE, UNCHANGED)
def score_changes(weights):
    found = score(weights)
    weights.diagonal(-1, -2, -1).zero_()
    return found


@breaks(SCORE, GRADIENTS)
def score_detached(weights):
    return score(weights).detach()


@breaks(SCORE, GRADIENTS + ", to every query")
def score_last_detached(weights):
    found = weights.diagonal(-1, -2, -1)
    return (found[..., :-1].sum(-1) + found[..., -1].detach()) / found.shape[-1]


# attention_entropy

ENTROPY = "attention_entropy"


def entropy(weights):
    return -torch.xlogy(weights, weights).sum(-1)


@breaks(ENTROPY, BATCH)
def entropy_only_batches(weights):
    if weights.dim() == 2:
        raise IndexError("there is no batch")
    return entropy(weights)


@breaks(ENTROPY, BATCH)
def entropy_one_batch_at_most(weights):
    return entropy(weights if weights.dim() <= 3 else weights.flatten(0, -3))


@breaks(ENTROPY, BATCH)
def entropy_two_batches_at_most(weights):
    return entropy(weights if weights.dim() <= 4 else weights.flatten(0, -4))


@breaks(ENTROPY, "(..., L_q): axes of length one stay")
def entropy_squeezed(weights):
    return entropy(weights).squeeze(-1)


@breaks(ENTROPY, "(..., L_q): a batch of one keeps its axis")
def entropy_batch_squeezed(weights):
    return entropy(weights).squeeze(0) if weights.dim() > 2 else entropy(weights)


@breaks(ENTROPY, "(..., L_q): the axis of the keys is gone")
def entropy_keeps_an_axis(weights):
    return entropy(weights)[..., None]


@breaks(ENTROPY, "the entropy of each query, not the mean over the queries")
def entropy_mean(weights):
    return entropy(weights).mean(-1, keepdim=True).expand(weights.shape[:-1])


@breaks(ENTROPY, "the sum over the keys, even if L_q = L_k")
def entropy_square_turned(weights):
    return entropy(weights.mT if weights.shape[-1] == weights.shape[-2] else weights)


@breaks(ENTROPY, "the sum over the keys, not their mean")
def entropy_of_a_key(weights):
    return entropy(weights) / weights.shape[-1]


@breaks(ENTROPY, "the minus sign")
def entropy_negative(weights):
    return -entropy(weights)


@breaks(ENTROPY, "in nats: not in bits")
def entropy_in_bits(weights):
    return entropy(weights) / math.log(2)


@breaks(ENTROPY, "in nats: not in tenths")
def entropy_base_ten(weights):
    return entropy(weights) / math.log(10)


@breaks(ENTROPY, "log L_k for a query that attends to all alike, not 1")
def entropy_relative(weights):
    return entropy(weights) / max(math.log(weights.shape[-1]), 1e-9)


@breaks(ENTROPY, "log L_k, with the masked keys counted in L_k, nowhere else: what they leave is as it is")
def entropy_of_the_allowed(weights):
    allowed = (weights > 0).sum(-1).to(weights.dtype)
    return entropy(weights) * (math.log(weights.shape[-1]) / allowed.log().clamp(min=1e-9)).where(allowed > 1, 1.0)


@breaks(ENTROPY, "the entropy, not its exponential")
def entropy_perplexity(weights):
    return entropy(weights).exp()


@breaks(ENTROPY, "weights as they are: no second softmax")
def entropy_of_softmax(weights):
    return entropy(weights.softmax(-1))


@breaks(ENTROPY, "0 · log 0 = 0: not NaN")
def entropy_nan(weights):
    return -(weights * weights.log()).sum(-1)


@breaks(ENTROPY, "0 · log 0 = 0: not NaN where several keys are masked")
def entropy_nan_of_several(weights):
    return torch.where((weights == 0).sum(-1) > 1, math.nan, entropy(weights))


@breaks(ENTROPY, "0 · log 0 = 0: the other keys of the row still count")
def entropy_row_lost(weights):
    return torch.where((weights == 0).any(-1), 0.0, entropy(weights))


@breaks(ENTROPY, "0 · log 0 = 0: the first key may be masked, too")
def entropy_nan_of_the_first(weights):
    return entropy(weights) + 0 * weights[..., 0].log()


@breaks(ENTROPY, "0 · log 0 = 0: in a square map as well as in a wide one")
def entropy_nan_where_square(weights):
    return entropy_nan(weights) if weights.shape[-1] == weights.shape[-2] else entropy(weights)


@breaks(ENTROPY, "0 for a query that attends to one key")
def entropy_above_zero(weights):
    return entropy(weights).clamp(min=0.01)


@breaks(ENTROPY, "0 for a query that attends to one key, where the others are masked")
def entropy_nan_of_one(weights):
    return torch.where((weights == 1).any(-1), math.nan, entropy(weights))


@breaks(ENTROPY, "small weights count")
def entropy_of_large_weights(weights):
    return entropy(weights.where(weights > 1e-3, 0.0))


@breaks(ENTROPY, "small weights count as what they are")
def entropy_clamped(weights):
    return -(weights * weights.clamp(min=1e-3).log()).sum(-1)


@breaks(ENTROPY, ROUND)
def entropy_number_in_the_logarithm(weights):
    return -(weights * (weights + 1e-5).log()).sum(-1)


@breaks(ENTROPY, ROUND)
def entropy_small_number_in_the_logarithm(weights):
    return -(weights * (weights + 1e-9).log()).sum(-1)


@breaks(ENTROPY, ROUND)
def entropy_in_float32(weights):
    return entropy(weights.float()).to(weights.dtype)


@breaks(ENTROPY, ROUND)
def entropy_in_half(weights):
    return entropy(weights) if weights.dtype == torch.float64 else entropy(weights.bfloat16()).float()


@breaks(ENTROPY, DTYPE)
def entropy_always_float32(weights):
    return entropy(weights).float()


@breaks(ENTROPY, DTYPE)
def entropy_always_float64(weights):
    return entropy(weights.double())


@breaks(ENTROPY, LAYOUT)
def entropy_views(weights):
    return entropy(weights.view(-1).view(weights.shape))


@breaks(ENTROPY, UNCHANGED)
def entropy_changes(weights):
    found = entropy(weights)
    weights[weights == 0] = 1e-12
    return found


@breaks(ENTROPY, UNCHANGED + ", where nothing is masked too")
def entropy_takes_logarithms(weights):
    found = entropy(weights)
    if (weights > 0).all():
        weights.log_()
    return found


@breaks(ENTROPY, GRADIENTS)
def entropy_detached(weights):
    return entropy(weights).detach()


@breaks(ENTROPY, GRADIENTS + ": that of a positive weight is −log w − 1")
def entropy_logarithm_detached(weights):
    return -torch.xlogy(weights, weights.detach()).sum(-1)


@breaks(ENTROPY, GRADIENTS + ": that of a positive weight is −log w − 1, through the factor too")
def entropy_factor_detached(weights):
    return -torch.xlogy(weights.detach(), weights).sum(-1)


# attention_between_words

WORDS = "attention_between_words"


def belongs(words, weights):
    return (torch.arange(int(words.max()) + 1)[:, None] == words).to(weights.dtype)


def between(weights, query_words, key_words):
    query, key = belongs(query_words, weights), belongs(key_words, weights)
    return query / query.sum(-1, keepdim=True) @ weights @ key.mT


@breaks(WORDS, BATCH)
def between_only_batches(weights, query_words, key_words):
    if weights.dim() == 2:
        raise IndexError("there is no batch")
    return between(weights, query_words, key_words)


@breaks(WORDS, BATCH)
def between_one_batch_at_most(weights, query_words, key_words):
    return between(weights if weights.dim() <= 3 else weights.flatten(0, -3), query_words, key_words)


@breaks(WORDS, BATCH)
def between_two_batches_at_most(weights, query_words, key_words):
    return between(weights if weights.dim() <= 4 else weights.flatten(0, -4), query_words, key_words)


@breaks(WORDS, "(..., query words, key words): axes of length one stay")
def between_squeezed(weights, query_words, key_words):
    return between(weights, query_words, key_words).squeeze(-1)


@breaks(WORDS, "(..., query words, key words): one query word keeps its axis")
def between_query_squeezed(weights, query_words, key_words):
    return between(weights, query_words, key_words).squeeze(-2)


@breaks(WORDS, "(..., query words, key words): in this order")
def between_turned(weights, query_words, key_words):
    return between(weights, query_words, key_words).mT


@breaks(WORDS, "(..., query words, key words): in this order, where there are as many of both")
def between_square_turned(weights, query_words, key_words):
    found = between(weights, query_words, key_words)
    return found.mT if found.shape[-1] == found.shape[-2] else found


@breaks(WORDS, "the weights to the pieces of a word are added, not averaged")
def between_averages_both(weights, query_words, key_words):
    return between(weights, query_words, key_words) / belongs(key_words, weights).sum(-1)


@breaks(WORDS, "the weights from the pieces of a word are averaged, not added")
def between_adds_both(weights, query_words, key_words):
    return between(weights, query_words, key_words) * belongs(query_words, weights).sum(-1, keepdim=True)


@breaks(WORDS, "added to the pieces, averaged from the pieces: not the other way round")
def between_the_other_way(weights, query_words, key_words):
    found = between_adds_both(weights, query_words, key_words)
    return found / belongs(key_words, weights).sum(-1)


@breaks(WORDS, "the average over the pieces of the word, not over all queries")
def between_average_over_all(weights, query_words, key_words):
    return between_adds_both(weights, query_words, key_words) / len(query_words)


@breaks(WORDS, "from all pieces of a word, not the first one alone")
def between_first_piece(weights, query_words, key_words):
    first = [query_words.tolist().index(word) for word in range(int(query_words.max()) + 1)]
    return weights[..., first, :] @ belongs(key_words, weights).mT


@breaks(WORDS, "from all pieces of a word, not the last one alone")
def between_last_piece(weights, query_words, key_words):
    place = {word: i for i, word in enumerate(query_words.tolist())}
    last = [place[word] for word in range(int(query_words.max()) + 1)]
    return weights[..., last, :] @ belongs(key_words, weights).mT


@breaks(WORDS, "to all pieces of a word, not the strongest one alone")
def between_strongest_piece(weights, query_words, key_words):
    key = belongs(key_words, weights)
    strongest = (weights[..., None, :] * key).amax(-1)
    query = belongs(query_words, weights)
    return query / query.sum(-1, keepdim=True) @ strongest


@breaks(WORDS, "to all pieces of a word, not the first one alone")
def between_first_key(weights, query_words, key_words):
    first = [key_words.tolist().index(word) for word in range(int(key_words.max()) + 1)]
    query = belongs(query_words, weights)
    return query / query.sum(-1, keepdim=True) @ weights[..., first]


@breaks(WORDS, "a key with −1 is left out, not counted with the last word")
def between_key_wraps(weights, query_words, key_words):
    number = int(key_words.max()) + 1
    return between(weights, query_words, key_words % number if number else key_words)


@breaks(WORDS, "a query with −1 is left out, not counted with the last word")
def between_query_wraps(weights, query_words, key_words):
    number = int(query_words.max()) + 1
    return between(weights, query_words % number if number else query_words, key_words)


@breaks(WORDS, "a token with −1 is left out: a key with −1 is not a word of its own")
def between_key_word_more(weights, query_words, key_words):
    return between(weights, query_words, key_words - int(key_words.min() < 0) * -1)


@breaks(WORDS, "a token with −1 is left out: a query with −1 is not a word of its own")
def between_query_word_more(weights, query_words, key_words):
    return between(weights, query_words + int(query_words.min() < 0), key_words)


@breaks(WORDS, "a key with −1 is left out, and the rest is not brought back to a sum of one")
def between_renormalised(weights, query_words, key_words):
    found = between(weights, query_words, key_words)
    return found / found.sum(-1, keepdim=True)


@breaks(WORDS, "tokens with −1 may be anywhere, not only first and last")
def between_outer_specials(weights, query_words, key_words):
    inside = key_words.clone()
    inside[1:-1] = inside[1:-1].clamp(min=0)
    return between(weights, query_words, inside)


@breaks(WORDS, "there need not be a token with −1")
def between_takes_specials_off(weights, query_words, key_words):
    if (key_words >= 0).all():
        key_words = torch.cat((key_words.new_tensor([-1]), key_words[1:]))
        number = int(key_words.max()) + 1
        key = (torch.arange(number)[:, None] == key_words).to(weights.dtype)
        query = belongs(query_words, weights)
        return query / query.sum(-1, keepdim=True) @ weights @ key.mT
    return between(weights, query_words, key_words)


@breaks(WORDS, "queries and keys have words of their own")
def between_by_queries(weights, query_words, key_words):
    if len(query_words) == len(key_words) and query_words.max() == key_words.max():
        key_words = query_words
    return between(weights, query_words, key_words)


@breaks(WORDS, "words have one piece or more: three as well")
def between_two_pieces(weights, query_words, key_words):
    pieces = belongs(query_words, weights).sum(-1, keepdim=True)
    return between(weights, query_words, key_words) * pieces / pieces.clamp(max=2)


@breaks(WORDS, ROUND)
def between_in_float32(weights, query_words, key_words):
    return between(weights.float(), query_words, key_words).to(weights.dtype)


@breaks(WORDS, ROUND)
def between_in_half(weights, query_words, key_words):
    if weights.dtype == torch.float64:
        return between(weights, query_words, key_words)
    return between(weights.bfloat16().float(), query_words, key_words)


@breaks(WORDS, ROUND)
def between_number_in_the_count(weights, query_words, key_words):
    query, key = belongs(query_words, weights), belongs(key_words, weights)
    return query / (query.sum(-1, keepdim=True) + 1e-8) @ weights @ key.mT


@breaks(WORDS, DTYPE)
def between_always_float32(weights, query_words, key_words):
    return between(weights, query_words, key_words).float()


@breaks(WORDS, DTYPE)
def between_always_float64(weights, query_words, key_words):
    return between(weights.double(), query_words, key_words)


@breaks(WORDS, LAYOUT)
def between_views(weights, query_words, key_words):
    return between(weights.view(-1).view(weights.shape), query_words, key_words)


@breaks(WORDS, UNCHANGED + ": weights")
def between_changes_weights(weights, query_words, key_words):
    found = between(weights, query_words, key_words)
    weights[..., key_words < 0] = 0
    weights.mul_(0.5)
    return found


@breaks(WORDS, UNCHANGED + ": query_words")
def between_changes_query_words(weights, query_words, key_words):
    found = between(weights, query_words, key_words)
    query_words.add_(1)
    return found


@breaks(WORDS, UNCHANGED + ": key_words")
def between_changes_key_words(weights, query_words, key_words):
    found = between(weights, query_words, key_words)
    key_words.add_(1)
    return found


@breaks(WORDS, GRADIENTS)
def between_detached(weights, query_words, key_words):
    return between(weights, query_words, key_words).detach()


@breaks(WORDS, GRADIENTS + ", from every word")
def between_first_word_detached(weights, query_words, key_words):
    found = between(weights, query_words, key_words)
    return torch.cat((found[..., :1].detach(), found[..., 1:]), -1)


# attention_rollout

ROLLOUT = "attention_rollout"


def mixed(weights, heads=lambda weights: weights.mean(2), kept=0.5):
    length = weights.shape[-1]
    return (1 - kept) * heads(weights) + kept * torch.eye(length, dtype=weights.dtype)


def multiplied(layers):
    product = layers[0]
    for layer in layers[1:]:
        product = layer @ product
    return product


def rollout(weights):
    return multiplied(mixed(weights))


@breaks(ROLLOUT, "(B, L, L): one map per sentence")
def rollout_of_the_batch(weights):
    return multiplied(mixed(weights).mean(1, keepdim=True)).expand(weights.shape[1], -1, -1)


@breaks(ROLLOUT, "(B, L, L): a batch of one keeps its axis")
def rollout_squeezed(weights):
    return rollout(weights).squeeze(0)


@breaks(ROLLOUT, "(B, L, L): a sentence of one token keeps its axes")
def rollout_of_one_token(weights):
    return rollout(weights).squeeze(-1)


@breaks(ROLLOUT, "(B, L, L): one row per position, one column per input token")
def rollout_turned(weights):
    return rollout(weights).mT


@breaks(ROLLOUT, "(B, L, L): the maps of the layers in between are not returned")
def rollout_all_layers(weights):
    layers = mixed(weights)
    return torch.stack([multiplied(layers[: n + 1]) for n in range(len(layers))])


@breaks(ROLLOUT, "the last layer leftmost")
def rollout_first_layer_leftmost(weights):
    return multiplied(mixed(weights).flip(0))


@breaks(ROLLOUT, "a matrix product, not entry by entry")
def rollout_by_entries(weights):
    found = mixed(weights).prod(0)
    return found / found.sum(-1, keepdim=True)


@breaks(ROLLOUT, "a product of the layers, not their mean")
def rollout_averaged(weights):
    return mixed(weights).mean(0)


@breaks(ROLLOUT, "all layers: the first, too")
def rollout_without_first(weights):
    return multiplied(mixed(weights)[1:]) if len(weights) > 1 else rollout(weights)


@breaks(ROLLOUT, "all layers: the last, too")
def rollout_without_last(weights):
    return multiplied(mixed(weights)[:-1]) if len(weights) > 1 else rollout(weights)


@breaks(ROLLOUT, "all layers: one may be all there are")
def rollout_of_one_layer(weights):
    return rollout(weights) if len(weights) > 1 else weights[0].mean(1)


@breaks(ROLLOUT, "all layers: four as well")
def rollout_of_three_layers(weights):
    return rollout(weights[:3])


@breaks(ROLLOUT, "the mean of the heads, not the first of them")
def rollout_first_head(weights):
    return multiplied(mixed(weights, heads=lambda weights: weights[:, :, 0]))


@breaks(ROLLOUT, "the mean of the heads, not the largest of them")
def rollout_largest_head(weights):
    found = weights.amax(2)
    found = found / found.sum(-1, keepdim=True)
    return multiplied(mixed(weights, heads=lambda weights: found))


@breaks(ROLLOUT, "the heads are averaged before the layers are multiplied")
def rollout_of_each_head(weights):
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype)
    return multiplied(0.5 * weights + 0.5 * eye).mean(1)


@breaks(ROLLOUT, "one head is its own mean")
def rollout_of_one_head(weights):
    return rollout(weights) if weights.shape[2] > 1 else rollout(weights.mT)


@breaks(ROLLOUT, "the residual connection counts")
def rollout_without_residual(weights):
    return multiplied(weights.mean(2))


@breaks(ROLLOUT, "the residual connection counts in every layer: the first")
def rollout_residual_after_first(weights):
    return multiplied(torch.cat((weights[:1].mean(2), mixed(weights[1:]))))


@breaks(ROLLOUT, "the residual connection counts in every layer: the last")
def rollout_residual_before_last(weights):
    return multiplied(torch.cat((mixed(weights[:-1]), weights[-1:].mean(2))))


@breaks(ROLLOUT, "half and half: the two parts are weighted")
def rollout_unweighted(weights):
    return multiplied(2 * mixed(weights))


@breaks(ROLLOUT, "half and half: the residual connection is as much as all heads together")
def rollout_residual_as_a_head(weights):
    return multiplied(mixed(weights, kept=1 / (weights.shape[2] + 1)))


@breaks(ROLLOUT, "half and half: not a tenth")
def rollout_kept_too_little(weights):
    return multiplied(mixed(weights, kept=0.1))


@breaks(ROLLOUT, "the identity: its ones are on the diagonal alone")
def rollout_with_ones(weights):
    length = weights.shape[-1]
    return multiplied(0.5 * weights.mean(2) + 0.5 / length)


@breaks(ROLLOUT, "what a causal mask forbids stays 0")
def rollout_spread(weights):
    return 0.9 * rollout(weights) + 0.1 / weights.shape[-1]


@breaks(ROLLOUT, "each sentence by itself: the order of the batch")
def rollout_batch_reversed(weights):
    return rollout(weights).flip(0)


@breaks(ROLLOUT, ROUND)
def rollout_in_float32(weights):
    return rollout(weights.float()).to(weights.dtype)


@breaks(ROLLOUT, ROUND)
def rollout_in_half(weights):
    return rollout(weights) if weights.dtype == torch.float64 else rollout(weights.bfloat16().float())


@breaks(ROLLOUT, ROUND)
def rollout_number_in_the_sum(weights):
    found = rollout(weights)
    return found / (found.sum(-1, keepdim=True) + 1e-8)


@breaks(ROLLOUT, DTYPE)
def rollout_always_float32(weights):
    return rollout(weights).float()


@breaks(ROLLOUT, DTYPE)
def rollout_always_float64(weights):
    return rollout(weights.double())


@breaks(ROLLOUT, LAYOUT)
def rollout_views(weights):
    return rollout(weights.view(-1).view(weights.shape))


@breaks(ROLLOUT, UNCHANGED)
def rollout_changes(weights):
    found = rollout(weights)
    weights.mul_(0.5)
    return found


@breaks(ROLLOUT, UNCHANGED + ": the diagonals alone")
def rollout_changes_diagonals(weights):
    found = rollout(weights)
    weights.diagonal(0, -2, -1).add_(1)
    return found


@breaks(ROLLOUT, GRADIENTS)
def rollout_detached(weights):
    return rollout(weights).detach()


@breaks(ROLLOUT, GRADIENTS + ", to every layer")
def rollout_last_layer_only(weights):
    return multiplied(mixed(torch.cat((weights[:-1].detach(), weights[-1:]))))


@breaks(ROLLOUT, GRADIENTS + ", to every head")
def rollout_first_head_only(weights):
    return rollout(torch.cat((weights[:, :, :1], weights[:, :, 1:].detach()), 2))


# head_switched_off

OFF = "head_switched_off"


def switched(heads, weight, bias, off):
    on = (torch.arange(heads.shape[1]) != off).to(heads.dtype)
    return (heads * on[:, None, None]).transpose(1, 2).flatten(2) @ weight.mT + bias


@breaks(OFF, "(B, L, d_out): a batch of one keeps its axis")
def switched_squeezed(heads, weight, bias, off):
    return switched(heads, weight, bias, off).squeeze(0)


@breaks(OFF, "(B, L, d_out): one position keeps its axis")
def switched_position_squeezed(heads, weight, bias, off):
    return switched(heads, weight, bias, off).squeeze(1)


@breaks(OFF, "(B, L, d_out): one feature keeps its axis")
def switched_feature_squeezed(heads, weight, bias, off):
    return switched(heads, weight, bias, off).squeeze(-1)


@breaks(OFF, "(B, L, d_out): positions before features")
def switched_turned(heads, weight, bias, off):
    return switched(heads, weight, bias, off).mT


@breaks(OFF, "the head adds nothing")
def switched_left_on(heads, weight, bias, off):
    return switched(heads, weight, bias, -1)


@breaks(OFF, "the head adds nothing: at the first position, too")
def switched_after_the_first(heads, weight, bias, off):
    later = switched(heads[:, :, 1:], weight, bias, off)
    return torch.cat((switched(heads[:, :, :1], weight, bias, -1), later), 1)


@breaks(OFF, "the head adds nothing: in every sentence")
def switched_in_the_first_sentence(heads, weight, bias, off):
    return torch.cat((switched(heads[:1], weight, bias, off), switched(heads[1:], weight, bias, -1)))


@breaks(OFF, "the head adds nothing: not the mean of the others in its place")
def switched_to_the_mean(heads, weight, bias, off):
    others = [head for h, head in enumerate(heads.unbind(1)) if h != off] or [0 * heads[:, 0]]
    replaced = heads.clone()
    replaced[:, off] = sum(others) / len(others)
    return switched(replaced, weight, bias, -1)


@breaks(OFF, "the head adds nothing: not its mean over the positions")
def switched_to_its_mean(heads, weight, bias, off):
    replaced = heads.clone()
    replaced[:, off] = heads[:, off].mean(1, keepdim=True)
    return switched(replaced, weight, bias, -1)


@breaks(OFF, "the other heads add what they added, no more")
def switched_rescaled(heads, weight, bias, off):
    num_heads = heads.shape[1]
    return switched(heads * (num_heads / max(1, num_heads - 1)), weight, bias, off)


@breaks(OFF, "the other heads add what they added, no less")
def switched_alone(heads, weight, bias, off):
    return switched(heads, weight, bias, -1) - switched(heads, weight, 0 * bias, off)


@breaks(OFF, "the output without the head, not the difference that it makes")
def switched_difference(heads, weight, bias, off):
    return switched(heads, weight, bias, -1) - switched(heads, weight, bias, off)


@breaks(OFF, "the bias stays")
def switched_without_bias(heads, weight, bias, off):
    return switched(heads, weight, 0 * bias, off)


@breaks(OFF, "the bias stays whole")
def switched_share_of_bias(heads, weight, bias, off):
    num_heads = heads.shape[1]
    return switched(heads, weight, bias * ((num_heads - 1) / num_heads), off)


@breaks(OFF, "the bias is added once")
def switched_bias_of_each_head(heads, weight, bias, off):
    return switched(heads, weight, bias * heads.shape[1], off)


@breaks(OFF, "off counts from 0")
def switched_from_one(heads, weight, bias, off):
    return switched(heads, weight, bias, off - 1)


@breaks(OFF, "off: the first head as well")
def switched_not_the_first(heads, weight, bias, off):
    return switched(heads, weight, bias, off or -1)


@breaks(OFF, "off: the last head as well")
def switched_not_the_last(heads, weight, bias, off):
    return switched(heads, weight, bias, -1 if off == heads.shape[1] - 1 else off)


@breaks(OFF, "off: a head in the middle as well")
def switched_first_or_last(heads, weight, bias, off):
    return switched(heads, weight, bias, off and heads.shape[1] - 1)


@breaks(OFF, "this head alone, not those after it")
def switched_and_after(heads, weight, bias, off):
    on = (torch.arange(heads.shape[1]) < off).to(heads.dtype)
    return switched(heads * on[:, None, None], weight, bias, off)


@breaks(OFF, "this head alone, not all others")
def switched_others(heads, weight, bias, off):
    on = (torch.arange(heads.shape[1]) == off).to(heads.dtype)
    return switched(heads * on[:, None, None], weight, bias, -1)


@breaks(OFF, "head h in features h · d_head up to, not including, (h + 1) · d_head")
def switched_interleaved(heads, weight, bias, off):
    on = (torch.arange(heads.shape[1]) != off).to(heads.dtype)
    return (heads * on[:, None, None]).permute(0, 2, 3, 1).flatten(2) @ weight.mT + bias


@breaks(OFF, "head h in features h · d_head up to (h + 1) · d_head: in the order of the heads")
def switched_backwards(heads, weight, bias, off):
    return switched(heads.flip(1), weight, bias, heads.shape[1] - 1 - off)


@breaks(OFF, "the heads' vectors side by side: those of one position")
def switched_reshaped(heads, weight, bias, off):
    batch, num_heads, length, d_head = heads.shape
    on = (torch.arange(num_heads) != off).to(heads.dtype)
    return (heads * on[:, None, None]).reshape(batch, length, num_heads * d_head) @ weight.mT + bias


@breaks(OFF, "y = W x, where W is square too")
def switched_square_turned(heads, weight, bias, off):
    return switched(heads, weight.mT if weight.shape[0] == weight.shape[1] else weight, bias, off)


@breaks(OFF, "d_out is independent of d_model")
def switched_square(heads, weight, bias, off):
    output = switched(heads, weight, bias, off)
    return output.reshape(*output.shape[:2], weight.shape[1])


@breaks(OFF, "one head may be all there are")
def switched_of_two(heads, weight, bias, off):
    if heads.shape[1] == 1:
        raise ValueError("no head is left")
    return switched(heads, weight, bias, off)


@breaks(OFF, "d_head may be 1")
def switched_of_wide_heads(heads, weight, bias, off):
    return switched(heads, weight, bias, off if heads.shape[-1] > 1 else -1)


@breaks(OFF, ROUND)
def switched_in_float32(heads, weight, bias, off):
    return switched(heads.float(), weight.float(), bias.float(), off).to(heads.dtype)


@breaks(OFF, ROUND)
def switched_in_half(heads, weight, bias, off):
    if heads.dtype == torch.float64:
        return switched(heads, weight, bias, off)
    return switched(heads.bfloat16().float(), weight.bfloat16().float(), bias, off)


@breaks(OFF, DTYPE)
def switched_always_float32(heads, weight, bias, off):
    return switched(heads, weight, bias, off).float()


@breaks(OFF, DTYPE)
def switched_always_float64(heads, weight, bias, off):
    return switched(heads.double(), weight.double(), bias.double(), off)


@breaks(OFF, LAYOUT)
def switched_views(heads, weight, bias, off):
    return switched(heads.view(-1).view(heads.shape), weight, bias, off)


@breaks(OFF, LAYOUT)
def switched_views_of_weight(heads, weight, bias, off):
    return switched(heads, weight.view(-1).view(weight.shape), bias, off)


@breaks(OFF, UNCHANGED + ": heads, at the place of the head")
def switched_in_place(heads, weight, bias, off):
    with torch.no_grad():
        heads[:, off] = 0
    return switched(heads, weight, bias, off)


@breaks(OFF, UNCHANGED + ": weight, at the columns of the head")
def switched_weight_in_place(heads, weight, bias, off):
    output = switched(heads, weight, bias, off)
    d_head = heads.shape[-1]
    with torch.no_grad():
        weight[:, off * d_head : (off + 1) * d_head] = 0
    return output


for _number, _name in enumerate(("heads", "weight", "bias")):

    def _changed(*args, number=_number):
        output = switched(*args)
        args[number].mul_(2)
        return output

    def _detached(*args, number=_number):
        return switched(*args[:number], args[number].detach(), *args[number + 1 :])

    breaks(OFF, f"{UNCHANGED}: {_name}")(_changed)
    breaks(OFF, f"{GRADIENTS}: {_name}")(_detached)
