"""Solutions that break one clause of the contract of `speculative_acceptance` each."""

import torch
from contract_clauses import breaks

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
LAYOUT = "a tensor is right in any layout of its memory"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"

# speculative_acceptance

ACCEPT = "speculative_acceptance"


def _kept(target, draft):
    return (target / draft.masked_fill(draft == 0, 1.0)).clamp(max=1.0).masked_fill(draft == 0, 1.0)


def _rest(target, draft):
    missing = (target - draft).clamp(min=0.0)
    return missing / missing.sum(-1, keepdim=True)


def _rule(target, draft):
    return _kept(target, draft), _rest(target, draft)


@breaks(ACCEPT, "accept = min(1, target / draft): the ratio")
def _(target, draft):
    return _kept(draft, target), _rest(target, draft)


@breaks(ACCEPT, "accept = min(1, target / draft): at most 1")
def _(target, draft):
    never = draft == 0
    return (target / draft.masked_fill(never, 1.0)).masked_fill(never, 1.0), _rest(target, draft)


@breaks(ACCEPT, "accept is 1 where draft is 0, also where target is 0")
def _(target, draft):
    return (target / draft).clamp(max=1.0), _rest(target, draft)


@breaks(ACCEPT, "accept is 1 where draft is 0, also where target is 0")
def _(target, draft):
    return _kept(target, draft).masked_fill((target == 0) & (draft == 0), 0.0), _rest(target, draft)


@breaks(ACCEPT, "accept is 1 where draft is 0, also where target is not")
def _(target, draft):
    return _kept(target, draft).masked_fill((target > 0) & (draft == 0), 0.0), _rest(target, draft)


@breaks(ACCEPT, "accept is 1 where draft is 0, and only there")
def _(target, draft):
    return _kept(target, draft).masked_fill(target == 0, 1.0), _rest(target, draft)


@breaks(ACCEPT, "accept is a probability, not a decision")
def _(target, draft):
    return (target >= draft).to(target.dtype), _rest(target, draft)


@breaks(ACCEPT, "accept is (..., V): one probability per token")
def _(target, draft):
    return (draft * _kept(target, draft)).sum(-1, keepdim=True), _rest(target, draft)


@breaks(ACCEPT, "residual = max(target − draft, 0): nothing below 0")
def _(target, draft):
    return _kept(target, draft), target - draft


@breaks(ACCEPT, "residual = max(target − draft, 0): no absolute values")
def _(target, draft):
    missing = (target - draft).abs()
    return _kept(target, draft), missing / missing.sum(-1, keepdim=True)


@breaks(ACCEPT, "residual = max(target − draft, 0): the difference")
def _(target, draft):
    return _kept(target, draft), target.clone()


@breaks(ACCEPT, "residual = max(target − draft, 0): in this order")
def _(target, draft):
    return _kept(target, draft), _rest(draft, target)


@breaks(ACCEPT, "the residual is normalised")
def _(target, draft):
    return _kept(target, draft), (target - draft).clamp(min=0.0)


@breaks(ACCEPT, "the residual is normalised, each row by itself")
def _(target, draft):
    missing = (target - draft).clamp(min=0.0)
    return _kept(target, draft), missing / missing.sum()


@breaks(ACCEPT, "the residual is normalised, with distributions that are nearly the same")
def _(target, draft):
    missing = (target - draft).clamp(min=0.0)
    return _kept(target, draft), missing / missing.sum(-1, keepdim=True).clamp(min=0.1)


@breaks(ACCEPT, "(accept, residual), in this order")
def _(target, draft):
    return _rule(target, draft)[::-1]


@breaks(ACCEPT, "(accept, residual), both")
def _(target, draft):
    return _kept(target, draft)


@breaks(ACCEPT, "(..., V): a vector, too")
def _(target, draft):
    if target.dim() == 1:
        raise IndexError("there are no rows")
    return _rule(target, draft)


@breaks(ACCEPT, BATCH)
def _(target, draft):
    if target.dim() > 2:
        raise RuntimeError("two axes at most")
    return _rule(target, draft)


@breaks(ACCEPT, BATCH)
def _(target, draft):
    if target.dim() > 3:
        raise RuntimeError("three axes at most")
    return _rule(target, draft)


@breaks(ACCEPT, "both are (..., V), for a batch of one too")
def _(target, draft):
    return tuple(x.squeeze() for x in _rule(target, draft))


@breaks(ACCEPT, LAYOUT)
def _(target, draft):
    return _rule(target.view(-1).view(target.shape), draft)


@breaks(ACCEPT, ROUND)
def _(target, draft):
    return tuple(x.to(target.dtype) for x in _rule(target.float(), draft.float()))


@breaks(ACCEPT, ROUND)
def _(target, draft):
    accept, residual = _rule(target, draft)
    return (accept, residual) if target.dtype == torch.float64 else (accept.bfloat16().float(), residual)


@breaks(ACCEPT, ROUND)
def _(target, draft):
    return (target / (draft + 1e-8)).clamp(max=1.0).masked_fill(draft == 0, 1.0), _rest(target, draft)


@breaks(ACCEPT, DTYPE)
def _(target, draft):
    return tuple(x.double() for x in _rule(target, draft))


@breaks(ACCEPT, UNCHANGED + ": target")
def _(target, draft):
    result = _rule(target, draft)
    target.sub_(draft).clamp_(min=0.0)
    return result


@breaks(ACCEPT, UNCHANGED + ": draft")
def _(target, draft):
    result = _rule(target, draft)
    draft.masked_fill_(draft == 0, 1.0)
    return result


@breaks(ACCEPT, GRADIENTS + ": accept")
def _(target, draft):
    return _kept(target, draft).detach(), _rest(target, draft)


@breaks(ACCEPT, GRADIENTS + ": residual")
def _(target, draft):
    return _kept(target, draft), _rest(target, draft).detach()


@breaks(ACCEPT, GRADIENTS + ": target")
def _(target, draft):
    return _rule(target.detach(), draft)


@breaks(ACCEPT, GRADIENTS + ": draft")
def _(target, draft):
    return _rule(target, draft.detach())


@breaks(ACCEPT, "nothing depends on chance")
def _(target, draft):
    accept = _kept(target, draft)
    return (torch.rand_like(accept) < accept).to(accept.dtype), _rest(target, draft)
