# %% greedy_decode: plain loop
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    while len(tokens) <= max_length:
        best = int(next_log_probs(list(tokens)).argmax())
        if best == eos_id:
            break
        tokens.append(best)
    return tokens[1:]

# %% greedy_decode: generator with takewhile
from itertools import islice, takewhile


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    def stream():
        history = [bos_id]
        while True:
            token = next_log_probs(history.copy()).max(dim=0).indices.item()
            history.append(token)
            yield token

    return list(takewhile(lambda t: t != eos_id, islice(stream(), max_length)))

# %% greedy_decode: recursion
import torch


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    def extend(done):
        if len(done) == max_length:
            return done
        token = torch.argmax(next_log_probs([bos_id, *done]), dim=-1).item()
        return done if token == eos_id else extend([*done, token])

    return extend([])

# %% greedy_decode: walrus inside a while
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    out: list[int] = []
    while len(out) < max_length and (t := next_log_probs([bos_id] + out).topk(1).indices[0].item()) != eos_id:
        out.append(t)
    return out

# %% greedy_decode: for-else with plain Python max
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    seq = [bos_id]
    for _ in range(max_length):
        scores = next_log_probs(seq[:]).tolist()
        token = max(range(len(scores)), key=scores.__getitem__)
        if token == eos_id:
            return seq[1:]
        seq.append(token)
    else:
        return seq[1:]

# %% greedy_decode: iterator class with sentinel iter()
from itertools import islice
import torch


class Greedy:
    def __init__(self, f, bos):
        self.f, self.seq = f, [bos]

    @torch.no_grad()
    def __call__(self):
        token = int(self.f(list(self.seq)).argsort(descending=True)[0])
        self.seq.append(token)
        return token


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    return list(islice(iter(Greedy(next_log_probs, bos_id), eos_id), max_length))

# %% greedy_decode: numpy argmax under no_grad
import numpy as np
import torch


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    with torch.no_grad():
        buffer = np.empty(max_length + 1, dtype=np.int64)
        buffer[0] = bos_id
        n = 1
        while n <= max_length:
            token = int(np.argmax(next_log_probs(buffer[:n].tolist()).detach().numpy()))
            if token == eos_id:
                break
            buffer[n] = token
            n += 1
        return buffer[1:n].tolist()

# %% greedy_decode: own preallocated tensor, where for the winner
import torch


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    own = torch.full((max_length + 1,), bos_id, dtype=torch.int64)
    for n in range(1, max_length + 1):
        logp = next_log_probs(own[:n].tolist()).detach()
        token = torch.where(logp == logp.amax())[0][0]
        if token == eos_id:
            return own[1:n].tolist()
        own[n] = token
    return own[1:].tolist()

# %% greedy_decode: inference_mode decorator, match statement
import torch


@torch.inference_mode()
def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    hypothesis = []
    for _ in range(max_length):
        match int(torch.argmax(next_log_probs([bos_id] + hypothesis))):
            case t if t == eos_id:
                break
            case t:
                hypothesis.append(t)
    return hypothesis

# %% greedy_decode: reduce over steps with an immutable state
from functools import reduce
from typing import NamedTuple


class State(NamedTuple):
    tokens: tuple
    done: bool


def greedy_decode(next_log_probs, bos_id, eos_id, max_length):
    def step(state, _):
        if state.done:
            return state
        best = next_log_probs([bos_id, *state.tokens]).argmax().item()
        return state._replace(done=True) if best == eos_id else State(state.tokens + (best,), False)

    return list(reduce(step, range(max_length), State((), False)).tokens)

# %% beam_search: sorted list of candidates
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams, finished = [(0.0, [])], []
    for _ in range(max_length):
        candidates = []
        for total, tokens in beams:
            for t, lp in enumerate(next_log_probs([bos_id] + tokens).tolist()):
                candidates.append((total + lp, tokens + [t]))
        candidates.sort(key=lambda c: c[0], reverse=True)
        beams = []
        for total, tokens in candidates[:beam_size]:
            (finished if tokens[-1] == eos_id else beams).append((total, tokens))
        if not beams:
            break
    pool = finished + beams
    best = max(pool, key=lambda c: c[0] / len(c[1]) ** length_penalty if c[1] else c[0])[1]
    return best[:-1] if best and best[-1] == eos_id else best

# %% beam_search: one flat topk over all candidates
import torch


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    sums = torch.zeros(1, dtype=torch.float64)
    open_ = [[]]
    best_score, best = -float("inf"), []

    def offer(score, tokens, n):
        nonlocal best_score, best
        value = score / max(n, 1) ** length_penalty
        if value > best_score:
            best_score, best = value, tokens

    for _ in range(max_length):
        if not open_:
            break
        table = torch.stack([next_log_probs([bos_id, *h]).detach().double() for h in open_]) + sums[:, None]
        v = table.shape[1]
        values, flat = table.flatten().topk(min(beam_size, table.numel()))
        new, keep = [], []
        for value, index in zip(values.tolist(), flat.tolist()):
            h, t = divmod(index, v)
            if t == eos_id:
                offer(value, open_[h], len(open_[h]) + 1)
            else:
                new.append(open_[h] + [t])
                keep.append(value)
        open_, sums = new, torch.tensor(keep, dtype=torch.float64)
    for h, s in zip(open_, sums.tolist()):
        offer(s, h, len(h))
    return best

