"""Recognise, try and hand out the parts that a learner gives: `Kit`. The models made of them are in `assembling`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from course_lib._typing import Bool, Float
from course_lib.attention import dot_product_score
from course_lib.masking import causal_mask, decoder_mask, padding_mask
from course_lib.models import TransformerConfig
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.positional_encoding import AlibiPosition, RotaryPosition
from course_lib.scaled_dot_product import scaled_dot_product_attention
from course_lib.transformer import DecoderLayer, EncoderLayer, FeedForward

__all__ = ["ALWAYS_THERE", "PLACES", "POSITIONS", "WITH_A_DECODER", "YOURS", "Kit"]

# Every part that has a place, in reading order.
PLACES = (
    "softmax",
    "attend",
    "scaled_dot_product_attention",
    "split_heads",
    "merge_heads",
    "MultiHeadAttention",
    "padding_mask",
    "causal_mask",
    "decoder_mask",
    "masked_softmax",
    "sinusoidal_encoding",
    "LearnedPositionalEmbedding",
    "apply_rotary",
    "alibi_bias",
    "layer_norm",
    "FeedForward",
    "EncoderLayer",
    "DecoderLayer",
)
_CLASSES = ("MultiHeadAttention", "LearnedPositionalEmbedding", "FeedForward", "EncoderLayer", "DecoderLayer")
# Which part does the work of which others: where yours is put in, nothing is left to do for those.
_CONTAINS = {
    "MultiHeadAttention": (
        *("split_heads", "scaled_dot_product_attention", "merge_heads"),
        *("masked_softmax", "attend", "softmax"),
    ),
    "scaled_dot_product_attention": ("masked_softmax", "attend", "softmax"),
    "masked_softmax": ("attend", "softmax"),
    "attend": ("softmax",),
    "decoder_mask": ("causal_mask",),
}
_INSIDE_ATTENTION = _CONTAINS["MultiHeadAttention"]
POSITIONS = {
    "sinusoidal": "sinusoidal_encoding",
    "learned": "LearnedPositionalEmbedding",
    "rotary": "apply_rotary",
    "alibi": "alibi_bias",
}
# The parts of a model when none are passed.
ALWAYS_THERE = {
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "MultiHeadAttention"),
    *("layer_norm", "FeedForward", "EncoderLayer"),
}
WITH_A_DECODER = {"padding_mask", "causal_mask", "decoder_mask", "masked_softmax", "DecoderLayer"}
YOURS, _OURS, _STUB = "yours", "the course's", "the course's (yours is a stub)"


# The course's blocks, with places for functions


class _AttentionOfParts(MultiHeadAttention):
    """The course's multi-head attention, its steps done by given functions."""

    def __init__(self, d_model: int, num_heads: int, kit: Kit, position: nn.Module | None):
        super().__init__(d_model, num_heads, position=position)
        self.split = kit.function("split_heads", split_heads)
        self.merge = kit.function("merge_heads", merge_heads)
        self.attention = kit.given.get("scaled_dot_product_attention")
        self.masked_softmax = kit.given.get("masked_softmax")
        self.softmax = kit.given.get("softmax")
        self.attend = kit.given.get("attend")

    def forward(
        self,
        query: Float[Tensor, "batch len_q d_model"],
        key: Float[Tensor, "batch len_k d_model"],
        value: Float[Tensor, "batch len_k d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch len_q d_model"], Float[Tensor, "batch heads len_q len_k"] | None]:
        """As in `MultiHeadAttention`; the weights are computed in any case."""
        self._check_inputs(query=query, key=key, value=value)
        q, k, v = (self.split(x, self.num_heads) for x in self._project(query, key, value))  # (B, H, L, d_head)
        bias = None
        if self.position is not None:
            q, k = self.position.rotate(q, k)
            bias = self.position.bias(q, k)
        heads, weights = self._attend(q, k, v, mask, bias)
        return self.out_proj(self.merge(heads)), weights if need_weights else None  # (B, L_q, d_model)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if self.attention is not None:
            return self.attention(q, k, v, mask)
        if not (self.attend or self.softmax or (self.masked_softmax and mask is not None)):
            return scaled_dot_product_attention(q, k, v, mask, bias=bias)
        scores = dot_product_score(q / q.shape[-1] ** 0.5, k)  # (B, H, L_q, L_k)
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        if mask is not None and self.masked_softmax:
            weights = self.masked_softmax(scores, mask)
            return weights @ v, weights
        if mask is not None:
            # The lowest score of which the exercises promise that it is right; -inf is not promised. Its weight is 0.
            scores = scores.masked_fill(~mask, -1e4)
        if self.attend:
            return self.attend(scores, v)
        weights = self.softmax(scores, dim=-1)
        return weights @ v, weights


