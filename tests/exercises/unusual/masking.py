# %% padding_mask: index with None
def padding_mask(tokens, pad_id):
    return (tokens != pad_id)[:, None, None, :]

# %% padding_mask: numpy comparison
import numpy as np
import torch


def padding_mask(tokens, pad_id):
    keep = np.not_equal(tokens.cpu().numpy(), pad_id)
    return torch.from_numpy(keep[:, np.newaxis, np.newaxis, :].copy()).to(tokens.device)

# %% padding_mask: nested lists and a generator
import torch


def padding_mask(tokens, pad_id):
    rows = ([t != pad_id for t in row] for row in tokens.tolist())
    return torch.tensor(list(rows), dtype=torch.bool, device=tokens.device).unsqueeze(1).unsqueeze(1)

# %% padding_mask: in-place masked_fill on own ones
import torch


def padding_mask(tokens, pad_id):
    out = torch.ones_like(tokens, dtype=torch.bool)
    out.masked_fill_(tokens.eq(pad_id), False)
    return out.view(tokens.shape[0], 1, 1, -1)

# %% padding_mask: vmap over sequences
import torch
from torch.func import vmap


def padding_mask(tokens, pad_id):
    one = vmap(lambda row: torch.ne(row, pad_id).reshape(1, 1, -1))
    return one(tokens)

# %% padding_mask: scripted
import torch


@torch.jit.script
def padding_mask(tokens: torch.Tensor, pad_id: int) -> torch.Tensor:
    return torch.logical_not(tokens == pad_id).unsqueeze(1).unsqueeze(2)

# %% padding_mask: bool of the difference, unflatten
import torch


def padding_mask(tokens, pad_id):
    return tokens.sub(pad_id).to(torch.bool).unflatten(0, (-1, 1, 1))

# %% padding_mask: torch.isin inverted
import torch


def padding_mask(tokens, pad_id):
    pads = torch.tensor([pad_id], dtype=tokens.dtype, device=tokens.device)
    return torch.isin(tokens, pads, invert=True).reshape(len(tokens), 1, 1, tokens.shape[1])

# %% padding_mask: index_put at the coordinates of the padding
import torch


def padding_mask(tokens, pad_id):
    b, l = tokens.shape
    mask = torch.full((b, 1, 1, l), True, device=tokens.device)
    i, j = torch.where(tokens == pad_id)
    zero = torch.zeros_like(i)
    mask.index_put_((i, zero, zero, j), torch.tensor(False, device=tokens.device))
    return mask

# %% padding_mask: compiled with the eager backend
import torch


@torch.compile(backend="eager", dynamic=True)
def _neq(tokens, pad_id):
    return torch.logical_xor(tokens == pad_id, torch.ones_like(tokens, dtype=torch.bool))


def padding_mask(tokens, pad_id):
    return _neq(tokens, pad_id).movedim(0, -1)[None, None].movedim(-1, 0)

# %% causal_mask: tril of ones
import torch


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()

# %% causal_mask: comparison of two aranges
import torch


def causal_mask(length):
    i = torch.arange(length)
    return i.view(-1, 1).ge(i.view(1, -1))

# %% causal_mask: numpy tri
import numpy as np
import torch


def causal_mask(length):
    return torch.from_numpy(np.tri(length, dtype=bool))

# %% causal_mask: cumsum of an identity
import torch


def causal_mask(length):
    return torch.eye(length, dtype=torch.int64).cumsum(0).bool()

# %% causal_mask: tril_indices and index_put
import torch


def causal_mask(length):
    mask = torch.zeros(length, length, dtype=torch.bool)
    r, c = torch.tril_indices(length, length)
    return mask.index_put((r, c), torch.tensor(True))

# %% causal_mask: recursion in blocks
import torch


