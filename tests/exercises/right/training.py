# %% teacher_forcing_pair: two slices
def teacher_forcing_pair(tokens):
    inputs = tokens[:, :-1]
    targets = tokens[:, 1:]
    return inputs, targets


# %% teacher_forcing_pair: narrow and contiguous
import torch


def teacher_forcing_pair(tokens: torch.Tensor):
    length = tokens.size(1)
    return tokens.narrow(1, 0, length - 1).contiguous(), tokens.narrow(1, 1, length - 1).contiguous()


# %% teacher_forcing_pair: loops over lists, prints
import torch


def teacher_forcing_pair(tokens):
    rows = tokens.tolist()
    print(len(rows), "sentences")
    inputs = [[row[t] for t in range(len(row) - 1)] for row in rows]
    targets = [[row[t + 1] for t in range(len(row) - 1)] for row in rows]
    return torch.tensor(inputs, dtype=tokens.dtype), torch.tensor(targets, dtype=tokens.dtype)


# %% teacher_forcing_pair: windows of two, a list comes back
def teacher_forcing_pair(tokens):
    windows = tokens.unfold(1, 2, 1)  # (B, L - 1, 2)
    return [windows[..., 0], windows[..., 1]]


# %% teacher_forcing_pair: roll, then cut; a named tuple
from collections import namedtuple

import torch

Pair = namedtuple("Pair", "inputs targets")


def teacher_forcing_pair(tokens):
    following = torch.roll(tokens, shifts=-1, dims=1)
    return Pair(inputs=tokens[:, :-1], targets=following[:, :-1])


# %% teacher_forcing_pair: numpy
import numpy as np
import torch


def teacher_forcing_pair(tokens):
    array = tokens.numpy()
    return torch.from_numpy(np.delete(array, -1, axis=1)), torch.from_numpy(np.delete(array, 0, axis=1))


# %% label_smoothing_loss: gather and mean
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    spread = -log_probs.mean(dim=-1)
    loss = (1.0 - smoothing) * nll + smoothing * spread
    mask = targets.ne(pad_id)
    return (loss * mask).sum() / mask.sum()


# %% label_smoothing_loss: the label written out
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    logits, targets = logits[keep], targets[keep]
    n, v = logits.shape
    q = torch.full_like(logits, smoothing / v)
    q.scatter_(1, targets[:, None], 1 - smoothing + smoothing / v)
    return -(q * F.log_softmax(logits, dim=1)).sum() / n


# %% label_smoothing_loss: a loop over positions, logsumexp
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    total, count = 0.0, 0
    for row, target in zip(logits, targets.tolist()):
        if target == pad_id:
            continue
        normaliser = torch.logsumexp(row, dim=0)
        total = total + normaliser - (1 - smoothing) * row[target] - smoothing * row.mean()
        count += 1
    return total / count


# %% label_smoothing_loss: maximum taken off by hand
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    shifted = logits - logits.amax(dim=1, keepdim=True)
    log_probs = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
    rows = torch.arange(len(targets))
    real = (targets != pad_id).nonzero().squeeze(1)
    picked = log_probs[rows, targets][real]
    uniform = log_probs.sum(dim=1)[real] / logits.size(1)
    return -torch.mean(picked + smoothing * (uniform - picked))


# %% label_smoothing_loss: PyTorch's losses of two parts
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    log_probs = F.log_softmax(logits, dim=-1)
    nll = F.nll_loss(log_probs, targets, ignore_index=pad_id)
    uniform = -log_probs.mean(-1).masked_select(targets != pad_id).mean()
    return torch.lerp(nll, uniform, smoothing)


# %% label_smoothing_loss: the divergence, and the entropy of the label put back
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    real = targets != pad_id
    vocab = logits.shape[-1]
    q = F.one_hot(targets[real], vocab).to(logits.dtype) * (1 - smoothing) + smoothing / vocab
    divergence = F.kl_div(logits[real].log_softmax(-1), q, reduction="batchmean")
    entropy = -torch.xlogy(q, q).sum(-1).mean()
    return divergence + entropy


