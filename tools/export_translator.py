"""Write the trained translator for the browser: `python -m tools.export_translator [FOLDER]`.

It writes `weights.bin` and `model.json` for `book/_static/translator/engine.js`; the build of the book calls it.

Each weight becomes a whole number q of steps; a step is 1/240 of the standard deviation of its tensor. Few weights are
large, so Huffman codes need less space than a fixed width. `weights.bin` is a gzip stream that browsers can unpack. It
has q = 4096 · high + 16 · middle + low for all tensors, in the order of "tensors" in `model.json`: first all `high`
as int8 (nearly all are zero), then all `middle` as int8, then all `low` in four bits.

The table shows how many of the 1,000 sentences of test_2016_flickr keep their greedy translation, measured in Python
with rounded matrices; at least 990 are required, and 970 with a beam of five, in 3.5 MB for everything. (With the
weights of an earlier model, numbers of a fixed width kept 959 to 973 with 8 bits, and 992 to 996 with 10.)

| step | bits per weight | greedy |
|---|---|---|
| 1/160 | 9.4 | 986 |
| **1/240** | 10.0 | 995 |
| 1/320 | 10.4 | 997 |
| 1/480 | 11.0 | 998 |

With these files, `engine.js` itself keeps 995 and 993. Its BLEU is 40.72 and 41.74; the original weights have 40.74 and
41.73 in Python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import zlib
from pathlib import Path

import numpy as np

from course_kit.translator.translator import MAX_SOURCE_TOKENS, PRETRAINED
from tools.publisher import ROOT

SOURCE = PRETRAINED / "multi30k-de-en"
FOLDER = ROOT / "_build/html/_static/translator"
STEPS = 240  # per standard deviation of a tensor


def quantised(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Whole numbers and a step; their product is close to the weights."""
    step = float(np.float32(weight.astype(np.float32).std() / STEPS))
    return np.rint(weight.astype(np.float64) / step).astype(np.int16), step


def export(source: Path = SOURCE) -> dict[str, bytes]:
    """The files and their contents.

    Raises:
        ValueError: the model is of another kind than `engine.js` computes.
    """
    from safetensors.numpy import load

    config = json.loads((source / "config.json").read_text("utf-8"))
    if (config["model"]["norm"], config["model"]["positions"]) != ("pre", "rotary"):
        raise ValueError(f"engine.js computes pre-norm layers with rotary positions only, got {config['model']}")
    tensors = load((source / "weights.safetensors").read_bytes())
    described, numbers = [], []
    for name in sorted(tensors):
        whole, step = quantised(tensors[name])
        described.append({"name": name, "shape": list(whole.shape), "step": step})
        numbers.append(whole.ravel())
    whole = np.concatenate(numbers)
    high, middle, low = (whole + 2048) >> 12, whole >> 4 & 255, whole & 15
    planes = [high.astype(np.int8), middle.astype(np.uint8), (low[::2] | low[1::2] << 4).astype(np.uint8)]
    # Huffman codes and runs of zeros only: in the rest, which is noise, a longer search finds nothing.
    gzip = zlib.compressobj(9, zlib.DEFLATED, 31, 9, zlib.Z_RLE)
    packed = gzip.compress(b"".join(plane.tobytes() for plane in planes)) + gzip.flush()
    about = {
        "source_sha256": config["sha256"],
        "sha256": hashlib.sha256(packed).hexdigest(),
        "bytes": len(packed),
        "config": {key: config["model"][key] for key in ("d_model", "num_heads", "num_layers")},
        "max_source_tokens": MAX_SOURCE_TOKENS,
        "tensors": described,
        **_vocabulary(source),
    }
    return {"weights.bin": packed, "model.json": json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode()}


def _vocabulary(source: Path) -> dict:
    """Special tokens, characters, and the two parts of each further token, which come in the order of the merges."""
    model = json.loads((source / "vocabulary.json").read_text("utf-8"))["model"]
    ids = model["vocab"]
    tokens = sorted(ids, key=ids.get)
    first = len(tokens) - len(model["merges"])
    if ["".join(pair) for pair in model["merges"]] != tokens[first:]:
        raise ValueError("the vocabulary must list its merges in order after the characters; export it in another way")
    return {
        "special": tokens[:4],
        "characters": "".join(tokens[4:first]),
        "merges": [ids[part] for pair in model["merges"] for part in pair],
    }


def write(folder: Path = FOLDER) -> None:
    """Write the files into a folder, if they are not there already."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in export().items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="default: the built book")
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
