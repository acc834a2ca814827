"""Mistakes in `EncoderLayer`: the mask."""

from __future__ import annotations

from course_lib.exercises._headings import ENCODER_LAYER
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.cases_of_layers import causal
from course_lib.exercises.transformer.encoder_layer import EncoderLayer
from course_lib.exercises.transformer.encoder_layer_mistakes.parts import encoder
from course_lib.exercises.transformer.parts_of_layers import MASK_OUT_OF_LINE
from course_lib.exercises.transformer.variants import built_with, where_given

mistake = Mistakes()


@mistake.built(look=ENCODER_LAYER)
def mask_ignored():
    """The result does not depend on the mask. It has to be passed on to the attention."""
    return encoder(mask=lambda mask, x: None)


@mistake.built(look=ENCODER_LAYER)
def mask_turned_round():
    """Attention goes exactly where the mask forbids it. True means *may attend*, in the course's attention as here;
    only `nn.MultiheadAttention` has it the other way round."""
    return encoder(mask=lambda mask, x: None if mask is None else ~mask)


@mistake.built(look=ENCODER_LAYER)
def mask_transposed():
    """The last two axes of the mask are exchanged. Rows are queries, columns are keys, in the mask as in the scores."""
    return encoder(mask=lambda mask, x: None if mask is None else mask.transpose(-2, -1))


@mistake.built(look=ENCODER_LAYER)
def causal_always():
    """The layer hides the future by itself. An encoder reads the whole input; only the mask hides keys."""
    return encoder(mask=lambda mask, x: causal(x.shape[1]) if mask is None else mask & causal(x.shape[1]))


@mistake.built(look=ENCODER_LAYER)
def causal_by_default():
    """Without a mask, the layer hides the future. None means that everything may be attended to."""
    return encoder(mask=lambda mask, x: causal(x.shape[1]) if mask is None else mask)


@mistake.built(look=ENCODER_LAYER)
def causal_instead():
    """Whatever mask is given, a causal one is used."""
    return encoder(mask=lambda mask, x: causal(x.shape[1]))


@mistake.built(look=ENCODER_LAYER)
def mask_as_numbers():
    """The mask is converted to numbers. It is bool, and the attention accepts it as it is."""
    return encoder(mask=lambda mask, x: None if mask is None else mask.float())


@mistake.built(look=ENCODER_LAYER)
def if_mask():
    """`if mask:` needs one truth value for a whole tensor, which is not defined. Test whether there is a mask
    instead."""
    return encoder(mask=lambda mask, x: mask if mask else None)


@mistake.built(look=ENCODER_LAYER)
def mask_gets_head_axis():
    """The mask is given an axis for the heads. It broadcasts to (B, H, L, L) as it is; pass it on unchanged."""
    return encoder(mask=lambda mask, x: None if mask is None else mask.unsqueeze(1))


@mistake.built(look=ENCODER_LAYER)
def mask_gets_batch_axis():
    """The mask is given another axis, in front. It broadcasts to (B, H, L, L) as it is; pass it on unchanged."""
    return encoder(mask=lambda mask, x: None if mask is None else mask.unsqueeze(0))


@mistake.built(look=ENCODER_LAYER)
def mask_gets_two_axes():
    """The mask is treated as one of shape (B, L) and given two axes. It broadcasts to (B, H, L, L) as it is; pass it on
    unchanged."""
    return encoder(mask=lambda mask, x: None if mask is None else mask[:, None, None])


@mistake.built(look=ENCODER_LAYER)
def mask_of_three_axes_by_sequence():
    """A mask with three axes is treated as one per sequence and given a head axis in the middle. Masks broadcast from
    the right, so its first axis is that of the heads; pass it on unchanged."""
    return encoder(mask=lambda mask, x: mask[:, None] if mask is not None and mask.dim() == 3 else mask)


@mistake.built(look=ENCODER_LAYER)
def mask_of_two_axes_by_sequence():
    """A mask with two axes is treated as (B, L), with the allowed keys of each sequence, and given two axes in the
    middle. It is (L, L), and broadcasts as it is."""
    return encoder(mask=lambda mask, x: mask[:, None, None] if mask is not None and mask.dim() == 2 else mask)


@mistake.built(look=ENCODER_LAYER)
def mask_added_axes_at_the_end():
    """The mask is given an axis at its end. Its last two axes are already queries and keys; pass it on unchanged."""
    return encoder(mask=lambda mask, x: None if mask is None else mask.unsqueeze(-1))


@mistake(look=ENCODER_LAYER)
class MaskChanged(EncoderLayer):
    """The result is right, but the mask, which belongs to the caller, is changed."""

    def forward(self, x, mask=None):
        result = super().forward(x, mask)
        if mask is not None:
            mask.logical_not_()
        return result


@mistake.built(look=ENCODER_LAYER)
def nonzero_mask_needed():
    """The layer does not work without a mask. None means that everything may be attended to."""
    return encoder(mask=lambda mask, x: mask.bool())


for _key, _mask in (
    ("mask_gets_head_axis", lambda mask, x: where_given(mask, lambda m: m.unsqueeze(1))),
    ("mask_gets_two_axes", lambda mask, x: where_given(mask, lambda m: m[:, None, None])),
    (
        "mask_of_three_axes_by_sequence",
        lambda mask, x: where_given(mask, lambda m: m[:, None] if m.dim() == 3 else m),
    ),
    ("mask_added_axes_at_the_end", lambda mask, x: where_given(mask, lambda m: m.unsqueeze(-1))),
):
    _says = next(known.says for known in mistake if known.key == _key)
    mistake.named(f"{_key}_in_own_attention", f"{_says} {MASK_OUT_OF_LINE}", look=ENCODER_LAYER)(
        encoder(mask=_mask, base=built_with(EncoderLayer))
    )