class _NormOfParts(nn.LayerNorm):
    """An `nn.LayerNorm` that leaves the computation to a given `layer_norm`."""

    def __init__(self, d_model: int, function: Callable):
        super().__init__(d_model)
        self.function = function

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """`(..., d)` to `(..., d)`."""
        return self.function(x, self.weight, self.bias, self.eps)


class _SinusoidsOfParts(nn.Module):
    """Adds a given `sinusoidal_encoding`, asked for once a length."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function
        self._tables: dict[int, Tensor] = {}

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` plus the table."""
        length, d_model = x.shape[-2:]
        if length not in self._tables:
            self._tables[length] = self.function(length, d_model).detach()
        return x + self._tables[length].to(x)


class _RotaryOfParts(RotaryPosition):
    """Rotary positions by a given `apply_rotary`."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def rotate(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Each at positions 0 … L − 1; here they are as many."""
        positions = torch.arange(key.shape[-2], device=key.device)
        return self.function(query, positions), self.function(key, positions)


class _AlibiOfParts(AlibiPosition):
    """ALiBi by a given `alibi_bias`."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def bias(self, query: Tensor, key: Tensor) -> Float[Tensor, "num_heads len_q len_k"]:
        """`(H, L, L)`."""
        return self.function(query.shape[-3], key.shape[-2]).to(query)


class _DecoderMaskOfParts:
    """Causal, and no padded key, from two masks."""

    def __init__(self, padding: Callable, causal: Callable):
        self.padding, self.causal = padding, causal

    def __call__(self, tokens: Tensor, pad_id: int) -> Tensor:
        return self.padding(tokens, pad_id) & self.causal(tokens.shape[1]).to(tokens.device)  # (B, 1, L, L)


# The learner's parts


class _Given:
    """A learner's function, which counts its calls and says who is at work when something fails."""

    def __init__(self, name: str, function: Callable, at_work: list[str]):
        self.name, self.function, self.at_work, self.calls = name, function, at_work, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        self.at_work.append(self.name)
        result = self.function(*args, **kwargs)
        self.at_work.pop()
        return result


