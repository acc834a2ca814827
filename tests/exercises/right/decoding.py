# %% greedy_decode: a while loop
import torch


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    generated = []
    while len(generated) < max_length:
        log_probs = next_log_probs([bos_id] + generated)
        best = torch.argmax(log_probs).item()
        if best == eos_id:
            return generated
        generated.append(best)
    return generated


# %% greedy_decode: recursion on the sequence so far
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    def rest(tokens, left):
        if left == 0:
            return []
        scores = next_log_probs(tokens).tolist()
        token = max(range(len(scores)), key=scores.__getitem__)
        return [] if token == eos_id else [token, *rest([*tokens, token], left - 1)]

    return rest([bos_id], max_length)


# %% greedy_decode: a generator, probabilities by exp, numpy
import itertools

import numpy as np


def tokens_of(model, bos, eos):
    seen = [bos]
    while True:
        probs = np.exp(model(list(seen)).detach().numpy())
        token = int(np.argmax(probs))
        if token == eos:
            return
        yield token
        seen.append(token)


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    return list(itertools.islice(tokens_of(next_log_probs, bos_id, eos_id), max_length))


# %% greedy_decode: topk, prints, the last step appended and taken off again
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    sequence = [bos_id]
    for step in range(max_length):
        value, index = next_log_probs(sequence).topk(1)
        print(step, float(value))
        sequence += index.tolist()
        if sequence[-1] == eos_id:
            sequence.pop()
            break
    del sequence[0]
    return sequence


# %% greedy_decode: a class that is called, sort
class Greedy:
    def __call__(self, next_log_probs, bos_id, eos_id, max_length):
        out = []
        for _ in range(max_length):
            order = next_log_probs([bos_id, *out]).sort(descending=True).indices
            if int(order[0]) == eos_id:
                break
            out.append(int(order[0]))
        return out


greedy_decode = Greedy()


# %% beam_search: lists of pairs
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    done = []
    for _ in range(max_length):
        if not beams:
            break
        pool = []
        for seq, score in beams:
            logp = next_log_probs(seq)
            for v in range(logp.shape[0]):
                pool.append((seq + [v], score + logp[v].item()))
        pool = sorted(pool, key=lambda x: -x[1])[:beam_size]
        beams = []
        for seq, score in pool:
            (done if seq[-1] == eos_id else beams).append((seq, score))
    done.extend(beams)
    seq, _ = max(done, key=lambda x: x[1] / (len(x[0]) - 1) ** length_penalty)
    return [t for t in seq[1:] if t != eos_id]


# %% beam_search: one flat topk over the matrix of sums
import torch


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    sequences, sums = [[]], torch.zeros(1, dtype=torch.float64)
    best, best_score = [], -float("inf")
    for n in range(1, max_length + 1):
        rows = torch.stack([next_log_probs([bos_id] + s) for s in sequences]).double()
        total = sums[:, None] + rows  # (open, V)
        vocab = total.shape[1]
        values, flat = total.flatten().topk(min(beam_size, total.numel()))
        next_sequences, next_sums = [], []
        for value, place in zip(values, flat):
            parent, token = divmod(place.item(), vocab)
            if token == eos_id or n == max_length:
                score = value.item() / n**length_penalty
                if score > best_score:
                    best = sequences[parent] + ([token] if token != eos_id else [])
                    best_score = score
            else:
                next_sequences.append(sequences[parent] + [token])
                next_sums.append(value)
        if not next_sequences:
            break
        sequences, sums = next_sequences, torch.stack(next_sums)
    return best


# %% beam_search: topk of each hypothesis first, then of all; a heap
import heapq


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    class Hypothesis:
        def __init__(self, ids, logp, closed=False):
            self.ids, self.logp, self.closed = ids, logp, closed

        @property
        def score(self):
            return self.logp / (len(self.ids) + self.closed) ** length_penalty

    live, closed = [Hypothesis([], 0.0)], []
    for _ in range(max_length):
        children = []
        for parent in live:
            scores = next_log_probs([bos_id] + parent.ids)
            top = scores.topk(min(beam_size, len(scores)))
            for logp, token in zip(top.values.tolist(), top.indices.tolist()):
                if token == eos_id:
                    children.append(Hypothesis(parent.ids, parent.logp + logp, closed=True))
                else:
                    children.append(Hypothesis(parent.ids + [token], parent.logp + logp))
        survivors = heapq.nlargest(beam_size, children, key=lambda h: h.logp)
        closed += [h for h in survivors if h.closed]
        live = [h for h in survivors if not h.closed]
    return max(closed + live, key=lambda h: h.score).ids


# %% beam_search: recursion over the steps, numpy for the sums
import numpy as np


