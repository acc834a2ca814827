"""What travels between grader and submission: every value arrives as it was sent, whatever is hostile is refused."""

import copy
import json
import math
import struct

import pytest
import torch

from course_kit.checker.observing import LONGEST, Foreign, Observation, Problem, Sequence, plain
from course_kit.checker.protocol import (
    DTYPES,
    LARGEST_DIM,
    LARGEST_FRAME,
    LARGEST_HEAD,
    LARGEST_TENSOR,
    ProtocolError,
    bounded_text,
    decode,
    encode,
    lengths,
    pack_case,
    pack_observation,
    unpack_case,
    unpack_observation,
    unpack_problem,
)
from course_kit.exercises import Case


def framed(message, blobs=b"") -> tuple[dict, bytes]:
    """Message and bytes, after a journey through a pipe."""
    frame = encode(message, blobs)
    head, size = lengths(frame[:8])
    assert len(frame) == 8 + head + size
    return decode(frame[8 : 8 + head]), frame[8 + head :]


def received(seen: Observation) -> Observation:
    return unpack_observation(*framed(*pack_observation(seen)))


def sent_and_received(value):
    return received(Observation(value=value)).value


# Values


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    def raw(tensor):
        return tensor.contiguous().reshape(-1).view(torch.uint8)

    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(raw(a), raw(b))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_number_arrives_bit_by_bit(dtype):
    numbers = [True, False]
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        special = [0.0, -0.0, math.inf, -math.inf, math.nan]
        numbers = [*special, info.max, info.min, info.tiny, info.smallest_normal / 2, 1 / 3]
    elif dtype != torch.bool:
        numbers = [torch.iinfo(dtype).min, torch.iinfo(dtype).max, 0, 7]
    tensor = torch.tensor(numbers, dtype=dtype).reshape(2, -1)
    assert same_bits(sent_and_received(tensor), tensor)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0, 5), (2, 3, 5), (1,) * LARGEST_DIM, (LARGEST_TENSOR,)])
def test_every_shape_arrives(shape):
    tensor = torch.randn(shape)
    assert same_bits(sent_and_received(tensor), tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(10.0)[1::3],
        torch.ones(1).expand(3, 5),
        torch.nn.Parameter(torch.arange(3.0)),
        torch.arange(3.0, requires_grad=True) * 2,
        # A single number counts as contiguous, and PyTorch does not view it as bytes unless its stride is 1.
        *(torch.ones(1, 5)[:, :1].squeeze(-1), torch.arange(6.0)[4::4], torch.ones(2, 3)[1:, 2:]),
    ],
)
def test_a_view_arrives_as_the_values_that_it_shows(tensor):
    arrived = sent_and_received(tensor)
    assert torch.equal(arrived, tensor.detach())
    assert arrived.shape == tensor.shape
    assert not arrived.requires_grad


def test_what_arrives_may_be_written_to_without_changing_anything_else():
    arrived = received(Observation(value=torch.zeros(3), training=torch.ones(3)))
    arrived.value += 5
    assert arrived.training.tolist() == [1, 1, 1]


def test_plain_values_arrive_with_their_type():
    for value in (None, True, False, 0, -1, 10**299, -(10**299), 1e-320, math.inf, -math.inf, 0.1, "text", ""):
        arrived = sent_and_received(value)
        assert (arrived, type(arrived)) == (value, type(value))
    assert math.isnan(sent_and_received(math.nan))
    assert math.copysign(1, sent_and_received(-0.0)) == -1


