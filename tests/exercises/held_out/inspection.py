# %% previous_token_score: The diagonal above the main one is taken, which is the token after, not the token before.
import torch


def previous_token_score(weights):
    one_back = torch.diagonal(weights, offset=1, dim1=-2, dim2=-1)
    return one_back.mean(dim=-1)


# %% previous_token_score: The sum is divided by L although the first query has no token before it.
import torch


def previous_token_score(weights):
    L = weights.shape[-1]
    total = 0
    for i in range(1, L):
        total = total + weights[..., i, i - 1]
    return total / L


# %% previous_token_score: The main diagonal is taken, so it measures how much each token looks at itself.
def previous_token_score(weights):
    return weights.diagonal(dim1=-2, dim2=-1).mean(-1)


# %% previous_token_score: The mean runs over batch and heads as well, so one number comes back for all maps.
import torch


def previous_token_score(weights):
    q = torch.arange(1, weights.size(-1))
    previous = weights[..., q, q - 1]
    return previous.mean()


# %% previous_token_score: It counts how often the previous token is the strongest key instead of averaging its weight.
import torch


def previous_token_score(weights):
    n = weights.shape[-1]
    looks_at = weights.argmax(dim=-1)[..., 1:]
    hits = looks_at == torch.arange(n - 1)
    return hits.to(weights.dtype).mean(dim=-1)


# %% previous_token_score: For the first query the index i - 1 is -1, so the weight on the last token is counted too.
import torch


def previous_token_score(weights):
    idx = torch.arange(weights.shape[-1])
    return weights[..., idx, idx - 1].mean(dim=-1)


# %% previous_token_score: The diagonal has no axes named and is taken over the first two, wrong as soon as there is a batch.
import torch


def previous_token_score(weights):
    d = torch.diagonal(weights, -1)
    return d.mean(dim=-1)


# %% previous_token_score: Only summed, not averaged.
import torch


def previous_token_score(weights):
    n = weights.shape[-1]
    mask = torch.diag(torch.ones(n - 1, dtype=weights.dtype), diagonal=-1)
    return (weights * mask).sum(dim=(-2, -1))


# %% attention_entropy: Zeros are not treated, and 0 * log(0) is NaN.
import torch


def attention_entropy(weights):
    return -(weights * torch.log(weights)).sum(dim=-1)


# %% attention_entropy: The logarithm has base 2, so the result is in bits.
import torch


def attention_entropy(weights):
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -(weights * torch.log2(safe)).sum(dim=-1)


# %% attention_entropy: The minus sign is forgotten.
import torch


def attention_entropy(weights):
    return torch.xlogy(weights, weights).sum(-1)


# %% attention_entropy: The sum runs over the queries instead of the keys.
import torch


def attention_entropy(weights):
    h = torch.special.entr(weights)
    return h.sum(dim=-2)


# %% attention_entropy: A small constant in the logarithm moves the result by more than rounding does.
import torch


def attention_entropy(weights):
    eps = 1e-6
    return -torch.sum(weights * torch.log(weights + eps), dim=-1)


# %% attention_entropy: The entropy is divided by log L_k, so that it lies between 0 and 1.
import math

import torch


def attention_entropy(weights):
    entropy = torch.special.entr(weights).sum(-1)
    return entropy / math.log(weights.shape[-1])


# %% attention_entropy: The mean over the keys is taken instead of the sum.
import torch


def attention_entropy(weights):
    terms = weights * weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return -terms.mean(dim=-1)


# %% attention_entropy: The weights are taken for scores and go through a softmax once more.
import torch
import torch.nn.functional as F


def attention_entropy(weights):
    log_p = F.log_softmax(weights, dim=-1)
    return -(log_p.exp() * log_p).sum(dim=-1)


# %% attention_between_words: The weights to the pieces of a word are averaged too, instead of added.
import torch


def attention_between_words(weights, query_words, key_words):
    rows = []
    for q in range(query_words.max() + 1):
        row = []
        for k in range(key_words.max() + 1):
            block = weights[..., query_words == q, :][..., key_words == k]
            row.append(block.mean(dim=(-2, -1)))
        rows.append(torch.stack(row, -1))
    return torch.stack(rows, -2)


# %% attention_between_words: The weights from the pieces of a word are added too, instead of averaged.
import torch
import torch.nn.functional as F