def causal_mask(length):
    if length <= 1:
        return torch.ones(length, length, dtype=torch.bool)
    a = length // 2
    b = length - a
    top = torch.cat((causal_mask(a), torch.zeros(a, b, dtype=torch.bool)), 1)
    low = torch.cat((torch.ones(b, a, dtype=torch.bool), causal_mask(b)), 1)
    return torch.vstack((top, low))

# %% causal_mask: which output depends on which input, by jacfwd of cumsum
import torch
from torch.func import jacfwd


def causal_mask(length):
    return jacfwd(lambda x: torch.cumsum(x, 0))(torch.zeros(length)) != 0

# %% causal_mask: itertools product
from itertools import product
import torch


def causal_mask(length):
    bits = [j <= i for i, j in product(range(length), repeat=2)]
    return torch.tensor(bits, dtype=torch.bool).reshape(length, length)

# %% causal_mask: nested vmap
import torch
from torch import vmap


def causal_mask(length):
    n = torch.arange(length)
    return vmap(lambda i: vmap(lambda j: j <= i)(n))(n)

# %% causal_mask: sparse tensor densified
import torch


def causal_mask(length):
    idx = torch.tril_indices(length, length)
    s = torch.sparse_coo_tensor(idx, torch.ones(idx.shape[1]), (length, length))
    return s.to_dense().bool()

# %% causal_mask: lru_cache of rows, cloned for the caller
from functools import lru_cache
import torch


@lru_cache(maxsize=None)
def _cached(n):
    return torch.triu(torch.full((n, n), True), diagonal=1).logical_not()


def causal_mask(length):
    return _cached(length).clone()

# %% causal_mask: in-place loop over rows
import torch


def causal_mask(length):
    out = torch.empty(length, length, dtype=torch.bool).zero_()
    for i, row in enumerate(out):
        row[: i + 1] = True
    return out

# %% decoder_mask: and of the two
import torch


def decoder_mask(tokens, pad_id):
    n = tokens.shape[1]
    causal = torch.tril(torch.ones(n, n, dtype=torch.bool, device=tokens.device))
    return causal & (tokens != pad_id)[:, None, None, :]

# %% decoder_mask: tril of an expanded key mask
import torch


def decoder_mask(tokens, pad_id):
    keep = tokens.ne(pad_id)
    return keep[:, None, None, :].expand(-1, 1, tokens.size(1), -1).tril()

# %% decoder_mask: triple loop
import torch


def decoder_mask(tokens, pad_id):
    B, L = tokens.shape
    out = torch.zeros(B, 1, L, L, dtype=torch.bool)
    for b, row in enumerate(tokens.tolist()):
        for i in range(L):
            for j in range(i + 1):
                out[b, 0, i, j] = row[j] != pad_id
    return out.to(tokens.device)

# %% decoder_mask: numpy
import numpy as np
import torch


def decoder_mask(tokens, pad_id):
    t = tokens.numpy()
    m = np.logical_and(np.tri(t.shape[1], dtype=bool)[None], (t != pad_id)[:, None])
    return torch.as_tensor(m)[:, None]

# %% decoder_mask: einsum of integer masks
import torch


def decoder_mask(tokens, pad_id):
    n = tokens.shape[-1]
    low = torch.ones(n, n, dtype=torch.int64).tril()
    return torch.einsum("ij,bj->bij", low, (tokens != pad_id).long()).bool().unsqueeze(1)

# %% decoder_mask: vmap over the batch
import torch


def decoder_mask(tokens, pad_id):
    at = torch.arange(tokens.shape[1], device=tokens.device)

    def one(row):
        return torch.where(at[:, None] >= at[None, :], row != pad_id, False)[None]

    return torch.vmap(one)(tokens)

# %% decoder_mask: scripted
import torch


@torch.jit.script
def decoder_mask(tokens: torch.Tensor, pad_id: int) -> torch.Tensor:
    n = tokens.size(1)
    pos = torch.arange(n, device=tokens.device)
    causal = pos.unsqueeze(1) >= pos.unsqueeze(0)
    return torch.logical_and(causal.unsqueeze(0), tokens.ne(pad_id).unsqueeze(1)).unsqueeze(1)

