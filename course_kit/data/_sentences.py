"""How `course_kit.data.grammar` says what it has chosen to say: word order, agreement, endings, in German and English.

What is to be said is a `Clause`: a subject and what it does. What has been said is a `Said`: the same in two languages,
where words that mean the same share a unit. From the units comes the alignment.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from course_kit.data._lexicon import ADVERBS, Noun, Verb, adjectives

# ---- What is to be said ----------------------------------------------------------------------------------------------


class Determiner(NamedTuple):
    german: str
    english: str
    plural: bool = False
    weight: int = 2  # how often it is drawn, against the others


A, THE = Determiner("ein", "a", weight=12), Determiner("der", "the", weight=4)
A_PLACE = A._replace(weight=4)  # in the kitchen is said as often as in a kitchen
OWN, NONE = Determiner("sein", "", weight=4), Determiner("", "")
TWO, THREE = Determiner("zwei", "two", plural=True), Determiner("drei", "three", plural=True)
SEVERAL = Determiner("mehrere", "several", plural=True)
THE_MANY, OWN_MANY, NONE_MANY = (one._replace(plural=True, weight=2) for one in (THE, OWN, NONE))


class NounPhrase(NamedTuple):
    determiner: Determiner
    adjectives: tuple[str, ...]
    noun: Noun
    extra: Prepositional | Predicate | None = None  # "in einem roten Hemd", ", der einen Hut trägt,"

    def and_extra(self, extra: Prepositional | Predicate) -> NounPhrase:
        return self._replace(extra=extra)


class Both(NamedTuple):
    first: NounPhrase
    second: NounPhrase


class Prepositional(NamedTuple):
    german: str
    english: str
    noun_phrase: NounPhrase


class Predicate(NamedTuple):
    verb: Verb
    object: NounPhrase | None = None
    adverb: str = ""
    place: Prepositional | None = None


class Clause(NamedTuple):
    subject: NounPhrase | Both
    predicate: Predicate
    second: Predicate | None = None


# ---- Words and units -------------------------------------------------------------------------------------------------


class Word(NamedTuple):
    text: str
    units: tuple[object, ...]  # the units of meaning that it belongs to


@dataclass(frozen=True)
class Said:
    """The same in two languages."""

    german: tuple[Word, ...] = ()
    english: tuple[Word, ...] = ()

    def __add__(self, other: Said) -> Said:
        return Said(self.german + other.german, self.english + other.english)


def words(text: str, unit: object) -> tuple[Word, ...]:
    return tuple(Word(word, (unit,)) for word in text.split())


def unit_of(german: str, english: str, unit: object = None) -> Said:
    """Words that mean the same: they make a unit, or join the one that is given."""
    unit = unit or object()
    return Said(words(german, unit), words(english, unit))


def with_comma(some: tuple[Word, ...]) -> tuple[Word, ...]:
    last = some[-1]
    return (*some[:-1], last._replace(text=last.text.rstrip(",") + ","))


@dataclass(frozen=True)
class Caption:
    """A German sentence and its English; `alignment` has the pairs (German word, English word) that mean the same.

    Words are separated by spaces and counted from 0. A word may belong to several, or, as some articles, to none.
    """

    german: str
    english: str
    alignment: tuple[tuple[int, int], ...]


def finished(said: Said) -> Caption:
    german, english = ([word.text for word in side] for side in (said.german, said.english))
    for side in (german, english):
        side[0] = side[0][0].upper() + side[0][1:]
        side[-1] = side[-1].rstrip(",") + "."
    places = defaultdict(list)
    for j, word in enumerate(said.english):
        for unit in word.units:
            places[unit].append(j)
    alignment = tuple((i, j) for i, word in enumerate(said.german) for unit in word.units for j in places[unit])
    return Caption(" ".join(german), " ".join(english), alignment)


# ---- Articles, adjectives, nouns -------------------------------------------------------------------------------------

# Endings by case and gender; "p" is the plural, which is the same for all three.
STRONG = {
    "nom": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
THE_FORMS = {
    "nom": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
WITHOUT_ENDING = (("nom", "m"), ("nom", "n"), ("acc", "n"))  # ein Hund, ein Pferd
CONTRACTIONS = {("in", "dem"): "im", ("an", "dem"): "am", ("in", "das"): "ins", ("an", "das"): "ans"}


class Agreement(NamedTuple):
    """What a subject says about the words that refer to it."""

    gender: str  # m, f, n, p
    whose: str


def agreement(subject: NounPhrase | Both) -> Agreement:
    if isinstance(subject, Both) or subject.determiner.plural:
        return Agreement("p", "their")
    return Agreement(subject.noun.gender, subject.noun.whose)


def article(determiner: Determiner, case: str, gender: str, owner: Agreement | None) -> tuple[str, bool]:
    """The word, and whether its ending shows case and gender, which frees an adjective from doing so."""
    if determiner.german == "der":
        return THE_FORMS[case][gender], True
    if determiner.german == "mehrere":
        return "mehrer" + STRONG[case][gender], False
    if determiner.german not in ("ein", "sein"):
        return determiner.german, False
    stem = "ihr" if determiner.german == "sein" and owner.gender in "fp" else determiner.german
    return (stem, False) if (case, gender) in WITHOUT_ENDING else (stem + STRONG[case][gender], True)


def adjective_ending(case: str, gender: str, shown: bool) -> str:
    """Strong, as if it were the article, unless an article has shown case and gender already."""
    if not shown:
        return STRONG[case][gender]
    return "e" if gender != "p" and (case == "nom" or (case == "acc" and gender != "m")) else "en"


def noun_form(noun: Noun, case: str, plural: bool) -> str:
    if plural:
        return noun.plural + ("n" if case == "dat" and not noun.plural.endswith(("n", "s")) else "")
    return noun.plural if noun.weak and case != "nom" else noun.german


def a_or_an(following: str) -> str:
    return "an" if following[0] in "aeiou" and not following.startswith("uni") else "a"


def say_noun_phrase(phrase: NounPhrase | Both, case: str, owner: Agreement | None = None) -> Said:
    """`owner` is whom "sein" refers to."""
    if isinstance(phrase, Both):
        return say_noun_phrase(phrase.first, case) + unit_of("und", "and") + say_noun_phrase(phrase.second, case)
    noun, determiner = phrase.noun, phrase.determiner
    gender = "p" if determiner.plural else noun.gender
    german, shown = article(determiner, case, gender, owner)
    ending = adjective_ending(case, gender, shown)
    unit = object()
    said = unit_of("", "pairs of" if noun.is_pair and determiner in (TWO, THREE, SEVERAL) else "", unit)
    for stem in phrase.adjectives:
        said += unit_of(stem + ending, adjectives(noun)[stem])
    english = noun.english_plural if determiner.plural else noun.english
    said += unit_of(noun_form(noun, case, determiner.plural), english, unit)
    if determiner.german == "ein":
        english = "" if noun.is_pair else a_or_an(said.english[0].text)
    else:
        english = owner.whose if determiner.german == "sein" else determiner.english
    said = unit_of(german, english) + said
    if isinstance(phrase.extra, Prepositional):
        said += say_prepositional(phrase.extra, "dat")
    elif isinstance(phrase.extra, Predicate):
        agrees = agreement(phrase)
        pronoun = unit_of(THE_FORMS["nom"][agrees.gender], "who")
        relative = say_predicate(phrase.extra, pronoun, agrees, "final")
        said = Said(with_comma(said.german) + with_comma(relative.german), said.english + relative.english)
    return said


def say_prepositional(phrase: Prepositional, case: str, owner: Agreement | None = None, unit: object = None) -> Said:
    """A preposition without English belongs to the `unit` of its verb: "climbs a tree"."""
    said = say_noun_phrase(phrase.noun_phrase, case, owner)
    preposition = unit_of(phrase.german, phrase.english, None if phrase.english else unit)
    contracted = CONTRACTIONS.get((phrase.german, said.german[0].text))
    if contracted is None:
        return preposition + said
    both = Word(contracted, preposition.german[0].units + said.german[0].units)
    return Said((both, *said.german[1:]), preposition.english + said.english)


# ---- Verbs and clauses -----------------------------------------------------------------------------------------------


def third_person(english: str) -> str:
    verb, _, rest = english.partition(" ")
    ending = "es" if verb.endswith(("s", "x", "ch", "sh")) else "s"
    stem, ending = (verb[:-1], "ies") if verb.endswith("y") and verb[-2] not in "aeiou" else (verb, ending)
    return f"{stem}{ending} {rest}"


def say_predicate(predicate: Predicate, subject: Said, agrees: Agreement, order: str) -> Said:
    """What the subject does, with the subject in its place. In German, `order` determines the place of the verb:

    first: Ein Junge hebt im Park einen Ball auf.        place: Im Park hebt ein Junge einen Ball auf.
    verb:  …, hebt ein Junge im Park einen Ball auf.     final: während ein Junge im Park einen Ball aufhebt
    infinitive: einen Ball aufzuheben
    """
    verb, unit, plural = predicate.verb, object(), agrees.gender == "p"
    pronoun, _, infinitive = verb.german.rpartition(" ")
    prefix, _, stem = infinitive.rpartition("|")
    finite = stem if plural else verb.singular
    if order == "final":
        finite = prefix + finite
    elif order == "infinitive":
        finite = f"{prefix}zu{stem}" if prefix else f"zu {stem}"
    sich, finite, prefix = (words(text, unit) for text in (pronoun, finite, prefix))

    adverb = unit_of(predicate.adverb, ADVERBS.get(predicate.adverb, ""))
    if order == "infinitive":
        does = words("to", unit) + adverb.english + words(verb.base, unit)
    elif verb.progressive:
        does = words("are" if plural else "is", unit) + adverb.english + words(verb.ing, unit)
    else:
        does = adverb.english + words(verb.base if plural else third_person(verb.base), unit)

    thing = say_object(predicate, agrees, unit)
    place = say_prepositional(predicate.place, "dat") if predicate.place else Said()
    middle = adverb.german + thing.german
    german = {
        "first": subject.german + finite + sich + place.german + middle + prefix,
        "place": place.german + finite + sich + subject.german + middle + prefix,
        "verb": finite + sich + subject.german + place.german + middle + prefix,
        "final": subject.german + sich + place.german + middle + finite,
        "infinitive": sich + middle + finite,
    }[order]
    return Said(german, subject.english + does + thing.english + place.english)


def say_object(predicate: Predicate, agrees: Agreement, unit: object) -> Said:
    if predicate.object is None:
        return Said()
    verb = predicate.verb
    if not verb.preposition:
        return say_noun_phrase(predicate.object, verb.case, agrees)
    return say_prepositional(Prepositional(*verb.preposition, predicate.object), verb.case, agrees, unit)


def say_clause(clause: Clause, order: str) -> Said:
    agrees = agreement(clause.subject)
    said = say_predicate(clause.predicate, say_noun_phrase(clause.subject, "nom"), agrees, order)
    if clause.second:
        said += unit_of("und", "and") + say_predicate(clause.second, Said(), agrees, "first")
    return said


def say_attempt(clause: Clause) -> Said:
    """Im Park versucht ein Junge, einen Ball aufzuheben."""
    agrees, (predicate, place) = agreement(clause.subject), (clause.predicate, clause.predicate.place)
    subject = say_noun_phrase(clause.subject, "nom")
    there = say_prepositional(place, "dat") if place else Said()
    tries = unit_of("versuchen", "are trying") if agrees.gender == "p" else unit_of("versucht", "is trying")
    deed = say_predicate(predicate._replace(place=None), Said(), agrees, "infinitive")
    start = there.german + tries.german + subject.german if place else subject.german + tries.german
    return Said(with_comma(start) + deed.german, subject.english + tries.english + deed.english + there.english)


def say_while_after(main: Clause, side: Clause) -> Said:
    """Ein Mann liest ein Buch, während ein Hund im Garten schläft."""
    said = say_clause(main, "first")
    return Said(with_comma(said.german), said.english) + unit_of("während", "while") + say_clause(side, "final")


def say_while_before(side: Clause, main: Clause) -> Said:
    """Während ein Hund im Garten schläft, liest ein Mann ein Buch."""
    said = unit_of("während", "while") + say_clause(side, "final")
    return Said(with_comma(said.german), with_comma(said.english)) + say_clause(main, "verb")
