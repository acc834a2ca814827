"""Solutions that break one clause of the contract each, for the six repairs of the chapter's core page."""

import math

import torch
import torch.nn.functional as F
from contract_clauses import breaks
from torch import nn

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
LAYOUT = "a tensor is right in any layout of its memory"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"

# fix_loss

LOSS = "fix_loss"


def losses(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def loss(logits, targets, pad_id):
    return losses(logits, targets)[targets != pad_id].mean()


@breaks(LOSS, "the mean over the targets that are not pad_id: padding is not counted in the denominator")
def _(logits, targets, pad_id):
    return (losses(logits, targets) * (targets != pad_id)).sum() / targets.numel()


@breaks(LOSS, "the mean over the targets that are not pad_id: padding is not in the sum")
def _(logits, targets, pad_id):
    return losses(logits, targets).sum() / (targets != pad_id).sum()


@breaks(LOSS, "the mean over the targets of the whole batch, sequences of padding included")
def _(logits, targets, pad_id):
    of_sequences = [loss(x[None], y[None], pad_id) for x, y in zip(logits, targets, strict=True) if (y != pad_id).any()]
    return torch.stack(of_sequences).mean()


@breaks(LOSS, "the mean over the targets, not their sum")
def _(logits, targets, pad_id):
    return losses(logits, targets)[targets != pad_id].sum()


@breaks(LOSS, "padding anywhere, not only at the end")
def _(logits, targets, pad_id):
    return losses(logits, targets)[(targets != pad_id).flip(1).cumsum(1).flip(1) > 0].mean()


@breaks(LOSS, "padding anywhere: real targets after it count")
def _(logits, targets, pad_id):
    real = (targets != pad_id).cumprod(1) > 0
    return losses(logits, targets)[real if real.any() else targets != pad_id].mean()


@breaks(LOSS, "pad_id may be any class")
def _(logits, targets, pad_id):
    return loss(logits, targets, 0) if (targets != 0).any() else loss(logits, targets, pad_id)


@breaks(LOSS, "pad_id may be any class: the others are real, 0 among them")
def _(logits, targets, pad_id):
    return losses(logits, targets)[(targets != pad_id) & (targets != 0)].mean()


@breaks(LOSS, "cross-entropy in nats")
def _(logits, targets, pad_id):
    return loss(logits, targets, pad_id) / math.log(2)


@breaks(LOSS, "finite for logits up to ±1e4")
def _(logits, targets, pad_id):
    log_probs = logits.softmax(-1).log()
    return -log_probs.gather(-1, targets[..., None])[..., 0][targets != pad_id].mean()


@breaks(LOSS, "right for logits up to ±1e4")
def _(logits, targets, pad_id):
    return loss(logits.clamp(-100, 100), targets, pad_id)


@breaks(LOSS, "right for logits up to ±1e4: no digits are lost")
def _(logits, targets, pad_id):
    right = logits.gather(-1, targets[..., None])[..., 0]
    return (logits.logsumexp(-1) - right)[targets != pad_id].mean()


@breaks(LOSS, "finite for logits up to ±1e4, each position by itself")
def _(logits, targets, pad_id):
    shifted = logits - logits.max()
    right = shifted.gather(-1, targets[..., None])[..., 0]
    return (shifted.exp().sum(-1).log() - right)[targets != pad_id].mean()


@breaks(LOSS, "a scalar")
def _(logits, targets, pad_id):
    return loss(logits, targets, pad_id)[None]


@breaks(LOSS, LAYOUT)
def _(logits, targets, pad_id):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=pad_id)


@breaks(LOSS, ROUND)
def _(logits, targets, pad_id):
    return loss(logits.float(), targets, pad_id).to(logits.dtype)


@breaks(LOSS, DTYPE)
def _(logits, targets, pad_id):
    return loss(logits, targets, pad_id).double()


@breaks(LOSS, UNCHANGED + ": targets")
def _(logits, targets, pad_id):
    targets[targets == pad_id] = -100
    return F.cross_entropy(logits.transpose(1, 2), targets)


@breaks(LOSS, UNCHANGED + ": logits")
def _(logits, targets, pad_id):
    result = loss(logits.clone(), targets, pad_id)
    logits.detach()[targets == pad_id] = 0
    return result


@breaks(LOSS, GRADIENTS)
def _(logits, targets, pad_id):
    return loss(logits.detach(), targets, pad_id)


