# %% greedy_decode: range(1, max_length)
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(1, max_length):
        log_probs = next_log_probs(tokens)
        next_id = int(log_probs.argmax())
        if next_id == eos_id:
            break
        tokens.append(next_id)
    return tokens[1:]


# %% greedy_decode: break compares bos
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        log_probs = next_log_probs(tokens)
        next_id = int(log_probs.argmax())
        if next_id == bos_id:
            break
        tokens.append(next_id)
    return tokens[1:]


# %% greedy_decode: append before check, bos kept
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        log_probs = next_log_probs(tokens)
        next_id = int(log_probs.argmax())
        tokens.append(next_id)
        if next_id == eos_id:
            break
    return tokens


# %% greedy_decode: asks with tokens[1:]
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        log_probs = next_log_probs(tokens[1:])
        next_id = int(log_probs.argmax())
        if next_id == eos_id:
            break
        tokens.append(next_id)
    return tokens[1:]


# %% greedy_decode: starts with empty list
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = []
    for _ in range(max_length):
        log_probs = next_log_probs(tokens)
        next_id = int(log_probs.argmax())
        if next_id == eos_id:
            break
        tokens.append(next_id)
    return tokens


# %% greedy_decode: topk(1) indices list
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        log_probs = next_log_probs(tokens)
        next_id = log_probs.topk(1).indices.tolist()
        if next_id == eos_id:
            break
        tokens.append(next_id)
    return tokens[1:]


# %% greedy_decode: stops one after eos, filtered
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        log_probs = next_log_probs(tokens)
        next_id = int(log_probs.argmax())
        tokens.append(next_id)
        if tokens[-1] == eos_id:
            break
    return [t for t in tokens if t not in (bos_id, eos_id)][:max_length - 1]


# %% greedy_decode: without softmax, argmax over dim 1
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        log_probs = next_log_probs(tokens)
        next_id = int(log_probs.argmax(1))
        if next_id == eos_id:
            break
        tokens.append(next_id)
    return tokens[1:]


# %% beam_search: len - 2 eos and bos off
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / max(1, len(h[0]) - 2) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: max over length
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: len(h[0]))
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: candidates not reset
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    candidates = []
    for _ in range(max_length):
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: break in loop at first eos
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
                break
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: returns score
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens, best[1]


# %% beam_search: 2*beam_size candidates (fairseq)
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:2 * beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        beams = beams[:beam_size]
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: asks last token
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs([tokens[-1]])
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: sort inside the loop with the first beam only
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
            break
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: returns list of all
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return [h[0] for h in finished]


# %% beam_search: kept best finished only if better than previous (only last kept)
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished = [(tokens, score)]
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / (len(h[0]) - 1) ** length_penalty)
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: two: bos in result + bos counted
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    finished.extend(beams)
    best = max(finished, key=lambda h: h[1] / len(h[0]) ** length_penalty)
    tokens = best[0]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: two: no penalty + open lost
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_length):
        candidates = []
        for tokens, score in beams:
            log_probs = next_log_probs(tokens)
            for token in range(len(log_probs)):
                candidates.append((tokens + [token], score + log_probs[token].item()))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for tokens, score in candidates[:beam_size]:
            if tokens[-1] == eos_id:
                finished.append((tokens, score))
            else:
                beams.append((tokens, score))
        if not beams:
            break
    if not finished:
        finished = beams
    best = max(finished, key=lambda h: h[1])
    tokens = best[0][1:]
    if tokens[-1] == eos_id:
        tokens = tokens[:-1]
    return tokens


# %% beam_search: topk per row
import torch


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    sequences = [[bos_id]]
    sums = torch.zeros(1)
    done = []
    for step in range(max_length):
        log_probs = torch.stack([next_log_probs(s) for s in sequences])
        total = sums[:, None] + log_probs
        vocab = log_probs.shape[1]
        k = min(beam_size, total.numel())
        values, indices = total.max(dim=-1)
        indices = torch.arange(len(sequences)) * vocab + indices
        new_sequences, new_sums = [], []
        for value, index in zip(values, indices.tolist()):
            parent, token = index // vocab, index % vocab
            if token == eos_id:
                done.append((value.item() / (step + 1) ** length_penalty, sequences[parent][1:]))
            else:
                new_sequences.append(sequences[parent] + [token])
                new_sums.append(value)
        if not new_sequences:
            sequences = []
            break
        sequences, sums = new_sequences, torch.stack(new_sums)
    for s, value in zip(sequences, sums.tolist()):
        done.append((value / (len(s) - 1) ** length_penalty, s[1:]))
    return max(done, key=lambda d: d[0])[1]