# %% decoder_mask: positions with padding pushed beyond the end
import torch


def decoder_mask(tokens, pad_id):
    n = tokens.shape[1]
    pos = torch.arange(n, device=tokens.device)
    key = torch.where(tokens == pad_id, n, pos)
    return torch.le(key[:, None, None, :], pos[None, None, :, None])

# %% decoder_mask: reduce with operator.and_ over partial masks
from functools import reduce
import operator
import torch


def decoder_mask(tokens, pad_id):
    b, n = tokens.shape

    def parts():
        yield torch.ones(b, 1, n, n, dtype=torch.bool, device=tokens.device)
        yield torch.ones(n, n, dtype=torch.bool, device=tokens.device).triu(1).bitwise_not()
        yield tokens.not_equal(pad_id).reshape(b, 1, 1, n)

    return reduce(operator.and_, parts())

# %% decoder_mask: nn.Module with a non-persistent buffer, in-place and
import torch
from torch import nn


class DecoderMask(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("causal", torch.ones(n, n).tril() == 1, persistent=False)

    def forward(self, tokens, pad_id):
        out = self.causal.expand(tokens.shape[0], 1, -1, -1).clone()
        out &= (tokens != pad_id).unsqueeze(1).unsqueeze(1)
        return out


def decoder_mask(tokens, pad_id):
    return DecoderMask(tokens.shape[1]).to(tokens.device)(tokens, pad_id)

# %% masked_softmax: where before and after, safe for empty rows
import torch


def masked_softmax(scores, mask):
    low = torch.finfo(scores.dtype).min
    s = torch.where(mask, scores, low)
    e = torch.exp(s - s.amax(-1, keepdim=True)) * mask
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total > 0, total, 1)

# %% masked_softmax: half precision through .float()
import torch


def masked_softmax(scores, mask):
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    m = mask.expand(x.shape)
    x = x.masked_fill(~m, -torch.inf)
    dead = ~m.any(dim=-1, keepdim=True)
    w = torch.softmax(x.masked_fill(dead, 0.0), dim=-1)
    return w.masked_fill(dead | ~m, 0.0).to(scores.dtype)

# %% masked_softmax: half precision through .to(torch.float32)
import torch


def masked_softmax(scores, mask):
    dtype = scores.dtype
    if torch.finfo(dtype).bits == 16:
        scores = scores.to(torch.float32)
    ok = torch.broadcast_tensors(mask, scores)[0]
    clean = torch.where(ok, scores, 0.0)
    top = torch.where(ok, clean.detach(), torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    top = torch.where(ok.any(-1, keepdim=True), top, 0.0)
    e = torch.where(ok, torch.where(ok, clean - top, 0.0).exp(), 0.0)
    return (e / e.sum(-1, keepdim=True).clamp_min(0.5)).to(dtype)

# %% masked_softmax: promote_types with float32
import torch


def masked_softmax(scores, mask):
    work = torch.promote_types(scores.dtype, torch.float32)
    s = scores.to(work)
    alive = mask.expand_as(s).any(-1, keepdim=True)
    s = s.masked_fill(mask.logical_not() & alive, -torch.inf)
    w = torch.softmax(s, -1, dtype=work)
    return torch.where(mask & alive, w, torch.zeros((), dtype=work)).to(scores.dtype)

# %% masked_softmax: double accumulation
import torch


def masked_softmax(scores, mask):
    s = scores.double()
    m = mask.broadcast_to(s.shape)
    s = torch.where(m, s, -1e300)
    s = s - s.detach().max(-1, keepdim=True).values
    e = torch.where(m, s.exp(), 0.0)
    z = e.sum(-1, keepdim=True)
    return (e / (z + (z == 0))).to(scores.dtype)

# %% masked_softmax: autocast disabled around a wide body
import torch


def masked_softmax(scores, mask):
    with torch.autocast(device_type=scores.device.type, enabled=False):
        wide = scores.to(torch.float32) if scores.itemsize < 4 else scores
        keep = mask.to(torch.bool).expand(wide.shape)
        filled = wide.masked_fill(~keep, torch.finfo(wide.dtype).min)
        p = filled.softmax(-1) * keep
        return p.to(scores.dtype)

# %% masked_softmax: custom Function with zero gradient at masked entries
import torch


class _MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, mask):
        s = scores.to(torch.promote_types(scores.dtype, torch.float32))
        m = mask.expand(s.shape)
        s = s.masked_fill(~m, -torch.inf)
        top = s.amax(-1, keepdim=True)
        top = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
        e = torch.exp(s - top)
        total = e.sum(-1, keepdim=True)
        w = e / total.masked_fill(total == 0, 1.0)
        ctx.save_for_backward(w)
        return w.to(scores.dtype)

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        gw = g.to(w.dtype)
        return (w * (gw - (w * gw).sum(-1, keepdim=True))).to(g.dtype), None


