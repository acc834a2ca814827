"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import torch
from contract_clauses import breaks

# teacher_forcing_pair


@breaks("teacher_forcing_pair", "inputs and targets are (B, L − 1)")
def _(tokens):
    return tokens, torch.cat((tokens[:, 1:], tokens[:, -1:]), 1)


@breaks("teacher_forcing_pair", "the target of a position is the next token")
def _(tokens):
    return tokens[:, :-1], tokens[:, :-1].clone()


@breaks("teacher_forcing_pair", "the inputs keep their first token, whatever its id")
def _(tokens):
    inputs = tokens[:, :-1].clone()
    inputs[:, 0] = 1
    return inputs, tokens[:, 1:]


@breaks("teacher_forcing_pair", "L = 2 gives one position")
def _(tokens):
    return tokens[:, :-1].squeeze(1), tokens[:, 1:].squeeze(1)


@breaks("teacher_forcing_pair", "a batch of one sentence keeps its axis")
def _(tokens):
    return tokens[:, :-1].squeeze(0), tokens[:, 1:].squeeze(0)


@breaks("teacher_forcing_pair", "(inputs, targets), in this order")
def _(tokens):
    return tokens[:, 1:], tokens[:, :-1]


@breaks("teacher_forcing_pair", "padding stays where it is")
def _(tokens):
    return tokens[:, :-1], tokens[:, 1:].masked_fill(tokens[:, 1:] == 0, -100)


@breaks("teacher_forcing_pair", "end tokens are inputs like all others")
def _(tokens):
    return tokens[:, :-1].masked_fill(tokens[:, :-1] == 2, 0), tokens[:, 1:]


@breaks("teacher_forcing_pair", "a solution keeps the dtype")
def _(tokens):
    return tokens[:, :-1].int(), tokens[:, 1:].int()


@breaks("teacher_forcing_pair", "a solution leaves its arguments unchanged")
def _(tokens):
    inputs, targets = tokens[:, :-1].clone(), tokens[:, 1:].clone()
    tokens[:, -1] = 0
    return inputs, targets


# label_smoothing_loss


def _loss(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    each = -(1 - smoothing) * log_probs.gather(1, targets[:, None])[:, 0] - smoothing * log_probs.mean(-1)
    return each[targets != pad_id].mean()


@breaks("label_smoothing_loss", "a scalar")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits, targets, smoothing, pad_id)[None]


@breaks("label_smoothing_loss", "mean over the targets that are not pad_id, not a sum")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits, targets, smoothing, pad_id) * (targets != pad_id).sum()


@breaks("label_smoothing_loss", "padded targets are not in the number that divides")
def _(logits, targets, smoothing, pad_id):
    real = targets != pad_id
    return _loss(logits, targets, smoothing, pad_id) * real.sum() / len(targets)


@breaks("label_smoothing_loss", "padded targets are not in the spread term")
def _(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    of_target = log_probs.gather(1, targets[:, None])[:, 0][targets != pad_id]
    return -(1 - smoothing) * of_target.mean() - smoothing * log_probs.mean()


@breaks("label_smoothing_loss", "pad_id is the id of padding, 0 or not")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits, targets, smoothing, 0)


@breaks("label_smoothing_loss", "pad_id is the id of padding, the last class too")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits, targets, smoothing, pad_id if pad_id < logits.shape[1] - 1 else -100)


@breaks("label_smoothing_loss", "one target may be left")
def _(logits, targets, smoothing, pad_id):
    real = targets != pad_id
    return _loss(logits, targets, smoothing, pad_id) if real.sum() > 1 else logits.sum() * 0


@breaks("label_smoothing_loss", "the smoothing mass is spread over all V classes, padding too")
def _(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    column = torch.arange(logits.shape[1]) != pad_id
    each = -(1 - smoothing) * log_probs.gather(1, targets[:, None])[:, 0] - smoothing * log_probs[:, column].mean(-1)
    return each[targets != pad_id].mean()


@breaks("label_smoothing_loss", "the smoothing mass is spread over all V classes, the target too")
def _(logits, targets, smoothing, pad_id):
    log_probs, vocab = logits.log_softmax(-1), logits.shape[1]
    of_target = log_probs.gather(1, targets[:, None])[:, 0]
    others = (log_probs.sum(-1) - of_target) / (vocab - 1)
    return -((1 - smoothing) * of_target + smoothing * others)[targets != pad_id].mean()


@breaks("label_smoothing_loss", "smoothing = 0 is the cross-entropy")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits, targets, max(smoothing, 0.01), pad_id)


