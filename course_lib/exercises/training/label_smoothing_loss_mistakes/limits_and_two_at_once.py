"""Mistakes in `label_smoothing_loss`: clipped logits, and two common mistakes at once."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss_mistakes.parts import loss

mistake = Mistakes()


_COMMON_IN_LOSS: dict[str, tuple[str, dict]] = {
    "pads_counted": ("padded positions count", {"mean": lambda each, real, vocab: each.mean()}),
    "divided_by_all_positions": (
        "the sum is divided by all positions",
        {"mean": lambda each, real, vocab: each[real].sum() / len(each)},
    ),
    "sum": ("the losses are not divided by their number", {"mean": lambda each, real, vocab: each[real].sum()}),
    "mass_over_the_others": (
        "the mass ε goes to the wrong classes only",
        {"label": lambda q, e, pad: (1 - e) * q + e / (q.shape[1] - 1) * (1 - q)},
    ),
    "mass_added_in_full": ("every class gets ε in full", {"label": lambda q, e, pad: (1 - e) * q + e}),
    "mass_added": (
        "nothing is taken from the target for ε",
        {"label": lambda q, e, pad: q + e / q.shape[1]},
    ),
    "target_without_its_share": (
        "the target does not get its own share of ε",
        {"label": lambda q, e, pad: (1 - e) * q + e / q.shape[1] * (1 - q)},
    ),
    "logarithm_of_softmax": (
        "the logarithm of a softmax is −∞ for logits far apart",
        {"transform": lambda logits: logits.softmax(-1).log()},
    ),
    "small_number_in_log_9": (
        "1e-9 in the logarithm falsifies small probabilities",
        {"transform": lambda logits: (logits.softmax(-1) + 1e-9).log()},
    ),
    "no_softmax": ("the logits are not log-probabilities yet", {"transform": lambda logits: logits}),
    "probabilities": (
        "probabilities are used instead of their logarithms",
        {"transform": lambda logits: logits.softmax(-1)},
    ),
}


for bound in (20, 30, 50, 100, 1000):
    says = f"The logits are clipped at ±{bound}, which gives wrong results for larger ones. No clipping is needed."
    mistake.named(f"logits_cut_off_at_{bound}", says)(
        loss(transform=lambda logits, bound=bound: logits.clamp(-bound, bound).log_softmax(-1))
    )


mistake.two_at_once(_COMMON_IN_LOSS, loss)
