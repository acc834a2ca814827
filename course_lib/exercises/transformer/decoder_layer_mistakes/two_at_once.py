"""Mistakes in `DecoderLayer`: two at once."""

from __future__ import annotations

import torch

from course_lib.exercises._headings import PRE_OR_POST
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.decoder_layer_mistakes.parts import decoder
from course_lib.exercises.transformer.variants import WITH_A_MASK_MISTAKE, everywhere, where_given

mistake = Mistakes()


for _key, _says, _changes in WITH_A_MASK_MISTAKE:
    for _name, _words, _change in (
        ("masks_ignored", "neither mask has an effect", lambda own, theirs, x: (None, None)),
        ("self_mask_ignored", "self_mask has no effect", lambda own, theirs, x: (None, theirs)),
        ("memory_mask_ignored", "memory_mask has no effect", lambda own, theirs, x: (own, None)),
        (
            "masks_turned_round",
            "attention goes where the masks forbid it",
            lambda own, theirs, x: (where_given(own, torch.logical_not), where_given(theirs, torch.logical_not)),
        ),
    ):
        mistake.named(f"{_key}_and_{_name}", f"Two things: {_says}, and {_words}.", look=PRE_OR_POST)(
            decoder(masks=_change, **everywhere(3, _changes))
        )