def masked_softmax(scores, mask):
    return _MaskedSoftmax.apply(scores, mask)

# %% masked_softmax: row by row over the allowed entries only
import torch


def masked_softmax(scores, mask):
    m = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for s, ok in zip(scores.reshape(-1, scores.shape[-1]), m):
        idx = ok.nonzero()[:, 0]
        out = torch.zeros_like(s)
        if idx.numel():
            chosen = s[idx].to(torch.float64)
            e = (chosen - chosen.max()).exp()
            out = out.index_put((idx,), (e / e.sum()).to(s.dtype))
        else:
            out = out + s * 0
        rows.append(out)
    return torch.stack(rows).reshape(scores.shape)

# %% masked_softmax: vmap over rows with logsumexp
import torch
from torch import vmap


def masked_softmax(scores, mask):
    x = scores.to(torch.promote_types(scores.dtype, torch.float32))
    m = mask.expand(x.shape)

    def row(s, ok):
        z = torch.where(ok, s, torch.finfo(s.dtype).min / 4)
        z = z - z.amax(0).detach()
        return torch.where(ok, (z - torch.logsumexp(z, 0)).exp(), 0.0)

    for _ in range(x.dim() - 1):
        row = vmap(row)
    return row(x, m).to(scores.dtype)

# %% masked_softmax: scripted
import torch


@torch.jit.script
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    x = scores
    if scores.dtype == torch.float16 or scores.dtype == torch.bfloat16:
        x = scores.to(torch.float32)
    m = mask.expand(x.shape)
    alive = m.any(-1, keepdim=True)
    x = torch.where(m, x, torch.full_like(x, -float("inf")))
    x = torch.where(alive, x, torch.zeros_like(x))
    w = torch.softmax(x, -1)
    return torch.where(m, w, torch.zeros_like(w)).to(scores.dtype)

# %% masked_softmax: checkpointed body, mask times exponentials
import torch
from torch.utils.checkpoint import checkpoint


def masked_softmax(scores, mask):
    def body(s):
        x = s.float() if s.dtype != torch.float64 else s
        m = mask.expand(x.shape).to(x.dtype)
        gap = torch.where(mask, x, torch.finfo(x.dtype).min)
        e = (gap - gap.amax(-1, keepdim=True)).exp() * m
        return (e / e.sum(-1, keepdim=True).add(1 - m.amax(-1, keepdim=True))).to(s.dtype)

    return checkpoint(body, scores, use_reentrant=False)

# %% masked_softmax: an extra always-allowed column for dead rows
import torch


def masked_softmax(scores, mask):
    x = scores.to(torch.promote_types(torch.float32, scores.dtype))
    m = mask.expand_as(x)
    dead = ~m.any(-1, keepdim=True)
    x = torch.where(m, x, -torch.inf)
    sink = torch.where(dead, 0.0, -torch.inf).to(x.dtype)
    return torch.cat((x, sink), dim=-1).softmax(-1)[..., :-1].to(scores.dtype)

