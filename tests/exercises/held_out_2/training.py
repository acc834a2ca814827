# %% teacher_forcing_pair: inputs and targets are swapped, the model would predict the previous token
def teacher_forcing_pair(tokens):
    return tokens[:, 1:], tokens[:, :-1]

# %% teacher_forcing_pair: shifts along the batch axis instead of the sequence axis
def teacher_forcing_pair(tokens):
    inputs = tokens[:-1]
    targets = tokens[1:]
    return inputs, targets

# %% teacher_forcing_pair: the inputs keep all L tokens
def teacher_forcing_pair(tokens):
    decoder_input = tokens
    labels = tokens[:, 1:]
    return decoder_input, labels

# %% teacher_forcing_pair: the targets are not shifted, each token is to predict itself
import torch

def teacher_forcing_pair(tokens):
    L = tokens.shape[1]
    x = torch.narrow(tokens, 1, 0, L - 1)
    y = torch.narrow(tokens, 1, 0, L - 1)
    return x, y

# %% teacher_forcing_pair: the targets are made by torch.roll, so they have length L and end in the first token
import torch

def teacher_forcing_pair(tokens):
    targets = torch.roll(tokens, shifts=-1, dims=1)
    return tokens[:, :-1], targets

# %% teacher_forcing_pair: shifts with roll over the flattened batch, so the last target comes from the next row, and drops the first column
import torch

def teacher_forcing_pair(tokens):
    B, L = tokens.shape
    shifted = torch.roll(tokens.flatten(), -1).view(B, L)
    return tokens[:, 1:], shifted[:, 1:]

# %% teacher_forcing_pair: cuts both ends off the inputs (bos too) and pairs tokens two apart
def teacher_forcing_pair(tokens):
    n = tokens.size(1)
    inputs = tokens[:, : n - 2]
    targets = tokens[:, 2:]
    return inputs, targets

# %% teacher_forcing_pair: the pair comes back as float tensors
import torch

def teacher_forcing_pair(tokens):
    B, L = tokens.shape
    inputs = torch.zeros(B, L - 1)
    targets = torch.zeros(B, L - 1)
    for b in range(B):
        for t in range(L - 1):
            inputs[b, t] = tokens[b, t]
            targets[b, t] = tokens[b, t + 1]
    return inputs, targets

# %% label_smoothing_loss: the mass is spread over the other V - 1 classes only
import torch

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    N, V = logits.shape
    logp = torch.log_softmax(logits, dim=-1)
    dist = torch.full_like(logp, smoothing / (V - 1))
    dist.scatter_(1, targets.unsqueeze(1), 1.0 - smoothing)
    loss = -(dist * logp).sum(dim=1)
    keep = targets != pad_id
    return loss[keep].mean()

# %% label_smoothing_loss: the pad class is left out of the smoothing, the mass goes to V - 2 classes (as in the Annotated Transformer)
import torch

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    logp = logits.log_softmax(-1)
    V = logits.shape[1]
    true_dist = torch.full_like(logp, smoothing / (V - 2))
    true_dist = true_dist.scatter(1, targets[:, None], 1 - smoothing)
    true_dist[:, pad_id] = 0
    keep = (targets != pad_id).to(logp.dtype)
    return -((true_dist * logp).sum(-1) * keep).sum() / keep.sum()

# %% label_smoothing_loss: divides by N, so the pad targets count in the mean
import torch
import torch.nn.functional as F

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    per_token = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="none")
    per_token = per_token.masked_fill(targets == pad_id, 0.0)
    return per_token.mean()

# %% label_smoothing_loss: log of the softmax, which is -inf for large differences of the logits
import torch

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    log_probs = torch.log(torch.softmax(logits, dim=-1))
    nll = -log_probs.gather(1, targets.view(-1, 1)).squeeze(1)
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    return loss[targets.ne(pad_id)].mean()

# %% label_smoothing_loss: the uniform part is summed over the classes instead of averaged (smoothing on each class, not smoothing / V)
import torch

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    logits, targets = logits[keep], targets[keep]
    lp = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    hard = -lp[torch.arange(len(targets), device=lp.device), targets]
    soft = -lp.sum(1)
    return ((1 - smoothing) * hard + smoothing * soft).mean()

# %% label_smoothing_loss: the target class gets 1 - smoothing without its own share smoothing / V
import torch
import torch.nn.functional as F

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    V = logits.size(-1)
    one_hot = F.one_hot(targets, V).bool()
    confident = torch.tensor(1.0 - smoothing, dtype=logits.dtype, device=logits.device)
    rest = torch.tensor(smoothing / V, dtype=logits.dtype, device=logits.device)
    q = torch.where(one_hot, confident, rest)
    loss = -torch.einsum("nv,nv->n", q, F.log_softmax(logits, dim=1))
    mask = targets != pad_id
    return (loss * mask).sum() / mask.sum()

# %% label_smoothing_loss: the Kullback–Leibler divergence to the smoothed targets, which lacks their entropy
import torch
import torch.nn as nn

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    logits, targets = logits[keep], targets[keep]
    V = logits.shape[-1]
    q = torch.full_like(logits, smoothing / V)
    q[torch.arange(q.shape[0]), targets] += 1 - smoothing
    criterion = nn.KLDivLoss(reduction="batchmean")
    return criterion(torch.log_softmax(logits, dim=-1), q.detach())

# %% label_smoothing_loss: normalises over the batch axis (dim=0), and the pads are not left out
import torch

