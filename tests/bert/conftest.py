"""The trained weights, and small random models of every family as `transformers` saves them."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaModel,
)

from course_kit.bert import find_encoder, load_encoder

# Every size is another prime, but for what one must divide.
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz", "##a", "##b", "dog"]
SIZES = {"vocab_size": 37, "max_position_embeddings": 23}
BERT = {
    "hidden_size": 21, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 29, "type_vocab_size": 2
}  # fmt: skip
MODELS = {
    "bert": lambda: BertModel(BertConfig(**SIZES, **BERT)),
    "distilbert": lambda: DistilBertModel(DistilBertConfig(**SIZES, dim=21, n_heads=3, n_layers=2, hidden_dim=29)),
    "roberta": lambda: RobertaModel(
        RobertaConfig(**SIZES, **BERT | {"type_vocab_size": 1}, pad_token_id=1, layer_norm_eps=1e-5)
    ),
}


def save_tokenizer(folder, words=WORDS, template="[CLS] $A [SEP]"):
    """A WordPiece tokenizer of a few words, as `tokenizer.json`."""
    tokenizer = Tokenizer(WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    if template:
        tokenizer.post_processor = TemplateProcessing(
            single=template, pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))


def save_model(model, folder):
    """A folder as `transformers` writes it, with a tokenizer; every parameter is random, so none can be ignored."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.eval().save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(params=MODELS)
def family(request):
    """Each family of the BERT family in turn."""
    return request.param


@pytest.fixture
def pair(family, tmp_path):
    """Ours and theirs with the same random weights, in float64."""
    theirs = MODELS[family]()
    save_model(theirs, tmp_path)
    theirs.set_attn_implementation("eager")
    return load_encoder(tmp_path).double(), theirs.double()


@pytest.fixture(scope="session")
def minilm():
    """The weights that `make env` installs; without them these tests fail, since nothing else proves the loader."""
    return load_encoder("all-MiniLM-L6-v2", download=False)


@pytest.fixture(scope="session")
def their_minilm():
    """The same weights in `transformers`."""
    folder = find_encoder("all-MiniLM-L6-v2", download=False)
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
