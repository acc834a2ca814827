# %% greedy_decode: The list still begins with bos.
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        best = int(next_log_probs(tokens).argmax())
        if best == eos_id:
            break
        tokens.append(best)
    return tokens


# %% greedy_decode: eos is appended before the loop stops, and stays in the list.
import torch


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    generated = []
    while len(generated) < max_length:
        log_probs = next_log_probs([bos_id] + generated)
        token = torch.argmax(log_probs).item()
        generated.append(token)
        if token == eos_id:
            break
    return generated


# %% greedy_decode: The model is given the last token only, not all tokens so far.
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    out = []
    last = bos_id
    for _ in range(max_length):
        last = next_log_probs([last]).argmax().item()
        if last == eos_id:
            return out
        out.append(last)
    return out


# %% greedy_decode: bos is counted in max_length, so one token too few is generated.
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    sequence = [bos_id]
    while len(sequence) < max_length:
        nxt = int(next_log_probs(sequence).argmax(dim=-1))
        if nxt == eos_id:
            break
        sequence.append(nxt)
    return sequence[1:]


# %% greedy_decode: It does not stop at eos, only takes the eos tokens out at the end.
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        scores = next_log_probs(tokens).tolist()
        tokens.append(scores.index(max(scores)))
    return [t for t in tokens[1:] if t != eos_id]


# %% greedy_decode: The next token is drawn at random from the probabilities instead of being the most probable one.
import torch


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for step in range(max_length):
        probs = next_log_probs(tokens).exp()
        choice = torch.multinomial(probs, num_samples=1).item()
        if choice == eos_id:
            break
        tokens.append(choice)
    return tokens[1:]


# %% greedy_decode: bos is never shown to the model: the first call gets an empty list.
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    result = []
    for _ in range(max_length):
        _, idx = next_log_probs(result).max(dim=0)
        idx = int(idx)
        if idx == eos_id:
            break
        result.append(idx)
    return result


# %% beam_search: length_penalty is never used; finished hypotheses are compared by their sums.
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            for token, lp in enumerate(next_log_probs(tokens).tolist()):
                candidates.append((tokens + [token], score + lp))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            (finished if tokens[-1] == eos_id else beams).append((tokens, score))
        if not beams:
            break
    best = max(finished + beams, key=lambda c: c[1])[0]
    return [t for t in best[1:] if t != eos_id]


# %% beam_search: The length that divides the score leaves eos out.
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    open_hyps = [(0.0, [])]
    done = []
    for _ in range(max_length):
        pool = []
        for total, ids in open_hyps:
            log_probs = next_log_probs([bos_id] + ids)
            pool += [(total + log_probs[v].item(), ids + [v]) for v in range(len(log_probs))]
        survivors = sorted(pool, key=lambda item: -item[0])[:beam_size]
        open_hyps = [s for s in survivors if s[1][-1] != eos_id]
        done += [(total, ids[:-1]) for total, ids in survivors if ids[-1] == eos_id]
        if not open_hyps:
            break
    everything = done + open_hyps
    return max(everything, key=lambda item: item[0] / max(len(item[1]), 1) ** length_penalty)[1]


