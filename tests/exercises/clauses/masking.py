"""Solutions that break one clause of the contract each, for the exercises of this chapter."""

import torch
from contract_clauses import breaks

UNCHANGED = "a solution leaves its arguments unchanged"
LAYOUT = "a tensor is handled correctly in any memory layout"
BOOL = "a mask is a bool tensor"

# padding_mask

PADDING = "padding_mask"


def padding(tokens, pad_id):
    return (tokens != pad_id)[:, None, None, :]


def of_padding(clause, change):
    """Something done around a right call: `change(mask, tokens, pad_id)`."""
    breaks(PADDING, clause)(lambda tokens, pad_id: change(padding(tokens, pad_id), tokens, pad_id))


of_padding("True = may attend", lambda mask, tokens, pad_id: ~mask)
of_padding("bool (B, 1, 1, L): not (B, L)", lambda mask, tokens, pad_id: mask[:, 0, 0])
of_padding("bool (B, 1, 1, L): not (B, 1, L)", lambda mask, tokens, pad_id: mask[:, 0])
of_padding("bool (B, 1, 1, L): not (B, 1, L, L)", lambda mask, tokens, pad_id: mask.expand(-1, 1, mask.shape[-1], -1))
of_padding("bool (B, 1, 1, L): a batch of one keeps its axis", lambda mask, tokens, pad_id: mask.squeeze(0))
of_padding("bool (B, 1, 1, L): one token keeps its axis", lambda mask, tokens, pad_id: mask.squeeze(-1))
of_padding(BOOL + ", not int", lambda mask, tokens, pad_id: mask.long())
of_padding(BOOL + ", not uint8", lambda mask, tokens, pad_id: mask.to(torch.uint8))
of_padding(BOOL + ", not float", lambda mask, tokens, pad_id: mask.float())
of_padding("pad_id: other than 0", lambda mask, tokens, pad_id: padding(tokens, 0))
of_padding("pad_id: below ids of tokens", lambda mask, tokens, pad_id: padding(tokens.clamp(max=pad_id), pad_id))
of_padding("pad_id: above ids of tokens", lambda mask, tokens, pad_id: (tokens > pad_id)[:, None, None, :])
of_padding("pad_id: negative", lambda mask, tokens, pad_id: padding(tokens, abs(pad_id)))
of_padding("tokens: padding at the start", lambda mask, tokens, pad_id: mask | (mask.int().cumsum(-1) == 0))
of_padding(
    "tokens: padding between tokens",
    lambda mask, tokens, pad_id: (
        mask.int().flip(-1).cummax(-1).values.flip(-1).bool() & (mask.int().cummax(-1).values.bool())
    ),
)
of_padding("tokens: a sequence of padding alone", lambda mask, tokens, pad_id: mask | ~mask.any(-1, keepdim=True))
of_padding("tokens: each sequence has its own padding", lambda mask, tokens, pad_id: mask[:1].expand_as(mask).clone())


@breaks(PADDING, "int tokens: int32, too")
def padding_of_int64(tokens, pad_id):
    if tokens.dtype != torch.int64:
        raise TypeError("int64 tokens only")
    return padding(tokens, pad_id)


@breaks(PADDING, LAYOUT)
def padding_of_views(tokens, pad_id):
    return padding(tokens.view(-1).view(tokens.shape), pad_id)


@breaks(PADDING, UNCHANGED)
def padding_in_place(tokens, pad_id):
    mask = padding(tokens, pad_id)
    tokens[tokens == pad_id] = -100
    return mask


# causal_mask

CAUSAL = "causal_mask"


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def of_causal(clause, change):
    breaks(CAUSAL, clause)(lambda length: change(causal(length), length))


of_causal("True = may attend", lambda mask, length: ~mask)
of_causal("rows are queries, columns are keys", lambda mask, length: mask.T)
of_causal("a query may attend to itself", lambda mask, length: mask.tril(-1))
of_causal("no query may attend to what follows", lambda mask, length: torch.ones_like(mask).tril(1))
of_causal("a query may attend to all before it", lambda mask, length: mask & ~mask.tril(-2))
of_causal(
    "the first key, too", lambda mask, length: mask.tril() & (torch.arange(length) > 0) | torch.eye(length).bool()
)
of_causal(BOOL + ", not float", lambda mask, length: mask.float())
of_causal(BOOL + ", not int", lambda mask, length: mask.long())
of_causal(BOOL + ", not uint8", lambda mask, length: mask.byte())
of_causal("(L, L): no further axes", lambda mask, length: mask[None])
of_causal("(L, L): a tensor", lambda mask, length: mask.tolist())
of_causal("length: one token", lambda mask, length: mask if length > 1 else mask.squeeze())
of_causal("length: long sequences", lambda mask, length: mask if length <= 16 else mask.triu(-16))
of_causal("length: any, also odd ones", lambda mask, length: mask if length % 2 == 0 else mask.tril(-1))