def attention_between_words(weights, query_words, key_words):
    q = F.one_hot(query_words + 1)[:, 1:].to(weights.dtype)
    k = F.one_hot(key_words + 1)[:, 1:].to(weights.dtype)
    return q.T @ weights @ k


# %% attention_between_words: Adding and averaging are exchanged: it averages to the pieces and adds from them.
import torch


def attention_between_words(weights, query_words, key_words):
    n_q, n_k = int(query_words.max()) + 1, int(key_words.max()) + 1
    out = weights.new_zeros(*weights.shape[:-2], n_q, n_k)
    for i in range(n_q):
        for j in range(n_k):
            part = weights[..., query_words == i, :].sum(-2)
            out[..., i, j] = part[..., key_words == j].mean(-1)
    return out


# %% attention_between_words: The -1 is used as an index, so the tokens that should be left out go to the last word.
import torch


def attention_between_words(weights, query_words, key_words):
    n_q, n_k = int(query_words.max()) + 1, int(key_words.max()) + 1
    out = torch.zeros(weights.shape[:-2] + (n_q, n_k), dtype=weights.dtype)
    count = [0] * n_q
    for i, q in enumerate(query_words.tolist()):
        count[q] += 1
        for j, k in enumerate(key_words.tolist()):
            out[..., q, k] += weights[..., i, j]
    return out / torch.tensor(count, dtype=weights.dtype)[:, None]


# %% attention_between_words: The rows are divided by their sums at the end, although special tokens took a part.
import torch


def attention_between_words(weights, query_words, key_words):
    def membership(words):
        return (words == torch.arange(int(words.max()) + 1).unsqueeze(1)).to(weights.dtype)

    Q, K = membership(query_words), membership(key_words)
    result = (Q / Q.sum(-1, keepdim=True)) @ weights @ K.transpose(0, 1)
    return result / result.sum(dim=-1, keepdim=True)


# %% attention_between_words: Only the first piece of each query word is used instead of the average of all of them.
import torch


def attention_between_words(weights, query_words, key_words):
    n_q, n_k = int(query_words.max()) + 1, int(key_words.max()) + 1
    first = torch.tensor([query_words.tolist().index(w) for w in range(n_q)])
    chosen = weights[..., first, :]
    return torch.stack([chosen[..., key_words == w].sum(-1) for w in range(n_k)], dim=-1)


# %% attention_between_words: Words come from unique(), which counts -1 as one more word in front.
import torch


def attention_between_words(weights, query_words, key_words):
    columns = [weights[..., key_words == w].sum(-1) for w in key_words.unique()]
    to_words = torch.stack(columns, dim=-1)
    rows = [to_words[..., query_words == w, :].mean(-2) for w in query_words.unique()]
    return torch.stack(rows, dim=-2)


# %% attention_between_words: To a word of several pieces the largest weight counts instead of the sum.
import torch


def attention_between_words(weights, query_words, key_words):
    nq = int(query_words.max()) + 1
    nk = int(key_words.max()) + 1
    keys = torch.stack([weights[..., key_words == k].amax(dim=-1) for k in range(nk)], dim=-1)
    return torch.stack([keys[..., query_words == q, :].mean(dim=-2) for q in range(nq)], dim=-2)


# %% attention_rollout: The residual connection is forgotten: only the averaged maps are multiplied.
import torch


def attention_rollout(weights):
    a = weights.mean(dim=2)
    rollout = a[0]
    for layer in a[1:]:
        rollout = layer @ rollout
    return rollout


# %% attention_rollout: The product has the first layer leftmost instead of the last.
import torch


def attention_rollout(weights):
    num_layers, B, H, L, _ = weights.shape
    eye = torch.eye(L, dtype=weights.dtype)
    R = eye.expand(B, L, L)
    for l in range(num_layers):
        A = 0.5 * weights[l].mean(1) + 0.5 * eye
        R = R @ A
    return R


# %% attention_rollout: The identity is added without the halves, so the rows do not sum to one.
import torch


def attention_rollout(weights):
    identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    result = identity
    for layer in weights:
        result = (layer.mean(dim=1) + identity) @ result
    return result


# %% attention_rollout: The largest head counts at each place instead of the mean.
import torch


def attention_rollout(weights):
    eye = torch.eye(weights.size(-1), dtype=weights.dtype)
    mixed = 0.5 * weights.max(dim=2).values + 0.5 * eye
    out = mixed[0]
    for i in range(1, len(mixed)):
        out = torch.bmm(mixed[i], out)
    return out