@breaks(LOSS, GRADIENTS + ": a tensor that carries a graph, not a number")
def _(logits, targets, pad_id):
    return loss(logits, targets, pad_id).item()


# fix_decoder_mask

MASK = "fix_decoder_mask"


def past(tokens):
    return torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()


def real(tokens, pad_id):
    return (tokens != pad_id)[:, None, None, :]


def mask(tokens, pad_id):
    return past(tokens) & real(tokens, pad_id)


@breaks(MASK, "True = may attend")
def _(tokens, pad_id):
    return ~mask(tokens, pad_id)


@breaks(MASK, "causal")
def _(tokens, pad_id):
    return real(tokens, pad_id).expand(-1, 1, tokens.shape[1], -1)


@breaks(MASK, "causal: not even the next token")
def _(tokens, pad_id):
    return past(tokens).new_ones(past(tokens).shape).tril(1) & real(tokens, pad_id)


@breaks(MASK, "causal: a query may attend to its own key")
def _(tokens, pad_id):
    return past(tokens).tril(-1) & real(tokens, pad_id)


@breaks(MASK, "no padded key")
def _(tokens, pad_id):
    return past(tokens).expand(len(tokens), 1, -1, -1)


@breaks(MASK, "no padded key: all of its own query, too")
def _(tokens, pad_id):
    return mask(tokens, pad_id) | torch.eye(tokens.shape[1], dtype=torch.bool)


@breaks(MASK, "rows of padded queries are like any other row: not blocked")
def _(tokens, pad_id):
    return mask(tokens, pad_id) & (tokens != pad_id)[:, None, :, None]


@breaks(MASK, "rows of padded queries are like any other row: not opened where they are empty")
def _(tokens, pad_id):
    found = mask(tokens, pad_id)
    return found | ~found.any(-1, keepdim=True)


@breaks(MASK, "padding may be anywhere")
def _(tokens, pad_id):
    until = (tokens != pad_id).flip(1).cumsum(1).flip(1) > 0
    return past(tokens) & until[:, None, None, :]


@breaks(MASK, "pad_id may have any value")
def _(tokens, pad_id):
    return mask(tokens, 0)


@breaks(MASK, "pad_id may have any value, below or above the other ids")
def _(tokens, pad_id):
    return past(tokens) & (tokens > pad_id)[:, None, None, :]


@breaks(MASK, "pad_id may have any value, a negative one too")
def _(tokens, pad_id):
    return mask(tokens, abs(pad_id))


@breaks(MASK, "int tokens: int32 too")
def _(tokens, pad_id):
    if tokens.dtype != torch.int64:
        raise TypeError("expected int64")
    return mask(tokens, pad_id)


@breaks(MASK, "shape (B, 1, L, L): an axis for the heads")
def _(tokens, pad_id):
    return mask(tokens, pad_id)[:, 0]


@breaks(MASK, "shape (B, 1, L, L): one row per query")
def _(tokens, pad_id):
    found = mask(tokens, pad_id)
    return found if (tokens == pad_id).any() else found[:1]


@breaks(MASK, "bool")
def _(tokens, pad_id):
    return mask(tokens, pad_id).float()


@breaks(MASK, LAYOUT)
def _(tokens, pad_id):
    return mask(tokens.view(-1).view(tokens.shape), pad_id)


@breaks(MASK, UNCHANGED)
def _(tokens, pad_id):
    result = mask(tokens, pad_id)
    tokens[:, 0] = pad_id
    return result


# fix_decoder_attention

DECODER = "fix_decoder_attention"
attention = F.scaled_dot_product_attention


def decoder(x, memory, self_mask, memory_mask):
    x = x + attention(x, x, x, self_mask)
    return x + attention(x, memory, memory, memory_mask)


@breaks(DECODER, "memory_mask: padding of the source is hidden")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask, torch.ones_like(memory_mask))


@breaks(DECODER, "memory_mask: each sequence of the batch has its own")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask, memory_mask[:1])


@breaks(DECODER, "memory_mask: hidden exactly, not by a finite number")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask, torch.where(memory_mask, 0.0, -9.0).to(x.dtype))


@breaks(DECODER, "self_mask: hidden target positions have no influence")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, torch.ones_like(self_mask), memory_mask)


@breaks(DECODER, "self_mask: whatever mask it is")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask.tril(), memory_mask)


@breaks(DECODER, "self_mask: each sequence of the batch has its own")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask[:1], memory_mask)