# decoder_mask

DECODER = "decoder_mask"


def decoder(tokens, pad_id):
    return padding(tokens, pad_id) & causal(tokens.shape[1])


def of_decoder(clause, change):
    breaks(DECODER, clause)(lambda tokens, pad_id: change(decoder(tokens, pad_id), tokens, pad_id))


of_decoder("True = may attend", lambda mask, tokens, pad_id: ~mask)
of_decoder("causal", lambda mask, tokens, pad_id: padding(tokens, pad_id).expand(mask.shape).clone())
of_decoder("causal: rows are queries", lambda mask, tokens, pad_id: padding(tokens, pad_id) & causal(mask.shape[-1]).T)
of_decoder("causal: a query sees itself", lambda mask, tokens, pad_id: mask.tril(-1))
of_decoder("no padded key", lambda mask, tokens, pad_id: causal(mask.shape[-1]).expand(mask.shape).clone())
of_decoder(
    "no padded key, not for its own query either",
    lambda mask, tokens, pad_id: mask | torch.eye(mask.shape[-1], dtype=torch.bool),
)
of_decoder(
    "rows of padded queries are left as they are",
    lambda mask, tokens, pad_id: mask & (tokens != pad_id)[:, None, :, None],
)
of_decoder(
    "rows without any key stay so",
    lambda mask, tokens, pad_id: mask | (~mask.any(-1, keepdim=True) & torch.eye(mask.shape[-1], dtype=torch.bool)),
)
of_decoder("bool (B, 1, L, L): not (B, L, L)", lambda mask, tokens, pad_id: mask[:, 0])
of_decoder("bool (B, 1, L, L): a batch of one keeps its axis", lambda mask, tokens, pad_id: mask.squeeze())
of_decoder(
    "bool (B, 1, L, L): one row for each sequence", lambda mask, tokens, pad_id: mask[:1].expand(mask.shape).clone()
)
of_decoder(
    "bool (B, 1, L, L), without any padding, too",
    lambda mask, tokens, pad_id: mask[:1] if (tokens != pad_id).all() else mask,
)
of_decoder(BOOL + ", not int", lambda mask, tokens, pad_id: mask.long())
of_decoder(BOOL + ", not float", lambda mask, tokens, pad_id: mask.float())
of_decoder("pad_id: other than 0", lambda mask, tokens, pad_id: decoder(tokens, 0))
of_decoder("pad_id: negative", lambda mask, tokens, pad_id: decoder(tokens, abs(pad_id)))
of_decoder("pad_id: between ids of tokens", lambda mask, tokens, pad_id: decoder(tokens.clamp(max=pad_id), pad_id))


@breaks(DECODER, LAYOUT)
def decoder_of_views(tokens, pad_id):
    return decoder(tokens.view(-1).view(tokens.shape), pad_id)


@breaks(DECODER, UNCHANGED)
def decoder_in_place(tokens, pad_id):
    mask = decoder(tokens, pad_id)
    tokens[tokens == pad_id] = -100
    return mask


# masked_softmax

SOFTMAX = "masked_softmax"
BROADCASTS = "a mask broadcasts against the scores (..., L_q, L_k)"
EMPTY = "a fully masked row is all zeros"
GRADIENTS = "gradients are finite everywhere"


def masked(scores, mask):
    has_key = mask.any(-1, keepdim=True)
    return scores.masked_fill(~(mask | ~has_key), float("-inf")).softmax(-1).masked_fill(~has_key, 0.0)


def of_softmax(clause, change):
    breaks(SOFTMAX, clause)(change)