# %% beam_search: The search ends with the first hypothesis that is finished and returns it.
import torch


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    sequences = [[bos_id]]
    scores = torch.zeros(1, dtype=torch.float64)
    for step in range(max_length):
        table = torch.stack([next_log_probs(s).double() for s in sequences]) + scores[:, None]
        vocab = table.shape[1]
        scores, flat = table.flatten().topk(min(beam_size, table.numel()))
        sequences = [sequences[i // vocab] + [i % vocab] for i in flat.tolist()]
        for s in sequences:
            if s[-1] == eos_id:
                return s[1:-1]
    return sequences[0][1:]


# %% beam_search: The score is multiplied by n^length_penalty where it has to be divided.
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def score(hypothesis):
        tokens, logp = hypothesis
        return logp * len(tokens) ** length_penalty

    live, ended = [((), 0.0)], []
    while live and len(live[0][0]) < max_length:
        grown = []
        for tokens, logp in live:
            for token, step in enumerate(next_log_probs([bos_id, *tokens]).tolist()):
                grown.append(((*tokens, token), logp + step))
        grown.sort(key=lambda h: h[1])
        kept = grown[-beam_size:]
        ended.extend(h for h in kept if h[0][-1] == eos_id)
        live = [h for h in kept if h[0][-1] != eos_id]
    tokens, _ = max(ended + live, key=score)
    return list(tokens[:-1] if tokens[-1] == eos_id else tokens)


# %% beam_search: Hypotheses still open after max_length tokens are dropped if any other has finished.
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([], 0.0)]
    finished = []
    for _ in range(max_length):
        nxt = []
        for ids, s in beams:
            lp = next_log_probs([bos_id] + ids)
            nxt.extend((ids + [k], s + float(lp[k])) for k in range(lp.shape[0]))
        nxt = sorted(nxt, key=lambda b: b[1], reverse=True)[:beam_size]
        beams = []
        for ids, s in nxt:
            if ids[-1] == eos_id:
                finished.append((ids[:-1], s / len(ids) ** length_penalty))
            else:
                beams.append((ids, s))
        if len(beams) == 0:
            break
    if finished:
        return max(finished, key=lambda b: b[1])[0]
    return beams[0][0]


# %% beam_search: After the first step every hypothesis is extended by its own best token; they do not compete.
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    first = next_log_probs([bos_id])
    values, ids = first.topk(min(beam_size, first.numel()))
    hyps = [([i], v) for i, v in zip(ids.tolist(), values.tolist())]
    for _ in range(max_length - 1):
        for n, (seq, total) in enumerate(hyps):
            if seq[-1] == eos_id:
                continue
            value, token = next_log_probs([bos_id] + seq).max(dim=-1)
            hyps[n] = (seq + [token.item()], total + value.item())
    best, _ = max(hyps, key=lambda h: h[1] / len(h[0]) ** length_penalty)
    if best[-1] == eos_id:
        best = best[:-1]
    return best


# %% beam_search: Finished hypotheses stay in the beam and take the place of open ones.
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beam = [(0.0, [])]
    for _ in range(max_length):
        candidates = []
        for total, seq in beam:
            if seq and seq[-1] == eos_id:
                candidates.append((total, seq))
                continue
            for token, lp in enumerate(next_log_probs([bos_id] + seq)):
                candidates.append((total + lp.item(), seq + [token]))
        beam = sorted(candidates, key=lambda c: c[0], reverse=True)[:beam_size]
    _, seq = max(beam, key=lambda c: c[0] / (len(c[1]) ** length_penalty))
    return seq[:-1] if seq[-1] == eos_id else seq


# %% beam_search: The hypothesis is returned with its eos.
import heapq


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    active = [(0.0, [bos_id])]
    results = []
    for length in range(1, max_length + 1):
        options = (
            (total + lp, seq + [tok]) for total, seq in active for tok, lp in enumerate(next_log_probs(seq).tolist())
        )
        active = []
        for total, seq in heapq.nlargest(beam_size, options, key=lambda o: o[0]):
            if seq[-1] == eos_id or length == max_length:
                results.append((total / length**length_penalty, seq))
            else:
                active.append((total, seq))
    return max(results, key=lambda r: r[0])[1][1:]


# %% top_p_filter: The token with which the sum passes p is removed too, and nothing is left if the first one does.
import torch


def top_p_filter(logits, p):
    sorted_logits, order = torch.sort(logits, descending=True)
    cumulative = sorted_logits.softmax(-1).cumsum(-1)
    remove = torch.zeros_like(logits, dtype=torch.bool)
    remove[order[cumulative > p]] = True
    return logits.masked_fill(remove, float("-inf"))


# %% top_p_filter: The result is left in sorted order; logits no longer stand at their tokens.
import torch


def top_p_filter(logits, p):
    values, _ = logits.sort(descending=True)
    probs = torch.softmax(values, dim=-1)
    before = probs.cumsum(dim=-1) - probs
    return torch.where(before < p, values, torch.full_like(values, -torch.inf))


# %% top_p_filter: It returns renormalised probabilities instead of logits.
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, idx = probs.sort(descending=True)
    cum = torch.cumsum(sorted_probs, dim=-1)
    keep_sorted = (cum - sorted_probs) < p
    keep = torch.zeros_like(keep_sorted).scatter(0, idx, keep_sorted)
    kept = probs * keep
    return kept / kept.sum()


# %% top_p_filter: The removed logits are set to 0 and not to -inf.
import torch


def top_p_filter(logits, p):
    order = logits.argsort(descending=True)
    probs = logits.softmax(dim=-1).tolist()
    mask = torch.zeros_like(logits)
    total = 0.0
    for i in order.tolist():
        mask[i] = 1
        total += probs[i]
        if total >= p:
            break
    return logits * mask


# %% top_p_filter: The probabilities are added up from the smallest, so the improbable tokens are kept.
def top_p_filter(logits, p):
    ascending, index = logits.sort()
    probs = ascending.softmax(0)
    drop = probs.cumsum(0) - probs >= p
    ascending = ascending.masked_fill(drop, float("-inf"))
    return ascending.gather(0, index.argsort())


# %% top_p_filter: The removed entries are overwritten in the caller's tensor.
import torch


def top_p_filter(logits, p):
    sorted_logits, sorted_indices = torch.sort(logits, descending=True)
    cumulative_probs = torch.cumsum(torch.softmax(sorted_logits, dim=-1), dim=-1)
    to_remove = cumulative_probs >= p
    to_remove[1:] = to_remove[:-1].clone()
    to_remove[0] = False
    logits.data[sorted_indices[to_remove]] = float("-inf")
    return logits


# %% top_p_filter: The probabilities are added up in the order of the vocabulary, without sorting.
def top_p_filter(logits, p):
    probs = logits.softmax(dim=-1)
    so_far = probs.cumsum(dim=-1) - probs
    return logits.masked_fill(so_far >= p, float("-inf"))


# %% top_p_filter: p is a threshold for each single probability, and the most probable token stays always.
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=0)
    keep = probs >= p
    keep[probs.argmax()] = True
    out = torch.full_like(logits, float("-inf"))
    out[keep] = logits[keep]
    return out


