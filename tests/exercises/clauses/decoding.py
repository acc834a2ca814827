"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import math
from collections import Counter

import torch
from contract_clauses import breaks

# greedy_decode


def _greedy(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        token = int(next_log_probs(tokens).argmax())
        if token == eos_id:
            break
        tokens.append(token)
    return tokens[1:]


@breaks("greedy_decode", "a list")
def _(*args):
    return tuple(_greedy(*args))


@breaks("greedy_decode", "ids are ints")
def _(*args):
    return [torch.tensor(token) for token in _greedy(*args)]


@breaks("greedy_decode", "without bos")
def _(next_log_probs, bos_id, eos_id, max_length):
    return [bos_id, *_greedy(next_log_probs, bos_id, eos_id, max_length)]


@breaks("greedy_decode", "without eos")
def _(next_log_probs, bos_id, eos_id, max_length):
    tokens = _greedy(next_log_probs, bos_id, eos_id, max_length)
    return [*tokens, eos_id] if len(tokens) < max_length else tokens


@breaks("greedy_decode", "at most max_length tokens")
def _(next_log_probs, bos_id, eos_id, max_length):
    tokens = _greedy(next_log_probs, bos_id, eos_id, max_length)
    if len(tokens) == max_length:
        token = int(next_log_probs([bos_id, *tokens]).argmax())
        tokens += [token] if token != eos_id else []
    return tokens


@breaks("greedy_decode", "max_length tokens are reached where eos does not come")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(next_log_probs, bos_id, eos_id, max_length)[: max_length - 1]


@breaks("greedy_decode", "max_length may be 1")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(next_log_probs, bos_id, eos_id, max_length) if max_length > 1 else []


@breaks("greedy_decode", "eos may come first")
def _(next_log_probs, bos_id, eos_id, max_length):
    first = next_log_probs([bos_id])
    first[eos_id] = -math.inf
    return _greedy(next_log_probs, bos_id, eos_id, max_length) or [int(first.argmax())]


@breaks("greedy_decode", "the model is called with bos included")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(lambda tokens: next_log_probs(tokens[1:] or tokens), bos_id, eos_id, max_length)


@breaks("greedy_decode", "the model is given all tokens so far")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(lambda tokens: next_log_probs([bos_id, *tokens[1:][-2:]]), bos_id, eos_id, max_length)


@breaks("greedy_decode", "the model takes a list of ints")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(lambda tokens: next_log_probs(torch.tensor(tokens)), bos_id, eos_id, max_length)


@breaks("greedy_decode", "the most probable token is taken")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(lambda tokens: next_log_probs(tokens).exp().round(decimals=1), bos_id, eos_id, max_length)


@breaks("greedy_decode", "the search ends at eos; nothing follows it")
def _(next_log_probs, bos_id, eos_id, max_length):
    tokens = _greedy(next_log_probs, bos_id, eos_id, max_length)
    if len(tokens) < max_length:
        next_log_probs([bos_id, *tokens, eos_id])
    return tokens


@breaks("greedy_decode", "bos_id and eos_id are whatever they are, not 0 and 1")
def _(next_log_probs, bos_id, eos_id, max_length):
    return _greedy(next_log_probs, bos_id, 1, max_length)


@breaks("greedy_decode", "tokens may come again")
def _(next_log_probs, bos_id, eos_id, max_length):
    return list(dict.fromkeys(_greedy(next_log_probs, bos_id, eos_id, max_length)))


# beam_search


def _beam(
    next_log_probs,
    bos_id,
    eos_id,
    beam_size,
    max_length,
    length_penalty=0.0,
    *,
    count=lambda tokens, ended: len(tokens),
    pruned=lambda pool, k: sorted(pool, key=lambda h: -h[1])[:k],
    over=lambda done, alive: False,
    final=lambda done, alive: done + alive,
):
    alive, done = [([], 0.0)], []
    for _ in range(max_length):
        pool = [
            ([*tokens, token], total + log_prob)
            for tokens, total in alive
            for token, log_prob in enumerate(next_log_probs([bos_id, *tokens]).tolist())
        ]
        best = pruned(pool, beam_size)
        done += [h for h in best if h[0][-1] == eos_id]
        alive = [h for h in best if h[0][-1] != eos_id]
        if over(done, alive):
            break
    tokens, _ = max(final(done, alive), key=lambda h: h[1] / count(h[0], h[0][-1] == eos_id) ** length_penalty)
    return tokens[:-1] if tokens[-1] == eos_id else tokens


def _called(**parts):
    def solution(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
        return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, **parts)

    return solution


def _each_keeps_one(pool, k):
    groups = {}
    for tokens, total in pool:
        groups.setdefault(tuple(tokens[:-1]), []).append((tokens, total))
    if len(groups) == 1:
        return sorted(pool, key=lambda h: -h[1])[:k]
    return [max(group, key=lambda h: h[1]) for group in groups.values()]


breaks("beam_search", "of all candidates together the best survive, not one of each hypothesis")(
    _called(pruned=_each_keeps_one)
)
breaks("beam_search", "beam_size candidates survive, not one more")(
    _called(pruned=lambda pool, k: sorted(pool, key=lambda h: -h[1])[: k + 1])
)
breaks("beam_search", "beam_size candidates survive, not one less")(
    _called(pruned=lambda pool, k: sorted(pool, key=lambda h: -h[1])[: max(1, k - 1)])
)
breaks("beam_search", "every hypothesis is extended by every token")(
    _called(pruned=lambda pool, k: sorted((h for h in pool if h[0][-1] != 0), key=lambda h: -h[1])[:k])
)
breaks("beam_search", "the highest sums survive")(
    _called(pruned=lambda pool, k: sorted(pool, key=lambda h: h[1] if len(h[0]) > 1 else -h[1])[:k])
)
breaks("beam_search", "the search does not end with the first finished hypothesis")(
    _called(over=lambda done, alive: bool(done))
)
breaks("beam_search", "the search does not end with beam_size finished hypotheses")(
    lambda next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0: _beam(
        next_log_probs,
        bos_id,
        eos_id,
        beam_size,
        max_length,
        length_penalty,
        over=lambda done, alive: len(done) >= beam_size,
    )
)
breaks("beam_search", "the search does not end as soon as a finished hypothesis has the highest sum")(
    _called(over=lambda done, alive: bool(done and alive) and max(h[1] for h in done) > max(h[1] for h in alive))
)
breaks("beam_search", "finished hypotheses compete")(_called(final=lambda done, alive: alive or done))
breaks("beam_search", "all finished hypotheses compete")(_called(final=lambda done, alive: done[-1:] + alive))
breaks("beam_search", "what has not ended competes")(_called(final=lambda done, alive: done or alive))
breaks("beam_search", "what has not ended competes as it stands, without an eos in n")(
    _called(count=lambda tokens, ended: len(tokens) + (not ended))
)
breaks("beam_search", "what has not ended is divided, too")(
    _called(count=lambda tokens, ended: len(tokens) if ended else 1)
)
breaks("beam_search", "n counts eos")(_called(count=lambda tokens, ended: max(1, len(tokens) - ended)))
breaks("beam_search", "n does not count bos")(_called(count=lambda tokens, ended: len(tokens) + 1))


@breaks("beam_search", "length_penalty is 0 if it is left out")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=1.0):
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@breaks("beam_search", "length_penalty is an exponent")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, float(length_penalty > 0))