of_softmax("True = may attend", lambda scores, mask: masked(scores, ~mask))
of_softmax("weights exactly 0 where masked", lambda scores, mask: masked(scores, mask) + (~mask) * 1e-4)
of_softmax(
    "weights exactly 0 where masked, even next to scores of -1e4",
    lambda scores, mask: scores.masked_fill(~mask, -1e4).softmax(-1) * mask.any(-1, keepdim=True),
)
of_softmax(
    "weights exactly 0 where masked, not nearly",
    lambda scores, mask: masked(scores, mask).clamp(min=1e-12) * mask.any(-1, keepdim=True),
)
of_softmax("rows sum to 1", lambda scores, mask: scores.softmax(-1) * mask)
of_softmax(
    "rows sum to 1, where masked scores are large, too",
    lambda scores, mask: (lambda w: w * mask / (w * mask).sum(-1, keepdim=True).clamp(min=1e-30))(scores.softmax(-1)),
)
of_softmax(EMPTY + ", not nan", lambda scores, mask: scores.masked_fill(~mask, float("-inf")).softmax(-1))
of_softmax(
    EMPTY + ", not uniform", lambda scores, mask: scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
)
of_softmax(
    EMPTY + ", in a mask of one row, too",
    lambda scores, mask: (
        masked(scores, mask)
        if mask.dim() < 2 or mask.shape[-2] > 1
        else masked(scores, mask | ~mask.any(-1, keepdim=True))
    ),
)
of_softmax(
    EMPTY + ", in a mask of one column, too",
    lambda scores, mask: masked(scores, mask) if mask.shape[-1] > 1 else scores.softmax(-1),
)
of_softmax(
    EMPTY + ", where all rows are", lambda scores, mask: masked(scores, mask) if mask.any() else scores.softmax(-1)
)
of_softmax(
    EMPTY + ", and no other row",
    lambda scores, mask: masked(scores, mask) * mask.any(-1, keepdim=True).all(-2, keepdim=True),
)


@breaks(SOFTMAX, GRADIENTS)
def nan_in_the_gradient(scores, mask):
    return (scores + torch.zeros_like(scores).masked_fill(~mask, float("-inf"))).softmax(-1).nan_to_num(0.0)


@breaks(SOFTMAX, GRADIENTS + ", and right")
def no_gradient_beside_empty_rows(scores, mask):
    weights = masked(scores, mask)
    return weights if bool(mask.any(-1).all()) else weights.detach()


@breaks(SOFTMAX, GRADIENTS + ", and right")
def weights_detached(scores, mask):
    return masked(scores.detach(), mask)


@breaks(SOFTMAX, BROADCASTS + ": (L_k,)")
def no_vector(scores, mask):
    if mask.dim() == 1:
        mask = mask[:, None]
    return masked(scores, mask)


@breaks(SOFTMAX, BROADCASTS + ": (L_q, L_k)")
def rows_as_batch(scores, mask):
    if scores.dim() == 3 and mask.dim() == 2:
        mask = mask[:, None]
    return masked(scores, mask)


@breaks(SOFTMAX, BROADCASTS + ": three axes from the right, (H, L_q, L_k)")
def one_per_sequence(scores, mask):
    if scores.dim() == 4 and mask.dim() == 3:
        mask = mask[:, None]
    return masked(scores, mask)


@breaks(SOFTMAX, BROADCASTS + ": two axes, (L_q, L_k), where B = L_q")
def one_row_per_sequence(scores, mask):
    if scores.dim() >= 3 and mask.dim() == 2 and len(mask) == len(scores):
        mask = mask.reshape(len(mask), *[1] * (scores.dim() - 2), mask.shape[-1])
    return masked(scores, mask)


@breaks(SOFTMAX, BROADCASTS + ": (B, 1, L_k)")
def first_sequence_for_all(scores, mask):
    return masked(scores, mask[:1] if mask.dim() == 3 else mask)


@breaks(SOFTMAX, BROADCASTS + ": (B, 1, L_q, L_k)")
def first_of_four_for_all(scores, mask):
    return masked(scores, mask[:1] if mask.dim() == 4 and mask.shape[2] > 1 else mask)


@breaks(SOFTMAX, BROADCASTS + ": (1, H, L_q, L_k)")
def first_head_for_all(scores, mask):
    return masked(scores, mask[:, :1] if mask.dim() == 4 else mask)


@breaks(SOFTMAX, BROADCASTS + ": the weights have the shape of the scores")
def shape_of_the_mask(scores, mask):
    weights = masked(scores, mask)
    return weights if mask.dim() == scores.dim() else weights[:1].expand_as(weights) * 1.0


@breaks(SOFTMAX, "leading dimensions may be any number of batch dimensions, including none")
def only_batches(scores, mask):
    if scores.dim() == 2:
        raise IndexError("there is no batch")
    return masked(scores, mask)


@breaks(SOFTMAX, "leading dimensions may be any number of batch dimensions, including none")
def two_batches_at_most(scores, mask):
    if scores.dim() > 4:
        raise IndexError("two batch dimensions at most")
    return masked(scores, mask)


