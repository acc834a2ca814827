"""A small grammar of German captions and their English, for when Multi30k cannot be had.

A caption is drawn from a tree of choices (`OneOf`, `Every`) and said in both languages at once, so that it is known
which German word belongs to which English word. The English is a function of the German: whether a verb stands in the
simple present or the progressive is a matter of the verb, and a word of two meanings is decided by other words.

The words are in `course_kit.data._lexicon`: that is the place to add a noun or a verb. Endings and word order are in
`course_kit.data._sentences`; here is what goes with what.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial
from typing import Any

from course_kit.data._lexicon import PLACES, VERBS, Noun, Verb, adjectives, nouns
from course_kit.data._sentences import (
    A_PLACE,
    NONE,
    NONE_MANY,
    OWN,
    OWN_MANY,
    SEVERAL,
    THE,
    THE_MANY,
    THREE,
    TWO,
    A,
    Both,
    Caption,
    Clause,
    Determiner,
    NounPhrase,
    Predicate,
    Prepositional,
    finished,
    say_attempt,
    say_clause,
    say_while_after,
    say_while_before,
)

__all__ = ["Caption", "aligned_captions", "caption_pairs", "number_of_captions"]


def caption_pairs(number: int, *, seed: int) -> list[tuple[str, str]]:
    """Different German captions, each with its English, the same for the same seed; errors as in `aligned_captions`."""
    return [(caption.german, caption.english) for caption in aligned_captions(number, seed=seed)]


def aligned_captions(number: int, *, seed: int) -> list[Caption]:
    """Different German captions, each with its English and the words that belong together, the same for the same seed.

    Raises:
        ValueError: `number` is below 1 or above `number_of_captions()`.
    """
    if not 1 <= number <= number_of_captions():
        raise ValueError(
            f"expected a number of captions from 1 to {number_of_captions():,}, which is all that the grammar has, "
            f"got {number:,}: ask for a number in that range, or add words to the grammar"
        )
    source = random.Random(seed)
    found: dict[str, Caption] = {}
    while len(found) < number:
        caption = finished(draw(captions(), source))
        found.setdefault(caption.german, caption)
    return list(found.values())


def number_of_captions() -> int:
    """How many different German captions the grammar has."""
    return count(captions())


# ---- Choices ---------------------------------------------------------------------------------------------------------


class OneOf:
    """One of several; with weights, drawn in their proportion."""

    def __init__(self, options: Iterable[Any], weights: Sequence[int] | None = None) -> None:
        self.options = tuple(options)
        self.bounds = tuple(itertools.accumulate(weights)) if weights else None

    @cached_property
    def count(self) -> int:
        return sum(count(option) for option in self.options)

    def draw(self, source: random.Random) -> Any:
        return draw(source.choices(self.options, cum_weights=self.bounds)[0], source)


class Every:
    """One of each part, put together by `build`."""

    def __init__(self, build: Callable[..., Any], *parts: Any) -> None:
        self.build, self.parts = build, parts

    @cached_property
    def count(self) -> int:
        return math.prod(count(part) for part in self.parts)

    def draw(self, source: random.Random) -> Any:
        return self.build(*[draw(part, source) for part in self.parts])


def count(choice: Any) -> int:
    return choice.count if isinstance(choice, (OneOf, Every)) else 1


def draw(choice: Any, source: random.Random) -> Any:
    return choice.draw(source) if isinstance(choice, (OneOf, Every)) else choice


# ---- What goes with what ---------------------------------------------------------------------------------------------


def fits(determiner: Determiner, noun: Noun) -> bool:
    """Tennis has no article, a grandmother takes a possessive, and a church does not."""
    if noun in nouns("bare"):
        return determiner == NONE
    if noun in nouns("kin"):
        return determiner == OWN
    return determiner != NONE and (determiner.german != "sein" or noun in nouns("own"))


@cache
def noun_phrases(some: tuple[Noun, ...], determiners: tuple[Determiner, ...], least: int = 0, most: int = 0) -> OneOf:
    """A noun, a determiner that fits it, and from `least` to `most` adjectives; two are a size and a colour."""
    found = []
    for noun in some:
        fitting = [determiner for determiner in determiners if fits(determiner, noun)]
        known = [] if noun in nouns("bare kin") else list(adjectives(noun))
        two = itertools.product(("klein", "groß"), ("rot", "blau", "grün", "gelb"))
        pairs = [pair for pair in two if {*pair} <= {*known}]
        levels = [OneOf(level) for level in ([()], [(stem,) for stem in known], pairs)[least : most + 1] if level]
        if fitting and levels:
            determiner = OneOf(fitting, [determiner.weight for determiner in fitting])
            found.append(Every(NounPhrase, determiner, OneOf(levels), noun))
    return OneOf(found)


@cache
def prepositional(rows: tuple[str, ...], determiners: tuple[Determiner, ...], least: int, most: int) -> OneOf:
    """From rows like "in in: Park Wald; vor in front of: landmark"; what two rows share, the choice has once."""
    names: dict[str, str] = {}
    for entry in "; ".join(rows).split(";"):
        prepositions, _, some = entry.strip().partition(":")
        names[prepositions] = names.get(prepositions, "") + some
    found, weights = [], []
    for prepositions, some in names.items():
        german, _, english = prepositions.partition(" ")
        found.append(Every(Prepositional, german, english, noun_phrases(nouns(some), determiners, least, most)))
        weights.append(min(3, len(nouns(some))))
    return OneOf(found, weights)


@cache
def predicates(verb: Verb, plural: bool, place: bool, most: int) -> Every:
    """What one subject, or several, can do with the verb; `most` counts adjectives."""
    any_number = (A, THE, OWN, NONE, TWO, THREE, SEVERAL, THE_MANY, NONE_MANY)
    as_subject = (OWN_MANY, NONE_MANY) if plural else (A, THE, OWN)
    determiners = {"any": any_number, "one": (A, THE, OWN, NONE), "each": as_subject}[verb.number]
    return Every(
        Predicate,
        verb,
        noun_phrases(nouns(verb.object), determiners, 0, most) if verb.object else None,
        OneOf(["", *verb.how.split()], [4, *(1 for _ in verb.how.split())]),
        prepositional(tuple(PLACES[name] for name in verb.where.split()), (A_PLACE, THE), 0, most - 1)
        if place
        else None,
    )


@cache
def subjects(some: tuple[Noun, ...], plural: bool, style: str) -> OneOf:
    """How to call who does something.

    short: der Mann, ein alter Mann       described: ein alter Mann       both: ein Mann und eine Frau
    dressed: ein Mann in einem roten Hemd       wearing, holding, carrying: ein Mann, der einen roten Hut trägt
    """
    determiners = (TWO, THREE, SEVERAL, THE_MANY) if plural else (A, THE)
    if style in ("short", "described"):
        return noun_phrases(some, determiners, least=int(style == "described"), most=1)
    if style == "both":
        pairs = itertools.permutations([NounPhrase(A, (), noun) for noun in some], 2) if plural else ()
        return OneOf(Both(one, other) for one, other in pairs if one.noun.english != other.noun.english)
    people = noun_phrases(tuple(noun for noun in some if noun in nouns("person")), determiners)
    if style == "dressed":
        extra = prepositional((DRESSED,), (NONE_MANY,) if plural else (A,), 1, 1)
    else:
        verbs = [verb for verb in VERBS if verb.english.endswith("/" + style) and verb.subject == "person"]
        extra = OneOf(Every(Predicate, verb, described_objects(verb, plural)) for verb in verbs)
    return OneOf([Every(NounPhrase.and_extra, people, extra)] if people.options else ())


def described_objects(verb: Verb, plural: bool) -> OneOf:
    """The object in a relative clause with "has": einen roten Hut, zwei kleine Bälle."""
    determiners = (A, TWO) if verb.number != "each" else (NONE_MANY,) if plural else (A,)
    return noun_phrases(nouns(verb.object), determiners, least=1, most=1)


DRESSED = "in in: clothes; mit with: headwear neckwear Rucksack Regenschirm"


def clauses(styles: str, place: str, *, who: str = "person animal Baby", most: int = 2, actions: bool = False) -> OneOf:
    """Who does what; the place is said ("yes"), left out ("no"), or said where there is no object ("instead")."""
    found, weights = [], []
    for style, verb, plural in itertools.product(styles.split(), VERBS, (False, True)):
        subject = subjects(tuple(noun for noun in nouns(verb.subject) if noun in nouns(who)), plural, style)
        somewhere = place == "yes" or (place == "instead" and not verb.object)
        complete = verb.where if somewhere else verb.object
        suits = can_be(style, verb) and not (actions and (verb.progressive or not verb.object))
        if subject.options and complete and suits:
            found.append(Every(Clause, subject, predicates(verb, plural, somewhere, most)))
            weights.append(1 if plural else 2)
    return OneOf(found, weights)


def can_be(style: str, verb: Verb) -> bool:
    """Who holds something has no hand free, and who carries something is on the way."""
    if style in ("wearing", "holding", "carrying") and verb.english.endswith(("/wearing", "/holding", "/carrying")):
        return False
    return style not in ("holding", "carrying") or bool(verb.frame or (style == "holding" and not verb.object))


def double_clauses() -> OneOf:
    """Who does two things, one after the other, in a place that fits both."""
    found = []
    actions = [verb for verb in VERBS if verb.object and verb.where and not verb.progressive]
    for (verb, second), plural in itertools.product(itertools.permutations(actions, 2), (False, True)):
        if verb.subject == second.subject and {*verb.where.split()} & {*second.where.split()}:
            deeds = [predicates(deed, plural, place=False, most=1) for deed in (verb, second)]
            found.append(Every(Clause, subjects(nouns(verb.subject), plural, "short"), *deeds))
    return OneOf(found)


@cache
def captions() -> OneOf:
    """All that the grammar can say."""
    first = partial(Every, partial(say_clause, order="first"))
    inverted = partial(Every, partial(say_clause, order="place"))
    companies = itertools.permutations(("adult", "child", "player", "animal"), 2)
    two_clauses = [[clauses("short", "instead", who=who, most=1) for who in pair] for pair in companies]
    kinds = {
        first(clauses("described", "no")): 3,
        first(clauses("short", "yes")): 3,
        first(clauses("dressed", "instead", most=1)): 2,
        first(clauses("wearing holding carrying", "instead", most=1)): 3,
        first(OneOf([clauses("both", "yes"), double_clauses()])): 3,
        inverted(clauses("short", "yes")): 4,
        inverted(clauses("dressed", "yes", most=1)): 2,
        inverted(clauses("both", "yes")): 1,
        Every(say_attempt, OneOf(clauses("short", place, actions=True) for place in ("yes", "no"))): 3,
        OneOf(Every(say_while_after, *pair) for pair in two_clauses): 3,
        OneOf(Every(say_while_before, *pair) for pair in two_clauses): 3,
    }
    return OneOf(kinds, list(kinds.values()))
