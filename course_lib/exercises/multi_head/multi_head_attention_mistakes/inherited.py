"""Mistakes in `MultiHeadAttention`: those of splitting, merging and attention inside it."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.merge_heads import exercise as merge_heads_exercise
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import variant
from course_lib.exercises.multi_head.split_heads import exercise as split_heads_exercise
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as attention_exercise

mistake = Mistakes()


# Those left out end in errors of many causes here, which are explained as such, or are another mistake of the module.
mistake.contains(
    split_heads_exercise,
    lambda wrong: variant(split=wrong),
    without=(
        "features_before_positions",
        "tuple_of_heads",
        "positions_cut",
        "divides_the_other_way_round",
        "raises_where_it_divides",
        "length_checked",
    ),
)


mistake.contains(
    merge_heads_exercise,
    lambda wrong: variant(merge=wrong),
    without=(
        "features_and_positions_exchanged",
        "heads_averaged",
        "averaged_over_axis_1",
        "heads_summed",
        "heads_one_after_the_other",
        "positions_times_heads",
        "hstack",
    ),
)


NOT_HERE = {"features_compared", "values_first", "only_weights", "mask_in_the_indices"}


mistake.contains(
    attention_exercise,
    lambda wrong: variant(attend=wrong),
    called="attention",
    without=tuple(
        m.key for m in attention_exercise.misconceptions if m.within or "_and_" in m.key or m.key in NOT_HERE
    ),
)