class Kit:
    """The parts that were given: recognised, tried, and handed out."""

    def __init__(self, parts: tuple, d_model: int, num_heads: int, d_ff: int):
        self.d_model, self.num_heads, self.d_ff = d_model, num_heads, d_ff
        self.at_work: list[str] = []
        self.given: dict[str, Callable] = {}
        self.course: set[str] = set()  # given, and the course's own
        self.stubs: set[str] = set()
        self.used: set[str] = set()
        for part in parts:
            for name, one in part.items() if isinstance(part, Mapping) else [(_name_of(part), part)]:
                self._take(name, one)

    def _take(self, name: str, part: Any) -> None:
        if name not in PLACES:
            raise ValueError(
                f"expected parts that have a place in a transformer, got {name!r}. These have one: "
                f"{', '.join(PLACES)}. A part of another name is given as {{'layer_norm': {name}}}"
            )
        if name in self.given:
            raise ValueError(f"expected each part once, got {name} twice; leave one of them out")
        if not callable(part) or inspect.isclass(part) != (name in _CLASSES):
            wanted = "the class" if name in _CLASSES else "the function"
            raise TypeError(f"expected {wanted} {name} itself, got {_kind_of(part)}")
        if str(getattr(part, "__module__", "")).startswith("course_lib."):
            self.course.add(name)
        self.given[name] = part if name in _CLASSES else _Given(name, part, self.at_work)

    # What is put where

    def choose_positions(self, wish: str | None) -> str:
        """The kind of positions: as wished, else the first that is given and fits."""
        blocked = {
            "rotary": [name for name in ("MultiHeadAttention",) if name in self.given],
            "alibi": [name for name in ("MultiHeadAttention", "scaled_dot_product_attention") if name in self.given],
        }
        if self.d_model % (2 * self.num_heads):
            blocked["rotary"].append("d_model / num_heads")
        if self.num_heads & (self.num_heads - 1):
            blocked["alibi"].append("num_heads")
        if wish is None:
            return next(
                (kind for kind, name in POSITIONS.items() if name in self.given and not blocked.get(kind)),
                "sinusoidal",
            )
        in_the_way = [name for name in blocked.get(wish, ()) if name in self.given]
        if in_the_way:
            raise ValueError(
                f"{wish} positions act inside attention, where your {in_the_way[0]} does not support them; leave it "
                f"out, or choose positions='sinusoidal'"
            )
        return wish

    def function(self, name: str, ours: Callable) -> Callable:
        """Yours, or ours."""
        return self.given.get(name, ours)

    def decoder_mask(self) -> Callable:
        """Your `decoder_mask`, or one from your parts, or ours."""
        if "decoder_mask" in self.given:
            return self.given["decoder_mask"]
        if "padding_mask" in self.given or "causal_mask" in self.given:
            return _DecoderMaskOfParts(
                self.function("padding_mask", padding_mask), self.function("causal_mask", causal_mask)
            )
        return decoder_mask

    def positions(self, config: TransformerConfig, ours: nn.Module) -> nn.Module:
        """What is added to an embedding."""
        name = POSITIONS.get(config.positions)
        if name == "sinusoidal_encoding" and name in self.given:
            return _SinusoidsOfParts(self.given[name])
        if name == "LearnedPositionalEmbedding" and name in self.given:
            return self.given[name](config.max_length, config.d_model)
        return ours

    def attention(self, position: str | None) -> nn.Module:
        """A multi-head attention: your class, or ours with your functions in it."""
        if "MultiHeadAttention" in self.given:
            return _for_any_layer(self.given["MultiHeadAttention"])(self.d_model, self.num_heads)
        code = None
        if position == "rotary":
            code = _RotaryOfParts(self.given["apply_rotary"]) if "apply_rotary" in self.given else RotaryPosition()
        if position == "alibi":
            code = _AlibiOfParts(self.given["alibi_bias"]) if "alibi_bias" in self.given else AlibiPosition()
        if any(name in self.given for name in _INSIDE_ATTENTION):
            return _AttentionOfParts(self.d_model, self.num_heads, self, code)
        return MultiHeadAttention(self.d_model, self.num_heads, position=code)

    def layer(self, name: str, position: str | None) -> nn.Module:
        """A layer, yours or ours, with your attention, feed-forward network and layer norm in it."""
        ours = {"EncoderLayer": EncoderLayer, "DecoderLayer": DecoderLayer}[name]
        layer = self.function(name, ours)(self.d_model, self.num_heads, self.d_ff)
        for place in ("self_attention", "cross_attention"):
            own = getattr(layer, place, None)
            if own is None:
                continue
            # A layer of yours may hold an attention of its own; only an explicit one replaces that.
            if "MultiHeadAttention" in self.given or type(own) is MultiHeadAttention:
                setattr(layer, place, self.attention(position if place == "self_attention" else None))
            elif position is not None and place == "self_attention":
                raise ValueError(
                    f"{position} positions act inside attention, where the attention of your {name} does not support "
                    f"them; build it from the course's MultiHeadAttention, or choose positions='sinusoidal'"
                )
        if "FeedForward" in self.given:
            layer.feed_forward = self.given["FeedForward"](self.d_model, self.d_ff)
        if "layer_norm" in self.given:
            for place, module in list(layer.named_children()):
                if type(module) is nn.LayerNorm:
                    setattr(layer, place, _NormOfParts(self.d_model, self.given["layer_norm"]))
        return layer

    # Trying

    def try_parts(self) -> None:
        """Each part alone on tiny inputs; stubs are put aside."""
        for name in list(self.given):
            try:
                for lengths in ((2, 3, 5), (1, 4, 7)):
                    sizes = (self.d_model, self.num_heads, self.d_ff)
                    for what, got, wanted in _trials(name, self.given[name], *lengths, *sizes):
                        _compare(name, what, got, wanted)
            except NotImplementedError:
                self.stubs.add(name)
                del self.given[name]
            except _WrongResultError as error:
                raise ValueError(str(error)) from None
            except Exception as error:
                raise ValueError(
                    f"your {name} fails on a tiny input with {type(error).__name__}: {error}; {_advice(name)}"
                ) from error
            self.at_work.clear()

    def try_together(self, model: nn.Module, inputs: tuple[Tensor, ...], what: str, shape: tuple[int, ...]) -> None:
        """The whole model forwards and backwards; note which parts are at work."""
        for part in self.given.values():
            if isinstance(part, _Given):
                part.calls = 0
        names = {part: name for name, part in self.given.items() if name in _CLASSES}
        handles = []
        for module in model.modules():
            name = next((names[kind] for kind in type(module).__mro__ if kind in names), None)
            if name is not None:
                handles.append(module.register_forward_pre_hook(lambda *_, name=name: self._begin(name)))
                handles.append(module.register_forward_hook(lambda *_: self._end()))
        try:
            result = model(*inputs)
            if result.requires_grad:
                result.sum().backward()
        except Exception as error:
            who = f"your {self.at_work[-1]} fails" if self.at_work else "they fail"
            raise ValueError(
                f"each part works on its own, but in the model {who} with {type(error).__name__}: {error}; "
                f"{_advice(*self.at_work[-1:] or self.given)}"
            ) from error
        finally:
            for handle in handles:
                handle.remove()
            self.at_work.clear()
        if result.shape != shape:
            raise ValueError(
                f"each part works on its own, but the model built from them must return {what} of shape {shape}, got "
                f"{tuple(result.shape)}; {_advice(*self.given)}"
            )
        model.zero_grad(set_to_none=True)
        self.used |= {name for name, part in self.given.items() if isinstance(part, _Given) and part.calls}

    def _begin(self, name: str) -> None:
        self.used.add(name)
        self.at_work.append(name)

    def _end(self) -> None:
        self.at_work.pop()

    def whose(self, places: set[str | None], model: nn.Module) -> dict[str, str]:
        """Each part's name, and whose it is."""
        yours = {name for name in self.given if name in self.used}
        done = {inner: outer for outer in _CONTAINS if outer in yours for inner in _CONTAINS[outer]}
        found = {}
        for name in PLACES:
            if name in self.stubs:
                found[name] = _STUB
            elif name in self.course and name in yours:
                found[name] = _OURS
            elif name in yours:
                found[name] = YOURS
            elif name in self.given and name in done:
                found[name] = f"{YOURS}, not called: your {done[name]} does its work"
            elif name in self.given:
                found[name] = f"{YOURS}, not called: it has no place in this model"
            elif name in places and name not in done:
                found[name] = _OURS
        for name, kind in (("MultiHeadAttention", MultiHeadAttention), ("FeedForward", FeedForward)):
            own = [m for layer in _layers(model) for m in layer.children() if _stands_for(name, layer, m)]
            if found.get(name) == _OURS and not all(isinstance(module, kind) for module in own):
                found[name] = f"{YOURS}, inside your layer"
        return found


