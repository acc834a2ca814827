"""Put a transformer together from parts that you wrote yourself: `assemble`.

What you solved in the exercises goes in, what you did not comes from the course, and `course_kit.train_on` shows
whether it learns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn

from course_kit._checks import check_seed, check_whole
from course_kit.nn import Encoder, Transformer, TransformerConfig
from course_kit.workshop.learner_parts import Kit
from course_kit.workshop.part_names import ALWAYS_THERE, POSITIONS, WITH_A_DECODER, YOURS
from course_lib._typing import Float, Int
from course_lib.masking import padding_mask

__all__ = ["AssembledSetEncoder", "AssembledTransformer", "assemble", "assemble_set_encoder"]


def assemble(
    *parts: Callable | Mapping[str, Callable],
    vocab_size: int,
    d_model: int = 64,
    num_heads: int = 4,
    d_ff: int = 128,
    num_layers: int = 1,
    pad_id: int = 0,
    positions: str | None = None,
    max_length: int = 512,
    seed: int = 0,
) -> AssembledTransformer:
    """Build an encoder–decoder from your parts; the others come from the course.

        model = assemble(softmax, split_heads, EncoderLayer, vocab_size=13)
        model  # shows which parts are yours

    The model is the one that the exercises specify: post-norm, no dropout, `embedding · √d_model + positions`, and one
    matrix for source, target and output. A part is used wherever it belongs: your `FeedForward` in your
    `EncoderLayer` and in the course's `DecoderLayer`. A part that is still a stub is replaced by the course's.

    The weights are drawn from the seed in the order of their names, so they do not depend on who wrote the parts that
    hold them. The global random state is left as it was.

    Args:
        parts: functions and classes that solve exercises, recognised by their names. A part that
            has another name is passed in a dictionary, with the exercise's name as its key: `{"layer_norm": my_norm}`.
        vocab_size: number of tokens, two or more; a task has it as `task.vocab_size`.
        d_model: features of a token between layers.
        num_heads: H, divides d_model.
        d_ff: hidden features of the feed-forward network.
        num_layers: in the encoder, and as many in the decoder.
        pad_id: the token that fills up short sequences.
        positions: "sinusoidal", "learned", "rotary", "alibi" or "none". If not given: the first of the first four
            that you wrote and that can be used, and sinusoidal if there is none.
        max_length: limits learned positions only.
        seed: of the initial weights.

    Returns:
        A `course_kit.nn.Transformer` whose attribute `parts` says whose each part is.

    Raises:
        TypeError: a part is not a function or class, or a size is not a whole number.
        ValueError: a part has an unknown name, comes twice, fails on a tiny input, or gives a wrong shape or dtype; or
            the sizes do not fit, see `TransformerConfig`.
    """
    check_seed(seed)
    check_whole(vocab_size=vocab_size, least=-math.inf)
    if vocab_size < 2:
        raise ValueError(f"vocab_size must be at least 2, padding and a token, got {vocab_size}")
    kit = Kit(parts, d_model, num_heads, d_ff)
    config = TransformerConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        num_heads=num_heads,
        num_layers=num_layers,
        d_ff=d_ff,
        dropout=0.0,
        positions=positions or "none",
        max_length=max_length,
        pad_id=pad_id,
    )
    with _quietly(seed):
        kit.try_parts()
        config = dataclasses.replace(config, positions=kit.choose_positions(positions))
        model = AssembledTransformer(config, kit)
        _initialise(model, seed)
        other = int(pad_id == 0)
        source = torch.full((2, min(3, max_length)), other)
        source[1, 1:] = pad_id
        target = torch.full((2, min(5, max_length)), other)
        kit.try_together(model, (source, target), "logits", (*target.shape, vocab_size))
    model.parts = kit.whose(ALWAYS_THERE | WITH_A_DECODER | {POSITIONS.get(config.positions)}, model)
    return model


def assemble_set_encoder(
    *parts: Callable | Mapping[str, Callable],
    num_features: int,
    d_model: int = 64,
    num_heads: int = 4,
    d_ff: int = 128,
    num_layers: int = 1,
    seed: int = 0,
) -> AssembledSetEncoder:
    """Build an encoder without positions, from your parts, that gives a score to every item of a set.

    Nothing in it depends on an item's position: exchanging two items exchanges their scores.

    Args:
        parts: as in `assemble`. Masks, positions and a decoder are not used here, but may be passed.
        num_features: of an item.
        d_model: features inside.
        num_heads: H, divides d_model.
        d_ff: hidden features of the feed-forward network.
        num_layers: in the encoder.
        seed: of the initial weights, drawn as in `assemble`.

    Returns:
        A module from features `(B, n, num_features)` to scores `(B, n)`; the softmax over them is left to the loss.

    Raises:
        TypeError, ValueError: as in `assemble`.
    """
    check_seed(seed)
    check_whole(num_features=num_features)
    kit = Kit(parts, d_model, num_heads, d_ff)
    config = TransformerConfig(
        d_model=d_model, num_heads=num_heads, num_layers=num_layers, d_ff=d_ff, dropout=0.0, positions="none"
    )
    with _quietly(seed):
        kit.try_parts()
        model = AssembledSetEncoder(num_features, config, kit)
        _initialise(model, seed)
        kit.try_together(model, (torch.randn(2, 3, num_features),), "scores", (2, 3))
    model.parts = kit.whose(ALWAYS_THERE, model)
    return model


class _Summary:
    """What a model made of parts shows of itself: whose each part is."""

    parts: dict[str, str]

    def _title(self) -> str:
        raise NotImplementedError

    def _groups(self) -> dict[str, str]:
        groups: dict[str, list[str]] = {}
        for name, whose in sorted(self.parts.items(), key=lambda item: not item[1].startswith(YOURS)):
            groups.setdefault(whose, []).append(name)
        return {whose: ", ".join(names) for whose, names in groups.items()}

    def _size(self) -> str:
        return f"{sum(parameter.numel() for parameter in self.parameters()):,} parameters"

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {whose}: {names}" for whose, names in self._groups().items())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{html.escape(whose)}</th>'
            f'<td style="text-align: left">{html.escape(names)}</td></tr>'
            for whose, names in self._groups().items()
        )
        return (
            f'<table><caption style="text-align: left">{html.escape(self._title())}</caption><tbody>{rows}</tbody>'
            f"</table>"
        )


class AssembledTransformer(_Summary, Transformer):
    """A `Transformer` whose layers, positions and masks come from a learner's kit; made by `assemble`.

    Its weights have the names of `course_kit.nn.Transformer`, so that each can load the other's.

    Attributes:
        parts: from the name of a part to "yours", "the course's", or a longer text that begins with one of these.
    """

    def __init__(self, config: TransformerConfig, kit: Kit):
        super().__init__(config)
        self.parts = {}
        position = config.positions if config.positions in ("rotary", "alibi") else None
        for stack, name in ((self.encoder, "EncoderLayer"), (self.decoder, "DecoderLayer")):
            stack.layers = nn.ModuleList(kit.layer(name, position) for _ in range(config.num_layers))
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.positions = kit.positions(config, embedding.positions)
        self.make_padding_mask = kit.function("padding_mask", padding_mask)
        self.make_decoder_mask = kit.decoder_mask()

    def encode(self, source: Int[Tensor, "batch len_source"]) -> Float[Tensor, "batch len_source d_model"]:
        """Contextual vectors of the source, `(B, L_source)` to `(B, L_source, d_model)`; padding is not attended to."""
        return self.encoder(self.source_embedding(source), self.make_padding_mask(source, self.config.pad_id))

    def decode(
        self,
        target: Int[Tensor, "batch len_target"],
        memory: Float[Tensor, "batch len_source d_model"],
        source: Int[Tensor, "batch len_source"],
    ) -> Float[Tensor, "batch len_target vocab"]:
        """Logits of the next token after each target position, given the encoder's output; see `Transformer.decode`."""
        x = self.decoder(
            self.target_embedding(target),
            memory,
            self.make_decoder_mask(target, self.config.pad_id),
            self.make_padding_mask(source, self.config.pad_id),
        )
        return self.output(x)

    def _title(self) -> str:
        c = self.config
        return (
            f"Transformer, {c.num_layers} + {c.num_layers} layers, d_model {c.d_model}, {c.num_heads} heads, d_ff "
            f"{c.d_ff}, {c.vocab_size} tokens, positions: {c.positions}, {self._size()}"
        )