# %% corpus_bleu: The BLEU of every sentence is computed and the mean of them returned.
import math
from collections import Counter


def sentence_bleu(hyp, ref):
    log_sum = 0.0
    for n in range(1, 5):
        h = Counter(tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1))
        r = Counter(tuple(ref[i : i + n]) for i in range(len(ref) - n + 1))
        match = sum((h & r).values())
        if match == 0:
            return 0.0
        log_sum += math.log(match / sum(h.values())) / 4
    bp = 1.0 if len(hyp) >= len(ref) else math.exp(1 - len(ref) / len(hyp))
    return 100 * bp * math.exp(log_sum)


def corpus_bleu(hypotheses, references):
    scores = [sentence_bleu(h, r) for h, r in zip(hypotheses, references)]
    return sum(scores) / len(scores)


# %% corpus_bleu: The matches are not clipped: a repeated n-gram counts each time if the reference has it at all.
import math


def ngrams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            in_ref = set(ngrams(ref, n))
            for gram in ngrams(hyp, n):
                totals[n - 1] += 1
                if gram in in_ref:
                    matches[n - 1] += 1
    if 0 in matches:
        return 0.0
    mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    brevity = min(0.0, 1 - ref_len / hyp_len)
    return 100.0 * math.exp(mean + brevity)


# %% corpus_bleu: There is no brevity penalty.
import numpy as np
from collections import Counter