UNKNOWN = {
    "long": 10**300,
    "longer": -(10**5000),
    "complex": torch.ones(2) * 1j,
    "sparse": torch.ones(2).to_sparse(),
    "large": torch.zeros(LARGEST_TENSOR + 1),
    "large and empty": torch.zeros(0, LARGEST_TENSOR + 1),
    "many axes": torch.zeros((1,) * (LARGEST_DIM + 1)),
    "float8": torch.zeros(2).to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_no_exercise_asks_for_arrives_as_a_name_of_its_type(kind):
    arrived = sent_and_received(UNKNOWN[kind])
    assert isinstance(arrived, Foreign)
    assert ("int" if "long" in kind else "Tensor") in arrived.type
    assert sent_and_received(Foreign("Thing")) == Foreign("Thing")


def test_tuples_and_lists_arrive_as_what_they_are():
    value = Sequence("tuple", (torch.ones(2), Sequence("list", (1, None)), 0.5))
    arrived = sent_and_received(value)
    assert arrived.type == "tuple"
    assert torch.equal(arrived.items[0], torch.ones(2))
    assert arrived.items[1:] == (Sequence("list", (1, None)), 0.5)


def test_lists_arrive_as_long_and_as_deep_as_an_exercise_has_them_and_no_further():
    value = plain([list(range(LONGEST)), [], [-1, True, 0.5]])
    assert sent_and_received(value) == value
    assert value.items[2] == Sequence("list", (-1, True, 0.5))
    for value in ([0] * (LONGEST + 1), tuple(range(LONGEST + 1))):
        assert plain(value) == Foreign(type(value).__name__)
    endless = []
    endless.append(endless)
    assert plain([[[5]]]) == Sequence("list", (Sequence("list", (Foreign("list"),)),))
    assert sent_and_received(plain(endless)) == plain(endless) == plain([[[]]])


# Observations and cases


def test_everything_that_was_seen_arrives():
    seen = Observation(
        value=None,
        training=2,
        problem=Problem("ValueError", "two\nlines", 7, "x = y", ("ValueError", "Exception"), "cell 3"),
        stage="gradients",
        changed=("query", "key"),
        random=True,
        parameters={"w": (2, 3), "scalar": ()},
        gradients={"w": None, "b": None},
        used=("torch's softmax",),
    )
    assert received(seen) == seen
    arrived = received(Observation(gradients={"w": torch.arange(6.0).reshape(2, 3), "b": None, "v": torch.ones(())}))
    assert [g if g is None else g.tolist() for g in arrived.gradients.values()] == [[[0, 1, 2], [3, 4, 5]], None, 1]
    assert list(arrived.gradients) == ["w", "b", "v"]


def test_a_case_arrives_with_its_arguments_state_and_cotangents():
    case = Case(
        args=(torch.arange(3), None, 2, 0.5, True, [3, 1, 2], [[4], [], [5, 6]]),
        init=(4, 2),
        state={"w": torch.ones(2, dtype=torch.float64)},
    )
    message, blobs = framed(*pack_case(case, (torch.full((2,), 3.0), None), True))
    arrived, cotangents, train_too = unpack_case(message, blobs)
    assert torch.equal(arrived.args[0], case.args[0])
    assert (arrived.args[1:], arrived.init) == (case.args[1:], case.init)
    assert [type(arg) for arg in arrived.args] == [type(arg) for arg in case.args]
    assert same_bits(arrived.state["w"], case.state["w"])
    assert cotangents[0].tolist() == [3, 3]
    assert cotangents[1] is None
    assert train_too is True


def test_arguments_keep_their_order_in_memory_and_the_gaps_between_rows():
    x = torch.arange(24.0).reshape(2, 3, 4)
    args = (x, x.mT, x.permute(2, 0, 1), x[..., 1:], x.mT[1:, ::2])
    arrived, _, _ = unpack_case(*framed(*pack_case(Case(args=args), (), False)))
    for mine, its in zip(args, arrived.args, strict=True):
        assert torch.equal(mine, its)
        assert (mine.stride(), mine.storage_offset()) == (its.stride(), its.storage_offset())
    for mine in (x[:, :1].expand(2, 5, 4), x.mT.unfold(1, 2, 1)):  # numbers that share memory get their own
        arrived, _, _ = unpack_case(*framed(*pack_case(Case(args=(mine,)), (), False)))
        assert torch.equal(mine, arrived.args[0])
        assert mine.clone().stride() == arrived.args[0].stride()


def test_a_case_does_not_tell_what_is_expected():
    case = Case(args=(2,), note="the secret of this case", raises=ValueError, tolerance=37.5)
    message, blobs = pack_case(case, (), False)
    assert not {"note", "raises", "tolerance"} & set(message)
    assert b"secret" not in encode(message, blobs)


# Frames


def test_a_frame_that_would_be_too_large_is_refused_before_it_is_read():
    assert lengths(struct.pack(">II", LARGEST_HEAD, LARGEST_FRAME - LARGEST_HEAD))
    too_large = (LARGEST_HEAD + 1, 0), (0, LARGEST_FRAME + 1), (LARGEST_HEAD, LARGEST_FRAME), (2**32 - 1, 2**32 - 1)
    for sizes in too_large:
        with pytest.raises(ProtocolError, match="too large"):
            lengths(struct.pack(">II", *sizes))


@pytest.mark.parametrize(
    "head",
    [b"", b"{", b"nothing", b"\xff\xfe", b"[1]", b"null", b'"text"', b"3", b"[" * 200_000, b"1" * 9000, b"{}{}"],
    ids=lambda head: repr(head)[:14],
)
def test_what_is_no_json_object_is_refused(head):
    with pytest.raises(ProtocolError):
        decode(head)


# Hostile messages


def whole() -> tuple[dict, bytes]:
    """An answer in which nothing is wrong yet."""
    return pack_observation(
        Observation(
            value=Sequence("tuple", (torch.ones(3), 2.0, 5, "text", None)),
            training=torch.ones(2),
            problem=Problem("ValueError", "message", 3, "code", ("Exception",), "file"),
            stage="call",
            changed=("query",),
            parameters={"w": (2, 3)},
            gradients={"w": torch.ones(2, 3), "b": None},
            used=("softmax",),
        )
    )


def opened(message, blobs) -> Observation | None:
    """What is made of it; None where it is refused. Any other exception is a failure of the test."""
    try:
        return unpack_observation(decode(json.dumps(message).encode()), blobs)
    except ProtocolError:
        return None


def opened_with(**parts) -> Observation | None:
    """What is made of an observation of nothing but these parts."""
    return opened({**pack_observation(Observation())[0], **parts}, bytes(64))


NO_VALUES = [
    *(3, "text", [], {"plain": 3}, {"plain": 1.5}, {"plain": []}, {"other": 5}, {"other": None}),
    *({"int": "9" * 302}, {"int": 3}, {"int": "0x10"}, {"int": ""}, {"int": " 1"}, {"int": "1_0"}, {"int": None}),
    *({"float": "much"}, {"float": "0x1p99999"}, {"float": 1.5}, {"float": None}, {"float": ""}),
    *({"seq": "set", "items": []}, {"seq": "tuple"}, {"seq": ["tuple"], "items": []}),
    {"seq": "list", "items": [{"plain": None}] * (LONGEST + 1)},
    {"seq": "list", "items": [{"seq": "list", "items": [{"seq": "list", "items": [{"plain": None}]}]}]},
    {"seq": "list", "items": {"0": {"plain": None}}},
    *({"dtype": "float32", "shape": shape, "at": 0} for shape in (None, "1", 1, [-1], [-1, -1], [True], [1.0])),
    *({"dtype": "float32", "shape": shape, "at": 0} for shape in ([2**17, 2], [0, 2**17, 2], [2**17] * 4, [1] * 13)),
    *({"dtype": "float32", "shape": [1], "at": at} for at in (None, -4, True, 0.0, "0", 61, 2**70)),
    *({"dtype": dtype, "shape": [1], "at": 0} for dtype in (None, "complex64", "object", "Tensor", ["float32"])),
]
_DELETE = object()
JUNK = [
    *(_DELETE, None, True, -1, 0, 2**70, 10**1000, 1.5, math.nan, math.inf, "", "x" * 10_000, "\ud800", "tuple", "123"),
    *({}, [[]], [-1], [2**40], [0, 2**40], [True], list(range(20)), {"a": "b"}, ["a"] * 6, *NO_VALUES),
]


def test_a_value_that_is_not_as_agreed_is_refused():
    assert opened_with(value={"dtype": "float32", "shape": [16], "at": 0}) is not None
    for spec in (None, *NO_VALUES):
        assert opened_with(value=spec) is None, spec


def places(value, here=()):
    """Every place in a message, as a path of keys."""
    yield here
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*here, key))


def is_tame(value, depth=0) -> bool:
    """Whether a value is one of those that the grader knows."""
    if isinstance(value, Sequence):
        tame = all(is_tame(item, depth + 1) for item in value.items)
        return value.type in ("tuple", "list") and len(value.items) <= LONGEST and depth < 3 and tame
    if isinstance(value, torch.Tensor):
        return value.dtype in DTYPES.values() and value.numel() <= LARGEST_TENSOR
    return isinstance(value, Foreign) or type(value) in (type(None), bool, int, float, str)


@pytest.mark.parametrize(
    "place", [place for place in places(whole()[0]) if place], ids=lambda place: ".".join(map(str, place))
)
def test_junk_in_any_place_is_refused_or_harmless(place):
    untouched, blobs = whole()
    assert opened(untouched, blobs) is not None
    refused = 0
    for junk in JUNK:
        message = target = copy.deepcopy(untouched)
        for key in place[:-1]:
            target = target[key]
        target[place[-1]] = junk
        if junk is _DELETE:
            del target[place[-1]]
        for raw in (blobs, b"", blobs[:5]):
            seen = opened(message, raw)
            refused += seen is None and raw == blobs
            if seen is not None:
                assert is_tame(seen.value)
                assert is_tame(seen.training)
                assert type(seen.random) is bool
                assert seen.stage in ("", "build", "load", "call", "gradients")
                assert all(type(text) is str and len(text) <= 120 for text in (*seen.changed, *seen.used))
                assert all(type(n) is int for shape in seen.parameters.values() for n in shape)
                assert all(g is None or isinstance(g, torch.Tensor) for g in seen.gradients.values())
    assert refused


