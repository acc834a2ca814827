"""Mistakes in `DecoderLayer`: the two masks."""

from __future__ import annotations

import torch

from course_lib.exercises._headings import DECODER_LAYER
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.cases_of_layers import causal
from course_lib.exercises.transformer.decoder_layer import DecoderLayer
from course_lib.exercises.transformer.decoder_layer_mistakes.parts import decoder
from course_lib.exercises.transformer.parts_of_layers import MASK_OUT_OF_LINE
from course_lib.exercises.transformer.variants import built_with, where_given

mistake = Mistakes()


def _no_future(own, x):
    return causal(x.shape[1]) if own is None else own & causal(x.shape[1])


@mistake.built(look=DECODER_LAYER)
def masks_exchanged():
    """The masks are exchanged: self_mask is used in the cross-attention, memory_mask in the self-attention.
    Look at the order of the arguments, in the signature and in the calls."""
    return decoder(masks=lambda own, theirs, x: (theirs, own))


@mistake.built(look=DECODER_LAYER)
def masks_ignored():
    """The result depends on neither mask."""
    return decoder(masks=lambda own, theirs, x: (None, None))


@mistake.built(look=DECODER_LAYER)
def self_mask_ignored():
    """The result does not depend on self_mask: every position of the target can attend to the future. The training loss
    is very low, but the model cannot generate."""
    return decoder(masks=lambda own, theirs, x: (None, theirs))


@mistake.built(look=DECODER_LAYER)
def memory_mask_ignored():
    """The result does not depend on memory_mask: padding of the source is attended to."""
    return decoder(masks=lambda own, theirs, x: (own, None))


@mistake.built(look=DECODER_LAYER)
def self_mask_for_both():
    """self_mask is used in both attentions. The cross-attention has its own keys, and memory_mask applies to them."""
    return decoder(masks=lambda own, theirs, x: (own, own))


@mistake.built(look=DECODER_LAYER)
def self_mask_in_the_cross_attention_only():
    """self_mask is used in the cross-attention, and the self-attention gets no mask. self_mask is about the keys of
    the target, so it belongs in the self-attention; memory_mask is not used at all."""
    return decoder(masks=lambda own, theirs, x: (None, own))


@mistake.built(look=DECODER_LAYER)
def memory_mask_in_the_self_attention_only():
    """memory_mask is used in the self-attention, and the cross-attention gets no mask. memory_mask is about the keys
    of the source, so it belongs in the cross-attention; self_mask is not used at all."""
    return decoder(masks=lambda own, theirs, x: (theirs, None))


@mistake.built(look=DECODER_LAYER)
def memory_mask_for_both():
    """memory_mask is used in both attentions. The self-attention has its own keys, and self_mask applies to them."""
    return decoder(masks=lambda own, theirs, x: (theirs, theirs))


@mistake.built(look=DECODER_LAYER)
def masks_only_together():
    """A mask is used only if the other one is given too. Either may be given alone."""
    return decoder(
        masks=lambda own, theirs, x: (own, theirs) if own is not None and theirs is not None else (None, None)
    )


@mistake.built(look=DECODER_LAYER)
def masks_turned_round():
    """Attention goes exactly where the masks forbid it. True means *may attend*, in the course's attention as here;
    only `nn.MultiheadAttention` has it the other way round."""
    return decoder(
        masks=lambda own, theirs, x: (where_given(own, torch.logical_not), where_given(theirs, torch.logical_not))
    )


@mistake.built(look=DECODER_LAYER)
def self_mask_turned_round():
    """self_mask is inverted, but memory_mask is not. True means *may attend* in both."""
    return decoder(masks=lambda own, theirs, x: (where_given(own, torch.logical_not), theirs))


@mistake.built(look=DECODER_LAYER)
def memory_mask_turned_round():
    """memory_mask is inverted, but self_mask is not. True means *may attend* in both."""
    return decoder(masks=lambda own, theirs, x: (own, where_given(theirs, torch.logical_not)))


