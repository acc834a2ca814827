"""Recognise, try and hand out the parts that a learner gives: `Kit`. The models made of them are in `assemble`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn

from course_kit.nn import (
    AlibiPosition,
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
    RotaryPosition,
    TransformerConfig,
)
from course_kit.workshop.blocks import (
    AlibiOfParts,
    AttentionOfParts,
    DecoderMaskOfParts,
    NormOfParts,
    RotaryOfParts,
    SinusoidsOfParts,
)
from course_kit.workshop.part_names import CLASSES, CONTAINS, INSIDE_ATTENTION, OURS, PLACES, POSITIONS, STUB, YOURS
from course_kit.workshop.trials import WrongResultError, advice, try_part
from course_lib import transformer as plain
from course_lib.masking import causal_mask, decoder_mask, padding_mask

__all__ = ["Kit"]


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
        if not callable(part) or inspect.isclass(part) != (name in CLASSES):
            wanted = "the class" if name in CLASSES else "the function"
            raise TypeError(f"expected {wanted} {name} itself, got {_kind_of(part)}")
        if _is_of_the_course(part):
            self.course.add(name)
        self.given[name] = part if name in CLASSES else _Given(name, part, self.at_work)

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
            return DecoderMaskOfParts(
                self.function("padding_mask", padding_mask), self.function("causal_mask", causal_mask)
            )
        return decoder_mask

    def positions(self, config: TransformerConfig, ours: nn.Module) -> nn.Module:
        """What is added to an embedding."""
        name = POSITIONS.get(config.positions)
        if name == "sinusoidal_encoding" and name in self.given:
            return SinusoidsOfParts(self.given[name])
        if name == "LearnedPositionalEmbedding" and name in self.given:
            return self.given[name](config.max_length, config.d_model)
        return ours

    def attention(self, position: str | None) -> nn.Module:
        """A multi-head attention: your class, or ours with your functions in it."""
        if "MultiHeadAttention" in self.given:
            return _for_any_layer(self.given["MultiHeadAttention"])(self.d_model, self.num_heads)
        code = None
        if position == "rotary":
            code = RotaryOfParts(self.given["apply_rotary"]) if "apply_rotary" in self.given else RotaryPosition()
        if position == "alibi":
            code = AlibiOfParts(self.given["alibi_bias"]) if "alibi_bias" in self.given else AlibiPosition()
        if any(name in self.given for name in INSIDE_ATTENTION):
            return AttentionOfParts(self.d_model, self.num_heads, self.given, code)
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
            if "MultiHeadAttention" in self.given or type(own) in (MultiHeadAttention, plain.MultiHeadAttention):
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
                    setattr(layer, place, NormOfParts(self.d_model, self.given["layer_norm"]))
        return layer

    # Trying

    def try_parts(self) -> None:
        """Each part alone on tiny inputs; stubs are put aside."""
        for name in list(self.given):
            try:
                try_part(name, self.given[name], self.d_model, self.num_heads, self.d_ff)
            except NotImplementedError:
                self.stubs.add(name)
                del self.given[name]
            except WrongResultError as error:
                raise ValueError(str(error)) from None
            except Exception as error:
                raise ValueError(
                    f"your {name} fails on a tiny input with {type(error).__name__}: {error}; {advice(name)}"
                ) from error
            self.at_work.clear()

    def try_together(self, model: nn.Module, inputs: tuple[Tensor, ...], what: str, shape: tuple[int, ...]) -> None:
        """The whole model forwards and backwards; note which parts are at work."""
        for part in self.given.values():
            if isinstance(part, _Given):
                part.calls = 0
        names = {part: name for name, part in self.given.items() if name in CLASSES}
        try:
            with ExitStack() as hooks:
                for module in model.modules():
                    name = next((names[kind] for kind in type(module).__mro__ if kind in names), None)
                    if name is not None:
                        begin = module.register_forward_pre_hook(lambda *_, name=name: self._begin(name))
                        hooks.enter_context(begin)
                        hooks.enter_context(module.register_forward_hook(lambda *_: self._end()))
                result = model(*inputs)
                if result.requires_grad:
                    result.sum().backward()
        except Exception as error:
            who = f"your {self.at_work[-1]} fails" if self.at_work else "they fail"
            raise ValueError(
                f"each part works on its own, but in the model {who} with {type(error).__name__}: {error}; "
                f"{advice(*self.at_work[-1:] or self.given)}"
            ) from error
        finally:
            self.at_work.clear()
        if result.shape != shape:
            raise ValueError(
                f"each part works on its own, but the model built from them must return {what} of shape {shape}, got "
                f"{tuple(result.shape)}; {advice(*self.given)}"
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
        done = {inner: outer for outer in CONTAINS if outer in yours for inner in CONTAINS[outer]}
        found = {}
        for name in PLACES:
            if name in self.stubs:
                found[name] = STUB
            elif name in self.course and name in yours:
                found[name] = OURS
            elif name in yours:
                found[name] = YOURS
            elif name in self.given and name in done:
                found[name] = f"{YOURS}, not called: your {done[name]} does its work"
            elif name in self.given:
                found[name] = f"{YOURS}, not called: it has no place in this model"
            elif name in places and name not in done:
                found[name] = OURS
        for name in ("MultiHeadAttention", "FeedForward"):
            own = [m for layer in _layers(model) for m in layer.children() if _stands_for(name, layer, m)]
            if found.get(name) == OURS and not all(_is_of_the_course(type(module)) for module in own):
                found[name] = f"{YOURS}, inside your layer"
        return found


def _is_of_the_course(part: Any) -> bool:
    return str(getattr(part, "__module__", "")).startswith(("course_lib.", "course_kit."))


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


def _for_any_layer(attention: type[nn.Module]) -> type[nn.Module]:
    """The class, with a forward that takes the argument `need_weights`, of which a contract says nothing."""

    def forward(self, query, key, value, mask=None, *, need_weights=True):
        return attention.forward(self, query, key, value, mask)

    return type(attention.__name__, (attention,), {"forward": forward, "__module__": attention.__module__})


def _layers(model: nn.Module) -> list[nn.Module]:
    stacks = [getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)]
    return [layer for stack in stacks for layer in stack.layers]


def _stands_for(name: str, layer: nn.Module, module: nn.Module) -> bool:
    places = {"MultiHeadAttention": ("self_attention", "cross_attention"), "FeedForward": ("feed_forward",)}
    return any(module is getattr(layer, place, None) for place in places[name])
