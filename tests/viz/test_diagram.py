"""Diagrams of data flow: they compute what the library computes, say so in words, and nothing in them overlaps."""

import math
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import pytest
import torch
from torch import nn

import course_lib as cl
from course_kit import nn as full
from course_kit.viz import block_diagram

SVG = "{http://www.w3.org/2000/svg}"
B, L, MEMORY, D_MODEL, HEADS, D_FF, VOCAB = 2, 5, 7, 12, 3, 23, 31
AXES = {"B": B, "L": L, "L_memory": MEMORY, "d_model": D_MODEL, "d_ff": D_FF, "H": HEADS, "d_head": 4, "vocab": VOCAB}
AXES |= {"L_q": L, "L_k": MEMORY, "L_source": MEMORY, "L_target": L}


def cases():
    x, memory = torch.randn(B, L, D_MODEL), torch.randn(B, MEMORY, D_MODEL)
    yield "feed_forward", full.FeedForward(D_MODEL, D_FF, dropout=0.1), (x,)
    yield "attention", full.MultiHeadAttention(D_MODEL, HEADS), (x, memory, memory)
    rotary = full.MultiHeadAttention(D_MODEL, HEADS, position=full.RotaryPosition())
    yield "rotary", rotary, (x, memory[:, :L], memory[:, :L])
    for norm_first in (False, True):
        options = {"norm_first": norm_first, "dropout": 0.1}
        yield f"encoder_{norm_first}", full.EncoderLayer(D_MODEL, HEADS, D_FF, **options), (x,)
        yield f"decoder_{norm_first}", full.DecoderLayer(D_MODEL, HEADS, D_FF, **options), (x, memory)
    config = full.TransformerConfig(vocab_size=VOCAB, d_model=D_MODEL, num_heads=HEADS, num_layers=2, d_ff=D_FF)
    ids = (torch.randint(1, VOCAB, (B, MEMORY)), torch.randint(1, VOCAB, (B, L)))
    yield "transformer", full.Transformer(config), ids


CASES = [name for name, *_ in cases()]
each = pytest.mark.parametrize("name", CASES)


def case(name):
    return next((module, inputs) for other, module, inputs in cases() if other == name)


def diagram_of(name):
    module, inputs = case(name)
    return block_diagram(module, *inputs)


# What is drawn is what is computed.


def computed(diagram, module, inputs):
    """Values of all boxes, found by following the arrows: no box knows more than what its arrows bring."""
    position = getattr(module, "position", None)
    masks = {"encoder": {}, "decoder": {}}
    if isinstance(module, full.Transformer):
        source, target = inputs
        masks["encoder"] = {"mask": cl.padding_mask(source, 0)}
        masks["decoder"] = {"self_mask": cl.decoder_mask(target, 0), "memory_mask": cl.padding_mask(source, 0)}
    functions = {
        "relu": torch.relu,
        "split_heads": lambda x: cl.split_heads(x, HEADS),
        "position.rotate q": lambda q: position.rotate(q, q)[0],  # as many queries as keys
        "position.rotate k": lambda k: position.rotate(k, k)[1],
        "scores": lambda q, k: q @ k.transpose(-1, -2) / math.sqrt(D_MODEL / HEADS),
        "weights": lambda scores: scores.softmax(-1),
        "heads": lambda weights, v: weights @ v,
        "merge_heads": cl.merge_heads,
        "residual": torch.add,
    }
    values, given = {}, iter(inputs)
    for node in diagram.nodes:
        takes = [values[name] for name, _ in node.sources]
        if node.kind in ("input", "output"):
            (values[node.name],) = takes or [next(given)]
        elif node.kind in ("function", "add"):
            values[node.name] = (functions.get(node.name) or functions[node.name.split(" ")[0]])(*takes)
        else:
            part = getattr(module, node.name)
            if isinstance(part, full.MultiHeadAttention):  # as many arguments as the arrows' labels name
                labels = [label.split(", ") for _, label in node.sources]
                assert [name for names in labels for name in names] == ["q", "k", "v"]
                takes = [x for x, names in zip(takes, labels, strict=True) for _ in names]
            result = part(*takes, **masks.get(node.name, {}))
            values[node.name] = result[0] if isinstance(result, tuple) else result
    return values


@each
@torch.no_grad()
def test_following_the_arrows_gives_what_the_module_gives_with_the_shapes_drawn(name):
    module, inputs = case(name)
    module.eval()
    diagram = block_diagram(module, *inputs)
    values, expected = computed(diagram, module, inputs), module(*inputs)
    assert diagram.nodes[-1].kind == "output"
    expected = expected[0] if isinstance(expected, tuple) else expected
    torch.testing.assert_close(values[diagram.nodes[-1].name], expected)
    sizes = AXES | ({"L_k": L} if name == "rotary" else {})
    for node in diagram.nodes:
        assert node.shape == values[node.name].shape == tuple(sizes[axis] for axis in node.axes), node.name


@each
def test_every_part_is_drawn_once_and_in_the_order_of_the_call(name):
    module, inputs = case(name)
    diagram, order = block_diagram(module, *inputs), []
    for child, part in module.named_children():
        part.register_forward_hook(lambda *_, name=child: order.append(name))
    module(*(x.clone() for x in inputs))
    drawn = [node.name.split(" ")[0] for node in diagram.nodes]
    parts = {child for child, _ in module.named_children()}
    assert parts <= {name.split(".")[0] for name in drawn}
    assert [n for n in drawn if n in parts - {"residual"}] == [n for n in order if n != "residual"]
    assert drawn.count("residual") == order.count("residual")


def test_pre_and_post_norm_differ_in_what_feeds_what():
    post, pre = (
        {n.name: [s for s, _ in n.sources] for n in diagram_of(f"encoder_{norm_first}").nodes}
        for norm_first in (False, True)
    )
    assert (post["norm1"], pre["norm1"]) == (["residual 1"], ["x"])
    assert pre["residual 2"] == ["feed_forward", "residual 1"]


def test_drawing_leaves_the_module_as_it_was():
    module, inputs = case("encoder_False")
    module.train()
    module.norm1.eval()
    draws = torch.random.get_rng_state()
    before = {name: p.clone() for name, p in module.state_dict().items()}
    block_diagram(module, *inputs)
    with pytest.raises(ValueError, match=r"got \(2, 5\)"):  # a call that fails
        block_diagram(module, torch.ones(2, 5))
    assert [part.training for part in (module, module.norm1, module.self_attention)] == [True, False, True]
    assert not any(part._forward_hooks for part in module.modules())
    assert torch.equal(draws, torch.random.get_rng_state())
    assert all(torch.equal(before[name], p) for name, p in module.state_dict().items())


@pytest.mark.parametrize("lead", [(), (5,), (2, 5), (2, 3, 5)])
def test_feed_forward_is_drawn_for_any_leading_axes(lead):
    first = block_diagram(full.FeedForward(4, 7), torch.zeros(*lead, 4)).nodes[0]
    assert first.shape == (*lead, 4)
    assert first.axes == (*{0: (), 1: ("L",), 2: ("B", "L"), 3: ("B", "N0", "L")}[len(lead)], "d_model")


def test_the_activation_is_called_by_its_name():
    drawn = block_diagram(full.FeedForward(3, 7, activation=nn.functional.gelu), torch.randn(2, 3))
    assert "gelu takes linear1" in drawn.description


def test_self_attention_is_drawn_with_its_three_projections():
    x = torch.randn(2, 5, 12)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    for given, options in (((x, x, x), {"mask": mask}), ((x, x, x, mask), {})):
        nodes = {n.name: n for n in block_diagram(full.MultiHeadAttention(12, 3), *given, **options).nodes}
        assert {"q_proj", "k_proj", "v_proj"} <= nodes.keys()
        assert nodes["weights"].note == "= masked_softmax(scores, mask)"


# What is refused.


class Odd(full.FeedForward):
    def forward(self, x):
        return self.linear2(self.linear1(self.dropout(x)).relu())


