"""Decoding: with a cache against without, and `course_kit.translator.search` against `generate` of `transformers`.

Sentences of a fixed length by an untrained model, and the test sentences (of Multi30k where it is there, else the
built-in ones) by the committed translator.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

import torch

from benchmarks.timing import compare
from course_kit.data import load_corpus
from course_kit.nn import Transformer, TransformerConfig
from course_kit.translator import pretrained
from course_kit.translator.search import beam, greedy

BATCH, SOURCE_LENGTH, PAIRS = 64, 16, 5
LENGTHS = 16, 32, 64, 128
AGAINST_PEER = 32  # tokens a sentence
CONFIG = TransformerConfig(
    vocab_size=6000, d_model=128, num_heads=4, num_layers=4, d_ff=512, dropout=0.0, pad_id=0, max_length=max(LENGTHS)
)
BOS, EOS = 1, 2


def rows() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """Ratios of times; every sentence is as long as the limit, since the end of a sentence cannot win."""
    torch.manual_seed(0)
    model = _without_end(Transformer(CONFIG))
    source = torch.randint(3, CONFIG.vocab_size, (BATCH, SOURCE_LENGTH))
    source[::3, -5:] = CONFIG.pad_id
    for length in LENGTHS:
        write = functools.partial(greedy, model, source[:8], bos_id=BOS, eos_id=EOS, max_length=length)
        result = compare(write, functools.partial(write, use_cache=False), pairs=PAIRS)
        yield f"greedy, with a cache / without, batch 8, {length} tokens", result.ratio, result.spread
    name, decode = _test_sentences()
    for beam_size in (1, 5):
        cached = functools.partial(decode, beam_size)
        result = compare(cached, functools.partial(cached, use_cache=False), warm_up=1, pairs=PAIRS)
        yield f"{name}, beam {beam_size}, with a cache / without, batch {BATCH}", result.ratio, result.spread
    for beam_size in (1, 5):
        result = compare(_ours(model, source, beam_size), _theirs(source, beam_size), pairs=PAIRS)
        name = f"ours / transformers' generate, beam {beam_size}, batch {BATCH}, {AGAINST_PEER} tokens"
        yield f"{name}, d_model 128, 4 + 4 layers", result.ratio, result.spread


def _test_sentences() -> tuple[str, Callable[..., None]]:
    """Translate the test set, in batches of sentences of about the same length: a name and what does it."""
    translator, corpus = pretrained(), load_corpus(download=False)
    split = "test_2016_flickr" if corpus.name == "Multi30k" else "test"
    encoded = sorted(translator.encode([source for source, _ in corpus[split]]), key=len)
    batches = [[torch.tensor(ids) for ids in encoded[i : i + BATCH]] for i in range(0, len(encoded), BATCH)]
    vocabulary = translator.vocabulary

    def decode(beam_size: int, use_cache: bool = True) -> None:
        write = greedy if beam_size == 1 else functools.partial(beam, beam_size=beam_size, length_penalty=1.0)
        for batch in batches:
            source = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=vocabulary.pad_id)
            limits = [translator.limit(len(ids)) for ids in batch]
            ends = {"bos_id": vocabulary.bos_id, "eos_id": vocabulary.eos_id}
            write(translator.model, source, **ends, max_length=limits, use_cache=use_cache)

    return f"{len(encoded):,} sentences, {corpus.name} {split}", decode


def _ours(model: Transformer, source: torch.Tensor, beam_size: int) -> Callable[[], list[list[int]]]:
    options = {"bos_id": BOS, "eos_id": EOS, "max_length": AGAINST_PEER}
    write = greedy if beam_size == 1 else functools.partial(beam, beam_size=beam_size, length_penalty=1.0)

    def run() -> list[list[int]]:
        tokens = [best[0] for best in write(model, source, **options).tokens]
        assert all(len(text) == AGAINST_PEER for text in tokens)
        return tokens

    return run


def _theirs(source: torch.Tensor, beam_size: int) -> Callable[[], list[list[int]]]:
    """A Marian model of the same size, which was never told of a token that ends a sentence."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=CONFIG.vocab_size,
        d_model=CONFIG.d_model,
        encoder_layers=CONFIG.num_layers,
        decoder_layers=CONFIG.num_layers,
        encoder_attention_heads=CONFIG.num_heads,
        decoder_attention_heads=CONFIG.num_heads,
        encoder_ffn_dim=CONFIG.d_ff,
        decoder_ffn_dim=CONFIG.d_ff,
        activation_function="relu",
        scale_embedding=True,
        dropout=0.0,
        max_position_embeddings=AGAINST_PEER + 1,
        pad_token_id=CONFIG.pad_id,
        decoder_start_token_id=BOS,
        eos_token_id=None,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    settings = GenerationConfig(
        max_new_tokens=AGAINST_PEER,
        num_beams=beam_size,
        do_sample=False,
        pad_token_id=CONFIG.pad_id,
        decoder_start_token_id=BOS,
        use_cache=True,
    )
    mask = (source != CONFIG.pad_id).long()

    def run() -> list[list[int]]:
        tokens = model.generate(source, attention_mask=mask, generation_config=settings)[:, 1:].tolist()
        assert all(len(text) == AGAINST_PEER for text in tokens)
        return tokens

    return run


def _without_end(model: Transformer) -> Transformer:
    """Weights with which the token that ends a sentence has a logit far below all others.

    The last norm gets a bias, and the output's row for this token points the other way.
    """
    with torch.no_grad():
        model.decoder.layers[-1].norm3.bias.fill_(1.0)
        model.output.weight[EOS] = -1.0
    return model