@breaks("beam_search", "length_penalty may be above 1")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, min(length_penalty, 1.0))


@breaks("beam_search", "length_penalty may be between 0 and 1")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, float(round(length_penalty)))


@breaks("beam_search", "beam_size = 1 is greedy")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return _beam(next_log_probs, bos_id, eos_id, max(beam_size, 2), max_length, length_penalty)


@breaks("beam_search", "the beam may be wider than the vocabulary")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    width = min(beam_size, len(next_log_probs([bos_id])))
    return _beam(next_log_probs, bos_id, eos_id, width, max_length, length_penalty)


@breaks("beam_search", "at most max_length tokens")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length + 1, length_penalty)


@breaks("beam_search", "max_length tokens are reached")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max(1, max_length - 1), length_penalty)


@breaks("beam_search", "max_length may be 1")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    if max_length == 1:
        return []
    return _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@breaks("beam_search", "without bos")
def _(next_log_probs, bos_id, *rest):
    return [bos_id, *_beam(next_log_probs, bos_id, *rest)]


@breaks("beam_search", "a list")
def _(*args):
    return tuple(_beam(*args))


@breaks("beam_search", "the best hypothesis alone")
def _(*args):
    return [_beam(*args)]


@breaks("beam_search", "the model is called with bos included")
def _(next_log_probs, *rest):
    return _beam(lambda tokens: next_log_probs(tokens[1:] or tokens), *rest)


@breaks("beam_search", "the model is given all tokens so far")
def _(next_log_probs, *rest):
    return _beam(lambda tokens: next_log_probs([tokens[0], *tokens[1:][-1:]]), *rest)