# %% beam_search: sorted ascending [0]
import torch


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    sequences = [[bos_id]]
    sums = torch.zeros(1)
    done = []
    for step in range(max_length):
        log_probs = torch.stack([next_log_probs(s) for s in sequences])
        total = sums[:, None] + log_probs
        vocab = log_probs.shape[1]
        k = min(beam_size, total.numel())
        values, indices = total.flatten().topk(k)
        new_sequences, new_sums = [], []
        for value, index in zip(values, indices.tolist()):
            parent, token = index // vocab, index % vocab
            if token == eos_id:
                done.append((value.item() / (step + 1) ** length_penalty, sequences[parent][1:]))
            else:
                new_sequences.append(sequences[parent] + [token])
                new_sums.append(value)
        if not new_sequences:
            sequences = []
            break
        sequences, sums = new_sequences, torch.stack(new_sums)
    for s, value in zip(sequences, sums.tolist()):
        done.append((value / (len(s) - 1) ** length_penalty, s[1:]))
    return sorted(done)[0][1]


# %% corpus_bleu: 1 if equal
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += (count == r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: range(1,4)
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 4):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: condition inverted and ratio
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len < ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: matches of last sentence
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] = min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: ** 1/4 precedence
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.prod(m / t for m, t in zip(matches, totals)) ** 1 / 4


# %% corpus_bleu: zero check all
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if sum(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: ngram range(len - n)
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: set & totals
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(set(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1)))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += sum(h.values())
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * bp * math.exp(log_mean)


# %% corpus_bleu: two: not clipped and no bp
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += count if gram in r else 0
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = 1.0 if hyp_len >= ref_len else math.exp(1 - ref_len / hyp_len)
    return 100 * math.exp(log_mean)


# %% corpus_bleu: bp sum of mins
import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    matches = [0] * 4
    totals = [0] * 4
    hyp_len = ref_len = 0
    for hyp, ref in zip(hypotheses, references):
        hyp_len += len(hyp)
        ref_len += len(ref)
        for n in range(1, 5):
            h, r = ngrams(hyp, n), ngrams(ref, n)
            for gram, count in h.items():
                matches[n - 1] += min(count, r[gram])
            totals[n - 1] += max(len(hyp) - n + 1, 0)
    if min(matches) == 0:
        return 0.0
    log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
    bp = min(1, hyp_len / ref_len)
    return 100 * bp * math.exp(log_mean)


# %% cached_attention: dim 3
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=3)
        value = torch.cat([values, value], dim=3)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, (key, value)


# %% cached_attention: return swapped
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, (value, key)


# %% cached_attention: scale d
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query @ key.transpose(-2, -1) / query.shape[-1]
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, (key, value)


# %% cached_attention: softmax 1
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=1)
    return weights @ value, (key, value)


# %% cached_attention: weights*value sum -2 ok? no keepdim
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return (weights.transpose(-2, -1) * value).sum(-2), (key, value)


# %% cached_attention: detached
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache[0].detach(), cache[1].detach()
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, (key, value)


# %% cached_attention: float()
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query.float() @ key.float().transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value.float(), (key, value)


# %% cached_attention: cat key with values
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([values, key], dim=2)
        value = torch.cat([keys, value], dim=2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, (key, value)


# %% cached_attention: two: no scale, old cache returned
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        keys, values = cache
        key = torch.cat([keys, key], dim=2)
        value = torch.cat([values, value], dim=2)
    scores = query @ key.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, cache or (key, value)


# %% top_p_filter: no first kept
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, indices = torch.sort(probs, descending=True)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    remove = cumulative > p
    remove[1:] = remove[:-1].clone()
    result = logits.clone()
    result[indices[remove]] = float("-inf")
    return result


# %% top_p_filter: -1e9
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, indices = torch.sort(probs, descending=True)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    remove = cumulative > p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    result = logits.clone()
    result[indices[remove]] = -1e9
    return result


# %% top_p_filter: softmax result
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, indices = torch.sort(probs, descending=True)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    remove = cumulative > p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    result = logits.clone()
    result[indices[remove]] = float("-inf")
    return torch.softmax(result, -1)


# %% top_p_filter: sort logits, cumsum logits softmaxed after
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, indices = torch.sort(logits, descending=True)
    cumulative = torch.softmax(torch.cumsum(sorted_probs, -1), dim=-1)
    remove = cumulative > p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    result = logits.clone()
    result[indices[remove]] = float("-inf")
    return result


# %% top_p_filter: count max 1
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, indices = torch.sort(probs, descending=True)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    k = max(1, int((cumulative < p).sum()))
    remove = torch.arange(len(logits)) >= k
    result = logits.clone()
    result[indices[remove]] = float("-inf")
    return result


# %% top_p_filter: sigmoid
import torch


def top_p_filter(logits, p):
    probs = torch.sigmoid(logits)
    sorted_probs, indices = torch.sort(probs, descending=True)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    remove = cumulative > p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    result = logits.clone()
    result[indices[remove]] = float("-inf")
    return result


# %% top_p_filter: two: no shift, sorted returned
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits, dim=-1)
    sorted_probs, indices = torch.sort(probs, descending=True)
    cumulative = torch.cumsum(sorted_probs, dim=-1)
    remove = cumulative > p
    result = torch.sort(logits, descending=True).values
    result[remove] = float("-inf")
    return result
