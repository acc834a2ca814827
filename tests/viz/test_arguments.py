"""One wrong argument in each figure, view and diagram: refused by name before anything is drawn, or drawn."""

from __future__ import annotations

import functools
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import torch
from wrong_arguments import Call, floats, right_and_wrong, weights

from course_kit import nn as full
from course_kit import viz
from course_kit.viz.view import View

OUT = TemporaryDirectory()  # what is written with arguments that are right
WORDS, OTHERS = ["a", "b", "c"], ["v", "w", "x", "y", "z"]
FREE = "another text"  # a text says anything
LABELS = "None|another text inside"
TITLED = {"title": FREE}
ATTENTION = weights(2, 3, 4, 4)  # (num_layers, H, L, L)
PAIR = ["[CLS]", "a", "[SEP]", "b"]
LAYER = full.EncoderLayer(4, 2, 8)


def html(view):
    """A view whose page is written too, since numbers are checked there at the latest."""

    @functools.wraps(view)
    def written(*args, **options):
        return view(*args, **options).html()

    return written


def closed(figure):
    """A figure that is closed again."""

    @functools.wraps(figure)
    def drawn(*args, **options):
        try:
            return figure(*args, **options)
        finally:
            plt.close("all")

    return drawn


def axes():
    figure = plt.figure()
    figure.subplots()
    plt.close(figure)
    return figure.axes[0]