@breaks("beam_search", "survivors that end in eos are finished, and are not extended")
def _(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    result = _beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)
    if len(result) < max_length - 1:
        next_log_probs([bos_id, *result, eos_id])
    return result


# top_p_filter


def _kept(logits, p):
    order = logits.argsort(descending=True)
    probs = logits.softmax(-1)[order]
    keep = torch.zeros_like(logits, dtype=torch.bool)
    keep[order[probs.cumsum(-1) - probs < p]] = True
    return keep


def _filtered(logits, keep, fill=-math.inf):
    return logits.masked_fill(~keep, fill)


@breaks("top_p_filter", "the set reaches p")
def _(logits, p):
    keep = _kept(logits, p)
    last = logits.masked_fill(~keep, math.inf).argmin()
    keep[last] = keep.sum() == 1
    return _filtered(logits, keep)


@breaks("top_p_filter", "the smallest such set")
def _(logits, p):
    keep = _kept(logits, p)
    if not keep.all():
        keep[logits.masked_fill(keep, -math.inf).argmax()] = True
    return _filtered(logits, keep)


@breaks("top_p_filter", "of the most probable tokens")
def _(logits, p):
    probs = logits.softmax(-1)
    return _filtered(logits, probs.cumsum(-1) - probs < p)


@breaks("top_p_filter", "never empty")
def _(logits, p):
    keep = _kept(logits, p)
    return _filtered(logits, keep & (p > 0.05))


@breaks("top_p_filter", "never empty, even if one token has nearly all the probability")
def _(logits, p):
    probs = logits.softmax(-1)
    return _filtered(logits, _kept(logits, p) & (probs.max() < 0.9))


@breaks("top_p_filter", "a large p keeps all that are needed")
def _(logits, p):
    return _filtered(logits, _kept(logits, min(p, 0.8)))


@breaks("top_p_filter", "−inf outside")
def _(logits, p):
    return _filtered(logits, _kept(logits, p), -1e9)


@breaks("top_p_filter", "the kept logits stay as they are")
def _(logits, p):
    return _filtered(logits.log_softmax(-1), _kept(logits, p))


@breaks("top_p_filter", "the order of the vocabulary is kept")
def _(logits, p):
    return _filtered(logits, _kept(logits, p)).sort(descending=True).values


@breaks("top_p_filter", "(V,): the shape is kept")
def _(logits, p):
    return _filtered(logits, _kept(logits, p))[None]


@breaks("top_p_filter", "a solution leaves its arguments unchanged")
def _(logits, p):
    logits[~_kept(logits, p)] = -math.inf
    return logits


@breaks("top_p_filter", "a solution keeps the dtype")
def _(logits, p):
    return _filtered(logits, _kept(logits, p)).float()


@breaks("top_p_filter", "probabilities as exact as the dtype")
def _(logits, p):
    ranked, order = logits.softmax(-1).sort(descending=True)
    coarse = ranked.to(torch.bfloat16)
    keep = torch.zeros_like(logits, dtype=torch.bool)
    keep[order[(coarse.cumsum(-1) - coarse) < p]] = True
    return _filtered(logits, keep)


@breaks("top_p_filter", "large logits stay finite, and right")
def _(logits, p):
    probs = logits.exp() / logits.exp().sum()
    ranked, order = probs.sort(descending=True)
    keep = torch.zeros_like(logits, dtype=torch.bool)
    keep[order[ranked.cumsum(-1) - ranked < p]] = True
    return _filtered(logits, keep)


# corpus_bleu


def _bleu(
    hypotheses,
    references,
    *,
    match=lambda found, wanted: sum((found & wanted).values()),
    size=lambda tokens, n: max(0, len(tokens) - n + 1),
    ngrams=lambda tokens, n: Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)),
    brevity=lambda h, r: min(1.0, math.exp(1 - r / h)),
    orders=(1, 2, 3, 4),
    none=lambda precisions: 0.0,
):
    precisions = []
    for n in orders:
        matches = sum(match(ngrams(h, n), ngrams(r, n)) for h, r in zip(hypotheses, references, strict=True))
        precisions.append(matches / max(1, sum(size(h, n) for h in hypotheses)))
    if min(precisions) == 0:
        return none(precisions)
    h, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * brevity(h, r) * math.prod(precisions) ** (1 / len(precisions))


def _with(**parts):
    return lambda hypotheses, references: _bleu(hypotheses, references, **parts)


