# %% teacher_forcing_pair: The two are exchanged: the decoder is given the future and has to say the past.
def teacher_forcing_pair(tokens):
    inputs = tokens[:, 1:]
    targets = tokens[:, :-1]
    return inputs, targets


# %% teacher_forcing_pair: The last token is cut from both, so the target is the input itself.
def teacher_forcing_pair(tokens):
    length = tokens.size(1)
    inputs = tokens.narrow(1, 0, length - 1)
    targets = inputs.clone()
    return inputs, targets


# %% teacher_forcing_pair: The slices cut sentences off the batch instead of positions off the sentences.
def teacher_forcing_pair(tokens):
    return tokens[:-1], tokens[1:]


# %% teacher_forcing_pair: The inputs keep their last token and are one longer than the targets.
def teacher_forcing_pair(tokens):
    decoder_in = tokens
    labels = tokens[:, 1:]
    return decoder_in, labels


# %% teacher_forcing_pair: Rolled the wrong way: the target is the token before the input.
import torch


def teacher_forcing_pair(tokens):
    shifted = torch.roll(tokens, shifts=1, dims=1)
    return tokens[:, :-1], shifted[:, :-1]


# %% teacher_forcing_pair: The tensors to be filled are made without a dtype, so the ids come out as float.
import torch


def teacher_forcing_pair(tokens):
    batch, length = tokens.shape
    inputs = torch.zeros(batch, length - 1)
    targets = torch.zeros(batch, length - 1)
    for b in range(batch):
        for t in range(length - 1):
            inputs[b, t] = tokens[b, t]
            targets[b, t] = tokens[b, t + 1]
    return inputs, targets


# %% teacher_forcing_pair: The targets are flattened at once, as a loss would want them: (B * (L - 1),).
def teacher_forcing_pair(tokens):
    x, y = tokens[:, :-1], tokens[:, 1:]
    return x, y.reshape(-1)


# %% label_smoothing_loss: The smoothing mass is shared by the V - 1 wrong classes, and the right one gets none of it.
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    num_classes = logits.size(-1)
    log_probs = torch.log_softmax(logits, dim=-1)
    true_dist = torch.full_like(log_probs, smoothing / (num_classes - 1))
    true_dist.scatter_(1, targets.unsqueeze(1), 1.0 - smoothing)
    losses = -(true_dist * log_probs).sum(dim=-1)
    return losses[targets != pad_id].mean()


# %% label_smoothing_loss: Padded positions are set to zero but still counted in the mean.
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    lp = logits.log_softmax(-1)
    nll = -lp.gather(1, targets[:, None])[:, 0]
    uniform = -lp.mean(dim=1)
    loss = (1 - smoothing) * nll + smoothing * uniform
    loss = torch.where(targets == pad_id, torch.zeros_like(loss), loss)
    return loss.mean()


# %% label_smoothing_loss: pad_id is never used, so padding is learned like any other token.
def label_smoothing_loss(logits, targets, smoothing, pad_id):
    n, v = logits.shape
    logp = logits - logits.logsumexp(dim=1, keepdim=True)
    total = 0
    for i in range(n):
        nll = -logp[i, targets[i]]
        smooth = -logp[i].sum() / v
        total = total + (1 - smoothing) * nll + smoothing * smooth
    return total / n


# %% label_smoothing_loss: The logarithm is taken of a finished softmax, which is 0 where a score is far below.
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    logits, targets = logits[keep], targets[keep]
    log_p = torch.log(F.softmax(logits, dim=1))
    q = F.one_hot(targets, logits.shape[1]) * (1 - smoothing) + smoothing / logits.shape[1]
    return -(q * log_p).sum(1).mean()


# %% label_smoothing_loss: The two weights are exchanged: smoothing stands at the target, 1 - smoothing at the even share.
def label_smoothing_loss(logits, targets, smoothing, pad_id):
    real = targets.ne(pad_id)
    log_probs = logits[real].log_softmax(dim=-1)
    picked = log_probs.gather(-1, targets[real].unsqueeze(-1)).squeeze(-1)
    even = log_probs.mean(dim=-1)
    return -(smoothing * picked + (1.0 - smoothing) * even).mean()


# %% label_smoothing_loss: The Kullback-Leibler divergence is returned, which lacks the entropy of the smoothed targets.
import torch
import torch.nn as nn


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    mask = targets != pad_id
    logits = logits[mask]
    targets = targets[mask]
    V = logits.size(1)
    smoothed = torch.full_like(logits, smoothing / V).detach()
    smoothed[torch.arange(len(targets)), targets] += 1 - smoothing
    criterion = nn.KLDivLoss(reduction="batchmean")
    return criterion(torch.log_softmax(logits, dim=-1), smoothed)


# %% label_smoothing_loss: The smoothing term is a sum over the classes; the division by V is missing.
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    not_pad = (targets != pad_id).to(logits.dtype)
    lp = torch.log_softmax(logits, -1)
    hard = -lp[torch.arange(targets.shape[0], device=targets.device), targets]
    soft = -lp.sum(dim=-1)
    loss = (1 - smoothing) * hard + smoothing * soft
    return (loss * not_pad).sum() / not_pad.sum()


# %% label_smoothing_loss: The losses of the real tokens are added up and not averaged.
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    rows = [i for i in range(len(targets)) if targets[i].item() != pad_id]
    log_probs = torch.log_softmax(logits[rows], dim=1)
    n_classes = logits.shape[1]
    target_dist = torch.zeros_like(log_probs)
    for r, i in enumerate(rows):
        target_dist[r, targets[i]] = 1.0
    target_dist = target_dist * (1 - smoothing) + smoothing / n_classes
    return -torch.sum(target_dist * log_probs)