# %% beam_search: heapq.nlargest and a dataclass
import heapq
from dataclasses import dataclass


@dataclass(frozen=True)
class Hyp:
    score: float = 0.0
    tokens: tuple = ()
    ended: bool = False

    def rank(self, penalty):
        n = len(self.tokens) + self.ended
        return self.score / n ** penalty if n else self.score


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    live, done = [Hyp()], []
    for _ in range(max_length):
        def children():
            for h in live:
                for t, lp in enumerate(next_log_probs([bos_id, *h.tokens]).double().tolist()):
                    yield Hyp(h.score + lp, h.tokens if t == eos_id else h.tokens + (t,), t == eos_id)

        best = heapq.nlargest(beam_size, children(), key=lambda h: h.score)
        done += [h for h in best if h.ended]
        live = [h for h in best if not h.ended]
        if not live:
            break
    return list(max(done + live, key=lambda h: h.rank(length_penalty)).tokens)

# %% beam_search: recursion over the steps
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def grow(open_, done, left):
        if left == 0 or not open_:
            return done + open_
        candidates = sorted(
            ((s + float(lp), h + (t,)) for s, h in open_ for t, lp in enumerate(next_log_probs([bos_id] + list(h)))),
            key=lambda c: -c[0])[:beam_size]
        ended = [c for c in candidates if c[1][-1] == eos_id]
        going = [c for c in candidates if c[1][-1] != eos_id]
        return grow(going, done + ended, left - 1)

    def normal(c):
        return c[0] * max(len(c[1]), 1) ** -length_penalty

    _, tokens = max(grow([(0.0, ())], [], max_length), key=normal)
    return [t for t in tokens if t != eos_id]

# %% beam_search: per-hypothesis topk before the merge
import torch


@torch.no_grad()
def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    live, final = [([], 0.0)], []
    for _ in range(max_length):
        merged = []
        for tokens, score in live:
            lp = next_log_probs([bos_id, *tokens])
            top = torch.topk(lp, k=min(beam_size, lp.numel()))
            merged.extend((tokens + [i], score + p) for p, i in zip(top.values.tolist(), top.indices.tolist()))
        merged.sort(key=lambda pair: pair[1])
        survivors = merged[-beam_size:]
        live = []
        for tokens, score in survivors:
            if tokens[-1] == eos_id:
                final.append((tokens[:-1], score / len(tokens) ** length_penalty))
            else:
                live.append((tokens, score))
        if not live:
            break
    final += [(tokens, score / (len(tokens) or 1) ** length_penalty) for tokens, score in live]
    return max(final, key=lambda pair: pair[1])[0]

# %% beam_search: numpy argpartition over the flattened table
import numpy as np


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    prefixes, scores = [[]], np.zeros(1)
    results = []
    for _ in range(max_length):
        if not prefixes:
            break
        rows = [np.asarray(next_log_probs([bos_id] + p).detach().double()) for p in prefixes]
        table = (np.stack(rows) + scores[:, None]).ravel()
        k = min(beam_size, table.size)
        chosen = np.argpartition(-table, k - 1)[:k]
        width = len(rows[0])
        new_p, new_s = [], []
        for c in chosen.tolist():
            parent, token = c // width, c % width
            if token == eos_id:
                results.append((table[c] / (len(prefixes[parent]) + 1) ** length_penalty, prefixes[parent]))
            else:
                new_p.append(prefixes[parent] + [token])
                new_s.append(table[c])
        prefixes, scores = new_p, np.array(new_s)
    for p, s in zip(prefixes, scores):
        results.append((s / max(1, len(p)) ** length_penalty, p))
    return list(max(results, key=lambda r: r[0])[1])

# %% beam_search: linked hypotheses, backtracking at the end
class Node:
    __slots__ = ("parent", "token", "score", "depth")

    def __init__(self, parent, token, score):
        self.parent, self.token, self.score = parent, token, score
        self.depth = 0 if parent is None else parent.depth + 1

    def path(self):
        node, out = self, []
        while node.parent is not None:
            out.append(node.token)
            node = node.parent
        return out[::-1]


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    frontier, leaves = [Node(None, bos_id, 0.0)], []
    for _ in range(max_length):
        children = [Node(n, t, n.score + lp) for n in frontier
                    for t, lp in enumerate(next_log_probs([bos_id] + n.path()).tolist())]
        children.sort(key=lambda n: n.score, reverse=True)
        del children[beam_size:]
        leaves.extend(n for n in children if n.token == eos_id)
        frontier = [n for n in children if n.token != eos_id]
        if not frontier:
            break
    leaves.extend(frontier)
    winner = max(leaves, key=lambda n: n.score / (n.depth ** length_penalty if n.depth else 1))
    path = winner.path()
    return path[:-1] if path and path[-1] == eos_id else path