class AssembledSetEncoder(_Summary, nn.Module):
    """An encoder without positions and a score for each item; made by `assemble_set_encoder`.

    Attributes:
        parts: from the name of a part to "yours", "the course's", or a longer text that begins with one of these.
    """

    def __init__(self, num_features: int, config: TransformerConfig, kit: Kit):
        super().__init__()
        self.config = config
        self.parts = {}
        self.input = nn.Linear(num_features, config.d_model)
        self.encoder = Encoder(config)
        self.encoder.layers = nn.ModuleList(kit.layer("EncoderLayer", None) for _ in range(config.num_layers))
        self.score = nn.Linear(config.d_model, 1)

    def forward(self, features: Float[Tensor, "batch set_size num_features"]) -> Float[Tensor, "batch set_size"]:
        """`(B, n, num_features)` to scores `(B, n)`."""
        return self.score(self.encoder(self.input(features))).squeeze(-1)  # (B, n)

    def _title(self) -> str:
        c = self.config
        return (
            f"Set encoder, {c.num_layers} layers, d_model {c.d_model}, {c.num_heads} heads, d_ff {c.d_ff}, "
            f"{self.input.in_features} features, no positions, {self._size()}"
        )


@contextlib.contextmanager
def _quietly(seed: int) -> Iterator[None]:
    """No print and no warning of a part, and the global random state as it was."""
    with (
        torch.random.fork_rng(devices=[]),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def _initialise(model: nn.Module, seed: int) -> None:
    """Give each parameter the initial value that the course gives it, in the order of the names."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if name.endswith("positions.embedding.weight"):
            nn.init.normal_(parameter, generator=generator)
        elif name.endswith("embedding.weight"):
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5, generator=generator)
        elif parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif name.endswith("weight"):
            nn.init.ones_(parameter)
