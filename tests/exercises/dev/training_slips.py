# %% teacher_forcing_pair: inputs 1:
import torch


def teacher_forcing_pair(tokens):
    inputs = tokens[:, 1:]
    targets = tokens[:, :-1]
    return inputs, targets


# %% teacher_forcing_pair: inputs [:, -1]
import torch


def teacher_forcing_pair(tokens):
    inputs = tokens[:, -1]
    targets = tokens[:, 1:]
    return inputs, targets


# %% teacher_forcing_pair: mask padding 0 with -100
import torch


def teacher_forcing_pair(tokens):
    inputs = tokens[:, :-1]
    targets = tokens[:, 1:]
    return inputs, targets.masked_fill(targets == 0, -100)


# %% teacher_forcing_pair: row 0 only
import torch


def teacher_forcing_pair(tokens):
    inputs = tokens[0, :-1]
    targets = tokens[0, 1:]
    return inputs, targets


# %% teacher_forcing_pair: bool?
import torch


def teacher_forcing_pair(tokens):
    inputs = tokens[:, :-1]
    targets = tokens[:, 1:]
    return inputs, targets != 0


# %% label_smoothing_loss: divide keep*vocab
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / (keep.sum() * vocab)


# %% label_smoothing_loss: sign nll
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: mean over all
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean()
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: log(softmax)
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log(torch.softmax(logits, dim=-1))
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: log(p+1e-20)
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log(torch.softmax(logits, dim=-1) + 1e-20)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: gather dim 0
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs.gather(0, targets[:, None])[:, 0]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: double()
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits.double(), dim=-1)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep].sum() / keep.sum()


# %% label_smoothing_loss: uniform mean of all
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return (1 - smoothing) * nll[keep].mean() + smoothing * uniform.mean()


# %% label_smoothing_loss: vector / 
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss[keep] / keep.sum()


# %% label_smoothing_loss: two: sum & pads
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, vocab = logits.shape
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs[torch.arange(n), targets]
    uniform = -log_probs.mean(dim=-1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    keep = targets != pad_id
    return loss.sum()


# %% label_smoothing_loss: pad col 0
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    vocab = logits.size(1)
    log_probs = logits.log_softmax(-1)
    dist = torch.full_like(log_probs, smoothing / vocab)
    dist.scatter_add_(1, targets[:, None], torch.full_like(log_probs, 1 - smoothing))
    dist[:, pad_id] = 0
    loss = -(dist * log_probs).sum(-1)
    loss = loss.masked_fill(targets == pad_id, 0.0)
    return loss.sum() / (targets != pad_id).sum()


# %% label_smoothing_loss: dist in exp
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    vocab = logits.size(1)
    log_probs = logits.log_softmax(-1)
    dist = torch.full_like(log_probs, smoothing / vocab)
    dist.scatter_add_(1, targets[:, None], torch.full_like(log_probs, 1 - smoothing))
    loss = -(dist * log_probs.exp()).sum(-1)
    loss = loss.masked_fill(targets == pad_id, 0.0)
    return loss.sum() / (targets != pad_id).sum()


# %% warmup_rate: s**-1
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** -0.5 * min(step ** -1, step * warmup_steps ** -1.5)


# %% warmup_rate: d inside min first
def warmup_rate(step, d_model, warmup_steps):
    return min(d_model ** -0.5 * step ** -0.5, step * warmup_steps ** -1.5)


# %% warmup_rate: (s/w)**1.5
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** -0.5 * min(step ** -0.5, (step / warmup_steps) ** 1.5)


# %% warmup_rate: -3/2 precedence
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -3 / 2)


# %% warmup_rate: if >
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** -0.5 * (step * warmup_steps ** -1.5 if step > warmup_steps else step ** -0.5)


# %% warmup_rate: int result
def warmup_rate(step, d_model, warmup_steps):
    return int(d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5))


# %% warmup_rate: two: s/w and no d
def warmup_rate(step, d_model, warmup_steps):
    return min(step ** -0.5, step / warmup_steps)


# %% token_batches: sum lengths no newcomer
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and sum(lengths[j] for j in batch) > max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: sorted lengths, enumerate
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    lengths = sorted(lengths)
    order = range(len(lengths))
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: returns None on too long
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        return None
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: error only if sum > max
def token_batches(lengths, max_tokens):
    if sum(lengths) > max_tokens:
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: extend
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.extend(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: missing guard, empty first by init
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = [[]]
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: chunks //shortest
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    k = max_tokens // min(lengths)
    return [list(order[j:j + k]) for j in range(0, len(order), k)]
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: set batches
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(set(batch))
            batch = []
            longest = lengths[i]
        batch.append(i)
    if batch:
        batches.append(set(batch))
    return batches


# %% token_batches: two: >=, last lost
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    batch = []
    longest = 0
    for i in order:
        longest = max(longest, lengths[i])
        if batch and (len(batch) + 1) * longest >= max_tokens:
            batches.append(batch)
            batch = []
            longest = lengths[i]
        batch.append(i)
    return batches
