"""The translator in JavaScript computes what Python computes: tokens, logits, attention, greedy, beam; and the worker's
answers. The page that uses it has tests of its own."""

import os
import random
import sys
import unicodedata
from operator import eq

import pytest
import sacrebleu
import torch
from exported_translator import files, translator

from course_kit.data import built_in_corpus, multi30k
from course_kit.nn import record_attention
from course_kit.translator import pretrained
from tools.publisher import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.site]

ADDRESS = "https://translator.test/"  # a secure one, as the Cache API needs it; every request is answered here
TYPES = {".js": "text/javascript", ".json": "application/json", ".bin": "application/octet-stream"}
LOAD = """async address => {
    window.engine = await import(`${address}engine.js`);
    const [about, weights] = await Promise.all(["model.json", "weights.bin"].map(name => fetch(address + name)));
    const described = await about.json();
    window.tokens = engine.tokenizer(described);
    window.model = await engine.loadModel(described, await weights.arrayBuffer());
    window.all = search => { let turn; do turn = search.next(); while (!turn.done); return turn.value; };
}"""
# A worker whose messages are kept: ask(message) resolves with the answer that ends the conversation.
WORKER = """address => {
    window.worker = new Worker(`${address}worker.js`, { type: "module" });
    window.heard = [];
    window.ask = message => new Promise(resolve => {
        const id = window.heard.length + Math.random();
        worker.addEventListener("message", function listen({ data }) {
            if (data.id !== id) return;
            heard.push(data);
            if (data.progress === undefined && !data.step) {
                worker.removeEventListener("message", listen);
                resolve(data);
            }
        });
        worker.postMessage({ id, ...message });
    });
}"""
CAPTIONS = [german for german, _ in built_in_corpus()["test"]]


@pytest.fixture(scope="module")
def page(browser):
    """An empty page beside which the scripts and the export lie, with the model loaded."""
    context = browser.new_context()

    def answer(route):
        name = route.request.url.removeprefix(ADDRESS).split("?")[0]
        script = ROOT / "book/_static/translator" / name
        content = files()[name] if name in files() else script.read_bytes() if script.is_file() else b"<!doctype html>"
        kind = TYPES.get(script.suffix, "text/html")
        route.fulfill(body=content, content_type=kind)

    context.route("**/*", answer)
    page = context.new_page()
    page.goto(ADDRESS)
    page.evaluate(LOAD, ADDRESS)
    yield page
    context.close()


# Tokens


def texts(number, seed=0):
    """Strings from all planes, partly of known characters. Code points that Python does not know are left out, because
    browsers have newer tables, in which more pairs are composed."""
    rng = random.Random(seed)
    starts = [0, 32, 32, 32, 32, 0x80, 0x100, 0x300, 0x1100, 0x2000, 0x2560, 0x3000, 0x4E00, 0xAC00, 0xF900, 0x1F300]
    known = "".join(CAPTIONS[:50]) + "–‘’“”„Ä\N{NO-BREAK SPACE}\t▁<eos>"

    def character():
        if rng.random() < 0.4:
            return rng.choice(known)
        found = chr(rng.choice([rng.choice(starts) + rng.randrange(95), rng.randrange(sys.maxunicode + 1)]))
        return found if unicodedata.category(found) not in ("Cn", "Cs") else " "

    return ["".join(character() for _ in range(rng.randrange(40))) for _ in range(number)]


def assert_same_tokens(page, sentences):
    theirs = page.evaluate("texts => texts.map(text => tokens.encode(text))", sentences)
    for sentence, ids, ours in zip(sentences, theirs, translator().vocabulary.encode_all(sentences), strict=True):
        assert ids == ours, ascii(sentence)


def test_texts_have_the_tokens_of_python(page):
    assert_same_tokens(page, CAPTIONS + texts(2_000))


@pytest.mark.thorough
def test_more_texts_have_the_tokens_of_python(page):
    assert_same_tokens(page, texts(10_000, seed=1))
    if "COURSE_LIB_DATA" in os.environ:
        corpus = multi30k(download=False)
        for split in ("train", "val", "test_2016_flickr"):
            assert_same_tokens(page, [text for pair in corpus[split] for text in pair])


def test_a_source_is_stripped_cut_and_ended_as_in_python(page):
    sentences = ["", " \x1c\x85", "\u2003Ein Hund.\x1f", "\ufeffHund", "a" * 254, "Hund, " * 200]
    read = page.evaluate("texts => texts.map(text => tokens.source(text))", sentences)
    for sentence, source in zip(sentences, read, strict=True):
        ids = translator().vocabulary.encode(sentence.strip())
        assert source == {"ids": [*ids[:255], 2] if ids else [], "cut": len(ids) > 255}
    rng = random.Random(2)
    every = [[rng.randrange(6_000) for _ in range(rng.randrange(9))] for _ in range(500)]
    decoded = page.evaluate("lists => lists.map(ids => tokens.decode(ids))", every)
    assert decoded == [translator().vocabulary.decode(ids) for ids in every]


# Forward pass