@mistake.built(look=DECODER_LAYER)
def self_mask_transposed():
    """The last two axes of self_mask are exchanged. Rows are queries, columns are keys, in the mask as in the
    scores."""
    return decoder(masks=lambda own, theirs, x: (where_given(own, lambda m: m.transpose(-2, -1)), theirs))


@mistake.built(look=DECODER_LAYER)
def causal_always():
    """The layer hides the future by itself, whatever self_mask is. In the course, a layer attends wherever its mask
    allows; the caller decides."""
    return decoder(masks=lambda own, theirs, x: (_no_future(own, x), theirs))


@mistake.built(look=DECODER_LAYER)
def causal_by_default():
    """Without self_mask, the layer hides the future by itself. None means that everything may be attended to."""
    return decoder(masks=lambda own, theirs, x: (causal(x.shape[1]) if own is None else own, theirs))


@mistake.built(look=DECODER_LAYER)
def causal_instead():
    """Whatever self_mask is given, a causal one is used."""
    return decoder(masks=lambda own, theirs, x: (causal(x.shape[1]), theirs))


@mistake.built(look=DECODER_LAYER)
def masks_as_numbers():
    """A mask is converted to numbers. It is bool, and the attention accepts it as it is."""
    return decoder(
        masks=lambda own, theirs, x: (where_given(own, torch.Tensor.float), where_given(theirs, torch.Tensor.float))
    )


@mistake.built(look=DECODER_LAYER)
def if_mask():
    """`if mask:` needs one truth value for a whole tensor, which is not defined. Test whether there is a mask
    instead."""
    return decoder(masks=lambda own, theirs, x: (own if own else None, theirs if theirs else None))


@mistake.built(look=DECODER_LAYER)
def masks_get_head_axis():
    """The masks are given an axis for the heads. They broadcast to (B, H, …) as they are; pass them on unchanged."""
    return decoder(
        masks=lambda own, theirs, x: (
            where_given(own, lambda m: m.unsqueeze(1)),
            where_given(theirs, lambda m: m.unsqueeze(1)),
        )
    )


@mistake.built(look=DECODER_LAYER)
def masks_get_batch_axis():
    """The masks are given another axis, in front. They broadcast to (B, H, …) as they are; pass them on unchanged."""
    return decoder(
        masks=lambda own, theirs, x: (
            where_given(own, lambda m: m.unsqueeze(0)),
            where_given(theirs, lambda m: m.unsqueeze(0)),
        )
    )


@mistake.built(look=DECODER_LAYER)
def masks_get_two_axes():
    """The masks are treated as masks of shape (B, L) and given two axes. They broadcast to (B, H, …) as they are; pass
    them on unchanged."""
    return decoder(
        masks=lambda own, theirs, x: (
            where_given(own, lambda m: m[:, None, None]),
            where_given(theirs, lambda m: m[:, None, None]),
        )
    )


@mistake.built(look=DECODER_LAYER)
def memory_mask_gets_two_axes():
    """memory_mask is treated as a mask of shape (B, L_memory) and given two axes. It broadcasts to (B, H, L, L_memory)
    as it is; pass it on unchanged."""
    return decoder(masks=lambda own, theirs, x: (own, where_given(theirs, lambda m: m[:, None, None])))


@mistake.built(look=DECODER_LAYER)
def self_mask_gets_head_axis():
    """self_mask is given an axis for the heads. It broadcasts to (B, H, L, L) as it is; pass it on unchanged."""
    return decoder(masks=lambda own, theirs, x: (where_given(own, lambda m: m.unsqueeze(1)), theirs))


@mistake.built(look=DECODER_LAYER)
def memory_mask_gets_head_axis():
    """memory_mask is given an axis for the heads. It broadcasts to (B, H, L, L_memory) as it is; pass it on
    unchanged."""
    return decoder(masks=lambda own, theirs, x: (own, where_given(theirs, lambda m: m.unsqueeze(1))))