# %% warmup_rate: the formula
def warmup_rate(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


# %% warmup_rate: two cases
import math


def warmup_rate(step, d_model, warmup_steps):
    peak = 1 / math.sqrt(d_model * warmup_steps)
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(warmup_steps / step)


# %% warmup_rate: tensors, and item at the end
import torch


def warmup_rate(step, d_model, warmup_steps):
    step = torch.tensor(float(step), dtype=torch.float64)
    terms = torch.stack([step.rsqrt(), step / warmup_steps**1.5])
    return (terms.min() / d_model**0.5).item()


# %% warmup_rate: logarithms, prints
from math import exp, log


def warmup_rate(step, d_model, warmup_steps):
    rise = log(step) - 1.5 * log(warmup_steps)
    fall = -0.5 * log(step)
    print(f"step {step}")
    return exp(min(rise, fall) - 0.5 * log(d_model))


# %% warmup_rate: numpy
import numpy as np


def warmup_rate(step, d_model, warmup_steps):
    return np.minimum(1 / np.sqrt(step), step / np.power(warmup_steps, 1.5)) / np.sqrt(d_model)


# %% warmup_rate: a scheduler class that can be called
class Noam:
    def __init__(self, factor=1.0):
        self.factor = factor

    def __call__(self, step, d_model, warmup_steps):
        scale = self.factor / pow(d_model, 0.5)
        return scale * sorted([pow(step, -0.5), step / (warmup_steps * pow(warmup_steps, 0.5))])[0]


warmup_rate = Noam()


# %% token_batches: greedy in rising order
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches, batch = [], []
    for i in order:
        if batch and (len(batch) + 1) * lengths[i] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: torch.argsort, batches in falling order, each turned round
import torch


def token_batches(lengths, max_tokens):
    sizes = torch.tensor(lengths)
    if bool((sizes > max_tokens).any()):
        raise ValueError(f"expected lengths up to {max_tokens}, got {int(sizes.max())}")
    order = torch.argsort(sizes)
    out, start = [], 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end - start + 1) * int(sizes[order[end]]) > max_tokens:
            out.append(order[start:end].flip(0).tolist())
            start = end
    return out[::-1]


# %% token_batches: recursion over pairs, tuples inside
def token_batches(lengths, max_tokens):
    pairs = sorted((n, i) for i, n in enumerate(lengths))

    def split(rest):
        if not rest:
            return []
        count = 1
        while count < len(rest) and (count + 1) * rest[count][0] <= max_tokens:
            count += 1
        return [tuple(i for _, i in rest[:count]), *split(rest[count:])]

    for n, _ in pairs:
        if n > max_tokens:
            raise ValueError(n)
    return split(pairs)


# %% token_batches: the least padding of all groupings with the fewest batches, by dynamic programming
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("a sentence is longer than max_tokens")
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    best = [(0, 0, [])]  # (batches, padding, batches of the first n)
    for end in range(1, len(order) + 1):
        options = []
        for start in range(end):
            batch = order[start:end]
            longest = lengths[batch[0]]
            if len(batch) * longest <= max_tokens:
                count, padding, batches = best[start]
                waste = len(batch) * longest - sum(lengths[i] for i in batch)
                options.append((count + 1, padding + waste, [*batches, batch]))
        best.append(min(options, key=lambda option: option[:2]))
    return best[-1][2]


# %% token_batches: numpy, equal lengths taken from the back, a generator, an error of its own
import numpy as np


class TooLong(ValueError):
    pass


def groups(order, lengths, room):
    batch = []
    for i in order:
        if batch and (len(batch) + 1) * max(lengths[j] for j in [*batch, i]) > room:
            yield batch
            batch = []
        batch = [i, *batch]
    yield batch


def token_batches(lengths, max_tokens):
    array = np.asarray(lengths)
    if array.max() > max_tokens:
        raise TooLong(f"{array.max()} > {max_tokens}")
    order = sorted(range(len(array)), key=lambda i: (array[i], -i))
    return list(groups(order, lengths, max_tokens))


# %% token_batches: by length, how many of it fit into the open batch
from collections import defaultdict


def token_batches(lengths, max_tokens):
    by_length = defaultdict(list)
    for i, n in enumerate(lengths):
        if n > max_tokens:
            raise ValueError(f"sentence {i} has {n} tokens")
        by_length[n].append(i)
    batches = [[]]
    for n in sorted(by_length):
        waiting = by_length[n]
        while waiting:
            free = max_tokens // n - len(batches[-1])
            batches[-1] += waiting[: max(free, 0)]
            waiting = waiting[max(free, 0) :]
            if waiting:
                batches.append([])
    return batches