def test_logits_and_attention_are_those_of_python(page):
    ours = translator()
    [source], target = ours.encode([CAPTIONS[0]]), [*ours.vocabulary.encode("Two dogs play in the snow."), 2]
    with record_attention(ours.model) as maps, torch.no_grad():
        logits = ours.model(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]))[0]
    read = page.evaluate(
        """([source, target]) => {
            const plain = rows => Array.from(rows, row => Array.from(row));
            const { logits, ...maps } = engine.inspect(model, source, target);
            const weights = Object.entries(maps).map(([kind, map]) => [kind, Array.from(map.weights)]);
            const { memory, selfAttention } = engine.encode(model, source);
            const state = engine.start(model, memory);
            // Two rows that take turns in continuing each other: the cache has to follow the parents.
            const inputs = [1, ...target.slice(0, -1)];
            const steps = inputs.map((id, t) => engine.step(state, [id, id], t ? [1, 0] : [0, 0])[t % 2]);
            const one = engine.inspectHead(model, source, target, { kind: "cross", layer: 1, head: 2, query: 3 });
            return { logits: plain(logits), steps: plain(steps), ...Object.fromEntries(weights),
                encoded: Array.from(selfAttention.weights), output: Array.from(one.output), keys: plain(one.keys),
                query: Array.from(one.query), values: plain(one.values) };
        }""",
        [source, target],
    )
    for name in ("logits", "steps"):
        torch.testing.assert_close(torch.tensor(read[name]), logits, rtol=0, atol=1e-3)
    for kind, prefix, suffix in (("encoder", "enc", "self"), ("decoder", "dec", "self"), ("cross", "dec", "cross")):
        names = [name for name in maps if name.startswith(prefix) and name.endswith(f"{suffix}_attention")]
        expected = torch.cat([maps[name] for name in names]).flatten()  # layers, heads, queries, keys
        torch.testing.assert_close(torch.tensor(read[kind]), expected, rtol=0, atol=1e-4)
    assert read["encoded"] == read["encoder"]
    weights = maps["decoder.layers.1.cross_attention"][0, 2, 3]
    query, keys, values = (torch.tensor(read[name]) for name in ("query", "keys", "values"))
    torch.testing.assert_close((keys @ query / 32**0.5).softmax(-1), weights, rtol=0, atol=1e-4)
    torch.testing.assert_close(torch.tensor(read["output"]), weights @ values, rtol=0, atol=1e-4)


# Decoding


def translated(page, sentences, search, **options):
    """[tokens without <eos>, log-probability, score] of each sentence."""
    return page.evaluate(
        """([sentences, search, options]) => sentences.map(sentence => {
            const found = all(engine[search](model, tokens.source(sentence).ids, options));
            return [found.tokens.filter(id => id !== 2), found.logProb, found.score];
        })""",
        [sentences, search, options],
    )


@pytest.mark.parametrize(("search", "beam_size"), [("greedy", 1), ("beam", 5)])
def test_captions_are_translated_as_in_python(page, search, beam_size):
    sentences = [*CAPTIONS[:3], "Hund", "🐕 Two dogs <eos>", "der " * 9]
    expected = translator().hypotheses(sentences, beam_size=beam_size)
    for sentence, (tokens, log_prob, score), [best] in zip(
        sentences, translated(page, sentences, search), expected, strict=True
    ):
        assert tokens == best.tokens, sentence
        assert log_prob == pytest.approx(best.log_prob, abs=1e-3)
        assert score == pytest.approx(best.score if search == "beam" else best.log_prob, abs=1e-3)


def test_length_penalty_and_width_are_those_of_python(page):
    for beam_size, penalty, captions in ((2, 0.0, CAPTIONS[8:9]), (3, -1.0, CAPTIONS[9:10]), (4, 2.0, ["Hund."])):
        expected = translator().hypotheses(captions, beam_size=beam_size, length_penalty=penalty)
        found = translated(page, captions, "beam", beamSize=beam_size, lengthPenalty=penalty)
        close = [[best.tokens, pytest.approx(best.score, abs=1e-3)] for [best] in expected]
        assert [[tokens, score] for tokens, _, score in found] == close


def test_what_begins_with_a_prefix_goes_on_from_it(page):
    source, prefix = CAPTIONS[0], translator().vocabulary.encode("A cat")
    free = translated(page, [source], "greedy")[0]
    again = translated(page, [source], "greedy", prefix=free[0][:3])[0]
    assert again[0] == free[0]
    assert again[1] == pytest.approx(free[1], abs=1e-4)
    for search in ("greedy", "beam", "sample"):
        assert translated(page, [source], search, prefix=prefix)[0][0][: len(prefix)] == prefix
        assert translated(page, [source], search, prefix=[*prefix, 2])[0][0] == prefix
    one, narrow = (translated(page, [source], search, prefix=prefix, beamSize=1) for search in ("greedy", "beam"))
    assert one[0][0] == narrow[0][0]