class Partless(nn.Module):
    def forward(self, x):
        return x


Partless.__name__ = "EncoderLayer"


class Wide(full.FeedForward):
    def __init__(self):
        super().__init__(4, 7)
        self.linear2 = nn.Linear(7, 5)


ONES = torch.ones(1, 2)


@pytest.mark.parametrize(
    ("module", "inputs", "error", "message"),
    [
        (nn.Linear(2, 2), (ONES,), TypeError, "one of DecoderLayer, .*, got Linear; draw its parts"),
        (full.FeedForward(2, 3), (), TypeError, "tensors to call FeedForward with, got none; torch.zeros"),
        (full.FeedForward(2, 3), ("x",), TypeError, "got str"),
        (Odd(2, 2), (ONES,), ValueError, "to call linear1, dropout, linear2, got dropout, linear1"),
        (Partless(), (ONES,), ValueError, "expected EncoderLayer to have .* without .*self_attention"),
        (Wide(), (torch.ones(1, 4),), ValueError, r"linear2 of Wide to give \(L, d_model\).*got \(1, 5\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(unchecked, module, inputs, error, message):
    with pytest.raises(error, match=message):
        block_diagram(module, *inputs)


def test_attention_without_weights_is_refused():
    with pytest.raises(ValueError, match="need_weights=True"):
        block_diagram(full.MultiHeadAttention(4, 2), *[torch.ones(1, 2, 4)] * 3, need_weights=False)


def test_a_class_that_inherits_is_drawn_like_its_parent():
    class Mine(full.EncoderLayer):
        pass

    assert block_diagram(Mine(4, 2, 7), torch.zeros(1, 3, 4)).title == "Data flow of Mine, post-norm"
    named = block_diagram(full.EncoderLayer(4, 2, 7, norm_first=True), torch.zeros(1, 3, 4), title="the first block")
    assert named.title == "Data flow of the first block"
    assert diagram_of("encoder_True").title == "Data flow of EncoderLayer, pre-norm"


# The picture.


def parsed(diagram):
    return ElementTree.fromstring(diagram.svg)


@each
def test_the_svg_says_in_words_and_writes_into_its_boxes_what_is_computed(name):
    diagram = diagram_of(name)
    root = parsed(diagram)
    assert root.get("role") == "img"
    assert [(part.tag, part.text) for part in root[:2]] == [
        (f"{SVG}title", diagram.title), (f"{SVG}desc", diagram.description),
    ]  # fmt: skip
    written = [text.text.replace(" ", "") for text in root.iter(f"{SVG}text")]
    assert written.count("residual") == sum(node.kind == "add" for node in diagram.nodes)
    for node in diagram.nodes:
        shape = f"({', '.join(node.axes)}) = ({', '.join(map(str, node.shape))})"
        assert shape in diagram.description
        assert all(source in diagram.description for source, _ in node.sources)
        if node.kind != "add":
            assert {line.replace(" ", "") for line in node.lines} <= set(written), node.name


@each
def test_boxes_and_texts_are_in_the_picture_and_apart(name):
    diagram = diagram_of(name)
    (width, height), root = diagram.size, parsed(diagram)
    assert width <= 364  # a phone
    assert root.get("viewBox") == f"0 0 {width:g} {height:g}"
    for box in diagram.boxes.values():
        assert 0 < box.x < box.right < width
        assert 0 < box.y < box.bottom < height
    for a, b in combinations(diagram.boxes.values(), 2):
        assert a.right < b.x or b.right < a.x or a.bottom < b.y or b.bottom < a.y
    boxes = [box for node, box in zip(diagram.nodes, diagram.boxes.values(), strict=True) if node.kind != "add"]
    for text in root.iter(f"{SVG}text"):
        size, x, y = (float(text.get(name)) for name in ("font-size", "x", "y"))
        assert size >= 10
        length = 0.602 * size * len(text.text)  # of the widest usual monospace font
        left = x if text.get("text-anchor") == "start" else x - length / 2
        assert 0 < left < left + length < width
        assert y < height
        for box in boxes:
            if left < box.right and box.x < left + length and y > box.y and y - 0.75 * size < box.bottom:
                assert box.x < left < left + length < box.right
                assert box.y < y - 0.75 * size < y + 0.25 * size < box.bottom


def test_large_sizes_make_the_picture_wider_and_are_not_cut():
    query, memory = (torch.zeros(1000, length, 64, device="meta") for length in (12345, 2))  # shapes without numbers
    diagram = block_diagram(full.MultiHeadAttention(64, 16).to("meta"), query, memory, memory)
    assert 364 < diagram.size[0] < 400
    assert "(1000,16,12345,4)" in [text.text for text in parsed(diagram).iter(f"{SVG}text")]
    assert diagram.boxes["split_heads q"].width > 0.602 * 10.5 * len("(1000,16,12345,4)")


@each
def test_arrows_begin_and_end_at_boxes_and_cross_none(name):
    diagram = diagram_of(name)
    ends = iter(diagram.arrows)
    for node in diagram.nodes:
        for source, _ in node.sources:
            points, start, end = next(ends), diagram.boxes[source], diagram.boxes[node.name]
            assert touches(points[-1], end)
            below = points[0][0] == start.middle and start.bottom < points[0][1] < start.bottom + 24
            assert below or touches(points[0], start)
            for (x0, y0), (x1, y1) in pairwise(points):
                assert x0 == x1 or y0 == y1
                low, high = (min(x0, x1), min(y0, y1)), (max(x0, x1), max(y0, y1))
                for box in diagram.boxes.values():
                    inside = low[0] < box.right and high[0] > box.x and low[1] < box.bottom and high[1] > box.y
                    assert not inside, (node.name, source)
    assert next(ends, None) is None


def touches(point, box):
    x, y = point
    on_x, on_y = box.x <= x <= box.right, box.y <= y <= box.bottom
    return (x in (box.x, box.right) and on_y) or (y in (box.y, box.bottom) and on_x)


def test_several_on_one_page_share_no_id_and_have_the_colours_of_the_page():
    svgs = [diagram_of(name).svg for name in CASES]
    for svg in svgs:
        for forbidden in (" id=", "url(#", "href", "<style"):  # a style in a page would be one for all of it
            assert forbidden not in svg
        assert 'fill="currentColor"' in svg
    for role in ("query", "key", "value", "output", "muted"):
        assert f"var(--{role}, #" in svgs[CASES.index("attention")]  # with ours to fall back on


def test_a_notebook_shows_the_picture_and_a_terminal_the_text():
    diagram = diagram_of("feed_forward")
    assert diagram._repr_mimebundle_() == {
        "text/html": f'<div class="course-lib-diagram">{diagram.svg}</div>',
        "text/plain": diagram.description,
    }
    assert repr(diagram) == "BlockDiagram('Data flow of FeedForward', 6 boxes)"
    assert diagram.description == (
        "Data flow of FeedForward, from top to bottom. Input x: (B, L, d_model) = (2, 5, 12). linear1 takes x and "
        "gives (B, L, d_ff) = (2, 5, 23). relu takes linear1 and gives (B, L, d_ff) = (2, 5, 23). dropout (p = 0.1) "
        "takes relu and gives (B, L, d_ff) = (2, 5, 23). linear2 takes dropout and gives (B, L, d_model) = (2, 5, 12). "
        "Output: (B, L, d_model) = (2, 5, 12)."
    )


def test_a_saved_file_stands_alone_and_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    diagram = diagram_of("attention")
    path = diagram.save(tmp_path / "flow.svg")
    root = ElementTree.parse(path).getroot()
    assert root.find(f"{SVG}title").text == diagram.title
    assert float(root.get("width")) == diagram.size[0]
    style = root.find(f"{SVG}style").text
    assert "--query:#0072b2" in style
    assert "prefers-color-scheme:dark" in style
    path.write_text("before")

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="no space"):
        diagram.save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"must end in .svg, got 'flow.png'"):
        diagram.save(tmp_path / "flow.png")