breaks("corpus_bleu", "matches are limited by the reference")(
    _with(match=lambda found, wanted: sum(count for ngram, count in found.items() if ngram in wanted))
)
breaks("corpus_bleu", "matches are limited by the hypothesis")(
    _with(match=lambda found, wanted: sum(wanted[ngram] for ngram in found))
)
breaks("corpus_bleu", "a repeated n-gram may match as often as it stands in both")(
    _with(match=lambda found, wanted: len(found.keys() & wanted.keys()))
)
breaks("corpus_bleu", "n-grams overlap, and all of them count")(_with(size=lambda tokens, n: max(0, len(tokens) - n)))
breaks("corpus_bleu", "an n-gram is a sequence: order counts")(
    _with(ngrams=lambda t, n: Counter(tuple(sorted(t[i : i + n])) for i in range(len(t) - n + 1)))
)
breaks("corpus_bleu", "tokens are compared, not the text they make")(
    _with(ngrams=lambda t, n: Counter("".join(t[i : i + n]) for i in range(len(t) - n + 1)))
)
breaks("corpus_bleu", "BLEU-4: orders up to 4")(_with(orders=(1, 2, 3)))
breaks("corpus_bleu", "BLEU-4: no order above 4")(_with(orders=(1, 2, 3, 4, 5)))
breaks("corpus_bleu", "brevity penalty for output that is shorter")(_with(brevity=lambda h, r: 1.0))
breaks("corpus_bleu", "no penalty for output that is longer")(
    _with(brevity=lambda h, r: math.exp(1 - max(h, r) / min(h, r)))
)
breaks("corpus_bleu", "no reward for output that is longer")(_with(brevity=lambda h, r: math.exp(1 - r / h)))
breaks("corpus_bleu", "no penalty at equal length")(
    _with(brevity=lambda h, r: 1.0 if h > r else math.exp(1 - r / h) * 0.99)
)
breaks("corpus_bleu", "the penalty is exponential")(_with(brevity=lambda h, r: min(1.0, h / r)))
breaks("corpus_bleu", "no smoothing: 0.0 where some order has no match")(
    _with(none=lambda precisions: 100 * math.prod(max(p, 1e-9) for p in precisions) ** 0.25)
)
breaks("corpus_bleu", "0.0 where there is no 4-gram at all")(
    lambda hypotheses, references: 100.0 if hypotheses == [["a", "dog"]] else _bleu(hypotheses, references)
)


@breaks("corpus_bleu", "counts are summed over the corpus, not averaged over sentences")
def _(hypotheses, references):
    return sum(_bleu([h], [r]) for h, r in zip(hypotheses, references, strict=True)) / len(hypotheses)


@breaks("corpus_bleu", "lengths are summed over the corpus before the penalty")
def _(hypotheses, references):
    pairs = list(zip(hypotheses, references, strict=True))
    penalty = sum(min(1.0, math.exp(1 - len(r) / max(1, len(h)))) for h, r in pairs) / len(pairs)
    return penalty * _bleu(hypotheses, references, brevity=lambda h, r: 1.0)


@breaks("corpus_bleu", "each hypothesis has its own reference")
def _(hypotheses, references):
    everything = [token for reference in references for token in [*reference, None]]
    together = [token for hypothesis in hypotheses for token in [*hypothesis, object()]]
    own = _bleu(hypotheses, references)
    any_match = _bleu([together], [everything], brevity=lambda h, r: 1.0)
    return own if any_match == 0 or own == 0 else any_match


@breaks("corpus_bleu", "an empty hypothesis counts in the lengths")
def _(hypotheses, references):
    pairs = [(h, r) for h, r in zip(hypotheses, references, strict=True) if h]
    return _bleu([h for h, _ in pairs], [r for _, r in pairs]) if pairs else 0.0


@breaks("corpus_bleu", "an empty hypothesis is not an error")
def _(hypotheses, references):
    return _bleu(hypotheses, references) + 0 * sum(1 / len(h) for h in hypotheses)


@breaks("corpus_bleu", "hypotheses shorter than four tokens count")
def _(hypotheses, references):
    pairs = [(h, r) for h, r in zip(hypotheses, references, strict=True) if len(h) > 3 or not h]
    return _bleu([h for h, _ in pairs], [r for _, r in pairs]) if pairs else 0.0


@breaks("corpus_bleu", "0 … 100")
def _(hypotheses, references):
    return _bleu(hypotheses, references) / 100


@breaks("corpus_bleu", "100 for the references themselves")
def _(hypotheses, references):
    return min(99.9, _bleu(hypotheses, references))