CALLS = {
    # figures
    "attention_map": Call(closed(viz.attention_map),
        {"weights": weights(3, 5), "queries": WORDS, "keys": OTHERS, "title": "map", "ax": axes()},
        open={"queries": LABELS, "keys": LABELS, "ax": "None", **TITLED}, called={"weights": "queries|keys"}),
    "describe": Call(viz.describe,
        {"weights": weights(3, 5), "queries": WORDS, "keys": OTHERS, "title": "map"},
        open={"queries": LABELS, "keys": LABELS, **TITLED}, called={"weights": "queries|keys"}),
    "readable": Call(viz.readable, {"token": "\N{LOWER ONE EIGHTH BLOCK}dogs"}, open={"token": FREE}),
    "description_of": Call(viz.description_of, {"drawn": axes()}),
    "save_figure": Call(viz.save_figure,
        {"drawn": axes(), "path": f"{OUT.name}/figure.svg", "title": "map"}, open=TITLED),
    # diagrams; autocast decides, and PyTorch's own layers say what does not fit
    "block_diagram": Call(lambda module, x, mask, title: viz.block_diagram(module, x, mask=mask, title=title),
        {"module": LAYER, "x": floats(2, 3, 4), "mask": torch.ones(3, 3).bool(), "title": "block"},
        covers=(viz.block_diagram,), open={"x": "double", **TITLED}, called={"x": "inputs"}),
    "BlockDiagram.save": Call(viz.block_diagram(LAYER, floats(2, 3, 4)).save, {"path": f"{OUT.name}/diagram.svg"}),
    # views
    "View.save": Call(viz.alignment(weights(2, 3)).save,
        {"path": f"{OUT.name}/view.html"}, covers=(View,), open={"path": FREE}),
    "alignment": Call(html(viz.alignment),
        {"weights": weights(3, 5), "queries": WORDS, "keys": OTHERS, "title": "map", "start": 1},
        open={"queries": LABELS, "keys": LABELS, "start": "None", **TITLED}, called={"weights": "queries|keys"}),
    "query_plane": Call(html(viz.query_plane),
        {"key": floats(3, 2), "value": floats(3), "query": floats(2), "labels": WORDS},
        open={"query": "None", "labels": LABELS}),
    "attention_calculator": Call(html(viz.attention_calculator),
        {"query": floats(1, 2), "key": floats(3, 2), "value": floats(3, 4)}),
    "scale_explorer": Call(html(viz.scale_explorer), {"query": floats(2, 8), "key": floats(2, 3, 8)}),
    "mask_painter": Call(html(viz.mask_painter),
        {"scores": floats(3, 5), "mask": torch.ones(3, 5).bool(), "tokens": WORDS, "keys": OTHERS},
        open={"mask": "None", "tokens": LABELS, "keys": LABELS}, called={"scores": "mask"}),
    "leak_detector": Call(html(viz.leak_detector),
        {"influence": {"one": floats(3, 5).abs()}, "allowed": torch.ones(3, 5).bool(), "tokens": OTHERS,
        "outputs": WORDS, "token": 2, "tolerance": 1e-6}, open={"tokens": LABELS, "outputs": LABELS, "token": "None"}),
    "leak_detector.influence": Call(html(viz.leak_detector),
        {"influence": floats(3, 3).abs()}, called={"influence": "allowed"}),
    "head_split": Call(html(viz.head_split),
        {"features": floats(3, 4), "heads": floats(2, 3, 2), "w_o": floats(4, 4), "bias": floats(4), "tokens": WORDS,
        "name": "values"}, open={"bias": "None", "tokens": LABELS, "name": FREE}, called={"features": "heads"}),
    "sinusoid_probe": Call(html(viz.sinusoid_probe),
        {"encoding": floats(3, 4), "position": 2, "column": 1, "base": 100.0}),
    "rotary_pair": Call(html(viz.rotary_pair),
        {"query": floats(2), "key": floats(2).flip(0), "angle": 0.3, "positions": (6, 2), "longest": 24}),
    "block_stepper": Call(html(viz.block_stepper),
        {"states": {"in": floats(3, 4), "out": floats(3, 5)}, "code": {"in": "x"}, "tokens": WORDS},
        open={"code": "None", "tokens": LABELS}),
    "block_stepper.state": Call(html(lambda state: viz.block_stepper({"state": state})),
        {"state": floats(3, 4)}, covers=(), called={"state": "states"}),
    "three_attentions": Call(html(viz.three_attentions),
        {"encoder": weights(2, 3, 3), "decoder": weights(2, 5, 5), "cross": weights(2, 5, 3), "source": WORDS,
        "target": OTHERS, "predict": True},
        open={"source": "another text inside", "target": "another text inside"},
        called={"encoder": "decoder", "source": "encoder", "target": "decoder"}),
    "norm_switch": Call(html(lambda layers, loss, steps, guessing, what: viz.norm_switch(
        {3: (layers, loss)}, {3: (layers, loss)}, steps=steps, guessing=guessing, what=what)),
        {"layers": floats(2, 3).abs(), "loss": floats(2).abs(), "steps": [0, 10], "guessing": 2.3, "what": "length"},
        covers=(viz.norm_switch,), open={"what": FREE}, called={"layers": "post", "loss": "post", "steps": "post"}),
    "next_token_bars": Call(html(viz.next_token_bars),
        {"logits": floats(3), "tokens": WORDS, "shown": 2, "title": "next", "top_p": 0.5},
        open={"tokens": LABELS, **TITLED}, called={"logits": "tokens"}),
    "beam_tree": Call(html(viz.beam_tree),
        {"tokens": [["a", "b"], ["c", "<eos>"]], "parents": [[-1, -1], [0, 1]],
        "log_probs": [[-0.5, -1.5], [-0.2, -0.3]], "beam_size": 2, "eos": "<eos>", "length_penalty": 0.5},
        open={"tokens": "None", "eos": FREE}),
    "cache_work": Call(html(viz.cache_work),
        {"len_source": 3, "num_steps": 4, "d_model": 8, "num_layers": 2, "d_ff": 16}, open={"d_ff": "None"}),
    "tile_walk": Call(html(viz.tile_walk),
        {"scores": floats(3, 5), "value": floats(5), "block_size": 2, "queries_per_tile": 2},
        open=dict.fromkeys(("scores", "value", "queries_per_tile"), "None"),
        called={"scores": "value", "value": "scores"}),
    "layer_costs": Call(html(viz.layer_costs), {"length": 64, "d_model": 128, "window": 5, "projections": True}),
    "loss_curves": Call(html(viz.loss_curves),
        {"curves": {"healthy": [3.5, 2.0, 1.5], "dead": [3.5, 3.5, 3.4]},
        "tests": {"leak": {"healthy": 0.0, "dead": 1.0}}, "baseline": 3.4}),
    "head_view": Call(html(viz.head_view),
        {"attentions": ATTENTION, "tokens": PAIR, "second": 3, "layer": 1, "heads": [0, 2]},
        open={"tokens": LABELS, "second": "None", "layer": "None", "heads": "None"}),
    "head_view.cross": Call(html(viz.head_view),
        {"attentions": {"0.cross": weights(1, 2, 3, 5), "0.self": weights(1, 2, 3, 3)}, "tokens": WORDS, "keys": OTHERS,
        "part": "cross"}, open={"tokens": LABELS, "keys": LABELS}),
    "model_view": Call(html(viz.model_view),
        {"attentions": list(ATTENTION), "tokens": PAIR, "second": 3}, open={"tokens": LABELS, "second": "None"}),
    "model_view.cross": Call(html(viz.model_view),
        {"attentions": {"0.cross": weights(1, 2, 3, 5)}, "tokens": WORDS, "keys": OTHERS, "part": "cross"},
        open={"tokens": LABELS, "keys": LABELS, "part": "None"}),
    "pair_view": Call(html(viz.pair_view),
        {"attentions": ATTENTION, "tokens": PAIR, "second": 3, "layer": 1, "head": 2},
        open={"tokens": "another text inside", "second": "None", "layer": "None", "head": "None"}),
    "neuron_view": Call(html(viz.neuron_view),
        {"query": floats(3, 4), "keys": floats(5, 4), "tokens": OTHERS, "queries": WORDS, "chosen": 1, "scale": 0.5,
        "mask": torch.ones(3, 5).bool(), "name": "head 1"},
        open={"tokens": LABELS, "queries": LABELS, "scale": "None", "mask": "None", "name": FREE},
        called={"query": "chosen|mask", "keys": "mask"}),
    "logit_lens_view": Call(html(viz.logit_lens_view),
        {"logits": floats(2, 3, 5), "tokens": WORDS, "vocabulary": OTHERS, "targets": [0, 4, 1],
        "layers": ["in", "out"], "layer": 1, "position": 2},
        open={"tokens": LABELS, "vocabulary": LABELS, "targets": "None", "layers": LABELS},
        called={"logits": "layers|vocabulary"}),
    "logit_lens_view.targets": Call(html(viz.logit_lens_view),
        {"logits": floats(2, 3, 5), "targets": torch.tensor([0, 4, 1])}, open={"targets": "None"}),
    "patching_view": Call(html(viz.patching_view),
        {"patched": floats(2, 3), "clean": 0.5, "other": -0.5, "places": ["low", "high"], "tokens": WORDS,
        "other_tokens": ["a", "b", "d"], "runs": ("one", "two"), "measure": "logit", "chosen": (1, 2)},
        open={"places": LABELS, "tokens": LABELS, "other_tokens": LABELS, "runs": LABELS, "measure": FREE,
        "chosen": "None"}, called={"patched": "places|tokens"}),
    "contextual_words": Call(html(viz.contextual_words),
        {"vectors": floats(2, 3, 4), "labels": WORDS, "senses": ["x", "y", "x"], "word": "flies"},
        open={"labels": LABELS, "senses": LABELS, "word": FREE}),
}  # fmt: skip


test_right_arguments_are_drawn, test_a_wrong_argument_is_refused_by_name_or_drawn = right_and_wrong(CALLS)