# %% masked_softmax: singledispatch-like table of working dtypes, in-place on own tensor
import torch

WORK = {torch.float16: torch.float64, torch.bfloat16: torch.float32,
        torch.float32: torch.float32, torch.float64: torch.float64}


def masked_softmax(scores, mask):
    own = torch.empty_like(scores, dtype=WORK[scores.dtype]).copy_(scores)
    own.masked_fill_(~mask, torch.finfo(own.dtype).min)
    own = own.sub(own.detach().amax(-1, True)).exp()
    own = own.masked_fill(~mask, 0)
    total = own.sum(-1, True)
    return own.div(total.masked_fill(total.eq(0), 1)).type(scores.dtype)

# %% sliding_window_mask: tril and triu
import torch


def sliding_window_mask(length, window):
    return torch.ones(length, length, dtype=torch.bool).tril(0).triu(1 - window)

# %% sliding_window_mask: differences between 0 and window
import torch


def sliding_window_mask(length, window):
    p = torch.arange(length)
    return (0 <= (d := p[:, None] - p[None])) & (d < window)

# %% sliding_window_mask: sum of shifted identities
import torch


def sliding_window_mask(length, window):
    total = torch.zeros(length, length, dtype=torch.int64)
    for k in range(min(window, length)):
        total += torch.diag(torch.ones(length - k, dtype=torch.int64), -k)
    return total.bool()

# %% sliding_window_mask: numpy subtract.outer
import numpy as np
import torch


def sliding_window_mask(length, window):
    gap = np.subtract.outer(np.arange(length), np.arange(length))
    return torch.tensor((gap >= 0) & (gap < window))

# %% sliding_window_mask: double comprehension
import torch


def sliding_window_mask(length, window):
    return torch.tensor([[i - j in range(window) for j in range(length)] for i in range(length)],
                        dtype=torch.bool).reshape(length, length)

# %% sliding_window_mask: nested vmap
import torch
from torch.func import vmap


def sliding_window_mask(length, window):
    n = torch.arange(length)

    def ok(i, j):
        return torch.logical_and(j <= i, i < j + window)

    return vmap(vmap(ok, (None, 0)), (0, None))(n, n)

# %% sliding_window_mask: difference of two causal masks
import torch


def sliding_window_mask(length, window):
    full = torch.ones(length, length, dtype=torch.bool)
    return torch.tril(full) ^ torch.tril(full, diagonal=-window)

# %% sliding_window_mask: scripted, slices per row
import torch


@torch.jit.script
def sliding_window_mask(length: int, window: int) -> torch.Tensor:
    out = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        start = max(0, i - window + 1)
        out[i, start:i + 1] = True
    return out

# %% sliding_window_mask: sparse coordinates from a generator
import torch


def sliding_window_mask(length, window):
    pairs = [(i, j) for i in range(length) for j in range(max(0, i + 1 - window), i + 1)]
    if not pairs:
        return torch.zeros(length, length, dtype=torch.bool)
    idx = torch.tensor(pairs).T
    return torch.sparse_coo_tensor(idx, torch.ones(idx.shape[1]), (length, length)).to_dense() != 0

# %% sliding_window_mask: circular convolution by FFT
import torch


def sliding_window_mask(length, window):
    n = 2 * length
    kernel = torch.zeros(n, dtype=torch.float64)
    kernel[:min(window, length)] = 1
    eye = torch.eye(length, dtype=torch.float64)
    spread = torch.fft.ifft(torch.fft.fft(eye, n=n, dim=0) * torch.fft.fft(kernel)[:, None], dim=0).real
    return spread[:length] > 0.5

# %% sliding_window_mask: unfold of a padded row
import torch


def sliding_window_mask(length, window):
    w = min(window, length)
    row = torch.cat((torch.zeros(length), torch.ones(w), torch.zeros(2 * length)))
    starts = torch.arange(length)[:, None]
    return row[length + w - 1 - starts + torch.arange(length)].bool()

