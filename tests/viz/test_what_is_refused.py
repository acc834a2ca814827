"""What the views of four chapters refuse: beyond the kinds of wrong arguments in `test_arguments`, their own limits."""

import math
from functools import partial

import pytest
import torch

from course_kit import viz
from course_kit.viz.inspection_inputs import attention_of

pytestmark = pytest.mark.usefixtures("unchecked")

ones = torch.ones
HALF = torch.full((2, 3, 2, 2), 0.5)
PAIR = ["[CLS]", "a", "[SEP]", "c", "[SEP]"]


def equal(*shape):
    return torch.full(shape, 1 / shape[-1])


def change_of(view, **right):
    """A function that makes calls of the view, right ones but for what is given."""

    def call(*first, **others):
        return partial(view, **{**right, **dict(zip(right, first, strict=False)), **others})

    return call


attention = change_of(attention_of, attentions=HALF, tokens=None)
heads = change_of(viz.head_view, attentions=equal(3, 5, 2, 2))
lens = change_of(viz.logit_lens_view, logits=ones(3, 4, 5))
neuron = change_of(viz.neuron_view, query=ones(3), keys=ones(5, 3))
patching = change_of(viz.patching_view, patched=ones(2, 3), clean=0, other=1)
words = change_of(viz.contextual_words, vectors=ones(3, 5, 4))
bars = change_of(viz.next_token_bars, logits=ones(3))
beams = change_of(viz.beam_tree, tokens=[["a", "b"]], parents=[[-1, -1]], log_probs=[[-1.0, -2.0]], beam_size=2)
work = change_of(viz.cache_work, len_source=7, num_steps=5, d_model=8, num_layers=1)
costs = change_of(viz.layer_costs)
tiles = change_of(viz.tile_walk, scores=ones(3, 5), value=ones(5), block_size=3)
losses = change_of(viz.loss_curves, curves={"a": [1, 2], "b": [1, 2]}, tests={}, baseline=1.0)


def pair(tokens, **settings):
    return partial(viz.pair_view, equal(1, 1, len(tokens), len(tokens)), tokens, **settings)