# %% warmup_rate: The larger of the two terms is taken instead of the smaller.
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** (-0.5) * max(step ** (-0.5), step * warmup_steps ** (-1.5))


# %% warmup_rate: The factor of the model's width is left out.
def warmup_rate(step, d_model, warmup_steps):
    rising = step / warmup_steps**1.5
    falling = 1 / step**0.5
    return min(rising, falling)


# %% warmup_rate: It multiplies by the root of d_model where the paper divides by it.
import math


def warmup_rate(step, d_model, warmup_steps):
    a = 1 / math.sqrt(step)
    b = step / (warmup_steps * math.sqrt(warmup_steps))
    return math.sqrt(d_model) * (a if a < b else b)


# %% warmup_rate: The exponent of warmup_steps is -0.5 instead of -1.5.
def warmup_rate(step, d_model, warmup_steps):
    arg1 = step**-0.5
    arg2 = step * (warmup_steps**-0.5)
    return (d_model**-0.5) * min(arg1, arg2)


# %% warmup_rate: After the warm-up the rate stays at its peak; there is no decay.
def warmup_rate(step, d_model, warmup_steps):
    peak = (d_model * warmup_steps) ** -0.5
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak


# %% warmup_rate: The decay counts its steps from the end of the warm-up.
def warmup_rate(step, d_model, warmup_steps):
    scale = d_model**-0.5
    if step <= warmup_steps:
        return scale * step * warmup_steps**-1.5
    return scale * (step - warmup_steps) ** -0.5


# %% warmup_rate: It is scaled so that the peak is 1, as a factor for another learning rate would be.
def warmup_rate(step, d_model, warmup_steps):
    progress = step / warmup_steps
    return min(progress, progress**-0.5)


# %% token_batches: The real tokens are added up; the padding that fills the rectangle is not counted.
def token_batches(lengths, max_tokens):
    if max(lengths, default=0) > max_tokens:
        raise ValueError(f"expected lengths up to {max_tokens}, got {max(lengths)}; drop or cut the long ones")
    batches, batch, total = [], [], 0
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and total + lengths[i] > max_tokens:
            batches.append(batch)
            batch, total = [], 0
        batch.append(i)
        total += lengths[i]
    if batch:
        batches.append(batch)
    return batches


# %% token_batches: The sentences are taken in the order in which they come, without sorting them.
def token_batches(lengths, max_tokens):
    batches = []
    current = []
    longest = 0
    for index, length in enumerate(lengths):
        if length > max_tokens:
            raise ValueError(f"sentence {index} has {length} tokens, more than {max_tokens}")
        new_longest = max(longest, length)
        if (len(current) + 1) * new_longest > max_tokens:
            batches.append(current)
            current = []
            new_longest = length
        current.append(index)
        longest = new_longest
    if current:
        batches.append(current)
    return batches


# %% token_batches: The last batch, which is never full, is not handed out.
def token_batches(lengths, max_tokens):
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    if order and lengths[order[-1]] > max_tokens:
        raise ValueError("a sentence is longer than max_tokens")
    batches = []
    batch = []
    for i in order:
        if batch and (len(batch) + 1) * lengths[i] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches


# %% token_batches: The batches hold the lengths and not the indices of the sentences.
def token_batches(lengths, max_tokens):
    for n in lengths:
        if n > max_tokens:
            raise ValueError(f"length {n} is over the limit {max_tokens}")
    result = []
    for n in sorted(lengths):
        if result and (len(result[-1]) + 1) * n <= max_tokens:
            result[-1].append(n)
        else:
            result.append([n])
    return result


# %% token_batches: A sentence that is too long gets a batch of its own instead of an error.
def token_batches(lengths, max_tokens):
    pairs = sorted((length, i) for i, length in enumerate(lengths))
    out = []
    bucket = []
    for length, i in pairs:
        if bucket and length * (len(bucket) + 1) > max_tokens:
            out.append(bucket)
            bucket = []
        bucket.append(i)
    if bucket:
        out.append(bucket)
    return out


# %% token_batches: A batch that meets the limit exactly is refused: < where the contract says at most.
def token_batches(lengths, max_tokens):
    if any(length > max_tokens for length in lengths):
        raise ValueError("some length is over max_tokens")
    todo = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = []
    while todo:
        size = 1
        while size < len(todo) and (size + 1) * lengths[todo[size]] < max_tokens:
            size += 1
        batches.append(todo[:size])
        todo = todo[size:]
    return batches


# %% token_batches: The indices are those of the sorted list, not of the list that was handed in.
def token_batches(lengths, max_tokens):
    lengths = sorted(lengths)
    if lengths and lengths[-1] > max_tokens:
        raise ValueError(f"longest sentence: {lengths[-1]}, allowed: {max_tokens}")
    batches, start = [], 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or (end - start + 1) * lengths[end] > max_tokens:
            batches.append(list(range(start, end)))
            start = end
    return batches


# %% token_batches: The limit is tested before the sentence is added, so a batch may be one sentence too large.
def token_batches(lengths, max_tokens):
    if max(lengths, default=0) > max_tokens:
        raise ValueError("a length is over max_tokens")
    order = sorted(range(len(lengths)), key=lambda k: lengths[k])
    batches = []
    batch = []
    for k in order:
        if len(batch) * lengths[k] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(k)
    if batch:
        batches.append(batch)
    return batches
