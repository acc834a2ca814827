"""Do padding tokens change the logits of real ones?"""

from __future__ import annotations

import torch

from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import TOLERANCE, Subject

__all__ = ["padding"]

_EXTRA = 3  # padding tokens


def padding(subject: Subject) -> Finding:
    """Do the logits of real tokens change when padding is appended?"""
    name, measured = "padding", "largest change of a real token's logits, relative to the largest logit"
    batch, pad_id = subject.batch, subject.pad_id
    if pad_id is None:
        if not any("mask" in name for stream in batch.streams for name in batch.companions(stream)):
            return Finding(name, "not checked", "The padding token is not known; pass pad_id.")
        pad_id = 0  # any token will do behind a mask
    if subject.blind:
        return Finding(name, "not checked", subject.blind)
    if subject.is_random:
        return Finding(name, "not checked", "The logits are random in eval mode.")
    run, found, refused = subject.runner(), {}, {}
    real = batch.real(batch.streams[-1], subject.pad_id)  # (B, L)
    for stream in batch.streams:
        try:
            found[stream] = _effect(run, batch, stream, pad_id, real)
        except Exception as error:
            refused[stream] = error
    if not found:
        error = next(iter(refused.values()))
        return Finding(name, "not checked", f"A batch with more padding raised {type(error).__name__}: {error}")
    stream, number = max(found.items(), key=lambda pair: pair[1])
    where = f" to `{stream}`" if len(batch.streams) > 1 else ""
    if number > TOLERANCE:
        message = (
            f"Appending padding{where} changes the logits of real tokens, so a sentence's result depends on how long "
            f"the others in its batch are. A padding mask is missing, or it is the wrong way round."
        )
        if not any("mask" in name for name in batch.companions(stream)):
            message += " If the model expects a mask, put it into the batch."
        return Finding(name, "wrong", message, number, measured)
    message = "Appended padding does not change the logits of real tokens."
    if refused:
        message += f" Not tried for {', '.join(refused)}, where a longer batch raised an error."
    return Finding(name, "fine", message, number, measured)


def _effect(run, batch, stream, pad_id, real) -> float:
    """Relative change of the logits when padding is appended, or takes the last places if the length is limited."""
    length = batch.inputs[stream].shape[1]
    shorter = batch
    try:
        padded = run(batch.longer(stream, pad_id, _EXTRA))
    except Exception:
        extra = min(_EXTRA, length - 1)
        if not extra:
            raise
        shorter = batch.shorter(stream, length - extra)
        padded = run(shorter.longer(stream, pad_id, extra))
    usual = run(shorter)
    kept = real[:, : usual.shape[1]]
    change = (padded[:, : usual.shape[1]] - usual).abs().amax(dim=-1)  # (B, L)
    change = torch.where(kept, change, torch.zeros_like(change)).max()
    return (change / usual.abs().max().clamp(min=1e-30)).item()
