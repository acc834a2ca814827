"""A language model with its tokenizer: it writes, and shows what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from course_kit._checks import check_finite, check_instance, check_seed, check_whole
from course_kit.language_model.config import LanguageModelConfig
from course_kit.language_model.fused import PastKeys, fused_logits
from course_kit.language_model.tokens import ChatFormat
from course_kit.translator.next_token import next_token_distribution
from course_lib._typing import Float, Int
from course_lib.language_model import LanguageModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["CausalLM"]

_HALF = "\ufffd"  # what the first bytes of a letter are decoded as, before the others come


class CausalLM:
    """A decoder that writes, with what its file brings along: `load_language_model` makes one.

    Args:
        model: the course's `LanguageModel`, with the weights.
        tokenizer: of the library tokenizers.
        config: sizes and choices.
        chat: how questions are written.
        ends: ids after which a text is complete.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        config: LanguageModelConfig,
        chat: ChatFormat,
        ends: frozenset[int] = frozenset(),
    ):
        self.model, self.tokenizer, self.config, self.chat = model, tokenizer, config, chat
        marks = {tokenizer.token_to_id("<|im_end|>")} - {None} if chat.is_known else set()
        self.ends = ends | marks

    def encode(self, text: str) -> Int[Tensor, "1 length"]:
        """The ids of a text, on the device of the model.

        Raises:
            TypeError: text is not a text.
            ValueError: it has no token, or more than the model can take.
        """
        check_instance((str,), text=text)
        ids = self.tokenizer.encode(text).ids
        if not 0 < len(ids) <= self.config.max_length:
            raise ValueError(f"text must have 1 to {self.config.max_length} tokens, got {len(ids)}; change its length")
        return torch.tensor([ids], device=self.model.embedding.weight.device)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, each as it reads."""
        return [self.tokenizer.decode([i], skip_special_tokens=False) for i in self.encode(text)[0].tolist()]

    def chat_prompt(self, messages: str | Sequence[Mapping[str, str]]) -> str:
        """The text that the model continues with its answer to a question, or to the last of several messages.

        Args:
            messages: a question, or {"role": "system", "user" or "assistant", "content": text} for each message.

        Raises:
            TypeError: a message is something else.
            ValueError: the model has no chat format that is known here, or there is no message.
        """
        return self.chat.prompt(messages)

    def generate(
        self, prompt: str, max_tokens: int = 200, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0
    ) -> Iterator[str]:
        """Continue a text, piece by piece as the pieces come; each is one or more whole letters.

        Args:
            prompt: any text, or what `chat_prompt` makes of a question.
            max_tokens: the text ends after so many, unless the model ends it, or its longest text is reached.
            temperature: 0 takes the most probable token; otherwise, logits are divided by it and a token is drawn.
            top_p: draw among the most probable tokens that together reach this probability.
            seed: of the draws; the same one gives the same text.

        Raises:
            TypeError: an argument is of another type.
            ValueError: a number is out of range, or the prompt is empty or too long.
        """
        return self._pieces(self.generate_ids(self.encode(prompt), max_tokens, temperature, top_p, seed))

    def generate_ids(
        self,
        tokens: Int[Tensor, "1 length"],
        max_tokens: int = 200,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> Iterator[int]:
        """Continue ids one by one, as `generate` continues a text; the id that ends a text is not among them."""
        check_whole(max_tokens=max_tokens)
        check_finite("temperature", temperature, 0.0, 1e6)
        check_finite("top_p", top_p, 0.0, 1.0)
        check_seed(seed)
        room = min(max_tokens, self.config.max_length - tokens.shape[1])
        return self._ids(tokens, room, temperature, top_p or 1e-9, torch.Generator().manual_seed(seed))

    def _ids(
        self, tokens: Tensor, room: int, temperature: float, top_p: float, draws: torch.Generator
    ) -> Iterator[int]:
        past = PastKeys(self.model, tokens.shape[1] + max(room, 0))
        for _ in range(room):
            logits = fused_logits(self.model, tokens, past)  # (V,)
            if temperature:
                probs = next_token_distribution(logits, temperature=temperature, top_p=top_p)
                token = int(torch.multinomial(probs, 1, generator=draws))
            else:
                token = int(logits.argmax())
            if token in self.ends:
                return
            yield token
            tokens = tokens.new_tensor([[token]])

    def _pieces(self, ids: Iterator[int]) -> Iterator[str]:
        shown: list[int] = []  # ids of the last piece: some tokenizers leave out the space before the first id
        waiting: list[int] = []
        piece = ""
        for token in ids:
            waiting.append(token)
            piece = self.tokenizer.decode(shown + waiting)[len(self.tokenizer.decode(shown)) :]
            if piece and not piece.endswith(_HALF):
                yield piece
                shown, waiting, piece = waiting, [], ""
        if piece:
            yield piece

    @torch.no_grad()
    def attention(self, text: str) -> Float[Tensor, "num_layers num_heads length length"]:
        """The attention weights of all layers and heads for a text."""
        maps: list[Tensor] = []
        handles = [
            layer.attention.register_forward_hook(lambda _module, _args, result: maps.append(result[1][0]))
            for layer in self.model.layers
        ]
        try:
            self.model(self.encode(text))
        finally:
            for handle in handles:
                handle.remove()
        return torch.stack(maps)

    @torch.no_grad()
    def next_tokens(self, text: str, k: int = 10) -> list[tuple[str, float]]:
        """The k most probable tokens after a text, as they read, and their probabilities."""
        check_whole(k=k, most=self.config.vocab_size)
        tokens = self.encode(text)
        probs, ids = fused_logits(self.model, tokens, PastKeys(self.model, tokens.shape[1])).softmax(-1).topk(k)
        names = [self.tokenizer.decode([i], skip_special_tokens=False) for i in ids.tolist()]
        return list(zip(names, probs.tolist(), strict=True))