def label_smoothing_loss(logits, targets, smoothing, pad_id):
    log_probs = torch.log_softmax(logits, dim=0)
    picked = log_probs.gather(1, targets.unsqueeze(1))
    return -((1 - smoothing) * picked.mean() + smoothing * log_probs.mean())

# %% warmup_rate: max instead of min of the two branches
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** -0.5 * max(step ** -0.5, step * warmup_steps ** -1.5)

# %% warmup_rate: multiplied with the root of d_model instead of its inverse
import math

def warmup_rate(step, d_model, warmup_steps):
    decay = 1 / math.sqrt(step)
    ramp = step / warmup_steps ** 1.5
    return math.sqrt(d_model) * min(decay, ramp)

# %% warmup_rate: exponent -0.5 instead of -1.5 at warmup_steps
def warmup_rate(step, d_model, warmup_steps):
    factor = d_model ** (-0.5)
    return factor * min(step ** (-0.5), step * warmup_steps ** (-0.5))

# %% warmup_rate: the step is counted from 0, so step - 1 is used
def warmup_rate(step, d_model, warmup_steps):
    s = step - 1
    if s < warmup_steps:
        return d_model ** -0.5 * s * warmup_steps ** -1.5
    return d_model ** -0.5 * s ** -0.5

# %% warmup_rate: -1/2 without brackets, d_model ** -1/2 is half of the inverse
def warmup_rate(step, d_model, warmup_steps):
    return (d_model ** -1/2) * min(step ** (-1/2), step * warmup_steps ** (-3/2))

# %% warmup_rate: after the warm-up the rate stays constant instead of falling with the root of the step
def warmup_rate(step, d_model, warmup_steps):
    peak = (d_model * warmup_steps) ** -0.5
    progress = min(1.0, step / warmup_steps)
    return peak * progress

# %% warmup_rate: the decay counts its steps from the end of the warm-up
def warmup_rate(step, d_model, warmup_steps):
    peak = d_model ** -0.5 * warmup_steps ** -0.5
    if step <= warmup_steps:
        return peak * step / warmup_steps
    return d_model ** -0.5 * (step - warmup_steps) ** -0.5

# %% warmup_rate: integer division in the ramp, and the branch is chosen the wrong way round
def warmup_rate(step, d_model, warmup_steps):
    if step > warmup_steps:
        scale = step // warmup_steps * warmup_steps ** -0.5
    else:
        scale = step ** -0.5
    return scale / d_model ** 0.5

# %% token_batches: the lengths are taken in their given order, not sorted
def token_batches(lengths, max_tokens):
    batches, current, longest = [], [], 0
    for i, n in enumerate(lengths):
        if n > max_tokens:
            raise ValueError(f"sequence {i} is longer than {max_tokens}")
        if current and max(longest, n) * (len(current) + 1) > max_tokens:
            batches.append(current)
            current, longest = [], 0
        current.append(i)
        longest = max(longest, n)
    if current:
        batches.append(current)
    return batches

# %% token_batches: the sum of the lengths is held under max_tokens, not batch size times longest
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    out, batch, used = [], [], 0
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and used + lengths[i] > max_tokens:
            out.append(batch)
            batch, used = [], 0
        batch.append(i)
        used += lengths[i]
    if batch:
        out.append(batch)
    return out

# %% token_batches: the last open batch is never appended
def token_batches(lengths, max_tokens):
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batches = []
    batch = []
    for idx in order:
        length = lengths[idx]
        if length > max_tokens:
            raise ValueError("length over max_tokens")
        if (len(batch) + 1) * length > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(idx)
    return batches

# %% token_batches: greedy in order of falling length, which can need more padding
def token_batches(lengths, max_tokens):
    order = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
    if order and lengths[order[0]] > max_tokens:
        raise ValueError("a sequence does not fit")
    batches = []
    while order:
        size = max_tokens // lengths[order[0]]
        batches.append(order[:size])
        order = order[size:]
    return batches

# %% token_batches: the batches hold the sorted lengths instead of the indices
def token_batches(lengths, max_tokens):
    batches = [[]]
    for n in sorted(lengths):
        if n > max_tokens:
            raise ValueError
        if (len(batches[-1]) + 1) * n > max_tokens:
            batches.append([])
        batches[-1].append(n)
    return [b for b in batches if b]

# %% token_batches: a batch that would hold exactly max_tokens is closed before (>= for >), and a length over max_tokens is left out without an error
def token_batches(lengths, max_tokens):
    idx = [i for i in range(len(lengths)) if lengths[i] <= max_tokens]
    idx.sort(key=lambda i: lengths[i])
    result, cur = [], []
    for i in idx:
        if cur and lengths[i] * (len(cur) + 1) >= max_tokens:
            result.append(cur)
            cur = []
        cur.append(i)
    if cur:
        result.append(cur)
    return result

# %% token_batches: one fixed batch size for all, from the longest sequence
def token_batches(lengths, max_tokens):
    if not lengths:
        return []
    longest = max(lengths)
    if longest > max_tokens:
        raise ValueError(f"{longest} > {max_tokens}")
    size = max_tokens // longest
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[i:i + size] for i in range(0, len(order), size)]

# %% token_batches: the same list is appended and cleared, so all batches end up as one object
def token_batches(lengths, max_tokens):
    pairs = sorted((n, i) for i, n in enumerate(lengths))
    if pairs and pairs[-1][0] > max_tokens:
        raise ValueError("max_tokens is too small")
    batches, batch = [], []
    for n, i in pairs:
        if n * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch.clear()
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches
