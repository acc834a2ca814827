"""CausalLM: greedy text is that of `transformers`, draws follow the distribution, pieces are whole letters."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
from torch.testing import assert_close
from transformers import LlamaForCausalLM

from course_kit.language_model import CausalLM, load_language_model
from course_kit.language_model.tokens import ChatFormat
from course_kit.translator.next_token import next_token_distribution

from .conftest import TEXT, byte_tokenizer, save


@pytest.fixture(scope="module")
def writer(folder):
    return load_language_model(folder)


def without_ends(writer):
    """The same, but no token ends a text."""
    other = CausalLM(writer.model, writer.tokenizer, writer.config, ChatFormat(None))
    assert other.ends == frozenset()
    return other


def test_greedy_ids_are_those_of_transformers_and_those_without_a_cache(writer, folder):
    tokens = writer.encode("The cat")
    theirs = LlamaForCausalLM.from_pretrained(folder)
    theirs.generation_config.eos_token_id = None
    expected = theirs.generate(tokens, max_new_tokens=30, do_sample=False)[0, tokens.shape[1] :].tolist()
    found = list(without_ends(writer).generate_ids(tokens, 30))
    assert found == expected
    slow = tokens
    with torch.no_grad():
        for _ in range(30):
            slow = torch.cat((slow, writer.model(slow)[:, -1:].argmax(-1)), dim=1)
    assert found == slow[0, tokens.shape[1] :].tolist()


def test_pieces_make_the_text_of_the_ids(writer):
    other = without_ends(writer)
    for seed in range(5):
        options = {"temperature": 3.0, "seed": seed}
        ids = list(other.generate_ids(other.encode("The cat"), 30, **options))
        pieces = list(other.generate("The cat", 30, **options))
        assert "".join(pieces) == other.tokenizer.decode(ids)
        assert all(pieces)


def test_a_piece_ends_with_a_whole_letter(writer):
    ids = writer.tokenizer.encode("naïve 中").ids
    pieces = list(writer._pieces(iter(ids)))
    assert "".join(pieces) == "naïve 中"
    assert not any("\ufffd" in piece for piece in pieces)
    assert list(writer._pieces(iter(ids[:-1])))[-1] == "\ufffd"  # half a letter at the end is shown after all


def test_a_tokenizer_that_drops_the_space_before_the_first_word_keeps_those_between(writer):
    from tokenizers import decoders

    tokenizer = byte_tokenizer()
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    other = CausalLM(writer.model, tokenizer, writer.config, ChatFormat(None))
    ids = tokenizer.encode(" a cat sat").ids
    assert "".join(other._pieces(iter(ids))) == tokenizer.decode(ids) == "a cat sat"


def test_a_seed_gives_one_text_and_another_seed_another(writer):
    def text(**options):
        return "".join(without_ends(writer).generate("The cat", 20, temperature=2.0, **options))

    assert text(seed=3) == text(seed=3) != text(seed=4)
    assert text(seed=3, top_p=0.0) == text(seed=4, top_p=0.0)  # the most probable token alone


def test_draws_follow_the_distribution_at_this_temperature_within_top_p(writer):
    tokens = writer.encode("The")
    with torch.no_grad():
        logits = writer.model(tokens)[0, -1]
    probs = next_token_distribution(logits, temperature=0.5, top_p=0.6)
    drawn = Counter(
        next(without_ends(writer).generate_ids(tokens, 1, temperature=0.5, top_p=0.6, seed=seed)) for seed in range(600)
    )
    assert all(probs[token] > 0 for token in drawn)
    assert_close(torch.tensor([drawn[i] / 600 for i in range(len(probs))]), probs, atol=0.07, rtol=0)


def test_a_text_ends_with_its_token_and_at_the_longest(writer):
    tokens = writer.encode("The cat")
    ids = list(without_ends(writer).generate_ids(tokens, 30))
    for stop in set(ids):
        ending = CausalLM(writer.model, writer.tokenizer, writer.config, ChatFormat(None), frozenset({stop}))
        assert list(ending.generate_ids(tokens, 30)) == list(itertools.takewhile(lambda i, stop=stop: i != stop, ids))
    longest = writer.config.max_length
    assert tokens.shape[1] + len(list(without_ends(writer).generate_ids(tokens, 500))) == longest
    full = tokens.expand(longest, -1).reshape(1, -1)[:, :longest]
    assert list(without_ends(writer).generate_ids(full, 3)) == []


def test_marks_of_the_chat_end_a_text(writer):
    assert writer.ends == {0, 2}
    assert writer.chat_prompt("Hi").startswith("<|im_start|>system\nYou are a cat<|im_end|>\n<|im_start|>user\nHi")


def test_attention_is_that_of_transformers(writer, folder):
    theirs = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager")
    expected = torch.cat(theirs(writer.encode(TEXT[:40]), output_attentions=True).attentions)
    found = writer.attention(TEXT[:40])
    assert found.shape == (2, 6, len(writer.tokens(TEXT[:40])), len(writer.tokens(TEXT[:40])))
    assert_close(found, expected, rtol=0, atol=1e-5)
    assert not found.requires_grad
    assert not any(layer.attention._forward_hooks for layer in writer.model.layers)


def test_next_tokens_are_the_most_probable(writer):
    with torch.no_grad():
        probs = writer.model(writer.encode("The cat"))[0, -1].softmax(-1)
    found = writer.next_tokens("The cat", 307)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    assert sum(p for _, p in found) == pytest.approx(1)
    assert found[0] == (
        writer.tokenizer.decode([int(probs.argmax())], skip_special_tokens=False),
        pytest.approx(float(probs.max())),
    )
    assert len(writer.next_tokens("The cat", 3)) == 3


def test_tokens_read_as_the_text(writer):
    text = "The cat <|im_end|> 12"
    assert "".join(writer.tokens(text)) == text
    assert writer.tokens(text)[-2:] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"max_tokens": 2.0}, "max_tokens must be a whole number, got 2.0"),
        ({"temperature": -1.0}, "temperature must be a finite number between 0 and 1e\\+06, got -1"),
        ({"temperature": float("nan")}, "temperature must be a finite number"),
        ({"top_p": 1.5}, "top_p must be a finite number between 0 and 1, got 1.5"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"prompt": ""}, "text must have 1 to 43 tokens, got 0"),
        ({"prompt": TEXT * 9}, r"text must have 1 to 43 tokens, got \d+; change its length"),
        ({"prompt": 3}, "text must be"),
    ],
)
def test_wrong_arguments_are_refused_at_once(writer, options, message, unchecked):
    with pytest.raises((TypeError, ValueError), match=message):
        writer.generate(**{"prompt": "a", **options})


def test_more_tokens_than_there_are_cannot_come_next(writer):
    with pytest.raises(ValueError, match="k must be at most 307, got 308"):
        writer.next_tokens("a", 308)


def test_a_model_of_the_library_writes_too(tmp_path):
    """One's own model, trained with the chapter's classes."""
    from course_kit.language_model import LanguageModelConfig
    from course_lib.language_model import LanguageModel

    config = LanguageModelConfig(
        family="llama", vocab_size=307, d_model=12, num_layers=1, num_heads=2, num_kv_heads=1, d_ff=5, max_length=20,
        tied=True,
    )  # fmt: skip
    sizes = {"num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "d_ff": 5}
    own = CausalLM(LanguageModel(307, 12, **sizes), byte_tokenizer(), config, ChatFormat(None))
    assert len(list(own.generate_ids(own.encode("a cat"), 5))) == 5


def test_a_folder_without_a_template_has_no_chat(tmp_path):
    save(tmp_path, template=None)
    assert not load_language_model(tmp_path).chat.is_known