@mistake.built(look=DECODER_LAYER)
def masks_of_three_axes_by_sequence():
    """Masks with three axes are treated as one per sequence and given a head axis in the middle. Masks broadcast from
    the right, so the first axis is that of the heads; pass them on unchanged."""
    return decoder(
        masks=lambda own, theirs, x: tuple(
            where_given(m, lambda m: m[:, None] if m.dim() == 3 else m) for m in (own, theirs)
        )
    )


@mistake.built(look=DECODER_LAYER)
def masks_of_two_axes_by_sequence():
    """Masks with two axes are treated as (B, L), with the allowed keys of each sequence. They contain the allowed keys
    of each query, and broadcast as they are."""
    return decoder(
        masks=lambda own, theirs, x: tuple(
            where_given(m, lambda m: m[:, None, None] if m.dim() == 2 else m) for m in (own, theirs)
        )
    )


@mistake.built(look=DECODER_LAYER)
def memory_mask_of_two_axes_by_sequence():
    """A memory_mask with two axes is treated as (B, L_memory), with the allowed keys of each sequence. It is (L,
    L_memory), and broadcasts as it is."""
    return decoder(
        masks=lambda own, theirs, x: (own, where_given(theirs, lambda m: m[:, None, None] if m.dim() == 2 else m))
    )


@mistake.built(look=DECODER_LAYER)
def memory_mask_transposed():
    """The last two axes of memory_mask are exchanged. Rows are queries, columns are keys, in the mask as in the
    scores."""
    return decoder(masks=lambda own, theirs, x: (own, where_given(theirs, lambda m: m.transpose(-2, -1))))


@mistake.built(look=DECODER_LAYER)
def self_mask_where_memory_mask_is_missing():
    """Where no memory_mask is given, self_mask is used in its place. None means that the whole source may be
    attended to."""
    return decoder(masks=lambda own, theirs, x: (own, own if theirs is None else theirs))


@mistake.built(look=DECODER_LAYER)
def self_mask_before_memory_mask():
    """Where self_mask is given, the cross-attention uses it in place of memory_mask. Each of the two attentions has its
    own keys, and its own mask."""
    return decoder(masks=lambda own, theirs, x: (own, theirs if own is None else own))


@mistake.built(look=DECODER_LAYER)
def self_mask_needed():
    """The layer does not work without self_mask. None means that everything may be attended to."""
    return decoder(masks=lambda own, theirs, x: (own.bool(), theirs))


@mistake.built(look=DECODER_LAYER)
def memory_mask_needed():
    """The layer does not work without memory_mask. None means that everything may be attended to."""
    return decoder(masks=lambda own, theirs, x: (own, theirs.bool()))


@mistake.built(look=DECODER_LAYER)
def masks_needed():
    """The layer does not work where a mask is None. None means that everything may be attended to."""
    return decoder(masks=lambda own, theirs, x: (own.bool(), theirs.bool()))


for _key, _change in (
    ("masks_exchanged", lambda own, theirs, x: (theirs, own)),
    ("self_mask_for_both", lambda own, theirs, x: (own, own)),
    ("memory_mask_for_both", lambda own, theirs, x: (theirs, theirs)),
    ("self_mask_where_memory_mask_is_missing", lambda own, theirs, x: (own, own if theirs is None else theirs)),
    (
        "masks_get_head_axis",
        lambda own, theirs, x: tuple(where_given(m, lambda m: m.unsqueeze(1)) for m in (own, theirs)),
    ),
    (
        "masks_get_two_axes",
        lambda own, theirs, x: tuple(where_given(m, lambda m: m[:, None, None]) for m in (own, theirs)),
    ),
    (
        "masks_of_three_axes_by_sequence",
        lambda own, theirs, x: tuple(
            where_given(m, lambda m: m[:, None] if m.dim() == 3 else m) for m in (own, theirs)
        ),
    ),
):
    _says = next(known.says for known in mistake if known.key == _key)
    mistake.named(f"{_key}_in_own_attention", f"{_says} {MASK_OUT_OF_LINE}", look=DECODER_LAYER)(
        decoder(masks=_change, base=built_with(DecoderLayer))
    )