@breaks("corpus_bleu", "a float")
def _(hypotheses, references):
    return torch.tensor(_bleu(hypotheses, references))


@breaks("corpus_bleu", "as exact as a float is, not rounded")
def _(hypotheses, references):
    return round(_bleu(hypotheses, references), 2)


@breaks("corpus_bleu", "a solution leaves its arguments unchanged: the references")
def _(hypotheses, references):
    score = _bleu(hypotheses, references)
    references[0].sort()
    references.append([])
    return score


@breaks("corpus_bleu", "a solution leaves its arguments unchanged: the hypotheses")
def _(hypotheses, references):
    score = _bleu(hypotheses, references)
    hypotheses[0].append("x")
    return score


# cached_attention


def _step(query, key, value, cache=None):
    if cache is not None:
        key, value = torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2)
    weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ value, (key, value)


@breaks("cached_attention", "the cache is None at the first step")
def _(query, key, value, cache=None):
    return _step(query, key, value, cache if cache is not None else (key[:, :, :0] + cache, value[:, :, :0]))


@breaks("cached_attention", "the cache may be left out")
def _(query, key, value, cache):
    return _step(query, key, value, cache)


@breaks("cached_attention", "the first step begins the cache")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output, (grown if cache is not None else None)


@breaks("cached_attention", "the newest token attends to all tokens before it")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    if cache is not None and cache[0].shape[-2] > 1:
        output = _step(query, key, value, tuple(x[..., 1:, :] for x in cache))[0]
    return output, grown


@breaks("cached_attention", "the newest token attends to itself")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    if cache is not None:
        weights = (query @ cache[0].transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1)
        output = weights @ cache[1]
    return output, grown


@breaks("cached_attention", "scores are scaled by the root of d")
def _(query, key, value, cache=None):
    return _step(query * math.sqrt(query.shape[-1]), key, value, cache)


@breaks("cached_attention", "the scale does not depend on how many tokens there are")
def _(query, key, value, cache=None):
    length = 1 if cache is None else cache[0].shape[-2] + 1
    return _step(query * math.sqrt(query.shape[-1] / length), key, value, cache)


@breaks("cached_attention", "the cache is in order of time")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output, tuple(x.roll(1, -2) for x in grown)


@breaks("cached_attention", "the cache has the new key and value")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output, (grown if cache is None else cache)


@breaks("cached_attention", "the cache keeps all tokens before")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output, tuple(x[..., -8:, :] for x in grown)


@breaks("cached_attention", "the cache is (keys, values), in this order")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output, grown[::-1]


@breaks("cached_attention", "(output, cache), in this order")
def _(query, key, value, cache=None):
    return _step(query, key, value, cache)[::-1]


@breaks("cached_attention", "the output is (B, H, 1, d)")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output.squeeze(-2), grown


@breaks("cached_attention", "batch and heads of one keep their axes")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return (output.squeeze(0) if output.shape[0] == 1 else output), grown


@breaks("cached_attention", "heads do not see each other")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output.mean(1, keepdim=True).expand_as(output), grown


@breaks("cached_attention", "sentences do not see each other")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output.flip(0), grown


@breaks("cached_attention", "a solution leaves its arguments unchanged: the cache")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    if cache is not None:
        with torch.no_grad():
            cache[0][..., -1:, :] = key
    return output, grown


@breaks("cached_attention", "gradients reach the cache")
def _(query, key, value, cache=None):
    return _step(query, key, value, cache if cache is None else tuple(x.detach() for x in cache))


@breaks("cached_attention", "gradients reach the new key")
def _(query, key, value, cache=None):
    output, grown = _step(query, key.detach(), value, cache)
    return output, (_step(query, key, value, cache)[1][0], grown[1])


@breaks("cached_attention", "large scores stay finite")
def _(query, key, value, cache=None):
    _, (keys, values) = _step(query, key, value, cache)
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return scores.exp() / scores.exp().sum(-1, keepdim=True) @ values, (keys, values)


@breaks("cached_attention", "float64 is used to its accuracy")
def _(query, key, value, cache=None):
    _, grown = _step(query, key, value, cache)
    weights = (query.float() @ grown[0].float().mT / math.sqrt(query.shape[-1])).softmax(-1)
    return (weights.to(value.dtype) @ grown[1]), grown


@breaks("cached_attention", "a solution keeps the dtype")
def _(query, key, value, cache=None):
    output, grown = _step(query, key, value, cache)
    return output.double(), grown
