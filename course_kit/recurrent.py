"""The recurrent encoder–decoder, with and without attention: the baseline that attention was invented to repair."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_kit._checks import check_tokens, check_whole, got
from course_lib._typing import Bool, Float, Int
from course_lib.attention import AdditiveScore
from course_lib.masking import masked_softmax

__all__ = ["RecurrentEncoderDecoder"]


class RecurrentEncoderDecoder(nn.Module):
    """A GRU reads the source, and a second one writes the target.

    Without attention, the decoder receives only the encoder's last state: d_model numbers, however long the source is.
    With attention, it reads all states of the encoder before each step:

        weights_t = softmax(v · tanh(W_query z_{t−1} + W_key h_j)),  c_t = Σ_j weights_tj h_j,
        z_t = GRU([y_t, c_t], z_{t−1})

    Args:
        vocab_size: number of tokens; source and target share the embedding.
        d_model: width of embeddings and states.
        attention: whether the decoder attends to the source.
        pad_id: the token that fills up short sources.

    Raises:
        TypeError: a size or pad_id is not a whole number.
        ValueError: a size is less than 1.

    Source: Cho et al. (2014), Sutskever et al. (2014) without attention; Bahdanau, Cho & Bengio (2015) with it, here
    with a one-directional encoder, so that the two models differ in nothing else.
    """

    def __init__(self, vocab_size: int, d_model: int, *, attention: bool, pad_id: int = 0):
        super().__init__()
        check_whole(vocab_size=vocab_size, d_model=d_model)
        check_whole(pad_id=pad_id, least=-(2**63))
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.score = AdditiveScore(d_model, d_model, d_model) if attention else None
        self.decoder = nn.GRU(2 * d_model if attention else d_model, d_model, batch_first=True)
        self.output = nn.Linear(d_model, vocab_size)

    def forward(
        self, source: Int[Tensor, "batch len_source"], target: Int[Tensor, "batch len_target"]
    ) -> tuple[Float[Tensor, "batch len_target vocab"], Float[Tensor, "batch len_target len_source"] | None]:
        """Logits of the next token after each target position, given the right tokens before it (teacher forcing).

        Args:
            source: ids `(B, L_source)`, padded at the end with pad_id.
            target: ids `(B, L_target)`, starting with the token that begins a sentence.

        Returns:
            `(logits, weights)`: `(B, L_target, vocab_size)`, and the alignment `(B, L_target, L_source)`, or None
            without attention.

        Raises:
            TypeError: source or target is not a tensor.
            ValueError: one is not ids `(B, L)` of the vocabulary, they are of different batches, or padding comes
                before a token of the source.
        """
        self._check_tokens(source=source, target=target)
        is_token = source != self.pad_id  # (B, L_source)
        if (is_token[:, 1:] & ~is_token[:, :-1]).any():
            raise ValueError(
                f"source must be padded at the end, got a token after padding (pad_id = {self.pad_id}); "
                f"a recurrent encoder would read the padding first"
            )
        lengths = is_token.sum(-1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        packed_states, state = self.encoder(packed)  # state (1, B, d_model): after the last real token
        inputs = self.embedding(target)  # (B, L_target, d_model)
        if self.score is None:
            states, _ = self.decoder(inputs, state)
            return self.output(states), None

        keys, _ = nn.utils.rnn.pad_packed_sequence(
            packed_states, batch_first=True, total_length=source.shape[1]
        )  # (B, L_source, d_model)
        states, weights = [], []
        for step in inputs.split(1, dim=1):  # (B, 1, d_model)
            context, step_weights = self._look_back(state.transpose(0, 1), keys, is_token[:, None, :])
            output, state = self.decoder(torch.cat((step, context), dim=-1), state)
            states.append(output)
            weights.append(step_weights)
        return self.output(torch.cat(states, dim=1)), torch.cat(weights, dim=1)

    def _check_tokens(self, **batches: Tensor) -> None:
        last = self.output.out_features - 1
        for name, tokens in batches.items():
            check_tokens(tokens)
            if tokens.dtype not in (torch.int32, torch.int64) or not tokens.numel():
                raise TypeError(f"{name} must be tokens of int64 or int32, one at least, got {got(tokens)}")
            low, high = (int(tokens.min()), int(tokens.max())) if tokens.device.type == "cpu" else (0, last)
            if low < 0 or high > last:
                raise ValueError(
                    f"{name} must be tokens 0 … {last}, got {low} … {high}; do vocabulary and model have the same size?"
                )
        rows = {name: len(tokens) for name, tokens in batches.items()}
        if len({*rows.values()}) > 1:
            raise ValueError(f"source and target must be of one batch, got as many rows: {rows}")

    def _look_back(
        self,
        state: Float[Tensor, "batch 1 d_model"],
        keys: Float[Tensor, "batch len_source d_model"],
        mask: Bool[Tensor, "batch 1 len_source"],
    ) -> tuple[Float[Tensor, "batch 1 d_model"], Float[Tensor, "batch 1 len_source"]]:
        weights = masked_softmax(self.score(state, keys), mask)  # (B, 1, L_source)
        return weights @ keys, weights
