"""Exercise `load_balancing_loss`: metadata, stub and cases."""

import torch
from torch import Tensor

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import load_balancing_loss

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=15,
    stub='''\
def load_balancing_loss(router_probs, chosen):
    """N · Σ f_e · P_e, from probabilities (tokens, N) and chosen experts (tokens,)."""
    raise NotImplementedError
''',
    reference=load_balancing_loss,
    shapes={"router_probs": "tokens experts", "chosen": "tokens"},
    returns=("loss",),
    read_next="mixture_of_experts: A loss that balances the load",
    single_sign_args=("router_probs",),
    forbidden=("transformers.load_balancing_loss_func",),
)


def _routed(draw: Draw, experts: int, chosen: Tensor, dtype=torch.float32):
    """Probabilities whose largest is that of the chosen expert, and chosen."""
    probs = draw.weights(len(chosen), experts, dtype=dtype)
    row, best = torch.arange(len(chosen)), probs.argmax(-1)
    largest, other = probs[row, best].clone(), probs[row, chosen].clone()
    probs[row, best] = other
    probs[row, chosen] = largest
    return probs, chosen


def _all_used(draw: Draw, experts: int, tokens: int) -> Tensor:
    """An expert per token, each of them at least once, and 0 more often than the others."""
    more = draw.integers(tokens - experts, low=0, high=experts - 1) // 2
    chosen = torch.cat((torch.arange(experts), more))
    return chosen[torch.randperm(tokens, generator=draw.generator)]


@exercise.holds("It is N times the sum over the experts of the share of tokens times the mean probability", weight=2)
def _(draw):
    probs = torch.tensor([[0.75, 0.25], [0.625, 0.375], [0.5, 0.5], [0.25, 0.75]])
    edge = "few numbers, to be read by eye: the shares are 3/4 and 1/4, the means 17/32 and 15/32"
    yield Case(
        args=(probs, torch.tensor([0, 0, 0, 1])), note="2 · (3/4 · 17/32 + 1/4 · 15/32)", degenerate_because=edge
    )
    for dtype in (torch.float64, torch.float32, torch.float32):
        experts, tokens = draw.integer(3, 5), draw.integer(9, 14)
        args = _routed(draw, experts, _all_used(draw, experts, tokens), dtype)
        yield Case(args=args, note=f"{tokens} tokens, {experts} experts, all of them in use")


@exercise.holds("The shares are those of the chosen experts, which need not be the most probable ones", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float64):
        experts, tokens = draw.integer(3, 5), draw.integer(9, 14)
        probs, chosen = _routed(draw, experts, _all_used(draw, experts, tokens), dtype)
        full = chosen.eq(chosen.mode().values)
        passed_on = torch.where(full, (chosen + 1) % experts, chosen)
        passed_on[full.nonzero()[0]] = chosen.mode().values
        yield Case(args=(probs, passed_on), note="the fullest expert passes its tokens on")


@exercise.holds("Experts without a token have a share of 0, and still count among the N")
def _(draw):
    for experts, used, dtype in ((5, (1, 2), torch.float32), (7, (0, 3, 4), torch.float64), (4, (3,), torch.float32)):
        chosen = torch.tensor([*used, *(used[0] for _ in range(11 - len(used)))])
        note = f"of {experts} experts, {len(used)} in use"
        yield Case(args=_routed(draw, experts, chosen, dtype), note=note)
    edge = "a single token"
    yield Case(args=_routed(draw, 3, torch.tensor([1])), note="a single token", degenerate_because=edge)


@exercise.holds("It is 1 if tokens and probabilities are spread evenly, and N if one expert gets everything")
def _(draw):
    for experts in (3, 5):
        even = torch.full((2 * experts, experts), 1 / experts)
        yield Case(args=(even, torch.arange(2 * experts) % experts), note=f"spread evenly over {experts}")
        one = draw.integer(0, experts - 1)
        alone = torch.nn.functional.one_hot(torch.full((11,), one), experts).float()
        yield Case(args=(alone, torch.full((11,), one)), note=f"all to expert {one} of {experts}")
