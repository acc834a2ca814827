# %% previous_token_score: all earlier tokens are added up, not only the one before
import torch

def previous_token_score(weights):
    earlier = torch.tril(weights, diagonal=-1).sum(dim=-1)
    return earlier[..., 1:].mean(dim=-1)

# %% previous_token_score: the previous token's weight is averaged over the whole map, L * L entries
import torch

def band(length, like):
    pos = torch.arange(length)
    return (pos.unsqueeze(1) - pos.unsqueeze(0) == 1).to(like.dtype)

def previous_token_score(weights):
    selected = weights * band(weights.shape[-1], weights)
    return selected.mean(dim=-1).mean(dim=-1)

# %% previous_token_score: rows and columns are exchanged, the weight that key i gets from query i - 1
def previous_token_score(weights):
    scores = []
    length = weights.shape[-1]
    for i in range(1, length):
        scores.append(weights[..., i - 1, i])
    result = scores[0]
    for s in scores[1:]:
        result = result + s
    return result / len(scores)

# %% previous_token_score: takes exactly (B, H, L, L) and cannot do without batch dimensions, or with others
import torch

class HeadScore:
    def __init__(self, weights):
        self.batch, self.heads, self.length, _ = weights.shape
        self.weights = weights

    def score(self):
        out = self.weights.new_zeros(self.batch, self.heads)
        for i in range(1, self.length):
            out = out + self.weights[:, :, i, i - 1]
        return out / (self.length - 1)

def previous_token_score(weights):
    return HeadScore(weights).score()

# %% previous_token_score: the second token is skipped too, as if the first token did not count as a token before
import torch

def previous_token_score(weights):
    i = torch.arange(2, weights.shape[-1])
    return weights[..., i, i - 1].mean(-1)

# %% previous_token_score: compared with the token itself: previous / (previous + own) instead of the weight
import torch

def previous_token_score(weights):
    before = weights.diagonal(-1, -2, -1)
    own = weights.diagonal(0, -2, -1)[..., 1:]
    return (before / (before + own)).mean(-1)

# %% previous_token_score: the weights go through a softmax again, and no gradient comes through
import torch

def previous_token_score(weights):
    with torch.no_grad():
        p = torch.softmax(weights, dim=-1)
        n = p.shape[-1]
        flat = p.reshape(*p.shape[:-2], n * n)
        return flat[..., n::n + 1].mean(dim=-1)

# %% attention_entropy: nan_to_num after the sum, so a query with one masked key gets 0
import torch

def attention_entropy(weights):
    h = -(weights * weights.log()).sum(dim=-1)
    return torch.nan_to_num(h, nan=0.0)

# %% attention_entropy: the exponential of the entropy (how many keys) instead of the entropy
import torch

def attention_entropy(weights):
    entropy = torch.special.entr(weights).sum(-1)
    perplexity = entropy.exp()
    return perplexity

# %% attention_entropy: averaged over the queries, one number per map
import torch

def attention_entropy(weights):
    logs = torch.where(weights > 0, weights.clamp(min=1e-300 if weights.dtype == torch.float64 else 1e-38).log(), 0.0)
    per_query = -(weights * logs).sum(-1)
    return per_query.mean(-1)

# %% attention_entropy: the weights are clamped to 1e-3 against log 0, which changes small weights and zeros
import torch

def attention_entropy(weights):
    w = torch.clamp(weights, min=1e-3)
    return -(w * torch.log(w)).sum(dim=-1)

# %% attention_entropy: boolean indexing flattens, so all queries are summed to one number
import torch

def attention_entropy(weights):
    positive = weights[weights > 0]
    return -(positive * positive.log()).sum()

# %% attention_entropy: numbers are taken out with item() and put into a new tensor: no gradient, and always float32
import math
import torch

def entropy_of(row):
    h = 0.0
    for p in row.tolist():
        if p > 0:
            h -= p * math.log(p)
    return h