def step(model, bos, eos, width, left, beam, finished):
    if left == 0 or not beam:
        return finished + beam
    candidates = []
    for tokens, total in beam:
        row = total + model([bos, *tokens]).double().numpy()
        candidates.extend(((*tokens, v), row[v]) for v in range(row.size))
    order = np.argsort([-total for _, total in candidates], kind="stable")[:width]
    kept = [candidates[i] for i in order]
    ended = [h for h in kept if h[0][-1] == eos]
    going = [h for h in kept if h[0][-1] != eos]
    return step(model, bos, eos, width, left - 1, going, finished + ended)


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    everything = step(next_log_probs, bos_id, eos_id, beam_size, max_length, [((), 0.0)], [])
    scores = [total / len(tokens) ** length_penalty for tokens, total in everything]
    tokens = list(everything[int(np.argmax(scores))][0])
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return [int(t) for t in tokens]


# %% beam_search: products of probabilities in float64, logarithm at the end
import math


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    alive = {(): 1.0}
    finals = {}
    for _ in range(max_length):
        grown = {}
        for tokens, prob in alive.items():
            for token, p in enumerate(next_log_probs([bos_id, *tokens]).double().exp().tolist()):
                grown[(*tokens, token)] = prob * p
        best = sorted(grown, key=grown.get, reverse=True)[:beam_size]
        alive = {t: grown[t] for t in best if t[-1] != eos_id}
        finals.update({t: grown[t] for t in best if t[-1] == eos_id})
        if not alive:
            break
    finals.update(alive)
    winner = max(finals, key=lambda t: math.log(finals[t]) / math.pow(len(t), length_penalty))
    return list(winner[:-1]) if winner[-1] == eos_id else list(winner)


# %% top_p_filter: cumulative sum of the sorted probabilities, shifted by one
import torch


def top_p_filter(logits, p):
    values, places = torch.sort(logits, descending=True)
    cumulative = torch.softmax(values, dim=-1).cumsum(dim=-1)
    remove = cumulative > p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    mask = torch.zeros_like(remove).scatter(0, places, remove)
    return logits.masked_fill(mask, float("-inf"))


# %% top_p_filter: a loop
import math


def top_p_filter(logits, p):
    top = max(logits.tolist())
    weights = [math.exp(x - top) for x in logits.tolist()]
    probs = [w / sum(weights) for w in weights]
    result = logits.new_full(logits.shape, -math.inf)
    mass = 0.0
    for token in sorted(range(len(probs)), key=lambda v: -probs[v]):
        result[token] = logits[token]
        mass += probs[token]
        if mass >= p:
            break
    return result


# %% top_p_filter: from the rare end
import torch


def top_p_filter(logits, p):
    probs = logits.double().softmax(0)
    ascending = probs.argsort()
    dropped = ascending[probs[ascending].cumsum(0) <= 1 - p]
    out = logits.clone()
    out[dropped] = -torch.inf
    return out


# %% top_p_filter: for each token the probability of all that are more probable, by comparison of all pairs
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, -1)
    better = (probs[None, :] > probs[:, None]).to(probs.dtype)
    ahead = better @ probs
    return torch.where(ahead < p, logits, torch.tensor(float("-inf"), dtype=logits.dtype))


# %% top_p_filter: the smallest logit that is kept, by searchsorted
import torch


def top_p_filter(logits, p):
    ordered, _ = logits.sort(descending=True)
    sums = ordered.softmax(-1).cumsum(-1)
    last = min(int(torch.searchsorted(sums, p)), len(sums) - 1)
    return logits.masked_fill(logits < ordered[last], -float("inf"))


# %% corpus_bleu: Counter and logarithms
import math
from collections import Counter


def corpus_bleu(hypotheses, references):
    matches, totals = [0] * 4, [0] * 4
    for hyp, ref in zip(hypotheses, references):
        for n in range(1, 5):
            h = Counter(zip(*[hyp[i:] for i in range(n)]))
            r = Counter(zip(*[ref[i:] for i in range(n)]))
            matches[n - 1] += sum(min(c, r[g]) for g, c in h.items())
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    score = math.exp(sum(math.log(m / t) for m, t in zip(matches, totals)) / 4)
    c, r = sum(len(h) for h in hypotheses), sum(len(r) for r in references)
    if c < r:
        score *= math.exp(1 - r / c)
    return score * 100


