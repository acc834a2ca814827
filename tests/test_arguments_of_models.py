"""One wrong argument in models, caches, tasks and interventions: refused by name, or computed as the signature says."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from wrong_arguments import Call, floats, right_and_wrong

import course_kit as ck
import course_lib as cl
from course_kit import nn as full
from course_kit.costs.activations import language_model_activations, transformer_activations
from course_kit.costs.training import language_model_flops, training_flops, training_memory, transformer_flops
from course_kit.interpret.importance import gradient_times_input, leave_one_out
from course_kit.interpret.interventions import heads_off, patch_heads, patch_outputs, record_heads, record_outputs
from course_kit.interpret.readouts import logit_lens
from course_kit.interpret.weighted_values import record_value_norms, value_norms
from course_kit.measuring import numbers_kept, peak_numbers
from course_kit.nn import Decoder, DecoderCache, Encoder, KeyValueCache, TokenEmbedding
from course_kit.shared_key_attention import GroupedQueryAttention, LatentAttention
from course_kit.speculative import expected_tokens_per_step, speculative_sample
from course_kit.window_cache import SlidingWindowCache
from course_kit.workshop.tasks import AnomalyTask, SequenceTask, copy, greedy_tokens, sort

CONFIG = full.TransformerConfig(vocab_size=9, d_model=4, num_heads=2, num_layers=1, d_ff=8)
UNDROPPED = dataclasses.replace(CONFIG, dropout=0.0)
IDS, TARGET = torch.tensor([[3, 4, 0], [3, 3, 4]]), torch.tensor([[1, 5], [1, 6]])
FEATURES, SEEN = floats(2, 3, 4), torch.ones(3, 3).bool()
OPTIONS = {"d_model": 4, "num_heads": 2, "d_ff": 8, "num_layers": 1, "seed": 0}
DOUBLE = "double"  # autocast decides, and PyTorch's own layers say what does not fit


@pytest.fixture(autouse=True, scope="module")
def _seed_of_the_models():
    torch.manual_seed(0)


def inside(manager, function):
    """A context manager as a function: what it yields, after `function` was called in it."""

    def call(**arguments):
        with manager(**arguments) as found:
            function()
        return found

    return call


def transformer():
    return full.Transformer(CONFIG).eval()


def begun():
    """A step of decoding from a fresh cache."""
    model = transformer()
    with torch.no_grad():
        return lambda tokens, parents: model.step(tokens, model.begin(IDS), parents=parents)


def cached(keys, values):
    return KeyValueCache().append(keys, values)


def branched(memory, memory_mask, num_layers, width):
    return DecoderCache(memory, memory_mask, num_layers).mask_for_next_step(width, None)


def window_cached(window, sinks, keys, values):
    return SlidingWindowCache(window, sinks=sinks).append(keys, values)


def scores_of_all(tokens, number):
    return torch.zeros(number, 4).log_softmax(-1)


def scores_of_next(tokens):
    return torch.zeros(4).log_softmax(-1)


def drafted(target_log_probs, draft_log_probs, bos_id, eos_id, max_length, num_draft, temperature):
    return speculative_sample(
        target_log_probs,
        draft_log_probs,
        bos_id,
        eos_id,
        max_length,
        num_draft,
        temperature=temperature,
        generator=torch.Generator().manual_seed(0),  # what was drawn before an error leaves no trace
    )


MODEL = transformer()
PLAIN = cl.Transformer(9, d_model=4, num_heads=2, d_ff=8, num_layers=1)
ATTENTION = "encoder.layers.0.self_attention"


def run():
    return MODEL(IDS, TARGET)


SIZES = {"vocab_size": 9, "target_vocab_size": 9, "d_model": 4, "num_heads": 2, "num_layers": 1, "d_ff": 8}
TASK = {"length": 5, "vocab_size": 9, "min_length": 2}
SETS = {"set_size": 4, "num_features": 3, "num_classes": 6, "noise": 0.1}

CALLS = {
    # the plain model
    "cl.Transformer": Call(
        cl.Transformer,
        {"vocab_size": 9, "d_model": 4, "num_heads": 2, "d_ff": 8, "num_layers": 1, "pad_id": 0},
        draws=True,
    ),
    "cl.Transformer.forward": Call(
        PLAIN, {"source": IDS, "target": TARGET}, called=dict.fromkeys(("source", "target"), "tokens")
    ),
    "cl.Transformer.embed": Call(PLAIN.embed, {"tokens": IDS}),
    "cl.Transformer.encode": Call(PLAIN.encode, {"source": IDS}, called={"source": "tokens"}),
    "cl.Transformer.decode": Call(
        PLAIN.decode,
        {"target": TARGET, "memory": FEATURES, "source": IDS},
        called={"target": "tokens"},
        open={"memory": DOUBLE},
    ),
    # models
    "TransformerConfig": Call(
        full.TransformerConfig,
        {**SIZES, "dropout": 0.1, "norm": "pre", "positions": "rotary", "max_length": 7, "pad_id": 0},
        open={"target_vocab_size": "None"},
    ),
    "Transformer": Call(full.Transformer, {"config": CONFIG}, draws=True),
    "TransformerEncoder": Call(full.TransformerEncoder, {"config": CONFIG}, draws=True),
    "LanguageModel": Call(full.LanguageModel, {"config": CONFIG}, draws=True),
    "Encoder": Call(Encoder, {"config": CONFIG}, draws=True),
    "Decoder": Call(Decoder, {"config": CONFIG}, draws=True),
    "TokenEmbedding": Call(TokenEmbedding, {"embedding": nn.Embedding(9, 4), "config": CONFIG}),
    "Transformer.forward": Call(
        MODEL, {"source": IDS, "target": TARGET}, called=dict.fromkeys(("source", "target"), "tokens?( ids)?|batch")
    ),
    "Transformer.encode": Call(MODEL.encode, {"source": IDS}, called={"source": "tokens?"}),
    "Transformer.decode": Call(
        MODEL.decode,
        {"target": TARGET, "memory": FEATURES, "source": IDS},
        called={"target": "tokens?|x", "source": "tokens?|memory"},
        open={"memory": DOUBLE, "source": "bool|bytes"},
    ),
    "Transformer.begin": Call(MODEL.begin, {"source": IDS}, called={"source": "tokens?"}),
    "Transformer.step": Call(
        begun(), {"tokens": TARGET[:, :1], "parents": torch.zeros(2, 1).long()}, called={"tokens": "token|width"}
    ),
    "TransformerEncoder.forward": Call(
        full.TransformerEncoder(CONFIG).eval(), {"tokens": IDS}, called={"tokens": "token"}
    ),
    "LanguageModel.forward": Call(full.LanguageModel(CONFIG).eval(), {"tokens": IDS}, called={"tokens": "token"}),
    "Encoder.forward": Call(
        Encoder(CONFIG).eval(), {"x": FEATURES, "mask": SEEN}, called={"x": "query"}, open={"x": DOUBLE}
    ),
    "KeyValueCache.append": Call(cached, {"keys": floats(2, 2, 3, 4), "values": floats(2, 2, 3, 4)}),
    "DecoderCache": Call(
        branched, {"memory": FEATURES, "memory_mask": torch.ones(2, 1, 1, 3).bool(), "num_layers": 1, "width": 2}
    ),
    "SlidingWindowCache": Call(
        window_cached, {"window": 3, "sinks": 1, "keys": floats(2, 2, 1, 4), "values": floats(2, 2, 1, 4)}
    ),
    "GroupedQueryAttention": Call(
        GroupedQueryAttention, {"d_model": 4, "num_heads": 4, "num_kv_heads": 2, "bias": True}, draws=True
    ),
    "GroupedQueryAttention.forward": Call(GroupedQueryAttention(4, 4, 2), {"x": FEATURES}, open={"x": DOUBLE}),
    "LatentAttention": Call(LatentAttention, {"d_model": 4, "num_heads": 2, "d_latent": 3}, draws=True),
    "LatentAttention.forward": Call(LatentAttention(4, 2, 3), {"x": FEATURES}, open={"x": DOUBLE}),
    "speculative_sample": Call(
        drafted,
        {
            "target_log_probs": scores_of_all,
            "draft_log_probs": scores_of_next,
            "bos_id": 0,
            "eos_id": 1,
            "max_length": 3,
            "num_draft": 2,
            "temperature": 1.0,
        },
    ),
    "expected_tokens_per_step": Call(expected_tokens_per_step, {"alpha": 0.5, "num_draft": 3}),
    "RecurrentEncoderDecoder": Call(
        ck.RecurrentEncoderDecoder, {"vocab_size": 9, "d_model": 4, "attention": True, "pad_id": 0}, draws=True
    ),
    "RecurrentEncoderDecoder.forward": Call(
        ck.RecurrentEncoderDecoder(9, 4, attention=True),
        {"source": IDS.flip(0), "target": TARGET},
        called=dict.fromkeys(("source", "target"), "tokens?"),
    ),
    # interpreting
    "record_attention": Call(inside(full.record_attention, run), {"model": MODEL}),
    "record_heads": Call(inside(record_heads, run), {"model": MODEL}),
    "record_value_norms": Call(inside(record_value_norms, run), {"model": MODEL}),
    "record_outputs": Call(
        inside(record_outputs, run),
        {"model": MODEL, "names": ["encoder"]},
        called={"model": "sub-module", "names": "sub-module"},
        open={"model": "a module"},
    ),
    "heads_off": Call(
        inside(heads_off, run), {"model": MODEL, "heads": {ATTENTION: [1]}}, called={"heads": "attention"}
    ),
    "patch_heads": Call(inside(patch_heads, run), {"model": MODEL, "patches": {(ATTENTION, 1): floats(2, 3, 2)}}),
    "patch_outputs": Call(
        inside(patch_outputs, run),
        {"model": MODEL, "patches": {"encoder": FEATURES}},
        called={"model": "sub-module", "patches": "sub-module"},
        open={"model": "a module"},
    ),
    "logit_lens": Call(
        lambda model, source, target: logit_lens(model, source, target),
        {"model": MODEL, "source": IDS, "target": TARGET},
        called=dict.fromkeys(("source", "target"), "tokens?|x"),
    ),
    "value_norms": Call(
        value_norms, {"attention": full.MultiHeadAttention(4, 2), "value": FEATURES}, open={"value": DOUBLE}
    ),
    "leave_one_out": Call(leave_one_out, {"output": lambda present: present.float(), "length": 4}),
    "gradient_times_input": Call(
        gradient_times_input, {"embedding": MODEL.source_embedding, "score": lambda: run().sum()}
    ),
    "numbers_kept": Call(
        lambda function, x, without: numbers_kept(function, x, without=without),
        {"function": torch.exp, "x": floats(3), "without": [floats(3)]},
        called={"x": "inputs"},
        open={"without": "empty"},
    ),
    "peak_numbers": Call(peak_numbers, {"function": lambda: torch.zeros(3).exp()}),
    # what training costs
    "training_flops": Call(training_flops, {"parameters": 5, "tokens": 7}),
    "training_memory": Call(
        training_memory, {"parameters": 5, "activations": 7, "bytes_per_number": 4, "optimizer_numbers": 2}
    ),
    "language_model_flops": Call(language_model_flops, {"config": CONFIG, "length": 3, "batch_size": 2}),
    "transformer_flops": Call(transformer_flops, {"config": CONFIG, "len_source": 3, "len_target": 5, "batch_size": 2}),
    "language_model_activations": Call(
        language_model_activations, {"config": UNDROPPED, "length": 3, "batch_size": 2, "fused": True}
    ),
    "transformer_activations": Call(
        transformer_activations, {"config": UNDROPPED, "len_source": 3, "len_target": 5, "batch_size": 2, "fused": True}
    ),
    # tasks
    "reversal": Call(ck.reversal, TASK),
    "copy": Call(copy, TASK),
    "sort": Call(sort, TASK),
    "SequenceTask": Call(
        SequenceTask,
        {**TASK, "name": "own", "rearrange": torch.clone},
        open={"name": "another text", "rearrange": "returns None"},
    ),
    "SequenceTask.held_out": Call(ck.reversal().held_out, {"size": 3, "number": 1}),
    "anomaly": Call(ck.anomaly, SETS),
    "AnomalyTask": Call(AnomalyTask, {**SETS, "seed": 0}),
    "AnomalyTask.held_out": Call(AnomalyTask().held_out, {"size": 3, "number": 1}),
    "greedy_tokens": Call(
        greedy_tokens,
        {"model": MODEL, "source": IDS, "max_length": 3, "bos_id": 1, "eos_id": 2, "pad_id": 0},
        called={"source": "tokens?", "bos_id": "token"},
    ),
    "train_on": Call(
        ck.train_on,
        {
            "model": transformer(),
            "task": ck.reversal(vocab_size=9),
            "steps": 1,
            "learning_rate": 1e-3,
            "seed": 0,
            "batch_size": 2,
            "warmup_steps": 1,
            "evaluate_every": 1,
            "num_fresh": 2,
        },
        called={"model": "encode"},
        draws=True,
    ),
    "assemble": Call(ck.assemble, {"vocab_size": 9, "pad_id": 0, "positions": "rotary", "max_length": 7, **OPTIONS}),
    "assemble.parts": Call(
        lambda part: ck.assemble(part, vocab_size=9, **OPTIONS),
        {"part": cl.softmax},
        called={"part": "parts?|functions|softmax"},
    ),
    "assemble_set_encoder": Call(ck.assemble_set_encoder, {"num_features": 3, **OPTIONS}),
}


test_the_documented_shapes_come_out, test_a_wrong_argument_is_refused_by_name_or_computed = right_and_wrong(CALLS)
