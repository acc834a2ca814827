"""The command `course-lib inspect`: one page that shows what a trained encoder does with a sentence or two."""

from __future__ import annotations

import argparse
import html
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from course_kit.bert import BertEncoder, TokenBatch
    from course_kit.viz.view import View

__all__ = ["COMMANDS", "add_commands"]

COMMANDS = ("inspect",)
MOST_WORDS = 40  # of the text, whose vectors are shown through the layers
_HEAD = re.compile(r"([1-9]\d*)\.([1-9]\d*)")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the command to those of `course-lib`."""
    inspect = commands.add_parser(
        "inspect",
        help="show what a trained encoder does with a text",
        description="Write a page, which needs no network, showing the attention of every head of a BERT, MiniLM, "
        "DistilBERT or RoBERTa for a sentence or a pair of sentences, queries and keys of one head, and the vectors of "
        "the words through the layers.",
    )
    inspect.add_argument("text", nargs="+", metavar="SENTENCE", help="one sentence, or two to be read as a pair")
    inspect.add_argument(
        "--model",
        default="all-MiniLM-L6-v2",
        metavar="FOLDER",
        help="folder with config.json, model.safetensors and tokenizer.json, or a name (default: all-MiniLM-L6-v2)",
    )
    inspect.add_argument("--out", type=_page, required=True, metavar="PAGE.html", help="the page")
    inspect.add_argument(
        "--head", type=_head, metavar="LAYER.HEAD", help="head to begin with, both counted from 1, such as 3.7"
    )
    inspect.set_defaults(run=_inspect)


def _page(text: str) -> Path:
    from course_kit._files import check_output

    path = Path(text)
    if path.suffix.lower() not in (".html", ".htm"):
        raise argparse.ArgumentTypeError(f"must end with .html, got {text!r}")
    try:
        check_output(path, make_folder=False)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"must be a file in an existing folder: {error}") from None
    return path


def _head(text: str) -> tuple[int, int]:
    match = _HEAD.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be a layer and a head counted from 1, such as 3.7, got {text!r}")
    return int(match[1]) - 1, int(match[2]) - 1


def _inspect(options: argparse.Namespace) -> int:
    from course_kit._files import write_whole
    from course_kit.bert import load_encoder

    sentences = [sentence.strip() for sentence in options.text]
    if len(sentences) > 2 or not all(sentences):
        raise ValueError(f"expected one or two non-empty sentences, got {len(sentences)}: put each in quotation marks")
    encoder = load_encoder(options.model)
    last = len(encoder.layers), encoder.layers[0].self_attention.num_heads
    if options.head and not (options.head[0] < last[0] and options.head[1] < last[1]):
        raise ValueError(
            f"--head must be from 1.1 to {last[0]}.{last[1]}, got {options.head[0] + 1}.{options.head[1] + 1}"
        )
    batch = encoder.tokenize(sentences[:1], sentences[1:] or None)
    views = _views(encoder, batch, options.head)
    write_whole(options.out, _html(sentences, Path(options.model).name, views))
    print(f"{options.out}: {len(views)} views of {len(batch.tokens[0])} tokens", file=sys.stderr)
    return 0


def _views(encoder: BertEncoder, batch: TokenBatch, head: tuple[int, int] | None) -> list[View]:
    """All views that the text allows: of two sentences also their pair, of three words or more also their vectors."""
    import torch

    from course_kit.viz import contextual_words, head_view, model_view, pair_view

    tokens = batch.tokens[0]
    attention = encoder.attention(batch)  # (num_layers, 1, H, L, L)
    with torch.no_grad():
        hidden = encoder(batch).hidden[:, 0]  # (num_layers + 1, L, d_model)
    second = next((i for i, sentence in enumerate(batch.sentences[0]) if sentence == 1), None)
    overview = model_view(attention, tokens, second=second)
    layer, number = head or (overview.data["layer"], overview.data["on"][0])
    views = [overview, head_view(attention, tokens, second=second, layer=layer, heads=[number])]
    views.append(_neurons(encoder, hidden, tokens, layer, number))
    if second is not None:
        views.append(pair_view(attention, tokens, second=second))
    kept = [i for i, sentence in enumerate(batch.sentences[0]) if sentence is not None][:MOST_WORDS]
    if len(kept) >= 3:
        groups = [f"sentence {'AB'[batch.sentences[0][i]]}" for i in kept]
        views.append(contextual_words(hidden[:, kept], [tokens[i] for i in kept], groups))
    return views


def _neurons(encoder: BertEncoder, hidden: Tensor, tokens: list[str], layer: int, head: int) -> View:
    """Queries and keys of one head; the query is the token after [CLS]."""
    import torch

    from course_kit.viz import neuron_view
    from course_lib.multi_head import split_heads

    attention = encoder.layers[layer].self_attention
    with torch.no_grad():
        query, key = (
            split_heads(project(hidden[layer][None]), attention.num_heads)[0, head]
            for project in (attention.q_proj, attention.k_proj)
        )  # (L, d_head)
    return neuron_view(query, key, tokens, chosen=min(1, len(tokens) - 1), name=f"layer {layer + 1}, head {head + 1}")


def _html(sentences: list[str], model: str, views: list[View]) -> str:
    """A page without anything from elsewhere."""
    from course_kit.viz.view import dark_stylesheet

    title = html.escape(" / ".join(sentences))
    sections = "\n".join(
        f"<section><h2>{html.escape(view.title)}</h2>{view.html()}<p>{html.escape(view.description)}</p></section>"
        for view in views
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        f'initial-scale=1"><title>{title}</title><style>body{{font-family:system-ui,sans-serif;max-width:46rem;'
        "margin:1rem auto;padding:0 .8rem}:root{color-scheme:light dark;background:Canvas;color:CanvasText}"
        "h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2.5rem}attention-view .title{display:none}</style>"
        f"<main><h1>{title}</h1><p>What {html.escape(model)} does with this text, layer by layer and head by head. "
        "Layers and heads count from 1. Below each picture there is a description in words.</p>"
        f"{sections}</main><style>{dark_stylesheet()}</style></html>\n"
    )