# %% corpus_bleu: matched n-grams struck off a copy of the reference's list
def corpus_bleu(hypotheses, references):
    product = 1.0
    for n in (1, 2, 3, 4):
        hit = count = 0
        for hyp, ref in zip(hypotheses, references):
            left = [tuple(ref[i:i + n]) for i in range(len(ref) - n + 1)]
            for i in range(len(hyp) - n + 1):
                gram = tuple(hyp[i:i + n])
                count += 1
                if gram in left:
                    left.remove(gram)
                    hit += 1
        if not hit:
            return 0
        product *= hit / count
    h = sum(map(len, hypotheses))
    r = sum(map(len, references))
    penalty = 1.0 if h >= r else 2.718281828459045 ** (1 - r / h)
    return 100.0 * penalty * product ** 0.25


# %% corpus_bleu: tensors of counts over a vocabulary of n-grams
import torch


def corpus_bleu(hypotheses, references):
    logs = []
    for n in range(1, 5):
        grams = {}
        for sentence in [*hypotheses, *references]:
            for i in range(len(sentence) - n + 1):
                grams.setdefault(tuple(sentence[i : i + n]), len(grams))

        def counts(sentences):
            table = torch.zeros(len(sentences), max(1, len(grams)), dtype=torch.float64)
            for row, sentence in enumerate(sentences):
                for i in range(len(sentence) - n + 1):
                    table[row, grams[tuple(sentence[i : i + n])]] += 1
            return table

        h, r = counts(hypotheses), counts(references)
        matched = torch.minimum(h, r).sum()
        if matched == 0:
            return 0.0
        logs.append(torch.log(matched / h.sum()))
    length = sum(len(x) for x in hypotheses) / sum(len(x) for x in references)
    brevity = 0.0 if length >= 1 else 1 - 1 / length
    return float(100 * torch.exp(torch.stack(logs).mean() + brevity))


# %% corpus_bleu: strings of joined words as n-grams, numpy's geometric mean, prints
import numpy as np


def corpus_bleu(hypotheses, references):
    def grams(words, n):
        return [" ".join(words[i : i + n]) for i in range(len(words) + 1 - n)]

    precision = []
    for n in range(1, 5):
        good, every = 0, 0
        for hyp, ref in zip(hypotheses, references):
            mine, theirs = grams(hyp, n), grams(ref, n)
            every += len(mine)
            good += sum(min(mine.count(g), theirs.count(g)) for g in set(mine))
        precision.append(good / every if every else 0.0)
    print(precision)
    if 0 in precision:
        return 0.0
    h, r = sum(map(len, hypotheses)), sum(map(len, references))
    return float(100 * np.exp(min(0.0, 1 - r / h)) * np.prod(precision) ** (1 / 4))


# %% cached_attention: cat, then the course's attention
import torch

from course_lib import scaled_dot_product_attention


def cached_attention(query, key, value, cache=None):
    if cache is None:
        keys, values = key, value
    else:
        old_keys, old_values = cache
        keys = torch.cat([old_keys, key], dim=2)
        values = torch.cat([old_values, value], dim=2)
    output, _ = scaled_dot_product_attention(query, keys, values)
    return output, (keys, values)


# %% cached_attention: PyTorch's fused attention
import torch
import torch.nn.functional as F


def cached_attention(query, key, value, cache=None):
    past = [] if cache is None else [cache]
    keys, values = (torch.cat(parts, -2) for parts in zip(*past, (key, value)))
    return F.scaled_dot_product_attention(query, keys, values), (keys, values)


# %% cached_attention: einsum, a list for the pair
import torch


def cached_attention(query, key, value, cache=None):
    if cache:
        key, value = [torch.cat(pair, 2) for pair in zip(cache, (key, value))]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * key.shape[-1] ** -0.5
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value), [key, value]


# %% cached_attention: new tensors of the full length, filled
import math

import torch


def cached_attention(query, key, value, cache=None):
    past = 0 if cache is None else cache[0].size(2)
    b, h, _, d = key.shape
    keys = key.new_zeros(b, h, past + 1, d)
    values = value.new_zeros(b, h, past + 1, d)
    if past:
        keys[:, :, :past], values[:, :, :past] = cache
    keys[:, :, past:] = key
    values[:, :, past:] = value
    weights = torch.softmax((query / math.sqrt(d)) @ keys.mT, dim=-1)
    return torch.matmul(weights, values), (keys, values)


# %% cached_attention: the newest score beside the old ones, an online softmax
import torch


def cached_attention(query, key, value, cache=None):
    root = query.size(-1) ** 0.5
    own = (query * key).sum(-1, keepdim=True) / root  # (B, H, 1, 1)
    if cache is None:
        return value + 0 * own, (key, value)
    keys, values = cache
    past = query @ keys.transpose(2, 3) / root
    top = torch.maximum(past.max(-1, keepdim=True).values, own)
    old, new = (past - top).exp(), (own - top).exp()
    output = (old @ values + new * value) / (old.sum(-1, keepdim=True) + new)
    return output, (torch.cat((keys, key), 2), torch.cat((values, value), 2))
