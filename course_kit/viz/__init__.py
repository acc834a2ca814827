"""Figures and interactive views of the course, of tensors only: nothing here knows a model."""

from course_kit.viz.attention_map import attention_map, description_of, save_figure
from course_kit.viz.attention_views import alignment, query_plane
from course_kit.viz.debugging_losses import loss_curves
from course_kit.viz.decoding_beam_tree import beam_tree
from course_kit.viz.decoding_cache_work import cache_work
from course_kit.viz.decoding_next_token import next_token_bars
from course_kit.viz.describing import describe
from course_kit.viz.diagram import BlockDiagram, block_diagram
from course_kit.viz.efficiency_layers import layer_costs
from course_kit.viz.efficiency_tiles import tile_walk
from course_kit.viz.inspection_heads import head_view, model_view
from course_kit.viz.inspection_lens import logit_lens_view
from course_kit.viz.inspection_neurons import neuron_view
from course_kit.viz.inspection_pairs import pair_view
from course_kit.viz.inspection_patching import patching_view
from course_kit.viz.inspection_words import contextual_words
from course_kit.viz.labels import readable
from course_kit.viz.masking_leaks import leak_detector
from course_kit.viz.masking_painter import mask_painter
from course_kit.viz.multi_head_split import head_split
from course_kit.viz.positional_encoding_views import rotary_pair, sinusoid_probe
from course_kit.viz.scaled_dot_product_views import attention_calculator, scale_explorer
from course_kit.viz.style import PALETTE, SERIES, WEIGHTS, use_style
from course_kit.viz.transformer_maps import three_attentions
from course_kit.viz.transformer_norm_switch import norm_switch
from course_kit.viz.transformer_steps import block_stepper

__all__ = [
    "PALETTE",
    "SERIES",
    "WEIGHTS",
    "BlockDiagram",
    "alignment",
    "attention_calculator",
    "attention_map",
    "beam_tree",
    "block_diagram",
    "block_stepper",
    "cache_work",
    "contextual_words",
    "describe",
    "description_of",
    "head_split",
    "head_view",
    "layer_costs",
    "leak_detector",
    "logit_lens_view",
    "loss_curves",
    "mask_painter",
    "model_view",
    "neuron_view",
    "next_token_bars",
    "norm_switch",
    "pair_view",
    "patching_view",
    "query_plane",
    "readable",
    "rotary_pair",
    "save_figure",
    "scale_explorer",
    "sinusoid_probe",
    "three_attentions",
    "tile_walk",
    "use_style",
]