# %% padding_mask: singledispatch for the pad id, sparse padding
from functools import singledispatch
import torch


@singledispatch
def _id(pad):
    return int(pad)


@_id.register
def _(pad: torch.Tensor):
    return pad.item()


def padding_mask(tokens, pad_id):
    pads = (tokens == _id(pad_id)).int().to_sparse().to_dense().bool()
    return ~pads[:, None, None]

# %% causal_mask: parametrization that keeps the lower triangle
import torch
from torch import nn
from torch.nn.utils import parametrize


class Lower(nn.Module):
    def forward(self, w):
        return w.tril()


def causal_mask(length):
    m = nn.Module()
    m.register_buffer("weight", torch.ones(length, length), persistent=False)
    parametrize.register_parametrization(m, "weight", Lower())
    return m.weight != 0

# %% causal_mask: phases of complex numbers
import torch


def causal_mask(length):
    i = torch.arange(length, dtype=torch.float64)
    z = torch.complex(i[:, None].expand(length, length).contiguous(), i.expand(length, length).contiguous())
    return z.imag <= z.real

# %% causal_mask: cumulative sum by FFT
import torch


def causal_mask(length):
    n = 2 * length
    step = torch.zeros(n, dtype=torch.float64)
    step[:length] = 1
    f = torch.fft.rfft(torch.eye(length, dtype=torch.float64), n=n, dim=0) * torch.fft.rfft(step).unsqueeze(1)
    return torch.fft.irfft(f, n=n, dim=0)[:length] > 0.5

# %% sliding_window_mask: two parametrizations stacked
import torch
from torch import nn
from torch.nn.utils.parametrize import register_parametrization


class Band(nn.Module):
    def __init__(self, keep, k):
        super().__init__()
        self.keep, self.k = keep, k

    def forward(self, w):
        return self.keep(w, self.k)


def sliding_window_mask(length, window):
    holder = nn.Module()
    holder.mask = nn.Parameter(torch.ones(length, length), requires_grad=False)
    register_parametrization(holder, "mask", Band(torch.tril, 0))
    register_parametrization(holder, "mask", Band(torch.triu, 1 - window))
    return holder.mask.bool()

# %% sliding_window_mask: lru_cache of the distance table, broadcast_tensors
from functools import lru_cache
import torch


@lru_cache(maxsize=8)
def _gap(n):
    i, j = torch.broadcast_tensors(torch.arange(n)[:, None], torch.arange(n)[None, :])
    return i - j


def sliding_window_mask(length, window):
    gap = _gap(length)
    return gap.ge(0).logical_and(gap.lt(window))

# %% decoder_mask: parametrization for the triangle
import torch
from torch import nn
from torch.nn.utils import parametrize


class Causal(nn.Module):
    def forward(self, w):
        return torch.tril(w)


def decoder_mask(tokens, pad_id):
    b, n = tokens.shape
    box = nn.Module()
    keys = tokens.ne(pad_id).to(torch.uint8)[:, None, None].expand(b, 1, n, n)
    box.register_buffer("allowed", keys.contiguous(), persistent=False)
    parametrize.register_parametrization(box, "allowed", Causal())
    return box.allowed.to(torch.bool)

# %% decoder_mask: broadcast_tensors, compiler.disable, helpers after use
import torch


@torch.compiler.disable
def decoder_mask(tokens, pad_id):
    i, j, ok = torch.broadcast_tensors(*_grids(tokens.shape[1]), _keep(tokens, pad_id))
    return (i >= j).logical_and(ok)


def _grids(n):
    r = torch.arange(n)
    return r[:, None], r[None, :]


def _keep(tokens, pad_id):
    return (tokens != pad_id)[:, None, None, :]

# %% masked_softmax: autocast to bfloat16 region where softmax itself runs in float32
import torch