# %% beam_search: Fractions for the sums, lru_cache over prefixes
from fractions import Fraction
from functools import lru_cache
import math


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    @lru_cache(maxsize=None)
    def options(prefix):
        values = next_log_probs([bos_id, *prefix]).tolist()
        return [(t, Fraction(x)) for t, x in enumerate(values) if x != -math.inf]

    live, ended = {(): Fraction(0)}, {}
    for _ in range(max_length):
        table = {p + (t,): s + x for p, s in live.items() for t, x in options(p)}
        kept = sorted(table, key=table.get, reverse=True)[:beam_size]
        ended.update({p: table[p] for p in kept if p[-1] == eos_id})
        live = {p: table[p] for p in kept if p[-1] != eos_id}
        if not live:
            break
    ended.update(live)
    best = max(ended, key=lambda p: float(ended[p]) / max(1, len(p)) ** length_penalty)
    return list(best[:-1] if best[-1:] == (eos_id,) else best)

# %% beam_search: threads score the hypotheses of a step
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    beams, finished = [(0.0, [])], []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for _ in range(max_length):
            scored = list(pool.map(lambda b: next_log_probs([bos_id, *b[1]]).tolist(), beams))
            grown = [(s + lp, h + [t]) for (s, h), row in zip(beams, scored) for t, lp in enumerate(row)]
            grown = sorted(grown, key=itemgetter(0), reverse=True)[:beam_size]
            beams = [g for g in grown if g[1][-1] != eos_id]
            finished += [g for g in grown if g[1][-1] == eos_id]
            if not beams:
                break
    scores = [(s / max(len(h), 1) ** length_penalty, h) for s, h in finished + beams]
    answer = max(scores, key=itemgetter(0))[1]
    while answer and answer[-1] == eos_id:
        answer = answer[:-1]
    return answer

# %% beam_search: tensor of token histories, index_select of survivors
import torch


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    history = torch.full((1, 1), bos_id)
    totals = torch.zeros(1, dtype=torch.float64)
    best = (-float("inf"), history[0, 1:])
    for n in range(1, max_length + 1):
        rows = torch.stack([next_log_probs(h.tolist()) for h in history]).detach().to(torch.float64)
        grid = totals.unsqueeze(1) + rows
        order = grid.reshape(-1).argsort(descending=True)[:beam_size]
        parent = torch.div(order, grid.shape[1], rounding_mode="floor")
        token = order.remainder(grid.shape[1])
        history = torch.cat((history.index_select(0, parent), token[:, None]), 1)
        totals = grid.reshape(-1).index_select(0, order)
        over = token.eq(eos_id)
        for h, s in zip(history[over], totals[over]):
            if (value := s.item() / n ** length_penalty) > best[0]:
                best = (value, h[1:-1])
        history, totals = history[~over], totals[~over]
        if history.shape[0] == 0:
            break
    for h, s in zip(history, totals):
        n = max(1, h.numel() - 1)
        if (value := s.item() / n ** length_penalty) > best[0]:
            best = (value, h[1:])
    return best[1].tolist()

# %% top_p_filter: sort, exclusive cumsum, scatter back
import torch


def top_p_filter(logits, p):
    values, order = torch.sort(logits, descending=True)
    probs = torch.softmax(values, -1)
    before = probs.cumsum(-1) - probs
    drop = before >= p
    drop[0] = False
    return logits.masked_fill(torch.zeros_like(drop).scatter(0, order, drop), -torch.inf)

# %% top_p_filter: loop until the mass is reached
import torch


def top_p_filter(logits, p):
    probs = torch.softmax(logits.detach().double(), 0).tolist()
    keep, mass = [], 0.0
    for i in sorted(range(len(probs)), key=lambda i: -probs[i]):
        keep.append(i)
        mass += probs[i]
        if mass >= p:
            break
    out = torch.full_like(logits, -float("inf"))
    index = torch.tensor(keep)
    return out.index_put((index,), logits[index])

# %% top_p_filter: pairwise comparison, no sort
import torch


def top_p_filter(logits, p):
    q = torch.softmax(logits.detach().to(torch.float64), -1)
    larger = q[None, :] > q[:, None]
    above = torch.einsum("ij,j->i", larger.double(), q)
    keep = (above < p) | ~larger.any(1)
    return torch.where(keep, logits, torch.tensor(-torch.inf, dtype=logits.dtype))

# %% top_p_filter: smallest k by searchsorted, threshold on logits
import torch


