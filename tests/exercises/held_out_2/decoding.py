# %% greedy_decode: bos stays at the front of the returned list
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        nxt = int(next_log_probs(tokens).argmax())
        if nxt == eos_id:
            break
        tokens.append(nxt)
    return tokens

# %% greedy_decode: eos is appended before the test and comes back in the result
import torch

def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    seq = [bos_id]
    while len(seq) - 1 < max_length:
        log_p = next_log_probs(seq)
        best = torch.argmax(log_p).item()
        seq.append(best)
        if best == eos_id:
            break
    return seq[1:]

# %% greedy_decode: bos is counted in max_length, so one token too few is generated
import torch
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    ids = [bos_id]
    while len(ids) < max_length:
        token = int(torch.argmax(next_log_probs(ids), dim=-1))
        if token == eos_id:
            return ids[1:]
        ids.append(token)
    return ids[1:]

# %% greedy_decode: only the last token is given to next_log_probs, not the whole prefix
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    out = []
    current = bos_id
    for step in range(max_length):
        scores = next_log_probs([current])
        current = scores.argmax().item()
        if current == eos_id:
            break
        out.append(current)
    return out

# %% greedy_decode: draws the next token from the distribution instead of taking the most probable one
import torch

def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    generated = []
    for _ in range(max_length):
        probs = next_log_probs([bos_id] + generated).exp()
        token = torch.multinomial(probs, num_samples=1).item()
        if token == eos_id:
            break
        generated.append(token)
    return generated

# %% greedy_decode: does not stop at eos but runs to max_length and drops the eos tokens at the end
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        tokens += [int(next_log_probs(tokens).argmax())]
    return [t for t in tokens[1:] if t != eos_id]

# %% greedy_decode: a mutable default argument keeps the tokens of the previous call
def _extend(next_log_probs, bos_id, eos_id, max_length, so_far=[]):
    if len(so_far) >= max_length:
        return so_far
    best = int(next_log_probs([bos_id] + so_far).argmax())
    if best == eos_id:
        return so_far
    so_far.append(best)
    return _extend(next_log_probs, bos_id, eos_id, max_length, so_far)

def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    return list(_extend(next_log_probs, bos_id, eos_id, max_length))

# %% greedy_decode: the prefix is passed without bos, and the loop makes one token more than max_length
import torch

def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    result = []
    n = 0
    while n <= max_length:
        prefix = result if result else [bos_id]
        p = next_log_probs(prefix)
        _, idx = torch.max(p, dim=0)
        idx = idx.item()
        if idx == eos_id:
            break
        result.append(idx)
        n += 1
    return result

# %% beam_search: finished hypotheses stay in the beam and compete for its places at every later step
import torch

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0, False)]
    for _ in range(max_length):
        candidates = []
        for seq, score, done in beams:
            if done:
                candidates.append((seq, score, True))
                continue
            for tok, lp in enumerate(next_log_probs(seq).tolist()):
                candidates.append((seq + [tok], score + lp, tok == eos_id))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = candidates[:beam_size]
        if all(done for _, _, done in beams):
            break
    best = max(beams, key=lambda c: c[1] / (len(c[0]) - 1) ** length_penalty)
    return [t for t in best[0][1:] if t != eos_id]

# %% beam_search: the length n leaves out eos, so finished hypotheses are divided by one token too few
import heapq

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    open_hyps = [(0.0, [])]
    done = []
    for _ in range(max_length):
        cands = []
        for score, toks in open_hyps:
            lp = next_log_probs([bos_id] + toks)
            cands.extend((score + float(lp[v]), toks, v) for v in range(len(lp)))
        open_hyps = []
        for score, toks, v in heapq.nlargest(beam_size, cands, key=lambda c: c[0]):
            if v == eos_id:
                done.append((score, toks))
            else:
                open_hyps.append((score, toks + [v]))
        if not open_hyps:
            break
    pool = done + open_hyps
    best = max(pool, key=lambda h: h[0] / max(len(h[1]), 1) ** length_penalty)
    return best[1]

# %% beam_search: returns the first hypothesis that finishes instead of going on and comparing
import torch

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beam = [([bos_id], 0.0)]
    for step in range(max_length):
        all_candidates = []
        for tokens, score in beam:
            log_probs = next_log_probs(tokens)
            for v in range(log_probs.shape[0]):
                all_candidates.append((tokens + [v], score + log_probs[v].item()))
        beam = sorted(all_candidates, key=lambda c: -c[1])[:beam_size]
        for tokens, score in beam:
            if tokens[-1] == eos_id:
                return tokens[1:-1]
    best = max(beam, key=lambda c: c[1] / (len(c[0]) - 1) ** length_penalty)
    return best[0][1:]