def attention_entropy(weights):
    rows = weights.reshape(-1, weights.shape[-1])
    values = [entropy_of(r) for r in rows]
    return torch.tensor(values).reshape(weights.shape[:-1])

# %% attention_entropy: the zeros are replaced by ones in the caller's tensor
import torch

def attention_entropy(weights):
    zero = weights == 0
    weights.data[zero] = 1.0
    return -(weights * weights.log()).sum(dim=-1)

# %% attention_entropy: only -log of the weights is summed, the factor w is missing, zeros are skipped, base 10
import torch

def attention_entropy(weights):
    surprise = torch.where(weights > 0, -torch.log10(weights.clamp(min=1e-30)), torch.zeros_like(weights))
    return surprise.sum(dim=-1)

# %% attention_between_words: the number of words is the largest number, not one more, so the last word is lost
import torch

def attention_between_words(weights, query_words, key_words):
    n_query_words = int(query_words.max())
    n_key_words = int(key_words.max())
    out = torch.zeros(*weights.shape[:-2], n_query_words, n_key_words, dtype=weights.dtype)
    for a in range(n_query_words):
        mean_row = weights[..., query_words == a, :].mean(dim=-2)
        for b in range(n_key_words):
            out[..., a, b] = mean_row[..., key_words == b].sum(dim=-1)
    return out

# %% attention_between_words: the sums are divided by the length L_q instead of the number of pieces
import torch
import torch.nn.functional as F

def attention_between_words(weights, query_words, key_words):
    Q = F.one_hot(query_words + 1)[:, 1:].to(weights.dtype)
    K = F.one_hot(key_words + 1)[:, 1:].to(weights.dtype)
    return torch.einsum("...ij,iq,jk->...qk", weights, Q, K) / query_words.numel()

# %% attention_between_words: += with index tensors writes each place once, so pieces overwrite each other
import torch

def attention_between_words(weights, query_words, key_words):
    rows = torch.nonzero(query_words >= 0).flatten()
    cols = torch.nonzero(key_words >= 0).flatten()
    w = weights[..., rows, :][..., cols]
    qw, kw = query_words[rows], key_words[cols]
    summed = torch.zeros(*w.shape[:-1], int(kw.max()) + 1, dtype=w.dtype)
    summed[..., kw] += w
    total = torch.zeros(*w.shape[:-2], int(qw.max()) + 1, summed.shape[-1], dtype=w.dtype)
    total[..., qw, :] += summed
    return total / torch.bincount(qw)[:, None]

# %% attention_between_words: the words of the queries are used for the keys too, as in self-attention
import torch

class WordMerger:
    def __init__(self, words):
        self.words = words
        self.count = int(words.max()) + 1

    def pieces(self, word):
        return (self.words == word).nonzero().squeeze(-1)

    def add(self, w):
        return torch.stack([w[..., self.pieces(i)].sum(-1) for i in range(self.count)], -1)

    def average(self, w):
        return torch.stack([w[..., self.pieces(i), :].mean(-2) for i in range(self.count)], -2)

def attention_between_words(weights, query_words, key_words):
    merger = WordMerger(query_words)
    return merger.average(merger.add(weights))

# %% attention_between_words: the first and the last token are cut off as special tokens, wherever the -1 is
import torch

def attention_between_words(weights, query_words, key_words):
    w = weights[..., 1:-1, 1:-1]
    q, k = query_words[1:-1], key_words[1:-1]
    to_word = torch.stack([w[..., k == n].sum(-1) for n in range(int(key_words.max()) + 1)], dim=-1)
    from_word = [to_word[..., q == n, :].mean(-2) for n in range(int(query_words.max()) + 1)]
    return torch.stack(from_word, dim=-2)

# %% attention_between_words: axes counted from the left, right only without a batch dimension
import torch

def attention_between_words(weights, query_words, key_words):
    keep_q, keep_k = query_words >= 0, key_words >= 0
    w = weights[keep_q][:, keep_k]
    q, k = query_words[keep_q], key_words[keep_k]
    a = torch.zeros(w.shape[0], int(k.max()) + 1, dtype=w.dtype).index_add(1, k, w)
    b = torch.zeros(int(q.max()) + 1, a.shape[1], dtype=w.dtype).index_add(0, q, a)
    return b / torch.bincount(q).unsqueeze(1)