def top_p_filter(logits, p):
    ordered = logits.detach().sort(descending=True).values
    mass = ordered.double().softmax(0).cumsum(0)
    k = int(torch.searchsorted(mass, torch.tensor(p, dtype=mass.dtype)).clamp(max=len(ordered) - 1))
    return logits.masked_fill(logits < ordered[k], float("-inf"))

# %% top_p_filter: numpy for the set, torch for the result
import numpy as np
import torch


def top_p_filter(logits, p):
    x = logits.detach().cpu().numpy().astype(np.float64)
    e = np.exp(x - x.max())
    q = e / e.sum()
    order = np.argsort(-q, kind="stable")
    k = min(int(np.searchsorted(np.cumsum(q[order]), p)) + 1, len(q))
    drop = np.ones(len(q), dtype=bool)
    drop[order[:k]] = False
    return logits.masked_fill(torch.from_numpy(drop), -torch.inf)

# %% top_p_filter: recursion on the remaining mass
import torch


def top_p_filter(logits, p):
    probs = logits.detach().double().softmax(-1)

    def pick(taken, mass):
        if len(taken) == len(probs) or (taken and mass >= p):
            return taken
        rest = probs.index_fill(0, torch.tensor(taken, dtype=torch.int64), -1.0)
        i = rest.argmax().item()
        return pick(taken + [i], mass + probs[i].item())

    keep = torch.zeros_like(logits, dtype=torch.bool)
    keep[pick([], 0.0)] = True
    return torch.where(keep, logits, -torch.inf)

# %% top_p_filter: custom Function, gradient only through kept logits
import torch


class TopP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, p):
        probs, order = logits.softmax(0).sort(descending=True)
        keep_sorted = torch.cat((torch.ones(1, dtype=torch.bool), probs.cumsum(0)[:-1] < p))
        keep = torch.empty_like(keep_sorted)
        keep[order] = keep_sorted
        ctx.save_for_backward(keep)
        return torch.where(keep, logits, torch.full_like(logits, -torch.inf))

    @staticmethod
    def backward(ctx, g):
        keep, = ctx.saved_tensors
        return torch.where(keep, g, 0.0), None


def top_p_filter(logits, p):
    return TopP.apply(logits, p)

# %% top_p_filter: log domain, logcumsumexp
import math
import torch


def top_p_filter(logits, p):
    with torch.no_grad():
        logp = torch.log_softmax(logits.double(), -1)
        ranked, order = logp.sort(descending=True)
        reached = torch.logcumsumexp(ranked, 0)
        target = math.log(p) if p > 0 else -math.inf
        count = 1 + int((reached[:-1] < target).sum())
        mask = torch.full_like(logits, -math.inf)
        mask[order[:count]] = 0
    return logits + mask

# %% top_p_filter: scripted with topk of growing size
import torch


@torch.jit.script
def _size(probs: torch.Tensor, p: float) -> int:
    k = 1
    n = probs.size(0)
    while k < n and float(torch.topk(probs, k)[0].sum()) < p:
        k += 1
    return k


def top_p_filter(logits, p):
    probs = torch.softmax(logits.detach().double(), 0)
    index = torch.topk(logits, _size(probs, float(p))).indices
    out = torch.empty_like(logits).fill_(-torch.inf)
    return out.scatter(0, index, logits.gather(0, index))

# %% top_p_filter: double argsort for ranks, in-place on an own clone
import torch


def top_p_filter(logits: torch.Tensor, p: float) -> torch.Tensor:
    rank = logits.argsort(descending=True).argsort()
    sorted_probs = logits.detach().double().softmax(-1).sort(descending=True)[0]
    enough = (sorted_probs.cumsum(-1) < p).sum().clamp(max=logits.numel() - 1)
    own = logits.clone()
    own[rank > enough] = -torch.inf
    return own

# %% corpus_bleu: Counters
import math
from collections import Counter