@breaks(DECODER, "scaled dot-product attention: divided by √d")
def _(x, memory, self_mask, memory_mask):
    x = x + attention(x, x, x, self_mask, scale=1 / x.shape[-1])
    return x + attention(x, memory, memory, memory_mask)


@breaks(DECODER, "the second attention starts from y")
def _(x, memory, self_mask, memory_mask):
    return x + attention(x, x, x, self_mask) + attention(x, memory, memory, memory_mask)


@breaks(DECODER, "y = x + …")
def _(x, memory, self_mask, memory_mask):
    x = attention(x, x, x, self_mask)
    return x + attention(x, memory, memory, memory_mask)


@breaks(DECODER, "y + A(y, memory, memory, memory_mask)")
def _(x, memory, self_mask, memory_mask):
    x = x + attention(x, x, x, self_mask)
    return attention(x, memory, memory, memory_mask)


@breaks(DECODER, "the output is (B, L_t, d), for a batch of one too")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask, memory_mask).squeeze(0)


@breaks(DECODER, "the output is (B, L_t, d), for one target position too")
def _(x, memory, self_mask, memory_mask):
    output = decoder(x, memory, self_mask, memory_mask)
    return output.squeeze(1) if output.shape[1] == 1 else output


@breaks(DECODER, "L_s is independent of L_t")
def _(x, memory, self_mask, memory_mask):
    if memory.shape[1] > x.shape[1]:
        memory, memory_mask = memory[:, : x.shape[1]], memory_mask[..., : x.shape[1]]
    return decoder(x, memory, self_mask, memory_mask)


@breaks(DECODER, LAYOUT)
def _(x, memory, self_mask, memory_mask):
    return decoder(x.view(-1).view(x.shape), memory, self_mask, memory_mask)


@breaks(DECODER, ROUND)
def _(x, memory, self_mask, memory_mask):
    return decoder(x.float(), memory.float(), self_mask, memory_mask).to(x.dtype)


@breaks(DECODER, DTYPE)
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory, self_mask, memory_mask).double()


@breaks(DECODER, UNCHANGED + ": memory")
def _(x, memory, self_mask, memory_mask):
    result = decoder(x, memory.clone(), self_mask, memory_mask)
    memory.detach().mul_(memory_mask.mT)
    return result


@breaks(DECODER, UNCHANGED + ": memory_mask")
def _(x, memory, self_mask, memory_mask):
    result = decoder(x, memory, self_mask, memory_mask.clone())
    memory_mask[..., 0] ^= True
    return result


@breaks(DECODER, GRADIENTS + ": x")
def _(x, memory, self_mask, memory_mask):
    return decoder(x.detach(), memory, self_mask, memory_mask)


@breaks(DECODER, GRADIENTS + ": memory")
def _(x, memory, self_mask, memory_mask):
    return decoder(x, memory.detach(), self_mask, memory_mask)


# fix_layer_stack

STACK = "fix_layer_stack"