# %% attention_between_words: the result has key words in the rows and query words in the columns
import torch

def attention_between_words(weights, query_words, key_words):
    table = []
    for k in range(int(key_words.max()) + 1):
        row = []
        for q in range(int(query_words.max()) + 1):
            pieces = [weights[..., i, :][..., key_words == k].sum(-1) for i in range(len(query_words)) if query_words[i] == q]
            row.append(sum(pieces) / len(pieces))
        table.append(torch.stack(row, dim=-1))
    return torch.stack(table, dim=-2)

# %% attention_between_words: the first piece stands for a word on both sides, and the result is always float32
import torch

def firsts(words):
    seen = {}
    for place, word in enumerate(words.tolist()):
        if word >= 0 and word not in seen:
            seen[word] = place
    return [seen[w] for w in sorted(seen)]

def attention_between_words(weights, query_words, key_words):
    q, k = firsts(query_words), firsts(key_words)
    out = torch.zeros(*weights.shape[:-2], len(q), len(k))
    for a, i in enumerate(q):
        for b, j in enumerate(k):
            out[..., a, b] = weights[..., i, j]
    return out

# %% attention_rollout: the residual connection of the first layer is forgotten, the loop starts from its plain map
import torch

def attention_rollout(weights):
    heads_mean = weights.mean(dim=2)
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype)
    rollout = heads_mean[0]
    for a in heads_mean[1:]:
        rollout = (0.5 * a + 0.5 * eye) @ rollout
    return rollout

# %% attention_rollout: ones everywhere instead of the identity, then rows are normalised
import torch

def attention_rollout(weights):
    result = None
    for layer in weights:
        a = layer.mean(1)
        a = 0.5 * a + 0.5 * torch.ones_like(a)
        a = a / a.sum(-1, keepdim=True)
        result = a if result is None else a @ result
    return result

# %% attention_rollout: the mean is taken over the batch instead of over the heads
import torch

def attention_rollout(weights):
    a = weights.mean(dim=1)
    a = 0.5 * a + 0.5 * torch.eye(a.shape[-1], dtype=a.dtype)
    out = a[0]
    for n in range(1, a.shape[0]):
        out = a[n] @ out
    return out

# %% attention_rollout: the result is transposed, so its columns sum to one
import torch
from functools import reduce

def attention_rollout(weights):
    identity = torch.eye(weights.size(-1), dtype=weights.dtype)
    layers = [0.5 * w.mean(1) + 0.5 * identity for w in weights]
    total = reduce(lambda below, layer: layer @ below, layers)
    return total.transpose(-1, -2)

# %% attention_rollout: in each step half of the identity is added instead of half of what was there
import torch

class Rollout:
    def __init__(self, batch, length, dtype):
        self.identity = torch.eye(length, dtype=dtype).repeat(batch, 1, 1)
        self.state = self.identity

    def step(self, attention):
        self.state = 0.5 * attention @ self.state + 0.5 * self.identity

def attention_rollout(weights):
    _, batch, _, length, _ = weights.shape
    rollout = Rollout(batch, length, weights.dtype)
    for layer in weights:
        rollout.step(layer.mean(dim=1))
    return rollout.state

# %% attention_rollout: the residual is counted as one more head, not as half
import torch

def attention_rollout(weights):
    num_layers, batch, num_heads, length, _ = weights.shape
    eye = torch.eye(length, dtype=weights.dtype)
    result = eye.expand(batch, length, length)
    for l in range(num_layers):
        layer = eye.expand(batch, length, length)
        for h in range(num_heads):
            layer = layer + weights[l, :, h]
        result = torch.bmm(layer / (num_heads + 1), result)
    return result

# %% attention_rollout: the heads are added instead of averaged
import torch

