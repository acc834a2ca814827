"""SmolLM2-135M-Instruct, where it is installed: the numbers of `transformers` on the same dequantised weights."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from benchmarks.language_model import their_model
from course_kit.language_model import LanguageModelUnavailable, find_language_model, load_language_model
from course_kit.language_model.fused import PastKeys, fused_logits
from course_lib.language_model import induction_score
from tools.publisher import ROOT

pytestmark = pytest.mark.thorough
TEXT = "Attention is all you need. Naïve readers of 1984 said: def f(x): return x ** 2\n\n中文 🙂"


@pytest.fixture(scope="module")
def writer():
    try:
        find_language_model()
    except LanguageModelUnavailable as error:
        pytest.skip(str(error))
    return load_language_model()


@pytest.fixture(scope="module")
def theirs(writer):
    return their_model(writer)


@torch.no_grad()
def test_logits_are_those_of_transformers(writer, theirs):
    """Measured: 8e-5, for logits of up to 40."""
    for text in (TEXT, writer.chat_prompt("Write a short story about a lighthouse keeper.")):
        tokens = writer.encode(text)
        expected = theirs(tokens).logits
        assert (writer.model(tokens) - expected).abs().max() < 1e-3
        fused = fused_logits(writer.model, tokens, PastKeys(writer.model, tokens.shape[1]))
        assert (fused - expected[0, -1]).abs().max() < 1e-3


@torch.no_grad()
def test_a_hundred_greedy_tokens_are_those_of_transformers_with_and_without_a_cache(writer, theirs):
    tokens = writer.encode(writer.chat_prompt("Write a short story about a lighthouse keeper."))
    found = list(writer.generate_ids(tokens, 100))
    expected = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=100, do_sample=False)
    assert len(found) == 100
    assert found == expected[0, tokens.shape[1] :].tolist()
    text = torch.cat((tokens, torch.tensor([found])), dim=1)
    without = writer.model(text)[0, tokens.shape[1] - 1 : -1].argmax(-1)  # each is the greedy choice after those before
    assert found == without.tolist()


def test_it_knows_the_capital_of_france(writer):
    assert "Paris" in "".join(writer.generate(writer.chat_prompt("What is the capital of France?"), 30))
    assert writer.next_tokens("The capital of France is", 1)[0][0] == " Paris"


def test_it_has_induction_heads(writer):
    tokens = torch.randint(1000, 40_000, (1, 50), generator=torch.Generator().manual_seed(0))
    maps = []
    hooks = [
        layer.attention.register_forward_hook(lambda *args: maps.append(args[2][1])) for layer in writer.model.layers
    ]
    with torch.no_grad():
        writer.model(tokens.repeat(1, 2))
    for hook in hooks:
        hook.remove()
    scores = induction_score(torch.cat(maps), 50)  # (layers, heads)
    assert scores.max() > 0.8
    assert scores.median() < 0.1


@pytest.mark.skipif(sys.platform != "linux", reason="reads the largest size of a process from /proc")
def test_it_needs_less_than_one_and_a_half_gigabytes(writer):
    """In a process of its own; getrusage would report this one's size where it is larger. Measured: 1.0 GB."""
    code = (
        "from course_kit.language_model import load_language_model; w = load_language_model();"
        "list(w.generate('The cat', 5)); print(open('/proc/self/status').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1024 < 1.5e9