def _ngrams(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def corpus_bleu(hypotheses, references):
    logs = 0.0
    for n in (1, 2, 3, 4):
        match = total = 0
        for h, r in zip(hypotheses, references):
            hn, rn = _ngrams(h, n), _ngrams(r, n)
            match += sum((hn & rn).values())
            total += sum(hn.values())
        if match == 0:
            return 0.0
        logs += math.log(match / total)
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * min(1.0, math.exp(1 - r / c)) * math.exp(logs / 4)

# %% corpus_bleu: Fraction precisions
import math
from collections import Counter
from fractions import Fraction


def corpus_bleu(hypotheses, references):
    product = Fraction(1)
    for n in range(1, 5):
        matched, possible = 0, 0
        for hyp, ref in zip(hypotheses, references):
            grams = list(zip(*(hyp[i:] for i in range(n))))
            pool = Counter(zip(*(ref[i:] for i in range(n))))
            possible += len(grams)
            for g in grams:
                if pool[g] > 0:
                    pool[g] -= 1
                    matched += 1
        if not matched:
            return 0.0
        product *= Fraction(matched, possible)
    c = sum(len(h) for h in hypotheses)
    r = sum(len(x) for x in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return float(product) ** 0.25 * penalty * 100.0

# %% corpus_bleu: Decimal logarithms
from collections import Counter
from decimal import Decimal, localcontext


def corpus_bleu(hypotheses, references):
    with localcontext() as ctx:
        ctx.prec = 50
        log_sum = Decimal(0)
        for n in range(1, 5):
            hits = count = 0
            for h, r in zip(hypotheses, references):
                a = Counter(tuple(h[i:i + n]) for i in range(max(0, len(h) - n + 1)))
                b = Counter(tuple(r[i:i + n]) for i in range(max(0, len(r) - n + 1)))
                hits += sum(min(k, b[g]) for g, k in a.items())
                count += a.total() if hasattr(a, "total") else sum(a.values())
            if hits == 0:
                return 0.0
            log_sum += (Decimal(hits) / Decimal(count)).ln()
        c, r = sum(len(h) for h in hypotheses), sum(len(x) for x in references)
        brevity = min(Decimal(0), 1 - Decimal(r) / Decimal(c))
        return float(100 * (log_sum / 4 + brevity).exp())

# %% corpus_bleu: integer ids and torch unfold with unique
import math
import torch


def corpus_bleu(hypotheses, references):
    vocab = {}

    def ids(tokens):
        return torch.tensor([vocab.setdefault(t, len(vocab)) for t in tokens], dtype=torch.int64)

    pairs = [(ids(h), ids(r)) for h, r in zip(hypotheses, references)]
    precisions = []
    for n in range(1, 5):
        match = total = 0
        for h, r in pairs:
            if len(h) < n:
                continue
            a = h.unfold(0, n, 1)
            total += len(a)
            if len(r) < n:
                continue
            b = r.unfold(0, n, 1)
            _, inverse = torch.unique(torch.cat((a, b)), dim=0, return_inverse=True)
            k = int(inverse.max()) + 1
            match += torch.minimum(torch.bincount(inverse[:len(a)], minlength=k), torch.bincount(inverse[len(a):], minlength=k)).sum().item()
        if match == 0:
            return 0.0
        precisions.append(match / total)
    c, r = sum(len(h) for h, _ in pairs), sum(len(x) for _, x in pairs)
    return 100.0 * math.prod(precisions) ** 0.25 * math.exp(min(0.0, 1.0 - r / c))

# %% corpus_bleu: statistics.geometric_mean and generators
import math
from collections import Counter
from itertools import tee
from statistics import geometric_mean


def grams(tokens, n):
    streams = tee(tokens, n)
    for skip, s in enumerate(streams):
        for _ in range(skip):
            next(s, None)
    return zip(*streams)


def precision(hypotheses, references, n):
    matched = sum((Counter(grams(h, n)) & Counter(grams(r, n))).total() for h, r in zip(hypotheses, references))
    total = sum(max(0, len(h) + 1 - n) for h in hypotheses)
    return matched / total if total else 0.0


def corpus_bleu(hypotheses, references):
    ps = [precision(hypotheses, references, n) for n in range(1, 5)]
    if 0.0 in ps:
        return 0.0
    c, r = (sum(len(s) for s in side) for side in (hypotheses, references))
    return 100.0 * geometric_mean(ps) * (math.exp(1 - r / c) if c < r else 1.0)

# %% corpus_bleu: numpy logs of count vectors
from collections import Counter
import numpy as np


def corpus_bleu(hypotheses, references):
    hits, totals = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    for h, r in zip(hypotheses, references):
        for n in range(1, 5):
            hc = Counter(tuple(h[i:i + n]) for i in range(len(h) - n + 1))
            rc = Counter(tuple(r[i:i + n]) for i in range(len(r) - n + 1))
            hits[n - 1] += sum(min(v, rc.get(k, 0)) for k, v in hc.items())
            totals[n - 1] += max(len(h) - n + 1, 0)
    if not hits.all():
        return 0.0
    lengths = [sum(map(len, x)) for x in (hypotheses, references)]
    bp = np.exp(min(0.0, 1.0 - lengths[1] / lengths[0]))
    return float(100 * bp * np.exp(np.log(hits / totals).mean()))

# %% corpus_bleu: trie of nested dictionaries
import math


def _insert(root, tokens):
    for i in range(len(tokens)):
        node = root
        for t in tokens[i:i + 4]:
            node = node.setdefault(t, {"count": 0, "next": {}})
            node["count"] += 1
            node = node["next"]
    return root


def _overlap(a, b, depth, hits):
    for token, node in a.items():
        if token in b:
            hits[depth] += min(node["count"], b[token]["count"])
            _overlap(node["next"], b[token]["next"], depth + 1, hits)


def corpus_bleu(hypotheses, references):
    hits = [0, 0, 0, 0]
    for h, r in zip(hypotheses, references):
        _overlap(_insert({}, h), _insert({}, r), 0, hits)
    totals = [sum(max(len(h) - n, 0) for h in hypotheses) for n in range(4)]
    if min(hits) == 0:
        return 0.0
    c, r = sum(len(h) for h in hypotheses), sum(len(x) for x in references)
    log_bleu = sum(math.log(a) - math.log(b) for a, b in zip(hits, totals)) / 4 + min(1 - r / c, 0)
    return 100 * math.exp(log_bleu)

# %% corpus_bleu: dataclass of sufficient statistics added together
from __future__ import annotations
import math
from collections import Counter
from dataclasses import dataclass
from functools import reduce


@dataclass
class Stats:
    match: tuple
    total: tuple
    hyp: int
    ref: int

    def __add__(self, other: Stats) -> Stats:
        return Stats(tuple(map(sum, zip(self.match, other.match))), tuple(map(sum, zip(self.total, other.total))),
                     self.hyp + other.hyp, self.ref + other.ref)

    @classmethod
    def of(cls, h: list, r: list) -> Stats:
        match, total = [], []
        for n in range(1, 5):
            a, b = (Counter(tuple(s[i:i + n]) for i in range(len(s) - n + 1)) for s in (h, r))
            match.append(sum((a & b).values()))
            total.append(sum(a.values()))
        return cls(tuple(match), tuple(total), len(h), len(r))

    def bleu(self) -> float:
        if 0 in self.match:
            return 0.0
        ratio = math.exp(sum(math.log(m / t) for m, t in zip(self.match, self.total)) / 4)
        return 100.0 * ratio * (1.0 if self.hyp >= self.ref else math.exp(1 - self.ref / self.hyp))


def corpus_bleu(hypotheses: list, references: list) -> float:
    zero = Stats((0,) * 4, (0,) * 4, 0, 0)
    return reduce(Stats.__add__, map(Stats.of, hypotheses, references), zero).bleu()

# %% corpus_bleu: removal from a list of reference n-grams
import math


def corpus_bleu(hypotheses, references):
    score = 1.0
    for n in range(1, 5):
        right = attempted = 0
        for h, r in zip(hypotheses, references):
            left = [r[i:i + n] for i in range(len(r) - n + 1)]
            for i in range(len(h) - n + 1):
                attempted += 1
                if h[i:i + n] in left:
                    left.remove(h[i:i + n])
                    right += 1
        if right == 0:
            return 0.0
        score *= (right / attempted) ** 0.25
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    if c < r:
        score *= math.exp(1 - r / c)
    return 100 * score

# %% cached_attention: concatenate, softmax
import math
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key = torch.cat((cache[0], key), dim=2)
        value = torch.cat((cache[1], value), dim=2)
    w = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]), dim=-1)
    return w @ value, (key, value)