def masked_softmax(scores, mask):
    m = mask.expand(scores.shape)
    empty = ~m.any(-1, keepdim=True)
    filled = scores.masked_fill(~m & ~empty, -torch.inf)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        w = torch.softmax(filled, dim=-1)
    return w.masked_fill(~m, 0).to(scores.dtype)

# %% masked_softmax: amp custom_fwd and custom_bwd around a Function
import torch
from torch.amp import custom_fwd, custom_bwd


class MS(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, s, m):
        wide = s.to(torch.promote_types(s.dtype, torch.float32))
        top = torch.where(m, wide, torch.finfo(wide.dtype).min).amax(-1, keepdim=True)
        e = torch.where(m, (wide - top).clamp(max=0).exp(), 0)
        w = (e / e.sum(-1, keepdim=True).clamp(min=torch.finfo(wide.dtype).tiny)).to(s.dtype)
        ctx.save_for_backward(w)
        return w

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, g):
        w, = ctx.saved_tensors
        wd, gd = w.double(), g.double()
        return (wd * (gd - (wd * gd).sum(-1, keepdim=True))).to(g.dtype), None


def masked_softmax(scores, mask):
    return MS.apply(scores, mask.expand(scores.shape))

# %% masked_softmax: index_put of the allowed scores, autocast off
import torch


def masked_softmax(scores, mask):
    with torch.autocast("cpu", enabled=False):
        allowed = torch.where(mask.expand_as(scores))
        work = torch.float64 if scores.dtype == torch.float64 else torch.float32
        x = torch.full(scores.shape, -torch.inf, dtype=work).index_put(allowed, scores[allowed].to(work))
        top = x.detach().amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        picked = (x - top)[allowed].exp()
        e = torch.zeros(scores.shape, dtype=work).index_put(allowed, picked)
        z = e.sum(-1, keepdim=True)
        return (e / z.where(z > 0, torch.ones_like(z))).to(scores.dtype)

# %% masked_softmax: scatter sums over a flat list of allowed entries
import torch


def masked_softmax(scores, mask):
    wide = torch.promote_types(scores.dtype, torch.float32)
    n = scores.shape[-1]
    flat = scores.reshape(-1).to(wide)
    keep = mask.expand_as(scores).reshape(-1).nonzero()[:, 0]
    row = keep // n
    rows = flat.numel() // n
    s = flat.gather(0, keep)
    top = torch.full((rows,), -torch.inf, dtype=wide).scatter_reduce(0, row, s.detach(), "amax")
    e = (s - top[row]).exp()
    z = torch.zeros(rows, dtype=wide).scatter_add(0, row, e)
    out = torch.zeros_like(flat).scatter(0, keep, e / z[row])
    return out.reshape(scores.shape).to(scores.dtype)

# %% causal_mask: default dtype switched and restored, lambda
import torch


def _ones(n):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return torch.ones(n, n)
    finally:
        torch.set_default_dtype(before)


causal_mask = lambda length: _ones(length).tril().type(torch.bool)  # noqa: E731

# %% causal_mask: a class whose __new__ returns the tensor
import torch


class causal_mask:
    def __new__(cls, length):
        return cls.grid(length)

    @staticmethod
    def grid(n):
        r = torch.arange(n)
        return torch.less_equal(r, r.unsqueeze(-1))

# %% sliding_window_mask: toggled in place by diagonals, __call__ object
import torch


class Window:
    def __call__(self, length, window):
        out = torch.zeros(length, length, dtype=torch.bool)
        for k in range(min(window, length)):
            out.diagonal(-k).fill_(True)
        return out


sliding_window_mask = Window()

# %% padding_mask: expanded view, keyword-only helper, star arguments
import torch


def _view(*, mask, shape):
    return mask.as_strided(shape, (mask.stride(0), 0, 0, mask.stride(1)))


def padding_mask(tokens, pad_id):
    m = torch.ne(tokens, torch.full((), pad_id, dtype=tokens.dtype))
    return _view(mask=m, shape=(m.shape[0], 1, 1, m.shape[1]))