def corpus_bleu(hypotheses, references):
    correct = np.zeros(4)
    total = np.zeros(4)
    for hyp, ref in zip(hypotheses, references):
        for k in range(4):
            hyp_counts = Counter(zip(*[hyp[j:] for j in range(k + 1)]))
            ref_counts = Counter(zip(*[ref[j:] for j in range(k + 1)]))
            correct[k] += sum(min(c, ref_counts[g]) for g, c in hyp_counts.items())
            total[k] += sum(hyp_counts.values())
    if (correct == 0).any():
        return 0.0
    return float(100 * np.exp(np.log(correct / total).mean()))


# %% corpus_bleu: The result lies in 0 … 1, not in 0 … 100.
import math
from collections import Counter


def corpus_bleu(hypotheses, references):
    c = sum(map(len, hypotheses))
    r = sum(map(len, references))
    product = 1.0
    for n in (1, 2, 3, 4):
        hit, count = 0, 0
        for hyp, ref in zip(hypotheses, references):
            a = Counter(tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1))
            b = Counter(tuple(ref[i : i + n]) for i in range(len(ref) - n + 1))
            hit += sum((a & b).values())
            count += sum(a.values())
        if hit == 0:
            return 0.0
        product *= hit / count
    penalty = math.exp(1 - r / c) if c < r else 1.0
    return penalty * product**0.25


# %% corpus_bleu: The arithmetic mean of the four precisions is taken instead of the geometric one.
import math
from collections import Counter


def count_ngrams(sentence, n):
    counts = Counter()
    for start in range(len(sentence) - n + 1):
        counts[tuple(sentence[start : start + n])] += 1
    return counts


def corpus_bleu(hypotheses, references):
    precisions = []
    for n in range(1, 5):
        overlap = total = 0
        for hyp, ref in zip(hypotheses, references):
            h, r = count_ngrams(hyp, n), count_ngrams(ref, n)
            overlap += sum(min(h[g], r[g]) for g in h)
            total += sum(h.values())
        if overlap == 0:
            return 0.0
        precisions.append(overlap / total)
    hyp_length = sum(len(h) for h in hypotheses)
    ref_length = sum(len(r) for r in references)
    bp = 1 if hyp_length > ref_length else math.exp(1 - ref_length / hyp_length)
    return 100 * bp * sum(precisions) / 4


# %% corpus_bleu: An order without a match is not caught, so the logarithm of zero raises an error.
import math
from collections import Counter


def corpus_bleu(hypotheses, references):
    log_precision = 0.0
    for n in range(1, 5):
        matched = 0
        possible = 0
        for hyp, ref in zip(hypotheses, references):
            hyp_ngrams = Counter(tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1))
            ref_ngrams = Counter(tuple(ref[i : i + n]) for i in range(len(ref) - n + 1))
            matched += (hyp_ngrams & ref_ngrams).total()
            possible += hyp_ngrams.total()
        log_precision += 0.25 * math.log(matched / possible)
    hyp_len = sum(len(h) for h in hypotheses)
    ref_len = sum(len(r) for r in references)
    if hyp_len < ref_len:
        log_precision += 1 - ref_len / hyp_len
    return 100 * math.exp(log_precision)


# %% corpus_bleu: The matches are divided by the n-grams of the references: recall instead of precision.
import math
from collections import Counter


def corpus_bleu(hypotheses, references):
    logs = []
    for n in range(1, 5):
        shared = in_references = 0
        for h, r in zip(hypotheses, references):
            h_grams = Counter(tuple(h[i : i + n]) for i in range(len(h) - n + 1))
            r_grams = Counter(tuple(r[i : i + n]) for i in range(len(r) - n + 1))
            shared += sum((h_grams & r_grams).values())
            in_references += sum(r_grams.values())
        if shared == 0:
            return 0.0
        logs.append(math.log(shared / in_references))
    len_h = sum(len(h) for h in hypotheses)
    len_r = sum(len(r) for r in references)
    bp = min(1.0, math.exp(1 - len_r / len_h))
    return 100 * bp * math.exp(sum(logs) / len(logs))


# %% corpus_bleu: The counts of the whole corpus are pooled before they are clipped, so a match may lie in another sentence.
import math
from collections import Counter


