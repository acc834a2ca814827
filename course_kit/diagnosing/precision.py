"""Other dtypes and another device: rounding, overflow, and what is fixed to float32 or to the CPU."""

from __future__ import annotations

import torch

from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import Subject, seeded

__all__ = ["double_precision", "half_precision", "other_device"]

_GAP = 1e-3  # of the largest logit, between float32 and float64: a sum of a million numbers loses less
_MIXED = (
    "dtype",
    "datatype",
    "scalar type",
    "same type",
    "Half and Float",
    "Float and Half",
    "but found Float",
    "but found Double",
)
_DEVICES = ("same device", "at least two devices", "meta and cpu", "cpu and meta", "is on cpu", "expected device")


def double_precision(subject: Subject) -> Finding:
    """Are the logits in float64 those in float32, up to rounding?"""
    name, measured = "float64", "largest difference to float32, relative to the largest logit"
    try:
        exact = _in_dtype(subject, torch.float64)
    except Exception as error:
        return _refused(name, "float64", error)
    rough = _in_dtype(subject, torch.float32).double()
    if not exact.isfinite().all() or not rough.isfinite().all():
        return Finding(name, "not checked", "There are logits that are not finite.")
    number = ((rough - exact.double()).abs().max() / exact.abs().max().clamp(min=1e-30)).item()
    if number > _GAP and subject.is_random:
        return Finding(name, "not checked", "The logits are random in eval mode.")
    if number > _GAP:
        message = (
            "float32 and float64 give different logits: digits are lost, for example in a difference of large numbers, "
            "in an exponential without its maximum subtracted, or in half precision."
        )
        return Finding(name, "suspicious", message, number, measured)
    if exact.dtype != torch.float64:
        message = f"The model runs in float64, but its logits are {exact.dtype}: they are converted on the way."
        return Finding(name, "fine", message, number, measured)
    return Finding(name, "fine", "float32 and float64 agree up to rounding.", number, measured)


def half_precision(subject: Subject) -> Finding:
    """Are the logits finite in float16 and in bfloat16?"""
    name, measured = "half precision", "share of logits that are not finite"
    if not subject.logits.isfinite().all():
        return Finding(name, "not checked", "There are logits that are not finite in full precision.")
    missing = {}
    for dtype in (torch.float16, torch.bfloat16):
        short = str(dtype).removeprefix("torch.")
        try:
            missing[short] = (~_in_dtype(subject, dtype).isfinite()).double().mean().item()
        except Exception as error:
            if "overflow" in str(error):
                message = (
                    f"In {short}: {error}. A constant such as −1e9 does not fit; use −inf, or torch.finfo(dtype).min."
                )
                return Finding(name, "wrong", message)
            return _refused(name, short, error)
    worst = max(missing, key=missing.get)
    if missing[worst]:
        message = (
            f"There are NaN or infinite logits in {worst}, and none in float32: something grows beyond the largest "
            f"number, {torch.finfo(getattr(torch, worst)).max:.3g}, or −inf minus −inf is computed."
        )
        return Finding(name, "wrong", message, missing[worst], measured)
    return Finding(name, "fine", "The logits are finite in float16 and in bfloat16.", 0, measured)


def other_device(subject: Subject) -> Finding:
    """Does the whole model move to another device? (The device "meta" computes shapes only.)"""
    name = "device"
    try:
        with torch.no_grad(), seeded(0):
            subject.batch.to("meta").logits(subject.copied().to("meta"))
    except Exception as error:
        text = _short(error)
        if any(part in str(error) for part in _DEVICES):
            message = (
                f"Something stays behind when the model is moved to another device: {text}. Register constant tensors "
                f"with register_buffer, and create others with device=x.device."
            )
            return Finding(name, "wrong", message)
        return Finding(name, "not checked", f"On the device 'meta', which holds no data, the model raises: {text}")
    return Finding(name, "fine", "The model and all it uses move to another device.")


def _in_dtype(subject: Subject, dtype: torch.dtype) -> torch.Tensor:
    with torch.no_grad(), seeded(0):
        return subject.batch.to(dtype).logits(subject.copied().to(dtype))


def _refused(name: str, dtype: str, error: Exception) -> Finding:
    text = _short(error)
    if any(part in str(error) for part in _MIXED) and "not implemented" not in str(error):
        message = (
            f"In {dtype}, the model raises: {text}. A tensor keeps its dtype when the model is converted: register it "
            f"as a buffer, or create it with dtype=x.dtype."
        )
        return Finding(name, "wrong", message)
    return Finding(name, "not checked", f"In {dtype}, the model raises: {text}")


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".!")
    return f"{type(error).__name__}: {text[:150]}{'…' if len(text) > 150 else ''}"
