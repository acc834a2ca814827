# %% teacher_forcing_pair: inputs and targets are the same
def teacher_forcing_pair(tokens):
    return tokens[:, :-1], tokens[:, :-1]


# %% teacher_forcing_pair: the whole sentence goes in, the shapes differ
def teacher_forcing_pair(tokens):
    inputs = tokens
    targets = tokens[:, 1:]
    return inputs, targets


# %% teacher_forcing_pair: slices the batch axis
def teacher_forcing_pair(tokens):
    return tokens[:-1], tokens[1:]


# %% teacher_forcing_pair: returns targets first
def teacher_forcing_pair(tokens):
    tgt_out = tokens[:, 1:]
    tgt_in = tokens[:, :-1]
    return tgt_out, tgt_in


# %% teacher_forcing_pair: shifts right with a zero in front, the start token is a target
import torch


def teacher_forcing_pair(tokens):
    shifted = torch.zeros_like(tokens)
    shifted[:, 1:] = tokens[:, :-1]
    return shifted, tokens


# %% teacher_forcing_pair: roll without cutting, the start token comes last
import torch


def teacher_forcing_pair(tokens):
    return tokens, torch.roll(tokens, -1, dims=1)


# %% teacher_forcing_pair: only the last token is asked for
def teacher_forcing_pair(tokens):
    return tokens[:, :-1], tokens[:, -1]


# %% teacher_forcing_pair: drops start and end from both
def teacher_forcing_pair(tokens):
    core = tokens[:, 1:-1]
    return core, core.clone()


# %% label_smoothing_loss: forgets the padding
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    logp = torch.log_softmax(logits, -1)
    nll = -logp[torch.arange(len(targets)), targets]
    return ((1 - smoothing) * nll - smoothing * logp.mean(-1)).mean()


# %% label_smoothing_loss: masks the sum, divides by all positions
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    logp = torch.log_softmax(logits, -1)
    nll = -logp[torch.arange(len(targets)), targets]
    loss = (1 - smoothing) * nll - smoothing * logp.mean(-1)
    loss = loss.masked_fill(targets == pad_id, 0.0)
    return loss.mean()


# %% label_smoothing_loss: the mass goes to the V - 1 others
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, v = logits.shape
    dist = torch.full_like(logits, smoothing / (v - 1))
    dist[torch.arange(n), targets] = 1 - smoothing
    loss = -(dist * logits.log_softmax(-1)).sum(-1)
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: Annotated-Transformer way, KL with no mass on the padding
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    x = F.log_softmax(logits, -1)
    dist = torch.full_like(x, smoothing / (x.size(1) - 2))
    dist.scatter_(1, targets.unsqueeze(1), 1 - smoothing)
    dist[:, pad_id] = 0
    keep = targets != pad_id
    return F.kl_div(x[keep], dist[keep], reduction="sum") / keep.sum()


# %% label_smoothing_loss: log of softmax
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    p = torch.softmax(logits, dim=-1)
    q = torch.zeros_like(p).scatter(1, targets[:, None], 1.0) * (1 - smoothing) + smoothing / p.size(1)
    loss = -(q * torch.log(p)).sum(dim=1)
    return loss[targets != pad_id].mean()


# %% label_smoothing_loss: log of softmax plus 1e-9
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    p = torch.softmax(logits, dim=-1)
    logp = torch.log(p + 1e-9)
    nll = -logp.gather(1, targets.view(-1, 1)).view(-1)
    loss = (1 - smoothing) * nll + smoothing * -logp.mean(1)
    return loss[targets != pad_id].mean()


# %% label_smoothing_loss: sum instead of mean over the classes
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    logp = logits.log_softmax(-1)
    nll = -logp.gather(1, targets.view(-1, 1)).view(-1)
    loss = (1 - smoothing) * nll + smoothing * -logp.sum(1)
    return loss[targets != pad_id].mean()