# %% cached_attention: einsum without the length-one axis
import torch


def cached_attention(query, key, value, cache=None):
    keys, values = (key, value) if cache is None else (torch.cat(p, -2) for p in zip(cache, (key, value)))
    s = torch.einsum("bhd,bhtd->bht", query.squeeze(2), keys) * query.shape[-1] ** -0.5
    e = torch.exp(s - s.amax(-1, keepdim=True))
    out = torch.einsum("bht,bhtd->bhd", e / e.sum(-1, keepdim=True), values)
    return out.unsqueeze(2), (keys, values)

# %% cached_attention: namedtuple cache with an append method
from typing import NamedTuple, Optional
import torch


class Cache(NamedTuple):
    keys: torch.Tensor
    values: torch.Tensor

    def append(self, k, v):
        return Cache(torch.cat([self.keys, k], 2), torch.cat([self.values, v], 2))


def cached_attention(query, key, value, cache: Optional[tuple] = None):
    new = Cache(key, value) if cache is None else Cache(*cache).append(key, value)
    scores = (new.keys * query).sum(-1) / query.size(-1) ** 0.5
    weights = scores.softmax(-1).unsqueeze(-1)
    return (weights * new.values).sum(-2, keepdim=True), new

# %% cached_attention: preallocated own tensors, in-place copy
import torch


def cached_attention(query, key, value, cache=None):
    def grow(old, new):
        t = 0 if old is None else old.shape[2]
        out = new.new_zeros(*new.shape[:2], t + 1, new.shape[3])
        if t:
            out[:, :, :t] = old
        out[:, :, t:] = new
        return out

    old_k, old_v = (None, None) if cache is None else cache
    k, v = grow(old_k, key), grow(old_v, value)
    w = torch.softmax(query.matmul(k.mT).div(query.size(-1) ** 0.5), -1)
    return w.matmul(v), (k, v)

# %% cached_attention: vmap over batch and heads
import torch
from torch.func import vmap