@breaks(SOFTMAX, "axes of length one stay")
def squeezed(scores, mask):
    return masked(scores, mask).squeeze()


for _dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):

    def _refused(scores, mask, dtype=_dtype):
        if scores.dtype == dtype:
            raise RuntimeError(f"not implemented for {dtype}")
        return masked(scores, mask)

    def _other(scores, mask, dtype=_dtype):
        weights = masked(scores, mask)
        return (
            weights.to(torch.float64 if dtype == torch.float32 else torch.float32) if scores.dtype == dtype else weights
        )

    _name = str(_dtype).removeprefix("torch.")
    breaks(SOFTMAX, f"scores in {_name}")(_refused)
    breaks(SOFTMAX, f"keeps the dtype: {_name}")(_other)


@breaks(SOFTMAX, "right to 1e-10 in float64")
def float32_inside(scores, mask):
    return masked(scores.float(), mask).to(scores.dtype)


@breaks(SOFTMAX, "finite for scores up to ±1e4")
def overflows(scores, mask):
    e = scores.exp() * mask
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


@breaks(SOFTMAX, "finite for large scores in float16, too")
def filled_with_a_billion(scores, mask):
    return scores.masked_fill(~mask, -1e9).softmax(-1) * mask.any(-1, keepdim=True)


@breaks(SOFTMAX, "masked scores do not count, however large")
def shifted_by_masked(scores, mask):
    e = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    total = e.sum(-1, keepdim=True)
    return torch.where(total > 0, e / total.masked_fill(total == 0, 1), 0)


@breaks(SOFTMAX, LAYOUT)
def views(scores, mask):
    return masked(scores.view(-1).view(scores.shape), mask)


@breaks(SOFTMAX, LAYOUT + ": of the mask")
def views_of_the_mask(scores, mask):
    return masked(scores, mask.view(-1).view(mask.shape))


@breaks(SOFTMAX, UNCHANGED + ": scores")
def scores_changed(scores, mask):
    weights = masked(scores, mask)
    scores.mul_(2)
    return weights


@breaks(SOFTMAX, UNCHANGED + ": mask")
def mask_changed(scores, mask):
    weights = masked(scores, mask)
    mask.logical_not_()
    return weights


@breaks(SOFTMAX, UNCHANGED + ": rows of the mask that are empty")
def empty_rows_opened(scores, mask):
    weights = masked(scores, mask)
    mask |= ~mask.any(-1, keepdim=True)
    return weights


@breaks(SOFTMAX, UNCHANGED + ": a broadcast mask")
def short_mask_changed(scores, mask):
    weights = masked(scores, mask)
    if mask.dim() < scores.dim():
        mask.fill_(True)
    return weights


# sliding_window_mask

WINDOW = "sliding_window_mask"


def sliding(length, window):
    distance = torch.arange(length)[:, None] - torch.arange(length)
    return (distance >= 0) & (distance < window)


def of_window(clause, change):
    breaks(WINDOW, clause)(lambda length, window: change(sliding(length, window), length, window))


of_window("True = may attend", lambda mask, length, window: ~mask)
of_window("0 ≤ i − j: itself", lambda mask, length, window: mask & ~torch.eye(length, dtype=torch.bool))
of_window("0 ≤ i − j: not the future", lambda mask, length, window: mask | mask.T)
of_window("i − j < window: not window itself", lambda mask, length, window: sliding(length, window + 1))
of_window("i − j < window: window − 1 as well", lambda mask, length, window: sliding(length, max(window - 1, 1)))
of_window("i is the query, j the key", lambda mask, length, window: mask.T)
of_window("a window of one", lambda mask, length, window: sliding(length, max(window, 2)))
of_window("a window as long as the sequence", lambda mask, length, window: sliding(length, min(window, length - 1)))
of_window(
    "a window longer than the sequence",
    lambda mask, length, window: mask if window <= length else torch.zeros_like(mask),
)
of_window(
    "the first queries see what there is",
    lambda mask, length, window: mask & (torch.arange(length) >= window - 1)[:, None] | torch.eye(length).bool(),
)
of_window("(L, L): one token", lambda mask, length, window: mask if length > 1 else mask.squeeze())
of_window("long sequences", lambda mask, length, window: mask if length <= 16 else mask.triu(-8))
of_window(BOOL + ", not int", lambda mask, length, window: mask.long())
of_window(BOOL + ", not float", lambda mask, length, window: mask.float())
of_window("(L, L): no further axes", lambda mask, length, window: mask[None])
of_window("(L, L): a tensor", lambda mask, length, window: mask.tolist())