WRONG_TYPES = [
    (attention(3), r"got int; pass outputs\.attentions"),
    (attention({"last_hidden_state": HALF}), r"whole output of a model; pass outputs\.attentions"),
    (attention({"logits": HALF}), r"whole output of a model; pass outputs\.attentions"),
    (attention((HALF[0], 3)), r"layer 2 \(index 1\) must be a tensor .* got int"),
    (lens([1.0]), r"must be a tensor \(num_layers \+ 1, L, V\), got list"),
    (lens(targets=ones(4)), "targets must be a tensor of integers, got torch.float32"),
    (neuron(query=None), r"query must be a tensor \(d_k,\) or \(L_q, d_k\), got NoneType"),
    (neuron(keys=[1.0]), r"keys must be a tensor \(L_k, d_k\), got list"),
    (neuron(mask=ones(5)), "mask must be bool .* got torch.float32"),
    (neuron(mask=True), "mask must be bool .* got bool"),
    (patching([[1.0]]), r"must be a tensor \(num_places, L\), got list; torch.tensor makes one"),
    (words([1.0]), r"must be a tensor \(num_layers \+ 1, n, d_model\), got list"),
    (bars([0.1, 0.2]), r"logits must be a tensor \(V,\), got list; a model's are logits\[batch, -1\]"),
    (beams(log_probs=[[[-1.0, -1.0]] * 2]), r"log_probs\[0\] must be a number, got \[-1\.0, -1\.0\]"),
    (work(d_model=8.5), r"d_model must be a whole number, got 8\.5"),
    (work(d_ff=True), "d_ff must be a whole number, got True"),
    (costs(length=512.0), "length must be a whole number, got 512.0"),
    (tiles(ones(3, 5).long()), "scores must be a floating-point tensor"),
    (losses([[1, 2], [2, 3]]), "curves must map names of models to losses"),
    (losses(tests={"leak": 3}), r"tests\['leak'\] must map names of models to numbers, got int"),
    (losses(tests=[3]), "tests must map names of measurements"),
]
WRONG_VALUES = [
    (attention(HALF[0]), r"\(num_layers, H, L_q, L_k\), got \(3, 2, 2\); weights\[None\]"),
    (attention(HALF[:0]), r"got \(0, 3, 2, 2\)"),
    (attention(()), "got none: the fused path"),
    (attention((None, None)), r'attn_implementation="eager" .*output_attentions=True'),
    (attention(None), "got None: the fused path"),
    (attention({}), "an empty dictionary"),
    (attention(HALF.repeat(1, 2, 1, 1, 1)), r"of one sentence, got \(4, 3, 2, 2\); choose a sentence"),
    (attention((HALF[0], HALF[1, :2])), r"layers of one shape .* got \[\(2, 2, 2\), \(3, 2, 2\)\]"),
    (attention(HALF * torch.nan), r"layer 1 \(index 0\): .* got NaN in row 0"),
    (attention(HALF * 3), r"must lie in \[0, 1\].*softmax"),
    (attention(HALF + torch.tensor([-0.5005, 0.5005])), "0 or more, got -0.0005"),
    (attention(HALF * 0.9), r"sum to 1, got 0.900 in row 0 of layer 1, head 1 .*model.eval\(\)"),
    (attention(HALF, tokens=["a"]), "tokens must have a label for each of the 2, got 1"),
    (attention(HALF, part="cross"), "part chooses from a dictionary"),
    (attention(HALF, second=2), "second must be the position .* 1 to 1"),
    (attention(equal(1, 1, 2, 4), tokens=["a", "b"]), "tokens for the keys too"),
    (attention(equal(1, 1, 129, 129)), "at most 128 tokens .* got 129 × 129"),
    (attention(equal(12, 12, 64, 64)), "and 400,000 weights, got .* 589,824 weights; show fewer"),
    (pair(list("abc")), r"two sentences .*\[SEP\] or </s> after each; pass second="),
    (pair(["a", "[SEP]"], second=1), "words in both sentences, got 1 in A and 0 in B"),
    (pair(PAIR, layer=1), "layer must be at most 0, got 1"),
    (pair(PAIR, head=-1), "head must be at least 0, got -1"),
    (pair(["a"] * 65, second=3), "at most 64 tokens"),
    (heads(layer=3), "layer must be at most 2, got 3"),
    (heads(heads=[5]), "heads must be at most 4, got 5"),
    (heads(heads=[]), "heads must hold at least one head, got none"),
    (lens(ones(4, 5)), r"got torch.float32 \(4, 5\); pass what logit_lens"),
    (lens(ones(3, 4, 0)), r"\(3, 4, 0\)"),
    (lens(ones(3, 4, 5).long()), "floating-point numbers"),
    (lens(ones(3, 2, 4, 5)), r"of one sentence, .* got \(3, 2, 4, 5\); choose one, logits\[:, i\]"),
    (lens(ones(3, 4, 5) / 0), "finite, got NaN or infinity"),
    (lens(targets=[1]), r"one id per position, 4 of them, .*got \[1\]"),
    (lens(targets=[1, 2, 3, 5]), "targets must be at most 4, got 5"),
    (lens(targets=torch.tensor([1, 2, 3, -1])), r"each from 0 to 4, got \[1, 2, 3, -1\]"),
    (lens(position=4), "position must be at most 3, got 4"),
    (lens(layer=-4), "layer must be at least -3, got -4"),
    (lens(ones(33, 32, 2)), "at most 1024 cells, got 33 layers × 32 positions"),
    (lens(ones(2, 129, 2)), "at most 1024 cells and 128 positions, got 2 × 129"),
    (neuron(query=ones(4)), r"got \(1, 4\) and \(5, 3\); split the heads"),
    (neuron(keys=ones(2, 5, 3)), r"of one head, got \(1, 3\) and \(2, 5, 3\)"),
    (neuron(keys=ones(0, 3)), r"got \(1, 3\) and \(0, 3\)"),
    (neuron(keys=ones(129, 3)), "at most 128 tokens, .* 1 queries and 129 keys of 3"),
    (neuron(query=ones(257), keys=ones(5, 257)), "256 features"),
    (neuron(chosen=1), "chosen must be at most 0, got 1"),
    (neuron(mask=ones(4).bool()), r"mask must be \(1, 5\) or \(5,\), got \(4,\)"),
    (neuron(mask=torch.zeros(5).bool()), "query 0 may attend to no key"),
    (neuron(scale=math.inf), "scale must be a finite number between .*, got inf"),
    (patching(ones(3)), r"got \(3,\); put parts and layers into one axis"),
    (patching(ones(2, 0)), r"got \(2, 0\)"),
    (patching(clean=math.nan), "clean must be a finite number between .*, got nan"),
    (patching(clean=ones(2)), r"clean must be one number, .* got \(2,\)"),
    (patching(clean=1.5, other=1.5), "clean and other must differ, got 1.5 and 1.5"),
    (patching(clean=0, other=0), "clean and other must differ, got 0 and 0"),
    (patching(1e13 * ones(2, 3)), r"below 1e\+12 in size, got 1e\+13"),
    (patching(runs=["a"]), r"runs must be two names, .* got \['a'\]"),
    (patching(chosen=(2, 0)), "chosen must be at most 1, got 2"),
    (patching(ones(33, 32)), "at most 1024 cells and 128 positions, got 33 × 32"),
    (words(ones(3, 4)), r"got \(3, 4\); take the word's position"),
    (words(ones(3, 0, 4)), r"got \(3, 0, 4\)"),
    (words(ones(3, 2, 4)), "3 to 40 words and at most 64 layers, got 2 and 3"),
    (words(ones(3, 41, 4)), "got 41 and 3"),
    (words(ones(65, 3, 4)), "got 3 and 65"),
    (words(ones(3, 5, 4) / 0), "vectors must be finite, got NaN"),
    (words(senses=list("abcde")), "at most 4 senses, got 5: a, b, c, d, e"),
    (bars(ones(2, 3)), r"\(V,\) with 1 to 10,000 tokens, got \(2, 3\); take one"),
    (bars(ones(0)), r"got \(0,\)"),
    (bars(ones(10_001)), r"got \(10001,\).*topk\(10000\)"),
    (bars(torch.tensor([0.0, -torch.inf])), "as they are before a filter such as top_p_filter"),
    (bars(shown=0), "shown must be at least 1, got 0; the other tokens"),
    (bars(top_p=0.93), r"top_p must be a multiple of 0\.05 from 0\.05 to 1"),
    (beams(beam_size=5), "beam_size must be at most 4, got 5; larger trees"),
    (beams(length_penalty=0.33), r"length_penalty must be a multiple of 0.05 from 0 to 2.*got 0\.33"),
    (beams(parents=[]), "have the same 1 to 6 steps, got 1, 0 and 1; show the first"),
    (beams([], [], []), "have the same 1 to 6 steps, got 0, 0 and 0"),
    (beams([["a"]] * 7, [[0]] * 7, [[-1.0]] * 7), "the same 1 to 6 steps, got 7, 7 and 7"),
    (beams(log_probs=[[-1.0]]), r"step 1 must have the same 1 to 16 candidates .* got 2, 2 and \(1,\); give each"),
    (beams(parents=[[-1]]), r"got 2, 1 and \(2,\)"),
    (beams([["a"] * 17], [[-1] * 17], [[-1.0] * 17]), r"got 17, 17 and \(17,\)"),
    (beams([[]], [[]], [[]]), r"got 0, 0 and \(0,\)"),
    (beams(log_probs=[[-1.0, 0.25]]), r"log_probs of step 1 must be finite and at most 0, got \[-1\.0, 0\.25\]; log_s"),
    (beams(log_probs=[[-1.0, -math.inf]]), r"must be finite and at most 0, got \[-1\.0, -inf\]"),
    (beams(parents=[[-1, 0]]), r"“b” of step 1 has parent 0, .*; possible are \[-1\]"),
    (beams([["a", "<eos>"]] * 2, [[-1, -1], [0, 1]], [[-1, -2]] * 2), r"step 2 has parent 1, .*; possible are \[0\]"),
    (beams([["a", "b"]] * 2, [[-1, -1], [0, 0]], [[-1, -2]] * 2), r"step 2 has no candidate .* survivors \[1\]"),
    (work(0), "len_source must be at least 1, got 0"),
    (work(num_steps=41), "num_steps must be at most 40, got 41; each step is a row"),
    (costs(length=500), "length must be a power of two from 16 to 16,384, got 500"),
    (costs(d_model=16), "d_model must be a power of two from 32 to 2,048, got 16"),
    (costs(window=1), "window must be at least 2, got 1"),
    (tiles(ones(5)), r"scores must be \(L_q, L_k\).*got \(5,\)"),
    (tiles(ones(2, 13), ones(13)), r"12 keys, got \(2, 13\)"),
    (tiles(ones(7, 2), ones(2)), r"6 queries .*got \(7, 2\)"),
    (tiles(value=ones(4)), r"value must be \(5,\).*got \(4,\)"),
    (tiles(9.95 * ones(3, 5)), r"scores must be at most 9.9 in size, got 9.95"),
    (tiles(value=-27 * ones(5)), "value must be at most 9.9 in size, got 27"),
    (tiles(block_size=6), "block_size must be at most 5, got 6"),
    (tiles(queries_per_tile=4), "queries_per_tile must be at most 3, got 4"),
    (losses({"a": [1, 2]}), "two to four models, got 1"),
    (losses({"a": [1, 2], "b": [1]}), r"one length from 2 to 500, got \[1, 2\]"),
    (losses({"a": [1] * 501, "b": [1] * 501}), r"one length from 2 to 500, got \[501\]"),
    (losses({"a": [1, -1], "b": [1, 2]}), r"curves\['a'\]\[1\] must be a finite number between 0"),
    (losses(tests={"leak": {"a": 1}}), r"'leak'.* lacks \['b'\]"),
    (losses(tests={"leak": {"a": 1, "b": math.inf}}), r"tests\['leak'\]\['b'\] must be a finite number"),
    (losses(baseline=-1.0), "baseline must be a finite number between 0"),
    (losses(floor=1.5), "floor must be a finite number between 0 and 1"),
]


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [*((TypeError, *row) for row in WRONG_TYPES), *((ValueError, *row) for row in WRONG_VALUES)],
    ids=[message for _, message in WRONG_TYPES + WRONG_VALUES],
)
def test_what_is_refused(error, call, message):
    with pytest.raises(error, match=message):
        call()