def _head(q, k, v):
    s = torch.mv(k, q[0]) * q.shape[-1] ** -0.5
    s = s - s.max()
    w = s.exp() / s.exp().sum()
    return torch.mv(v.T, w)[None]


def cached_attention(query, key, value, cache=None):
    state = (key, value) if cache is None else tuple(torch.cat((o, n), dim=2) for o, n in zip(cache, (key, value)))
    return vmap(vmap(_head))(query, *state), state

# %% cached_attention: online softmax over the cached positions
import torch


def cached_attention(query, key, value, cache=None):
    if cache is None:
        keys, values = key, value
    else:
        keys, values = torch.concat((cache[0], key), 2), torch.concat((cache[1], value), 2)
    scale = query.shape[-1] ** -0.5
    top = num = den = None
    for k, v in zip(keys.split(1, 2), values.split(1, 2)):
        s = (query * k).sum(-1, keepdim=True) * scale
        if top is None:
            top, num, den = s.detach(), torch.exp(s - s.detach()) * v, torch.exp(s - s.detach())
            continue
        new = torch.maximum(top, s.detach())
        shrink = (top - new).exp()
        p = (s - new).exp()
        num, den, top = num * shrink + p * v, den * shrink + p, new
    return num / den, (keys, values)

# %% cached_attention: scripted with an optional tuple
from typing import Optional, Tuple
import torch
from torch import Tensor


