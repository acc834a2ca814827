"""The translator as the browser gets it, in Python: read from the exported files without any code of the export."""

import json
import math
import zlib
from functools import cache

import numpy as np
import torch

from course_kit.translator import Translator, pretrained
from tools.export_translator import export


@cache
def files() -> dict[str, bytes]:
    return export()


@cache
def weights() -> dict[str, torch.Tensor]:
    """Each tensor as `engine.js` has to restore it."""
    tensors = json.loads(files()["model.json"])["tensors"]
    count = sum(math.prod(tensor["shape"]) for tensor in tensors)
    raw = zlib.decompress(files()["weights.bin"], 31)
    high, middle = (np.frombuffer(raw, np.int8, count, start).astype(int) for start in (0, count))
    low = np.frombuffer(raw, np.uint8, offset=2 * count)
    whole = 4096 * high + 16 * middle + np.stack((low & 15, low >> 4), 1).ravel()
    restored, start = {}, 0
    for tensor in tensors:
        part = whole[start : start + math.prod(tensor["shape"])] * tensor["step"]
        restored[tensor["name"]] = torch.tensor(part.astype(np.float32)).reshape(tensor["shape"])
        start += part.size
    return restored


@cache
def translator() -> Translator:
    """The pretrained translator with those weights."""
    ours = pretrained()
    ours.model.load_state_dict(weights(), strict=False)  # what is missing is tied to what is there
    return ours
