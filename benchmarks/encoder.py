"""A trained encoder in the course's blocks against `transformers`' own: loading it, and a forward pass.

Both read the same folder. Theirs computes attention by PyTorch's fused function (its default), and so does ours. Ours
checks the tokenizer when it loads and builds it at the first sentence, theirs is another call: so once without and once
with a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.timing import compare
from course_kit.bert import find_encoder, load_encoder

BATCH, LENGTH = 8, 128


def rows() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """The ratios for all-MiniLM-L6-v2."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = find_encoder("all-MiniLM-L6-v2", download=False)
    result = compare(lambda: load_encoder(folder), lambda: AutoModel.from_pretrained(folder))
    yield "load_encoder / AutoModel.from_pretrained", result.ratio, result.spread
    sentence = ["Time flies like an arrow."]
    result = compare(
        lambda: load_encoder(folder).tokenize(sentence),
        lambda: (AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)(sentence)),
    )
    yield "load_encoder and a sentence tokenised / AutoModel and AutoTokenizer", result.ratio, result.spread

    ours, theirs = load_encoder(folder), AutoModel.from_pretrained(folder).eval()
    token_ids = torch.randint(1000, ours.config.vocab_size, (BATCH, LENGTH))
    padded = torch.ones(BATCH, LENGTH, dtype=torch.bool)
    padded[::3, -LENGTH // 4 :] = False
    for name, mask in (("", torch.ones_like(padded)), (", with padding", padded)):
        with torch.no_grad():
            result = compare(
                lambda mask=mask: ours(token_ids, mask), lambda mask=mask: theirs(token_ids, attention_mask=mask)
            )
        yield f"forward pass of all-MiniLM-L6-v2, batch {BATCH} × {LENGTH}{name}", result.ratio, result.spread