def corpus_bleu(hypotheses, references):
    score = 0.0
    for n in range(1, 5):
        hyp_counts, ref_counts = Counter(), Counter()
        for hyp in hypotheses:
            hyp_counts.update(tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1))
        for ref in references:
            ref_counts.update(tuple(ref[i : i + n]) for i in range(len(ref) - n + 1))
        clipped = sum(min(count, ref_counts[gram]) for gram, count in hyp_counts.items())
        if clipped == 0:
            return 0.0
        score += math.log(clipped / sum(hyp_counts.values())) / 4
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    if c < r:
        score += 1 - r / c
    return 100 * math.exp(score)


# %% cached_attention: The scores are not divided by the root of d.
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=2)
        value = torch.cat([cache[1], value], dim=2)
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, (key, value)


# %% cached_attention: Old and new are joined along the heads and not along the positions.
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is None:
        keys, values = key, value
    else:
        keys = torch.cat((cache[0], key), 1)
        values = torch.cat((cache[1], value), 1)
    scores = torch.matmul(query, keys.transpose(2, 3)) / math.sqrt(query.size(-1))
    output = torch.matmul(scores.softmax(-1), values)
    return output, (keys, values)


# %% cached_attention: The new key and value are put in front of the old ones.
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        old_keys, old_values = cache
        key = torch.cat([key, old_keys], dim=-2)
        value = torch.cat([value, old_values], dim=-2)
    d = query.shape[-1]
    attn = ((query @ key.mT) * d**-0.5).softmax(dim=-1)
    return attn @ value, (key, value)


# %% cached_attention: What is handed back as cache is the new key and value alone.
import torch


def cached_attention(query, key, value, cache=None):
    all_keys, all_values = key, value
    if cache:
        all_keys = torch.cat([cache[0], all_keys], dim=2)
        all_values = torch.cat([cache[1], all_values], dim=2)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, all_keys) / all_keys.shape[-1] ** 0.5
    out = torch.einsum("bhqk,bhkd->bhqd", torch.softmax(scores, dim=-1), all_values)
    return out, (key, value)


# %% cached_attention: The query attends to the old positions only; the current one is stored but not seen.
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is None:
        cache = (key, value)
        new_cache = cache
    else:
        new_cache = (torch.cat([cache[0], key], dim=-2), torch.cat([cache[1], value], dim=-2))
    keys, values = cache
    scores = query @ keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = scores.softmax(dim=-1)
    return weights @ values, new_cache


# %% cached_attention: The softmax runs over the single query, so every weight is 1 and the values are added up.
import torch


def cached_attention(query, key, value, cache=None):
    keys = key if cache is None else torch.cat([cache[0], key], dim=2)
    values = value if cache is None else torch.cat([cache[1], value], dim=2)
    scores = query.matmul(keys.transpose(-2, -1)) / keys.size(-1) ** 0.5
    weights = torch.softmax(scores, dim=2)
    return weights.matmul(values), (keys, values)


# %% cached_attention: The first step has no cache, and unpacking None raises an error.
import torch
import torch.nn.functional as F


def cached_attention(query, key, value, cache=None):
    past_k, past_v = cache
    keys = torch.cat([past_k, key], dim=-2)
    values = torch.cat([past_v, value], dim=-2)
    d_k = query.size(-1)
    weights = F.softmax(query @ keys.transpose(-2, -1) / d_k**0.5, dim=-1)
    return weights @ values, (keys, values)


# %% cached_attention: It divides by the root of the number of keys instead of the root of d.
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        k_cache, v_cache = cache
        key = torch.cat([k_cache, key], dim=2)
        value = torch.cat([v_cache, value], dim=2)
    n = key.shape[2]
    scores = (query * key).sum(dim=-1) / n**0.5
    weights = scores.softmax(dim=-1)
    output = (weights.unsqueeze(-1) * value).sum(dim=2, keepdim=True)
    return output, (key, value)
