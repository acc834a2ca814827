"""Mistakes in `EncoderLayer`: two at once."""

from __future__ import annotations

import torch

from course_lib.exercises._headings import PRE_OR_POST
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.encoder_layer_mistakes.parts import encoder
from course_lib.exercises.transformer.variants import WITH_A_MASK_MISTAKE, everywhere, where_given

mistake = Mistakes()


for _key, _says, _changes in WITH_A_MASK_MISTAKE:
    for _name, _words, _mask in (
        ("mask_ignored", "the mask has no effect", lambda mask, x: None),
        (
            "mask_turned_round",
            "attention goes where the mask forbids it",
            lambda mask, x: where_given(mask, torch.logical_not),
        ),
    ):
        mistake.named(f"{_key}_and_{_name}", f"Two things: {_says}, and {_words}.", look=PRE_OR_POST)(
            encoder(mask=_mask, **everywhere(2, _changes))
        )