# %% beam_search: hypotheses still open after max_length are thrown away as soon as one has finished
import torch

class Hyp:
    def __init__(self, ids, logp):
        self.ids, self.logp = ids, logp

    def score(self, alpha):
        return self.logp / len(self.ids) ** alpha

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    live, finished = [Hyp([], 0.0)], []
    for _ in range(max_length):
        if not live:
            break
        table = torch.stack([next_log_probs([bos_id] + h.ids) + h.logp for h in live])
        V = table.shape[1]
        top = table.flatten().topk(min(beam_size, table.numel()))
        new = []
        for s, i in zip(top.values.tolist(), top.indices.tolist()):
            h = Hyp(live[i // V].ids + [i % V], s)
            (finished if i % V == eos_id else new).append(h)
        live = new
    pool = finished if finished else live
    if not pool or max_length == 0:
        return []
    ids = max(pool, key=lambda h: h.score(length_penalty)).ids
    return ids[:-1] if ids[-1] == eos_id else ids

# %% beam_search: uses the length penalty of GNMT, ((5 + n) / 6) ** alpha, instead of n ** alpha
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def normalised(item):
        toks, s = item
        return s / (((5 + len(toks) - 1) / 6) ** length_penalty)

    running, ended = [([bos_id], 0.0)], []
    for _ in range(max_length):
        expanded = [(t + [v], s + p) for t, s in running
                    for v, p in enumerate(next_log_probs(t).tolist())]
        expanded.sort(key=lambda e: e[1], reverse=True)
        expanded = expanded[:beam_size]
        ended += [e for e in expanded if e[0][-1] == eos_id]
        running = [e for e in expanded if e[0][-1] != eos_id]
        if not running:
            break
    winner, _ = max(ended + running, key=normalised)
    winner = winner[1:]
    if winner and winner[-1] == eos_id:
        winner = winner[:-1]
    return winner

# %% beam_search: every finished hypothesis takes one place off the beam for good, so the beam shrinks
import torch

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    k = beam_size
    hyps = [[bos_id]]
    scores = torch.zeros(1)
    finished = []
    for t in range(max_length):
        logp = torch.stack([next_log_probs(h) for h in hyps]) + scores[:, None]
        V = logp.size(1)
        vals, idx = logp.view(-1).topk(min(k, logp.numel()))
        next_hyps, next_scores = [], []
        for v, i in zip(vals, idx.tolist()):
            h = hyps[i // V] + [i % V]
            if i % V == eos_id:
                finished.append((h[1:-1], v.item() / (len(h) - 1) ** length_penalty))
                k -= 1
            else:
                next_hyps.append(h)
                next_scores.append(v)
        hyps = next_hyps
        if k == 0 or not hyps:
            hyps = []
            break
        scores = torch.stack(next_scores)
    for h, s in zip(hyps, scores):
        finished.append((h[1:], s.item() / (len(h) - 1) ** length_penalty if len(h) > 1 else 0.0))
    return max(finished, key=lambda f: f[1])[0]

# %% beam_search: stops as soon as a finished hypothesis beats the open ones at their present length, though the open ones can still gain by the length penalty
import torch

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    alive = [([], 0.0)]
    best_ids, best_score = [], float("-inf")
    for n in range(1, max_length + 1):
        pool = []
        for ids, s in alive:
            lp = next_log_probs([bos_id, *ids])
            pool += [(ids + [v], s + lp[v].item()) for v in range(lp.numel())]
        pool.sort(key=lambda c: c[1], reverse=True)
        alive = []
        for ids, s in pool[:beam_size]:
            if ids[-1] == eos_id:
                if s / n ** length_penalty > best_score:
                    best_ids, best_score = ids[:-1], s / n ** length_penalty
            else:
                alive.append((ids, s))
        # the sums only fall from here, so no open hypothesis can catch up
        if not alive or best_score >= max(s / n ** length_penalty for _, s in alive):
            return best_ids
    for ids, s in alive:
        if ids and s / len(ids) ** length_penalty > best_score:
            best_ids, best_score = ids, s / len(ids) ** length_penalty
    return best_ids

# %% beam_search: parent and token are read from the flat index the wrong way round (index modulo the beam is taken as the parent), and eos is left in the result
import torch

def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams, totals, done = [[bos_id]], [0.0], []
    for _ in range(max_length):
        table = torch.stack([next_log_probs(b) + t for b, t in zip(beams, totals)])
        rows, vocab = table.shape
        values, flat = torch.topk(table.reshape(-1), min(beam_size, table.numel()))
        new_beams, new_totals = [], []
        for value, f in zip(values.tolist(), flat.tolist()):
            parent, token = f % rows, f // rows % vocab
            seq = beams[parent] + [token]
            if token == eos_id:
                done.append((value / (len(seq) - 1) ** length_penalty, seq[1:]))
            else:
                new_beams.append(seq)
                new_totals.append(value)
        beams, totals = new_beams, new_totals
        if len(beams) == 0:
            break
    for b, t in zip(beams, totals):
        done.append((t / max(len(b) - 1, 1) ** length_penalty, b[1:]))
    return max(done)[1]

# %% top_p_filter: the token that crosses p is removed too, so the set can be empty
import torch

def top_p_filter(logits, p):
    sorted_logits, order = torch.sort(logits, descending=True)
    cumulative = torch.softmax(sorted_logits, dim=-1).cumsum(dim=-1)
    remove = cumulative > p
    return logits.masked_fill(torch.zeros_like(remove).scatter(0, order, remove), float("-inf"))

# %% top_p_filter: keeps the tokens while the sum is below p and then at least one, so the token that reaches p is missing
import torch
def top_p_filter(logits, p):
    probs = logits.softmax(-1)
    kept, total = [], 0.0
    for i in probs.argsort(descending=True).tolist():
        if kept and total + probs[i].item() > p:
            break
        kept.append(i)
        total += probs[i].item()
    out = torch.full_like(logits, -float("inf"))
    out[kept] = logits[kept]
    return out

# %% top_p_filter: removed tokens get the logit 0 instead of -inf
import torch

def top_p_filter(logits, p):
    order = torch.argsort(logits, descending=True)
    probs = torch.softmax(logits, -1)[order]
    before = probs.cumsum(0) - probs
    keep = torch.empty_like(order, dtype=torch.bool)
    keep[order] = before < p
    return logits * keep

# %% top_p_filter: the result is left in sorted order and not scattered back
import torch

def top_p_filter(logits, p):
    s, _ = logits.sort(descending=True)
    cum = s.softmax(dim=0).cumsum(dim=0)
    drop = cum >= p
    drop = torch.cat([torch.zeros(1, dtype=torch.bool, device=logits.device), drop[:-1]])
    return s.masked_fill(drop, float("-inf"))

# %% top_p_filter: sorts in ascending order, so the least probable tokens make up the set
import torch

def top_p_filter(logits, p):
    sorted_logits, idx = torch.sort(logits)
    probs = torch.softmax(sorted_logits, dim=-1)
    below = torch.cumsum(probs, dim=-1) - probs
    mask_sorted = below >= p
    mask = torch.zeros_like(mask_sorted)
    mask[idx] = mask_sorted
    return torch.where(mask, torch.tensor(float("-inf"), dtype=logits.dtype, device=logits.device), logits)

# %% top_p_filter: the -inf entries are written into the argument itself
import torch

def top_p_filter(logits, p):
    values, indices = torch.sort(logits, descending=True)
    cum = torch.cumsum(torch.softmax(values, dim=-1), dim=-1)
    remove = cum > p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    logits[indices[remove]] = float("-inf")
    return logits

# %% top_p_filter: returns renormalised probabilities instead of logits
import torch
def top_p_filter(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(descending=True)
    n = int((probs.cumsum(0) < p).sum()) + 1
    kept = torch.zeros_like(logits)
    kept[order[:n]] = probs[:n]
    return kept / kept.sum()

# %% top_p_filter: keeps one token too many (a <= count plus one on the already complete set)
import torch

def top_p_filter(logits, p):
    order = logits.argsort(descending=True)
    cum = logits[order].softmax(-1).cumsum(-1)
    n = 0
    while n < len(cum) and cum[n] < p:
        n += 1
    n += 2
    out = torch.full_like(logits, float("-inf"))
    out[order[:n]] = logits[order[:n]]
    return out

# %% corpus_bleu: matches are not clipped to the count in the reference
import math
from collections import Counter

def corpus_bleu(hypotheses, references):
    def ngrams(s, n):
        return [tuple(s[i:i + n]) for i in range(len(s) - n + 1)]
    log_sum = 0.0
    for n in range(1, 5):
        match = total = 0
        for h, r in zip(hypotheses, references):
            ref = set(ngrams(r, n))
            match += sum(g in ref for g in ngrams(h, n))
            total += len(ngrams(h, n))
        if match == 0:
            return 0.0
        log_sum += math.log(match / total) / 4
    c = sum(len(h) for h in hypotheses)
    r = sum(len(x) for x in references)
    bp = 1.0 if c >= r else math.exp(1 - r / c)
    return 100 * bp * math.exp(log_sum)

# %% corpus_bleu: the mean of the sentence scores instead of the counts pooled over the corpus
import math
from collections import Counter

def _sentence(h, r):
    logs = 0.0
    for n in (1, 2, 3, 4):
        hc = Counter(tuple(h[i:i + n]) for i in range(len(h) - n + 1))
        rc = Counter(tuple(r[i:i + n]) for i in range(len(r) - n + 1))
        overlap = sum((hc & rc).values())
        if overlap == 0:
            return 0.0
        logs += 0.25 * math.log(overlap / sum(hc.values()))
    bp = min(1.0, math.exp(1 - len(r) / len(h)))
    return 100.0 * bp * math.exp(logs)

def corpus_bleu(hypotheses, references):
    if not hypotheses:
        return 0.0
    return sum(_sentence(h, r) for h, r in zip(hypotheses, references)) / len(hypotheses)

# %% corpus_bleu: the brevity penalty has the ratio upside down, exp(1 - c/r), and is used for long hypotheses
import math
from collections import Counter

def corpus_bleu(hypotheses, references):
    hits, totals = [0] * 4, [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            hg = Counter(zip(*[hyp[k:] for k in range(n)]))
            rg = Counter(zip(*[ref[k:] for k in range(n)]))
            hits[n - 1] += sum(min(c, rg[g]) for g, c in hg.items())
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(hits) == 0:
        return 0.0
    precision = math.exp(sum(math.log(h / t) for h, t in zip(hits, totals)) / 4)
    penalty = 1.0 if hyp_len <= ref_len else math.exp(1 - hyp_len / ref_len)
    return 100 * penalty * precision

# %% corpus_bleu: the brevity factor exp(1 - r/c) is not capped at 1, so long hypotheses are rewarded
import math
from collections import Counter

def corpus_bleu(hypotheses, references):
    c = sum(map(len, hypotheses)); r = sum(map(len, references))
    if c == 0:
        return 0.0
    score = 1.0
    for n in range(1, 5):
        num = den = 0
        for h, ref in zip(hypotheses, references):
            a = Counter(tuple(h[i:i+n]) for i in range(len(h)-n+1))
            b = Counter(tuple(ref[i:i+n]) for i in range(len(ref)-n+1))
            num += sum((a & b).values()); den += sum(a.values())
        if num == 0: return 0.0
        score *= (num / den) ** 0.25
    return 100.0 * math.exp(1 - r / c) * score

# %% corpus_bleu: returns a score in 0 ... 1 and takes the arithmetic mean of the four precisions
import math
from collections import Counter

def count(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))

def corpus_bleu(hypotheses, references):
    precisions = []
    for n in range(1, 5):
        matched = sum(sum((count(h, n) & count(r, n)).values()) for h, r in zip(hypotheses, references))
        total = sum(sum(count(h, n).values()) for h in hypotheses)
        if matched == 0:
            return 0.0
        precisions.append(matched / total)
    c = sum(len(h) for h in hypotheses)
    r = sum(len(x) for x in references)
    bp = 1 if c > r else math.exp(1 - r / c)
    return bp * sum(precisions) / 4

# %% corpus_bleu: add-one smoothing for the orders 2 to 4
import math
from collections import Counter

def corpus_bleu(hypotheses, references):
    logs = []
    for n in range(1, 5):
        m, t = 0, 0
        for h, r in zip(hypotheses, references):
            hc = Counter([tuple(h[i:i + n]) for i in range(len(h) - n + 1)])
            rc = Counter([tuple(r[i:i + n]) for i in range(len(r) - n + 1)])
            m += sum(min(v, rc[k]) for k, v in hc.items())
            t += sum(hc.values())
        if n > 1:
            m, t = m + 1, t + 1
        if m == 0:
            return 0.0
        logs.append(math.log(m / t))
    c, r = sum(len(h) for h in hypotheses), sum(len(x) for x in references)
    bp = math.exp(min(0.0, 1 - r / c))
    return 100 * bp * math.exp(sum(logs) / 4)

# %% corpus_bleu: the n-gram range stops at len - n and misses the last n-gram of every sentence
import math
from collections import Counter

def corpus_bleu(hypotheses, references):
    matches, totals = Counter(), Counter()
    for hyp, ref in zip(hypotheses, references):
        for n in range(1, 5):
            h = Counter(tuple(hyp[i:i + n]) for i in range(len(hyp) - n))
            r = Counter(tuple(ref[i:i + n]) for i in range(len(ref) - n))
            matches[n] += sum((h & r).values())
            totals[n] += sum(h.values())
    if any(matches[n] == 0 for n in range(1, 5)):
        return 0.0
    gm = math.exp(sum(math.log(matches[n] / totals[n]) for n in range(1, 5)) / 4)
    c = sum(len(h) for h in hypotheses)
    r = sum(len(x) for x in references)
    return 100 * gm * (1.0 if c > r else math.exp(1 - r / c))

# %% corpus_bleu: no case for an order without a match, so log(0) raises
import math
from collections import Counter

def corpus_bleu(hypotheses, references):
    p = []
    for n in range(1, 5):
        num, den = 0, 0
        for h, r in zip(hypotheses, references):
            hc = Counter(tuple(h[i:i + n]) for i in range(len(h) - n + 1))
            rc = Counter(tuple(r[i:i + n]) for i in range(len(r) - n + 1))
            for g in hc:
                num += min(hc[g], rc[g])
            den += max(0, len(h) - n + 1)
        p.append(num / den)
    geo = math.exp(sum(map(math.log, p)) / 4)
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * min(1, math.exp(1 - r / c)) * geo

# %% cached_attention: the new key and value are joined along the head axis instead of the sequence axis
import torch

def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=1)
        value = torch.cat([cache[1], value], dim=1)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value, (key, value)

# %% cached_attention: the scores are not divided by the root of d
import torch

def cached_attention(query, key, value, cache=None):
    if cache is None:
        keys, values = key, value
    else:
        old_k, old_v = cache
        keys, values = torch.cat((old_k, key), -2), torch.cat((old_v, value), -2)
    w = torch.einsum("bhqd,bhkd->bhqk", query, keys).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", w, values), (keys, values)

# %% cached_attention: the cache comes back as (values, keys)
import math
import torch
def cached_attention(query, key, value, cache=None):
    if cache:
        k, v = cache
        key = torch.cat([k, key], dim=2)
        value = torch.cat([v, value], dim=2)
    att = torch.softmax(torch.matmul(query, key.transpose(2, 3)) / math.sqrt(key.size(-1)), dim=-1)
    return torch.matmul(att, value), (value, key)

# %% cached_attention: the new key and value are put in front of the cached ones
import torch
import torch.nn.functional as F

def cached_attention(query, key, value, cache=None):
    if cache is not None:
        past_keys, past_values = cache
        key = torch.cat([key, past_keys], dim=2)
        value = torch.cat([value, past_values], dim=2)
    out = F.scaled_dot_product_attention(query, key, value)
    return out, (key, value)

# %% cached_attention: the step attends to the old cache only and adds the new key afterwards
import torch

def attend(q, k, v):
    s = (q * k).sum(-1, keepdim=True).transpose(-1, -2) / q.size(-1) ** 0.5
    return s.softmax(-1) @ v

def cached_attention(query, key, value, cache=None):
    if cache is None:
        return attend(query, key, value), (key, value)
    keys, values = cache
    output = attend(query, keys, values)
    return output, (torch.cat([keys, key], 2), torch.cat([values, value], 2))

# %% cached_attention: a lower-triangular mask is laid over the single row of scores, so only the oldest key is seen
import torch

def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    scores = query @ key.mT * query.shape[-1] ** -0.5
    causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    scores = scores.masked_fill(~causal, float("-inf"))
    return scores.softmax(dim=-1) @ value, (key, value)

# %% cached_attention: softmax over the query axis of length one makes every weight 1, and the cached keys are detached
import torch

def cached_attention(query, key, value, cache=None):
    if cache is not None:
        prev_k, prev_v = (t.detach() for t in cache)
        key = torch.cat([prev_k, key], dim=2)
        value = torch.cat([prev_v, value], dim=2)
    scale = key.shape[-1] ** 0.5
    weights = torch.softmax(query @ key.transpose(-1, -2) / scale, dim=-2)
    return weights @ value, (key, value)

# %% cached_attention: tries to assign into the cache, which is a tuple, so the second step raises
import torch

def cached_attention(query, key, value, cache=None):
    if cache is None:
        cache = (key, value)
    else:
        cache[0] = torch.cat([cache[0], key], dim=2)
        cache[1] = torch.cat([cache[1], value], dim=2)
    keys, values = cache
    weights = torch.softmax(query @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values, cache