def attention_rollout(weights):
    combined = 0.5 * weights.sum(dim=2) + 0.5 * torch.eye(weights.shape[-1], dtype=weights.dtype)
    out = combined[0]
    for layer in combined[1:]:
        out = torch.matmul(layer, out)
    return out

# %% attention_rollout: the loop ends one layer early, and the layers are multiplied in the wrong order
import torch

def mix(a):
    eye = torch.eye(a.shape[-1], dtype=a.dtype)
    return (a.mean(dim=1) + eye) / 2

def attention_rollout(weights):
    r = mix(weights[0])
    for i in range(1, len(weights) - 1):
        r = r @ mix(weights[i])
    return r

# %% head_switched_off: the features of the output are set to zero instead of what goes into the projection
import torch
import torch.nn.functional as F

def head_switched_off(heads, weight, bias, off):
    B, H, L, d_head = heads.shape
    x = heads.transpose(1, 2).reshape(B, L, H * d_head)
    y = F.linear(x, weight, bias).clone()
    y[..., off * d_head:(off + 1) * d_head] = 0
    return y

# %% head_switched_off: only this head stays on, all others are switched off
import torch

def head_switched_off(heads, weight, bias, off):
    d = heads.shape[-1]
    columns = weight[:, off * d:(off + 1) * d]
    return heads[:, off] @ columns.T + bias

# %% head_switched_off: the mean of the other heads is put in the head's place
import torch

def head_switched_off(heads, weight, bias, off):
    parts = list(heads.unbind(dim=1))
    others = [p for i, p in enumerate(parts) if i != off]
    parts[off] = torch.stack(others).mean(0) if others else torch.zeros_like(parts[off])
    return torch.cat(parts, dim=-1) @ weight.T + bias

# %% head_switched_off: the bias is added with every head that stays on
import torch
import torch.nn.functional as F

class HeadProjection:
    def __init__(self, weight, bias, d_head):
        self.blocks = weight.split(d_head, dim=1)
        self.bias = bias

    def __call__(self, x, h):
        return F.linear(x, self.blocks[h], self.bias)

def head_switched_off(heads, weight, bias, off):
    project = HeadProjection(weight, bias, heads.size(-1))
    total = torch.zeros(heads.size(0), heads.size(2), weight.size(0), dtype=heads.dtype)
    for h in range(heads.size(1)):
        if h != off:
            total = total + project(heads[:, h], h)
    return total

# %% head_switched_off: the index is on the axis of positions, so a token is switched off for all heads
import torch

def head_switched_off(heads, weight, bias, off):
    x = heads.clone()
    x[:, :, off] = 0
    x = x.transpose(1, 2).flatten(2)
    return torch.nn.functional.linear(x, weight, bias)

# %% head_switched_off: the slice ends at (off + 1) * d_head - 1, so the last feature of the head stays on
import torch

def head_switched_off(heads, weight, bias, off):
    batch, num_heads, length, d_head = heads.shape
    concatenated = heads.permute(0, 2, 1, 3).reshape(batch, length, -1)
    mask = torch.ones(num_heads * d_head, dtype=heads.dtype)
    start, end = off * d_head, (off + 1) * d_head - 1
    mask[start:end] = 0
    return (concatenated * mask) @ weight.T + bias

# %% head_switched_off: features off to off + d_head are set to zero, the factor d_head is missing
import torch

def head_switched_off(heads, weight, bias, off):
    d_head = heads.shape[3]
    x = torch.cat([heads[:, h] for h in range(heads.shape[1])], dim=-1).clone()
    for feature in range(off, off + d_head):
        x[..., feature] = 0
    return x @ weight.mT + bias

# %% head_switched_off: what the head adds comes back, without the bias, instead of the output without it
import torch

def merged(heads):
    return heads.transpose(1, 2).flatten(2)

def head_switched_off(heads, weight, bias, off):
    silent = heads.clone()
    silent[:, off] = 0
    whole = merged(heads) @ weight.T + bias
    without = merged(silent) @ weight.T + bias
    return whole - without