@breaks("label_smoothing_loss", "smoothing near 1 is allowed")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits, targets, min(smoothing, 0.5), pad_id)


@breaks("label_smoothing_loss", "finite for logits up to ±1e4")
def _(logits, targets, smoothing, pad_id):
    log_probs = logits.softmax(-1).log()
    each = -(1 - smoothing) * log_probs.gather(1, targets[:, None])[:, 0] - smoothing * log_probs.mean(-1)
    return each[targets != pad_id].mean()


@breaks("label_smoothing_loss", "right for logits up to ±1e4, not cut off")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits.clamp(-5000, 5000), targets, smoothing, pad_id)


@breaks("label_smoothing_loss", "float64 is used to its accuracy")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits.float(), targets, smoothing, pad_id).to(logits.dtype)


@breaks("label_smoothing_loss", "a solution keeps the dtype")
def _(logits, targets, smoothing, pad_id):
    return _loss(logits.double(), targets, smoothing, pad_id)


@breaks("label_smoothing_loss", "gradients flow, through the spread term too")
def _(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    spread = log_probs.detach().mean(-1)
    each = -(1 - smoothing) * log_probs.gather(1, targets[:, None])[:, 0] - smoothing * spread
    return each[targets != pad_id].mean()


@breaks("label_smoothing_loss", "gradients at padding are finite, and zero")
def _(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    padding = log_probs[targets == pad_id].sum()
    return _loss(logits, targets, smoothing, pad_id) + padding - padding.detach()


@breaks("label_smoothing_loss", "a solution leaves its arguments unchanged: logits")
def _(logits, targets, smoothing, pad_id):
    result = _loss(logits.clone(), targets, smoothing, pad_id)
    with torch.no_grad():
        logits[targets == pad_id] = 0.0
    return result


@breaks("label_smoothing_loss", "a solution leaves its arguments unchanged: targets")
def _(logits, targets, smoothing, pad_id):
    result = _loss(logits, targets.clone(), smoothing, pad_id)
    targets[targets == pad_id] = -100
    return result


# warmup_rate


def _rate(step, d_model, warmup_steps):
    return min(step**-0.5, step * warmup_steps**-1.5) * d_model**-0.5


@breaks("warmup_rate", "the rate rises in a straight line during the warm-up")
def _(step, d_model, warmup_steps):
    return _rate(step, d_model, warmup_steps) * (step / warmup_steps if step < warmup_steps else 1)


@breaks("warmup_rate", "the rate falls with the root of the step")
def _(step, d_model, warmup_steps):
    return _rate(step, d_model, warmup_steps) * ((warmup_steps / step) ** 0.5 if step > warmup_steps else 1)


@breaks("warmup_rate", "at step = warmup_steps the two pieces meet")
def _(step, d_model, warmup_steps):
    return _rate(step, d_model, warmup_steps) * (1.1 if step == warmup_steps else 1)


@breaks("warmup_rate", "one step before the peak it still rises")
def _(step, d_model, warmup_steps):
    return _rate(warmup_steps if step == warmup_steps - 1 else step, d_model, warmup_steps)


@breaks("warmup_rate", "one step after the peak it falls")
def _(step, d_model, warmup_steps):
    return _rate(warmup_steps if step == warmup_steps + 1 else step, d_model, warmup_steps)


@breaks("warmup_rate", "step ≥ 1: the first update has a rate above zero")
def _(step, d_model, warmup_steps):
    return 0.0 if step == 1 else _rate(step, d_model, warmup_steps)


@breaks("warmup_rate", "the paper's schedule has the factor d_model^(−1/2)")
def _(step, d_model, warmup_steps):
    return _rate(step, 512, warmup_steps)


@breaks("warmup_rate", "a warm-up of one step is allowed")
def _(step, d_model, warmup_steps):
    return _rate(step, d_model, max(2, warmup_steps))


@breaks("warmup_rate", "small rates are as exact as large ones")
def _(step, d_model, warmup_steps):
    return round(_rate(step, d_model, warmup_steps), 7)


@breaks("warmup_rate", "a float")
def _(step, d_model, warmup_steps):
    return torch.tensor(_rate(step, d_model, warmup_steps))


@breaks("warmup_rate", "any warmup_steps, not the paper's 4,000 alone")
def _(step, d_model, warmup_steps):
    return _rate(step, d_model, 4000)


# token_batches


def _batches(lengths, max_tokens, order=None):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    batches = [[]]
    for index in order or sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batches[-1] and (len(batches[-1]) + 1) * max(lengths[i] for i in (*batches[-1], index)) > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@breaks("token_batches", "a list of lists of indices")
def _(lengths, max_tokens):
    return [torch.tensor(batch) for batch in _batches(lengths, max_tokens)]


@breaks("token_batches", "indices into the list as it came")
def _(lengths, max_tokens):
    return _batches(sorted(lengths), max_tokens)


@breaks("token_batches", "indices are ints")
def _(lengths, max_tokens):
    return [[float(i) for i in batch] for batch in _batches(lengths, max_tokens)]


@breaks("token_batches", "each index once, none lost")
def _(lengths, max_tokens):
    batches = _batches(lengths, max_tokens)
    return batches[:-1] if len(batches) > 1 else batches


@breaks("token_batches", "each index once, none twice")
def _(lengths, max_tokens):
    batches = _batches(lengths, max_tokens)
    return [*batches, batches[0][:1]]


@breaks("token_batches", "each index once, where lengths are equal")
def _(lengths, max_tokens):
    return [[lengths.index(lengths[i]) for i in batch] for batch in _batches(lengths, max_tokens)]


@breaks("token_batches", "batch size × longest length ≤ max_tokens, padding counted")
def _(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("too long")
    batches = [[]]
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if sum(lengths[i] for i in batches[-1]) + lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


@breaks("token_batches", "max_tokens itself is allowed")
def _(lengths, max_tokens):
    return _batches(lengths, max_tokens - 1) if max(lengths) < max_tokens else _batches(lengths, max_tokens)


@breaks("token_batches", "no more batches than the greedy way")
def _(lengths, max_tokens):
    batches = _batches(lengths, max_tokens)
    largest = max(batches, key=len)
    rest = [batch for batch in batches if batch is not largest]
    return [*rest, largest[:1], largest[1:]] if len(largest) > 1 else batches


@breaks("token_batches", "no more padding than the greedy way")
def _(lengths, max_tokens):
    falling = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return _batches(lengths, max_tokens, falling)


@breaks("token_batches", "lengths that are not sorted")
def _(lengths, max_tokens):
    return _batches(lengths, max_tokens, list(range(len(lengths))))


@breaks("token_batches", "no empty batch, which is one batch more")
def _(lengths, max_tokens):
    return [*_batches(lengths, max_tokens), []]


@breaks("token_batches", "one sentence")
def _(lengths, max_tokens):
    return _batches(lengths, max_tokens) if len(lengths) > 1 else []


@breaks("token_batches", "equal lengths share batches")
def _(lengths, max_tokens):
    batches = _batches(lengths, max_tokens)
    return batches if len(set(lengths)) > 1 else [[i] for i in range(len(lengths))]


@breaks("token_batches", "a length of max_tokens is not an error")
def _(lengths, max_tokens):
    if max(lengths) >= max_tokens:
        raise ValueError("too long")
    return _batches(lengths, max_tokens)


@breaks("token_batches", "ValueError for a length over max_tokens")
def _(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise RuntimeError("too long")
    return _batches(lengths, max_tokens)


@breaks("token_batches", "ValueError for a length over max_tokens, also the first one")
def _(lengths, max_tokens):
    return [[0]] if lengths[0] > max_tokens else _batches(lengths, max_tokens)


@breaks("token_batches", "a solution leaves its arguments unchanged: the list is not sorted in place")
def _(lengths, max_tokens):
    batches = _batches(lengths, max_tokens)
    lengths.sort()
    return batches


@breaks("label_smoothing_loss", "gradients are finite for logits up to ±1e4")
def _(logits, targets, smoothing, pad_id):
    probs = logits.softmax(-1)
    largest = logits.max(-1, keepdim=True).values
    far = logits - largest - (logits - largest).exp().sum(-1, keepdim=True).log().detach()
    log_probs = torch.where(probs > 0, probs.log(), far)
    each = -(1 - smoothing) * log_probs.gather(1, targets[:, None])[:, 0] - smoothing * log_probs.mean(-1)
    return each[targets != pad_id].mean()
