"""Tokenizers from GGUF vocabularies are those of Hugging Face, and chats are written as their templates say."""

from __future__ import annotations

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from course_kit.language_model.tokens import ChatFormat, tokenizer_of_gguf

from .conftest import CHATML, SIZES, TEXT, byte_tokenizer, llama, metadata_of

TEXTS = [
    *("", " ", "  two  spaces ", "\n\n\tx\r\n", "12345 6.78", "a1984b 1984", "It's don't WE'LL IT'S", "naïve café"),
    *(
        "e\u0301",
        "中文 日本語",
        "🙂 \u200d x",
        "a<|im_end|>b <|im_start|>",
        "<|im_end",
        "x" * 300,
        "ran\n\n  x**2",
        TEXT,
    ),
]
MESSAGES = [
    [{"role": "user", "content": "Who are you?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "  Hi \n"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "'c' {d}"}],
]
WITHOUT_SYSTEM = CHATML[: CHATML.index("{% if loop")] + CHATML[CHATML.index("{{'<|im_start|>' + m") :]


@pytest.mark.parametrize("cut", ["smollm", "gpt-2", "qwen2"])
def test_a_vocabulary_of_a_gguf_file_is_the_tokenizer_of_hugging_face(cut):
    ours, theirs = tokenizer_of_gguf(metadata_of("llama", cut, llama(**SIZES)), "a.gguf"), byte_tokenizer(cut)
    assert ours.get_vocab() == theirs.get_vocab()
    for text in TEXTS:
        assert ours.encode(text).ids == theirs.encode(text).ids, text
        for skip in (True, False):
            ids = theirs.encode(text).ids
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)


def test_the_three_ways_of_cutting_differ():
    """Digits alone; a space with what follows; no space before digits, and capital contractions."""
    cuts = [tokenizer_of_gguf(metadata_of("llama", cut, llama(**SIZES)), "") for cut in ("smollm", "gpt-2", "qwen2")]
    words = [[word for word, _ in cut.pre_tokenizer.pre_tokenize_str("a12 is 45 IT'S")] for cut in cuts]
    assert words[0] == ["a", "1", "2", "Ġis", "Ġ", "4", "5", "ĠIT", "'", "S"]
    assert words[1] == ["a", "12", "Ġis", "Ġ45", "ĠIT", "'", "S"]
    assert words[2] == ["a", "1", "2", "Ġis", "Ġ", "4", "5", "ĠIT", "'S"]


def test_a_first_token_is_added_where_the_file_says_so():
    metadata = metadata_of("llama", "smollm", llama(**SIZES))
    plain = tokenizer_of_gguf(metadata, "").encode("a cat").ids
    first = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.add_bos_token": True}
    assert tokenizer_of_gguf({**metadata, **first}, "").encode("a cat").ids == [1, *plain]
    first["tokenizer.ggml.add_bos_token"] = False
    assert tokenizer_of_gguf({**metadata, **first}, "").encode("a cat").ids == plain
    theirs = byte_tokenizer()
    theirs.post_processor = TemplateProcessing(single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)])
    assert theirs.encode("a cat").ids == [1, *plain]


def test_tokens_of_a_user_are_kept_when_decoding():
    metadata = metadata_of("llama", "smollm", llama(**SIZES))
    kinds = {"tokenizer.ggml.token_type": [4, *metadata["tokenizer.ggml.token_type"][1:]]}
    ours = tokenizer_of_gguf({**metadata, **kinds}, "")
    assert ours.encode("<|endoftext|>").ids == [0]
    assert (ours.decode([0]), ours.decode([1])) == ("<|endoftext|>", "")


@pytest.mark.parametrize("template", [CHATML, WITHOUT_SYSTEM, CHATML.replace("\n", "\\n"), CHATML.replace(" + ", "+")])
@pytest.mark.parametrize("messages", MESSAGES)
def test_a_chat_is_written_as_the_template_says(template, messages):
    theirs = PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(), chat_template=template)
    expected = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert ChatFormat(template).prompt(messages) == expected
    if len(messages) == 1:
        assert ChatFormat(template).prompt(messages[0]["content"]) == expected


@pytest.mark.parametrize(
    "template",
    [
        None,
        "",
        ["a list"],
        "{% for message in messages %}[INST] {{ message['content'] }} [/INST]{% endfor %}",
        CHATML + "{{ 'more' }}",
        CHATML.replace("assistant", "model"),
        CHATML.replace("'\n' + message", "' ' + message"),
        CHATML.replace("<|im_end|>' + '\n'", "<|im_end|>'"),
    ],
)
def test_another_template_is_refused(template):
    chat = ChatFormat(template)
    assert not chat.is_known
    with pytest.raises(ValueError, match="the chat template must be ChatML, got") as error:
        chat.prompt("Hi")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("messages", [[3], [{"role": "user"}], [{"role": "user", "content": 3}], ["Hi"]])
def test_other_messages_are_refused(messages, unchecked):
    with pytest.raises(TypeError, match="messages must have a role and a content each, got"):
        ChatFormat(CHATML).prompt(messages)


def test_no_message_is_refused():
    with pytest.raises(ValueError, match="messages must have at least one, got none"):
        ChatFormat(CHATML).prompt([])