@torch.jit.script
def cached_attention(query: Tensor, key: Tensor, value: Tensor, cache: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    if cache is not None:
        key = torch.cat([cache[0], key], 2)
        value = torch.cat([cache[1], value], 2)
    s = torch.matmul(query, key.transpose(2, 3)) / float(query.size(-1)) ** 0.5
    return torch.matmul(torch.softmax(s, -1), value), (key, value)

# %% cached_attention: custom Function for the attention, match on the cache
import torch


class OneStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        w = torch.softmax((q @ k.mT) / q.shape[-1] ** 0.5, -1)
        ctx.save_for_backward(q, k, v, w)
        return w @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, w = ctx.saved_tensors
        gw = g @ v.mT
        gs = w * (gw - (gw * w).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
        return gs @ k, gs.mT @ q, w.mT @ g


def cached_attention(query, key, value, cache=None):
    match cache:
        case None:
            pass
        case (old_key, old_value):
            key = torch.cat((old_key, key), -2)
            value = torch.cat((old_value, value), -2)
    return OneStep.apply(query, key, value), (key, value)

# %% cached_attention: checkpointed, double inside, log weights
import torch
from torch.utils.checkpoint import checkpoint


def _step(q, k, v):
    s = torch.matmul(q.double(), k.double().mT) * q.shape[-1] ** -0.5
    return torch.matmul(torch.log_softmax(s, -1).exp(), v.double()).to(q.dtype)


def cached_attention(query, key, value, cache=None):
    keys = torch.cat([*([] if cache is None else [cache[0]]), key], dim=2)
    values = torch.cat([*([] if cache is None else [cache[1]]), value], dim=2)
    return checkpoint(_step, query, keys, values, use_reentrant=False), (keys, values)

# %% cached_attention: nn.Module step, bmm on folded heads, functools.partial cat
from functools import partial
import torch
from torch import nn

_append = partial(torch.cat, dim=2)


class Step(nn.Module):
    def forward(self, q, k, v):
        b, h = q.shape[:2]
        q, k, v = (t.flatten(0, 1) for t in (q, k, v))
        w = torch.baddbmm(torch.zeros(1, 1, 1, dtype=q.dtype), q, k.mT, beta=0, alpha=q.shape[-1] ** -0.5).softmax(2)
        return torch.bmm(w, v).unflatten(0, (b, h))


def cached_attention(query, key, value, cache=None):
    state = (key, value) if not cache else (_append((cache[0], key)), _append((cache[1], value)))
    return Step()(query, *state), state

# %% greedy_decode: callable class, lru_cache over prefixes
from functools import lru_cache


class Decoder:
    def __call__(self, next_log_probs, bos_id, eos_id, max_length):
        @lru_cache(maxsize=None)
        def best(prefix):
            return next_log_probs(list(prefix)).argmax(-1).item()

        prefix = (bos_id,)
        for _ in range(max_length):
            if (token := best(prefix)) == eos_id:
                break
            prefix += (token,)
        return list(prefix[1:])


greedy_decode = Decoder()

# %% beam_search: dataclass with order, partial, __future__ annotations
from __future__ import annotations
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest


@dataclass(order=True)
class Beam:
    total: float
    tokens: list[int] = field(compare=False, default_factory=list)

    def extend(self, row) -> list[Beam]:
        return [Beam(self.total + lp, [*self.tokens, t]) for t, lp in enumerate(row)]


def _value(beam: Beam, penalty: float) -> float:
    return beam.total / max(1, len(beam.tokens)) ** penalty


def beam_search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    live, pool = [Beam(0.0)], []
    for _ in range(max_length):
        grown = [c for b in live for c in b.extend(next_log_probs([bos_id, *b.tokens]).tolist())]
        live = []
        for b in nlargest(beam_size, grown):
            (pool if b.tokens[-1] == eos_id else live).append(b)
        if not live:
            break
    best = max(pool + live, key=partial(_value, penalty=length_penalty)).tokens
    return best[:-1] if best and best[-1] == eos_id else best

# %% top_p_filter: promote_types, star import of torch, take_along_dim
from torch import *


def top_p_filter(logits, p):
    work = promote_types(logits.dtype, float64)
    order = argsort(logits, descending=True)
    q = take_along_dim(logits.detach().to(work).softmax(-1), order)
    keep_sorted = roll(cumsum(q, 0), 1).index_fill(0, tensor([0]), -1.0) < p
    keep_sorted[0] = True
    keep = zeros_like(keep_sorted).scatter(0, order, keep_sorted)
    return logits.masked_fill(~keep, -inf)

# %% corpus_bleu: threads per order, helpers after use
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
import math


def corpus_bleu(hypotheses, references):
    with ThreadPoolExecutor(max_workers=4) as pool:
        counts = list(pool.map(lambda n: _order(hypotheses, references, n), range(1, 5)))
    if any(m == 0 for m, _ in counts):
        return 0.0
    c, r = _size(hypotheses), _size(references)
    return 100 * math.prod(m / t for m, t in counts) ** 0.25 * math.exp(min(0, 1 - r / c))


def _order(hyps, refs, n):
    match = total = 0
    for h, r in zip(hyps, refs):
        a, b = Counter(_grams(h, n)), Counter(_grams(r, n))
        match += sum((a & b).values())
        total += sum(a.values())
    return match, total


def _grams(tokens, n):
    return (tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def _size(corpus):
    return sum(len(s) for s in corpus)

# %% corpus_bleu: statistics.fmean of logs, star imports of math and collections
from collections import *
from math import *
from statistics import fmean


def corpus_bleu(hypotheses, references):
    hits, tries = Counter(), Counter()
    for h, r in zip(hypotheses, references):
        for n in range(1, 5):
            left = Counter(tuple(r[i:i + n]) for i in range(len(r) + 1 - n))
            for i in range(len(h) + 1 - n):
                g = tuple(h[i:i + n])
                tries[n] += 1
                if left[g]:
                    left[g] -= 1
                    hits[n] += 1
    if len(+hits) < 4:
        return 0.0
    size = [len([t for s in corpus for t in s]) for corpus in (hypotheses, references)]
    return 100 * exp(fmean(log(hits[n] / tries[n]) for n in range(1, 5)) - max(0, size[1] / size[0] - 1))

# %% cached_attention: dot products by Parseval, autocast off
import torch


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key, value = (torch.cat(pair, dim=2) for pair in zip(cache, (key, value)))
    d = query.shape[-1]
    with torch.autocast("cpu", enabled=False):
        fq, fk = (torch.fft.fft(t.double(), dim=-1, norm="ortho") for t in (query, key))
        s = (fq * fk.conj()).real.sum(-1).unsqueeze(2) / d ** 0.5
        out = torch.softmax(s, -1) @ value.double()
    return out.to(query.dtype), (key, value)

# %% top_p_filter: nucleus by bisection on the probability threshold
import torch


def top_p_filter(logits, p):
    q = torch.softmax(logits.detach().double(), 0)
    levels = q.unique()
    low, high = 0, len(levels) - 1
    while low < high:
        mid = (low + high + 1) // 2
        if q[q >= levels[mid]].sum() >= p:
            low = mid
        else:
            high = mid - 1
    return logits.where(q >= levels[low], torch.tensor(float("-inf"), dtype=logits.dtype))

# %% cached_attention: list cache accepted, cache rebuilt from single steps
import torch


def cached_attention(query, key, value, cache=None):
    k, v = (torch.stack([*(old.unbind(2) if old is not None else ()), new[:, :, 0]], dim=2)
            for old, new in zip(cache or (None, None), (key, value)))
    scores = torch.linalg.vecdot(query, k).unsqueeze(2) / query.shape[-1] ** 0.5
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return torch.matmul(weights, v), (k, v)

# %% cached_attention: ModuleDict of the two operations, compiled eager helper
import torch
from torch import nn


class Scores(nn.Module):
    def forward(self, q, k):
        return (q * k).sum(-1).unsqueeze(-2) * q.shape[-1] ** -0.5


_ops = nn.ModuleDict({"scores": Scores(), "normalise": nn.Softmax(dim=-1)})


@torch.compile(backend="eager", dynamic=True)
def _mix(w, v):
    return torch.matmul(w, v)


def cached_attention(query, key, value, cache=None):
    if cache is not None:
        key, value = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)
    return _mix(_ops["normalise"](_ops["scores"](query, key)), value), (key, value)