# %% attention_rollout: The layers are averaged instead of multiplied.
import torch


def attention_rollout(weights):
    attention = weights.mean(dim=2)
    identity = torch.eye(attention.shape[-1], dtype=weights.dtype)
    return (0.5 * attention + 0.5 * identity).mean(dim=0)


# %% attention_rollout: The identity is mixed in once, after all layers have been multiplied.
import torch


def attention_rollout(weights):
    a = weights.mean(2)
    product = a[0]
    for n in range(1, a.shape[0]):
        product = torch.matmul(a[n], product)
    return 0.5 * product + 0.5 * torch.eye(a.shape[-1], dtype=a.dtype)


# %% attention_rollout: The layers are multiplied entry by entry instead of as matrices.
import torch


def attention_rollout(weights):
    L = weights.shape[-1]
    rollout = torch.ones(L, L, dtype=weights.dtype)
    for w in weights:
        rollout = rollout * (0.5 * w.mean(1) + 0.5 * torch.eye(L, dtype=weights.dtype))
    return rollout


# %% attention_rollout: Each head is followed by itself through the layers and the heads are averaged at the end.
import torch


def attention_rollout(weights):
    eye = torch.eye(weights.shape[-1]).to(weights)
    r = 0.5 * weights[0] + 0.5 * eye
    for w in weights[1:]:
        r = (0.5 * w + 0.5 * eye) @ r
    return r.mean(dim=1)


# %% head_switched_off: The bias is left out together with the head.
import torch


def head_switched_off(heads, weight, bias, off):
    keep = torch.ones(heads.shape[1], dtype=heads.dtype)
    keep[off] = 0
    x = (heads * keep.view(1, -1, 1, 1)).transpose(1, 2).flatten(2)
    return x @ weight.T


# %% head_switched_off: The head is set to zero in the caller's tensor.
import torch.nn.functional as F


def head_switched_off(heads, weight, bias, off):
    B, H, L, d = heads.shape
    heads.data[:, off] = 0
    merged = heads.transpose(1, 2).reshape(B, L, H * d)
    return F.linear(merged, weight, bias)


# %% head_switched_off: The heads are reshaped without exchanging the axes of heads and positions first.
import torch


def head_switched_off(heads, weight, bias, off):
    B, H, L, d = heads.shape
    h = heads.clone()
    h[:, off] = 0
    x = h.reshape(B, L, H * d)
    return x @ weight.T + bias


# %% head_switched_off: The rows of the weight are set to zero, which are outputs, instead of the columns of the head.
import torch


def head_switched_off(heads, weight, bias, off):
    d_head = heads.shape[-1]
    w = weight.clone()
    w[off * d_head : (off + 1) * d_head] = 0
    merged = heads.permute(0, 2, 1, 3).flatten(-2)
    return torch.nn.functional.linear(merged, w, bias)


# %% head_switched_off: The product is x W instead of x times W transposed.
import torch


def head_switched_off(heads, weight, bias, off):
    mask = torch.ones_like(heads)
    mask[:, off] = 0
    concat = torch.cat((heads * mask).unbind(1), dim=-1)
    return concat @ weight + bias


# %% head_switched_off: The other heads are scaled up as dropout would do it.
import torch
import torch.nn.functional as F


def head_switched_off(heads, weight, bias, off):
    H = heads.size(1)
    keep = (torch.arange(H) != off).to(heads.dtype)
    keep = keep * H / keep.sum()
    x = (heads * keep[:, None, None]).transpose(1, 2).flatten(2)
    return F.linear(x, weight, bias)


# %% head_switched_off: The heads are counted from one, so the head before is switched off.
import torch.nn.functional as F


def head_switched_off(heads, weight, bias, off):
    zeroed = heads.clone()
    zeroed[:, off - 1] = 0
    return F.linear(zeroed.transpose(1, 2).flatten(2), weight, bias)


# %% head_switched_off: The head is taken out, but the last columns of the weight are, whichever head it is.
import torch


def head_switched_off(heads, weight, bias, off):
    rest = [heads[:, h] for h in range(heads.shape[1]) if h != off]
    if not rest:
        return bias.expand(heads.shape[0], heads.shape[2], -1)
    x = torch.cat(rest, dim=-1)
    return x @ weight[:, : x.shape[-1]].T + bias