# %% label_smoothing_loss: nothing is taken from the target
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    logp = logits.log_softmax(-1)
    keep = targets != pad_id
    nll = -logp.gather(1, targets.view(-1, 1)).view(-1)
    return nll[keep].mean() - smoothing * logp[keep].mean()


# %% warmup_rate: max instead of min
def warmup_rate(step, d_model, warmup_steps):
    return d_model**-0.5 * max(step**-0.5, step * warmup_steps**-1.5)


# %% warmup_rate: step to the power -1.5
def warmup_rate(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-1.5, step * warmup_steps**-0.5)


# %% warmup_rate: the root of d_model is missing
def warmup_rate(step, d_model, warmup_steps):
    return 1 / d_model * min(1 / step**0.5, step / warmup_steps**1.5)


# %% warmup_rate: counts from zero
def warmup_rate(step, d_model, warmup_steps):
    step = step - 1
    if step == 0:
        return 0.0
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


# %% warmup_rate: linear warm-up to d_model^-0.5, then the root
import math


def warmup_rate(step, d_model, warmup_steps):
    if step <= warmup_steps:
        return (step / warmup_steps) / math.sqrt(d_model)
    return 1 / math.sqrt(step) / math.sqrt(d_model)


# %% warmup_rate: constant after the warm-up
def warmup_rate(step, d_model, warmup_steps):
    step = min(step, warmup_steps)
    return d_model**-0.5 * step * warmup_steps**-1.5


# %% token_batches: adds lengths up, padding is not counted
def token_batches(lengths, max_tokens):
    batches, batch, total = [], [], 0
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > max_tokens:
            raise ValueError("too long")
        if total + lengths[i] > max_tokens:
            batches.append(batch)
            batch, total = [], 0
        batch.append(i)
        total += lengths[i]
    batches.append(batch)
    return batches


# %% token_batches: the last batch is lost
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    batches, batch = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if (len(batch) + 1) * lengths[i] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches


# %% token_batches: order of the corpus
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    batches, batch, longest = [], [], 0
    for i, n in enumerate(lengths):
        if batch and (len(batch) + 1) * max(longest, n) > max_tokens:
            batches.append(batch)
            batch, longest = [], 0
        batch.append(i)
        longest = max(longest, n)
    return [*batches, batch]


# %% token_batches: places in the sorted list, in another order than the reference
def token_batches(lengths, max_tokens):
    ordered = sorted(lengths)
    if ordered[-1] > max_tokens:
        raise ValueError("too long")
    batches = [[]]
    for place, n in enumerate(ordered):
        if (len(batches[-1]) + 1) * n > max_tokens:
            batches.append([])
        batches[-1].insert(0, place)
    return batches[::-1]


# %% token_batches: closes a batch after it is over the bound
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    batches, batch = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        batch.append(i)
        if len(batch) * lengths[i] >= max_tokens:
            batches.append(batch)
            batch = []
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: no error for a sentence that is too long
def token_batches(lengths, max_tokens):
    batches, batch = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[i] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    batches.append(batch)
    return batches


# %% token_batches: returns lengths
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    batches = [[]]
    for n in sorted(lengths):
        if (len(batches[-1]) + 1) * n > max_tokens:
            batches.append([])
        batches[-1].append(n)
    return batches


# %% token_batches: longest first
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
    batches = []
    while order:
        size = max_tokens // lengths[order[0]]
        batches.append(order[:size])
        order = order[size:]
    return batches


# %% token_batches: one batch size for all, by the longest sentence
def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    size = max_tokens // max(lengths)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[k : k + size] for k in range(0, len(order), size)]


# %% label_smoothing_loss: a number for a tensor, so no gradient can flow
def label_smoothing_loss(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    keep = targets != pad_id
    nll = -log_probs.gather(1, targets[:, None])[:, 0]
    loss = (1 - smoothing) * nll - smoothing * log_probs.mean(-1)
    return (loss[keep].sum() / keep.sum()).item()