class _WrongResultError(Exception):
    """A part returned something of another shape or type."""


def _name_of(part: Any) -> str:
    if isinstance(part, str):
        raise TypeError(f"expected your functions and classes, got the text {part!r}; write {part}, without quotes")
    name = getattr(part, "__name__", None) or getattr(getattr(part, "func", None), "__name__", None)
    if name is None or not callable(part):
        raise TypeError(
            f"expected your functions and classes, got {_kind_of(part)}; a class without parentheses, an object "
            f"without a name in a dictionary, {{'layer_norm': it}}"
        )
    return name


def _kind_of(part: Any) -> str:
    if inspect.isclass(part):
        return "a class"
    return "a function" if inspect.isroutine(part) else f"an object of type {type(part).__name__}"


def _advice(*names: str) -> str:
    return f"{', '.join(f'check({name})' for name in names)} says what is wrong"


def _for_any_layer(attention: type[nn.Module]) -> type[nn.Module]:
    """The class, with a forward that takes the argument `need_weights`, of which a contract says nothing."""

    def forward(self, query, key, value, mask=None, *, need_weights=True):
        return attention.forward(self, query, key, value, mask)

    return type(attention.__name__, (attention,), {"forward": forward, "__module__": attention.__module__})


def _trials(
    name: str, part: Any, batch: int, len_q: int, len_k: int, d_model: int, num_heads: int, d_ff: int
) -> Iterator[tuple[str, Any, Any]]:
    """Calls on tiny inputs: what it is, what came, and an example of the shape and dtype that should have come."""
    d_head = d_model // num_heads
    tokens = torch.arange(1, 1 + batch * len_q).view(batch, len_q)
    tokens[-1, -1] = 0
    x, memory = _leaf(batch, len_q, d_model), _leaf(batch, len_k, d_model)
    q, k = _leaf(batch, num_heads, len_q, d_head), _leaf(batch, num_heads, len_k, d_head)
    scores, heads = torch.zeros(batch, num_heads, len_q, len_k), torch.zeros(batch, num_heads, len_q, d_head)
    yes = torch.ones(batch, 1, len_q, len_k, dtype=torch.bool)
    if name == "softmax":
        yield "weights", part(scores + _leaf(1), dim=-1), scores
    elif name == "masked_softmax":
        yield "weights", part(scores + _leaf(1), yes), scores
    elif name == "attend":
        yield "(output, weights)", part(scores + _leaf(1), k), (heads, scores)
    elif name == "scaled_dot_product_attention":
        yield "(output, weights)", part(q, k, k, yes), (heads, scores)
        yield "(output, weights)", part(q, k, k), (heads, scores)
    elif name == "split_heads":
        yield "heads", part(x, num_heads), heads
    elif name == "merge_heads":
        yield "features", part(q), x
    elif name == "padding_mask":
        yield "mask", part(tokens, 0), yes[:, :, :1, :len_q]
    elif name == "causal_mask":
        yield "mask", part(len_q), yes[0, 0, :, :len_q]
    elif name == "decoder_mask":
        yield "mask", part(tokens, 0), yes[..., :len_q]
    elif name == "sinusoidal_encoding":
        yield "table", part(len_q, d_model), x[0]
    elif name == "apply_rotary":
        if d_head % 2 == 0:
            yield "turned features", part(q, torch.arange(len_q)), q
    elif name == "alibi_bias":
        if num_heads & (num_heads - 1) == 0:
            yield "bias", part(num_heads, len_q), torch.zeros(num_heads, len_q, len_q)
    elif name == "layer_norm":
        yield "normed features", part(x, _leaf(d_model), _leaf(d_model), 1e-5), x
    elif name == "LearnedPositionalEmbedding":
        yield "output", part(len_k, d_model)(x), x
    elif name == "FeedForward":
        yield "output", part(d_model, d_ff)(x), x
    elif name == "MultiHeadAttention":
        attention = part(d_model, num_heads)
        yield "(output, weights)", attention(x, memory, memory, yes), (x, scores)
        yield "(output, weights)", attention(x, x, x), (x, scores[..., :len_q])
    elif name == "EncoderLayer":
        layer = part(d_model, num_heads, d_ff)
        _find_modules(name, layer, "self_attention", "feed_forward", "norm1", "norm2")
        yield "output", layer(x, yes[..., :len_q]), x
    else:
        layer = part(d_model, num_heads, d_ff)
        _find_modules(name, layer, "self_attention", "cross_attention", "feed_forward", "norm1", "norm2", "norm3")
        yield "output", layer(x, memory, yes[..., :len_q], yes), x