def test_draws_come_from_the_seed_and_from_the_distribution(page):
    first, again, other = (translated(page, CAPTIONS[:3], "sample", seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert translated(page, CAPTIONS[:3], "sample", temperature=0.01) == translated(page, CAPTIONS[:3], "greedy")
    kept = page.evaluate(
        "engine.nextTokenDistribution([.5, .3, .1, .1].map(Math.log), { temperature: 0.5, topP: 0.7 })"
    )
    assert kept == [[0, pytest.approx(25 / 34)], [1, pytest.approx(9 / 34)]]


@pytest.mark.thorough
@pytest.mark.parametrize(("search", "beam_size", "share"), [("greedy", 1, 0.99), ("beam", 5, 0.97)])
@pytest.mark.parametrize("corpus", [built_in_corpus, multi30k])
def test_nearly_all_translations_are_those_of_python(page, corpus, search, beam_size, share):
    if corpus is multi30k and "COURSE_LIB_DATA" not in os.environ:
        pytest.skip("COURSE_LIB_DATA is not set")
    pairs = built_in_corpus()["test"][:200] if corpus is built_in_corpus else multi30k()["test_2016_flickr"]
    python = translator() if corpus is built_in_corpus else pretrained()  # rounded weights, and those in half precision
    sentences, references = zip(*pairs, strict=True)
    found = [translated(page, [sentence], search)[0][0] for sentence in sentences]
    expected = [best for [best] in python.hypotheses(sentences, beam_size=beam_size)]
    assert sum(map(eq, found, (best.tokens for best in expected))) >= share * len(sentences)
    texts = [python.vocabulary.decode(ids) for ids in found], [best.text for best in expected]
    ours, theirs = (sacrebleu.corpus_bleu(each, [references]).score for each in texts)
    assert ours == pytest.approx(theirs, abs=0.2)


# The worker


@pytest.fixture
def ask(page):
    """A function that sends a message to a fresh worker with the model, and returns the last answer to it."""
    page.evaluate(WORKER, ADDRESS)
    yield lambda **message: page.evaluate("message => ask(message)", message)
    page.evaluate("worker.terminate()")


def test_the_worker_loads_once_and_answers_each_question(page, ask):
    assert "has not been loaded" in ask(do="translate", text="Hund", search="greedy")["error"]
    about = {"vocabularySize": 6000, "layers": 4, "heads": 4, "dModel": 128, "maxSourceTokens": 256}
    assert ask(do="load", base=f"{ADDRESS}nowhere")["error"]
    assert ask(do="load", base=ADDRESS)["done"] == about
    shares = page.evaluate("heard.map(one => one.progress).filter(share => share !== undefined)")
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert page.evaluate("caches.open('translator').then(kept => kept.keys()).then(keys => keys.length)") == 1

    done = ask(do="translate", text=f" {CAPTIONS[0]} ", search="beam", beamSize=3, lengthPenalty=1)["done"]
    [best] = translator().hypotheses([CAPTIONS[0]], beam_size=3)[0]
    assert done["text"] == best.text == done["beams"][0]["text"]
    assert done["target"]["ids"] == [*best.tokens, 2]
    assert done["finished"]
    written, read = len(done["target"]["ids"]), len(done["source"]["ids"])
    assert [(done[kind]["len_q"], done[kind]["len_k"]) for kind in ("cross", "encoder", "decoder")] == (
        [(written, read), (read, read), (written, written)]
    )
    steps = done["steps"]
    assert [step["chosen"]["id"] for step in steps] == done["target"]["ids"]
    assert all(step["top"][0]["probability"] >= step["chosen"]["probability"] > 0 for step in steps)
    shown = page.evaluate("heard.filter(one => one.step).map(one => one.step.tokens.length)")
    assert shown == list(range(1, len(shown) + 1))

    head = ask(
        do="head", kind="decoder", layer=2, head=1, query=2, source=done["source"]["ids"], target=done["target"]["ids"]
    )["done"]
    assert len(head["weights"]) == len(head["keys"]) == 3  # of <bos> and the two tokens before
    empty = ask(do="translate", text=" ", search="greedy")["done"]
    assert (empty["text"], empty["source"]["ids"], empty["cross"]) == ("", [], None)


def test_a_translation_is_cancelled_by_a_message_and_by_the_next_one(page, ask):
    ask(do="load", base=ADDRESS)
    long = {"do": "translate", "text": "der Hund und " * 80, "search": "beam", "beamSize": 5}
    short = {"do": "translate", "text": "Ein Hund.", "search": "greedy"}
    first, second, third = page.evaluate(
        """async ([long, short]) => {
            const begun = ask(long);
            await new Promise(done => worker.addEventListener("message", ({ data }) => data.step && done()));
            worker.postMessage({ id: "stop", do: "cancel" });
            const stopped = await begun;
            return [stopped, ...await Promise.all([ask(long), ask(short)])];
        }""",
        [long, short],
    )
    assert first["cancelled"] is second["cancelled"] is True
    assert third["done"]["text"] == translator().translate(["Ein Hund."], beam_size=1)[0]


def test_the_built_site_has_the_export_of_these_weights(site):
    folder = site.html / "_static/translator"
    for name, content in files().items():
        assert (folder / name).read_bytes() == content, f"{name} is out of date: run `make book`"