NAMES, TOO_MANY = [f"n{number}" for number in range(128)], [f"n{number}" for number in range(129)]
PARTS = {  # what is taken, and what is refused
    "gradients": (dict.fromkeys(NAMES), {"w": {"float": "0x1p0"}}, {"w": {"plain": True}}, {"w": {"other": "Tensor"}}),
    "parameters": (dict.fromkeys(NAMES, (1,)), dict.fromkeys(TOO_MANY, (1,)), {"w": 1}, None),
    "changed": (NAMES[:16], NAMES[:17], [1], [None], "name", {"name": 1}, None),
    "used": (NAMES[:16], NAMES[:17], [1], [None], "name", {"name": 1}, None),
    "problem": (
        ["E", "m", 10**7 - 1, "c", [], "f", ""],
        *("text", 3, [], [1] * 7, *(["E", "m", line, "c", [], "f", ""] for line in (-1, True, 10**7))),
    ),
    "stage": ("gradients", "grading", None, []),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_an_observation_that_are_not_as_agreed_are_refused(part):
    taken, *refused = PARTS[part]
    assert opened_with(**{part: taken}) is not None
    assert opened_with(gradients=dict.fromkeys(TOO_MANY)) is None
    for value in refused:
        assert opened_with(**{part: value}) is None, value


def test_bytes_that_are_cut_off_are_refused():
    message, blobs = whole()
    for length in range(len(blobs)):
        assert opened(message, blobs[:length]) is None


def test_one_tensors_bytes_cannot_be_used_by_many():
    message, blobs = pack_observation(Observation(value=torch.zeros(1000)))
    message["gradients"] = {f"g{number}": message["value"] for number in range(100)}
    with pytest.raises(ProtocolError, match="larger than their bytes"):
        unpack_observation(message, blobs)


def test_a_bool_is_true_or_false_whatever_its_byte():
    message, _ = pack_observation(Observation(value=torch.tensor([False, True, True])))
    arrived = unpack_observation(message, bytes([0, 1, 255])).value
    assert arrived.view(torch.uint8).tolist() == [0, 1, 1]


def test_a_problem_arrives_cut_and_clean():
    problem = unpack_problem(["E" * 999, "m\x1b[2J" * 999, 10**6, "c\nd", ["B" * 999], "f\rg", ""])
    assert (len(problem.type), len(problem.message), len(problem.bases[0])) == (80, 500, 120)
    assert "\x1b" not in problem.message
    assert "\n" not in problem.code
    assert "\r" not in problem.file


# Texts


def test_a_text_is_cut_with_a_sign_that_it_was():
    assert bounded_text("x" * 10, 10) == "x" * 10
    assert bounded_text("x" * 11, 10) == "x" * 9 + "…"


def test_what_moves_the_cursor_or_turns_the_text_round_is_replaced():
    replaced = "a\N{REPLACEMENT CHARACTER}b"
    for char in "\x00\x07\x1b\r\x7f\x9b\u202e\u2028\ud800\ufeff":
        assert bounded_text(f"a{char}b", 10) == bounded_text(f"a{char}b", 10, lines=True) == replaced
    assert bounded_text("a\nb", 10) == replaced
    for text in ("a\nb", "naïve Größe 注意力 ∑ √d → ½"):
        assert bounded_text(text, 100, lines=True) == text


def test_addresses_which_change_from_run_to_run_are_hidden():
    assert bounded_text("<f at 0x7f3a12bc90>", 100) == bounded_text("<f at 0x55d0a1b2c3d0>", 100) == "<f at 0x…>"
    assert bounded_text("0xff", 100) == "0xff"


def test_what_is_no_text_is_refused():
    for text in (None, 3, ["a"], b"a"):
        with pytest.raises(ProtocolError):
            bounded_text(text, 10)