def _leaf(*shape: int) -> Tensor:
    """Random, and part of a graph, so that what cannot be differentiated is found."""
    return torch.randn(*shape, requires_grad=True) * 1.0


def _find_modules(name: str, layer: nn.Module, *wanted: str) -> None:
    missing = [place for place in wanted if not isinstance(getattr(layer, place, None), nn.Module)]
    if missing:
        raise _WrongResultError(
            f"your {name} must have the sub-modules {', '.join(wanted)}, but {', '.join(missing)} cannot be found; "
            f"{_advice(name)}"
        )


def _compare(name: str, what: str, got: Any, wanted: Any) -> None:
    """Refuse what has not the shape and kind of `wanted`; then go backwards through it."""
    if isinstance(wanted, tuple):
        if not isinstance(got, tuple | list) or len(got) != len(wanted):
            raise _WrongResultError(f"your {name} must return {what}, got {_shape_of(got)}; {_advice(name)}")
        for one, model in zip(got, wanted, strict=True):
            _compare(name, f"tensors {what}", one, model)
        return
    fits = isinstance(got, Tensor) and got.shape == wanted.shape and got.dtype == wanted.dtype
    if not fits:
        raise _WrongResultError(
            f"your {name} must return {what} of shape and dtype {_shape_of(wanted)} on a tiny input, got "
            f"{_shape_of(got)}; {_advice(name)}"
        )
    if got.requires_grad:
        got.sum().backward(retain_graph=True)


def _shape_of(x: Any) -> str:
    if isinstance(x, Tensor):
        return f"{tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}"
    return "None" if x is None else f"an object of type {type(x).__name__}"


def _layers(model: nn.Module) -> list[nn.Module]:
    stacks = [getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)]
    return [layer for stack in stacks for layer in stack.layers]


def _stands_for(name: str, layer: nn.Module, module: nn.Module) -> bool:
    places = {"MultiHeadAttention": ("self_attention", "cross_attention"), "FeedForward": ("feed_forward",)}
    return any(module is getattr(layer, place, None) for place in places[name])