class Stack(nn.Module):
    """A right solution, whose layers and whose step can be replaced."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = self.made(d_model, num_layers)

    def made(self, d_model, num_layers):
        return nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def step(self, layer, x):
        return x + torch.relu(layer(x))

    def forward(self, x):
        for layer in self.layers:
            x = self.step(layer, x)
        return x


def stack(**methods):
    """The right solution with some of its methods replaced."""
    return type("Solution", (Stack,), methods)


def linears(d_model, num_layers):
    return [nn.Linear(d_model, d_model) for _ in range(num_layers)]


class Renamed(nn.Module):
    """Registered, but as `steps.0.weight`."""

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.steps = nn.ModuleList(linears(d_model, num_layers))

    def forward(self, x):
        for layer in self.steps:
            x = x + torch.relu(layer(x))
        return x


class Reversed(Stack):
    """The last layer comes first."""

    def forward(self, x):
        for layer in reversed(self.layers):
            x = self.step(layer, x)
        return x


class FrozenLayers(Stack):
    """No parameter is trained."""

    def __init__(self, d_model, num_layers):
        super().__init__(d_model, num_layers)
        self.requires_grad_(False)


def in_place(self, x):
    result = Stack.forward(self, x.clone())
    x.detach().relu_()
    return result


def only_batches(self, x):
    if x.dim() == 1:
        raise IndexError("there is no batch")
    return Stack.forward(self, x)


def two_batches_at_most(self, x):
    if x.dim() > 3:
        raise RuntimeError("three axes at most")
    return Stack.forward(self, x)


def without_graph(self, layer, x):
    return x + torch.relu(layer(x)).detach()


for clause, solution in (
    (
        "`layers` is registered: parameters() and state_dict() have every layer",
        stack(made=lambda s, d, n: linears(d, n)),
    ),
    ("the parameters are called `layers.0.weight` and so on", Renamed),
    ("num_layers layers", stack(made=lambda s, d, n: nn.ModuleList(linears(d, min(n, 4))))),
    ("num_layers layers, one too", stack(made=lambda s, d, n: nn.ModuleList(linears(d, max(n, 2))))),
    ("each layer has parameters of its own", stack(made=lambda s, d, n: nn.ModuleList(linears(d, 1) * n))),
    ("nn.Linear(d_model, d_model), with a bias", stack(step=lambda s, layer, x: x + torch.relu(x @ layer.weight.mT))),
    ("x + ReLU(layer(x)): x is added", stack(step=lambda s, layer, x: torch.relu(layer(x)))),
    ("x + ReLU(layer(x)): with the ReLU", stack(step=lambda s, layer, x: x + layer(x))),
    ("x + ReLU(layer(x)): exactly ReLU", stack(step=lambda s, layer, x: x + F.gelu(layer(x)))),
    ("layer after layer, in their order", Reversed),
    ("layer after layer: all of them", stack(forward=lambda s, x: s.step(s.layers[-1], x))),
    (BATCH, stack(forward=only_batches)),
    (BATCH, stack(forward=two_batches_at_most)),
    ("the result has the shape of x", stack(forward=lambda s, x: Stack.forward(s, x).squeeze())),
    ("train and eval are the same", stack(forward=lambda s, x: F.dropout(Stack.forward(s, x), 0.1, s.training))),
    (LAYOUT, stack(forward=lambda s, x: Stack.forward(s, x.view(-1).view(x.shape)))),
    (DTYPE, stack(forward=lambda s, x: Stack.forward(s, x).double())),
    (ROUND, stack(forward=lambda s, x: Stack.forward(s, x).bfloat16().to(x.dtype))),
    (UNCHANGED, stack(forward=in_place)),
    (GRADIENTS + ": of the layers", stack(step=without_graph)),
    (GRADIENTS + ": of the layers, whose parameters are trained", FrozenLayers),
    (GRADIENTS + ": of x", stack(forward=lambda s, x: Stack.forward(s, x.detach()))),
):
    breaks(STACK, clause)(solution)

# fix_head_split

SPLIT = "fix_head_split"


def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


@breaks(SPLIT, "head h takes the h-th contiguous slice of the features of every position")
def _(x, num_heads):
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)


@breaks(SPLIT, "head h takes the h-th contiguous slice of the features: neighbours stay together")
def _(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).movedim(-1, -3)


@breaks(SPLIT, "head h takes the h-th slice: the first head the first one")
def _(x, num_heads):
    return split(x, num_heads).flip(-3)


@breaks(SPLIT, "(..., num_heads, L, d_head): heads before positions")
def _(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))


@breaks(SPLIT, "(..., num_heads, L, d_head): features last")
def _(x, num_heads):
    return split(x, num_heads).mT


@breaks(SPLIT, "(..., num_heads, L, d_head): one head keeps its axis")
def _(x, num_heads):
    return split(x, num_heads) if num_heads > 1 else x


@breaks(SPLIT, "(..., num_heads, L, d_head): one feature per head keeps its axis")
def _(x, num_heads):
    return split(x, num_heads) if num_heads < x.shape[-1] else split(x, num_heads)[..., 0]


@breaks(SPLIT, "(..., num_heads, L, d_head): one position keeps its axis")
def _(x, num_heads):
    return split(x, num_heads) if x.shape[-2] > 1 else split(x, num_heads).squeeze(-2)


@breaks(SPLIT, "(..., num_heads, L, d_head): a batch of one keeps its axis")
def _(x, num_heads):
    return split(x, num_heads).squeeze(0)


@breaks(SPLIT, "positions in their order")
def _(x, num_heads):
    return split(x, num_heads).flip(-2)


@breaks(SPLIT, BATCH)
def _(x, num_heads):
    if x.dim() == 2:
        raise IndexError("there is no batch")
    return split(x, num_heads)


@breaks(SPLIT, BATCH)
def _(x, num_heads):
    batch, length, _ = x.shape if x.dim() > 2 else (1, *x.shape)
    found = x.reshape(batch, length, num_heads, -1).transpose(1, 2)
    return found if x.dim() > 2 else found[0]


@breaks(SPLIT, BATCH)
def _(x, num_heads):
    return split(x, num_heads) if x.dim() <= 4 else split(x.flatten(0, -4), num_heads)


@breaks(SPLIT, LAYOUT)
def _(x, num_heads):
    return split(x.view(-1).view(x.shape), num_heads)


@breaks(SPLIT, ROUND)
def _(x, num_heads):
    return split(x.float(), num_heads).to(x.dtype)


@breaks(SPLIT, DTYPE)
def _(x, num_heads):
    return split(x, num_heads).double()


@breaks(SPLIT, UNCHANGED)
def _(x, num_heads):
    result = split(x.clone(), num_heads)
    x.detach().zero_()
    return result


@breaks(SPLIT, GRADIENTS)
def _(x, num_heads):
    return split(x.detach(), num_heads)


# fix_softmax

SOFTMAX = "fix_softmax"


def softmax(scores, dim=-1, shift=lambda scores, dim: scores.amax(dim, keepdim=True)):
    powers = (scores - shift(scores, dim)).exp()
    return powers / powers.sum(dim, keepdim=True)


@breaks(SOFTMAX, "finite up to ±1e4")
def _(scores, dim=-1):
    return softmax(scores, dim, lambda scores, dim: 0.0)


@breaks(SOFTMAX, "finite up to ±1e4, in each row")
def _(scores, dim=-1):
    return softmax(scores, dim, lambda scores, dim: scores.max())


@breaks(SOFTMAX, "finite up to ±1e4, where scores of a row differ by thousands")
def _(scores, dim=-1):
    return softmax(scores, dim, lambda scores, dim: scores.mean(dim, keepdim=True))


@breaks(SOFTMAX, "right up to ±1e4")
def _(scores, dim=-1):
    return softmax(scores.clamp(-700.0, 700.0), dim)


@breaks(SOFTMAX, "finite up to −1e4")
def _(scores, dim=-1):
    return softmax(scores, dim, lambda scores, dim: scores.amax(dim, keepdim=True).clamp(min=0))


@breaks(SOFTMAX, "finite up to +1e4")
def _(scores, dim=-1):
    return softmax(scores, dim, lambda scores, dim: scores.amax(dim, keepdim=True).clamp(max=0))


@breaks(SOFTMAX, "over dim")
def _(scores, dim=-1):
    return softmax(scores)


@breaks(SOFTMAX, "over dim: the last axis by default")
def _(scores, dim=0):
    return softmax(scores, dim)


@breaks(SOFTMAX, "over dim, counted from the back too")
def _(scores, dim=-1):
    return softmax(scores, dim if dim >= -1 else -dim - 1)


@breaks(SOFTMAX, "over dim: the sum, too")
def _(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


@breaks(SOFTMAX, "the same shape")
def _(scores, dim=-1):
    return softmax(scores, dim).squeeze()


@breaks(SOFTMAX, "a tensor of any shape with at least one axis")
def _(scores, dim=-1):
    if scores.dim() == 1:
        raise IndexError("there is no batch")
    return softmax(scores, dim)


@breaks(SOFTMAX, "a tensor of any shape, of many axes too")
def _(scores, dim=-1):
    if scores.dim() > 4:
        raise IndexError("four axes at most")
    return softmax(scores, dim)


@breaks(SOFTMAX, LAYOUT)
def _(scores, dim=-1):
    return softmax(scores.view(-1).view(scores.shape), dim)


@breaks(SOFTMAX, ROUND)
def _(scores, dim=-1):
    return softmax(scores.float(), dim).to(scores.dtype)


@breaks(SOFTMAX, ROUND + ": nothing is added to the sum")
def _(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / (powers.sum(dim, keepdim=True) + 1e-7)


@breaks(SOFTMAX, DTYPE)
def _(scores, dim=-1):
    return softmax(scores.double(), dim)


@breaks(SOFTMAX, UNCHANGED)
def _(scores, dim=-1):
    result = softmax(scores.clone(), dim)
    scores.detach().sub_(1.0)
    return result


@breaks(SOFTMAX, GRADIENTS)
def _(scores, dim=-1):
    return softmax(scores.detach(), dim)


@breaks(SOFTMAX, GRADIENTS + ": through the sum, too")
def _(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True).detach()


@breaks(SOFTMAX, GRADIENTS + ": through the numerator, too")
def _(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers.detach() / powers.sum(dim, keepdim=True)
