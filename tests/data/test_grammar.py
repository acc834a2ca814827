"""course_kit.data.grammar: the German is right, the English follows from it, the alignment says which word is which."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache

import pytest

from course_kit.data import _lexicon, _sentences, grammar
from course_kit.data._lexicon import VERBS, nouns
from course_kit.data._sentences import (
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
    Clause,
    NounPhrase,
    Predicate,
    Prepositional,
)


@cache
def sample(number=3000, seed=7):
    return grammar.aligned_captions(number, seed=seed)


def phrase(determiner, *words, extra=None):
    """phrase(A, "klein", "Hund"): the noun comes last, as `KINDS` would name it."""
    return NounPhrase(determiner, words[:-1], nouns(words[-1])[0], extra)


def deed(german, thing=None, adverb="", place=None, english=None):
    found = [verb for verb in VERBS if verb.german == german and english in (None, verb.english)]
    return Predicate(found[0], thing, adverb, place)


def pair(said):
    caption = grammar.finished(said)
    return caption.german, caption.english


def said(clause, order="first"):
    return pair(grammar.say_clause(clause, order))


def there(german, english, *noun_phrase):
    return Prepositional(german, english, phrase(*noun_phrase))


BOY = phrase(A, "Junge")
PICKS_UP = deed("auf|heben", phrase(A, "rot", "Ball"), place=there("in", "in", THE, "Park"))


# ---- Sentences written by hand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "german"),
    [
        ("first", "Ein Junge hebt im Park einen roten Ball auf."),
        ("place", "Im Park hebt ein Junge einen roten Ball auf."),
        ("verb", "Hebt ein Junge im Park einen roten Ball auf."),
        ("final", "Ein Junge im Park einen roten Ball aufhebt."),
    ],
)
def test_verb_stands_where_the_clause_wants_it_and_the_prefix_at_its_end(order, german):
    assert said(Clause(BOY, PICKS_UP), order) == (german, "A boy picks up a red ball in the park.")


def test_verb_is_final_after_waehrend_and_second_after_the_clause():
    dog = Clause(phrase(THE, "klein", "Hund"), deed("schlafen", place=there("auf", "on", A, "Sofa")))
    girl = Clause(phrase(A, "Mädchen"), deed("sich an|sehen", phrase(A, "bunt", "Bild")))
    assert pair(grammar.say_while_after(girl, dog)) == (
        "Ein Mädchen sieht sich ein buntes Bild an, während der kleine Hund auf einem Sofa schläft.",
        "A girl is looking at a colorful picture while the small dog is sleeping on a sofa.",
    )
    assert pair(grammar.say_while_before(girl, dog)) == (
        "Während ein Mädchen sich ein buntes Bild ansieht, schläft der kleine Hund auf einem Sofa.",
        "While a girl is looking at a colorful picture, the small dog is sleeping on a sofa.",
    )


@pytest.mark.parametrize(
    ("thing", "german", "english"),
    [
        (deed("aus|wechseln", phrase(A, "Birne(light bulb)")), "eine Birne auszuwechseln", "to change a light bulb"),
        (deed("reparieren", phrase(A, "Schloss(lock)")), "ein Schloss zu reparieren", "to repair a lock"),
        (deed("sich setzen", phrase(A, "Bank(bench)")), "sich auf eine Bank zu setzen", "to sit down on a bench"),
    ],
)
def test_attempt_ends_with_the_infinitive(thing, german, english):
    attempt = grammar.say_attempt(Clause(phrase(TWO, "Frau"), thing))
    assert pair(attempt) == (f"Zwei Frauen versuchen, {german}.", f"Two women are trying {english}.")
    attempt = grammar.say_attempt(Clause(phrase(A, "Frau"), thing._replace(place=there("in", "in", A, "Garten"))))
    assert pair(attempt) == (
        f"In einem Garten versucht eine Frau, {german}.",
        f"A woman is trying {english} in a garden.",
    )


@pytest.mark.parametrize(
    ("person", "german", "english"),
    [
        ("Junge", "Ein Junge, der einen blauen Hut trägt,", "A boy who is wearing a blue hat"),
        ("Frau", "Eine Frau, die einen blauen Hut trägt,", "A woman who is wearing a blue hat"),
        ("Mädchen", "Ein Mädchen, das einen blauen Hut trägt,", "A girl who is wearing a blue hat"),
    ],
)
def test_relative_pronoun_has_the_gender_of_the_noun_before_it(person, german, english):
    hat = deed("tragen", phrase(A, "blau", "Hut"), english="wear/wearing")
    clause = Clause(phrase(A, person, extra=hat), deed("spielen", phrase(NONE, "Fußball")))
    assert said(clause) == (f"{german} spielt Fußball.", f"{english} is playing soccer.")


def test_comma_of_a_relative_clause_gives_way_to_the_full_stop():
    hats = deed("tragen", phrase(NONE_MANY, "Hut"), english="wear/wearing")
    dance = deed("tanzen", place=there("an", "on", THE, "Strand"))
    assert said(Clause(phrase(TWO, "Frau", extra=hats), dance), "place") == (
        "Am Strand tanzen zwei Frauen, die Hüte tragen.",
        "Two women who are wearing hats are dancing on the beach.",
    )


@pytest.mark.parametrize(
    ("noun_phrase", "case", "german", "english"),
    [
        (phrase(A, "klein", "Pferd"), "acc", "ein kleines Pferd", "a small horse"),
        (phrase(A, "klein", "Hund"), "acc", "einen kleinen Hund", "a small dog"),
        (phrase(A, "klein", "Katze"), "dat", "einer kleinen Katze", "a small cat"),
        (phrase(A, "klein", "Pferd"), "dat", "einem kleinen Pferd", "a small horse"),
        (phrase(THE, "klein", "Hund"), "nom", "der kleine Hund", "the small dog"),
        (phrase(THE, "klein", "Hund"), "acc", "den kleinen Hund", "the small dog"),
        (phrase(THE_MANY, "klein", "Hund"), "nom", "die kleinen Hunde", "the small dogs"),
        (phrase(THE_MANY, "klein", "Hund"), "dat", "den kleinen Hunden", "the small dogs"),
        (phrase(THREE, "klein", "Kind"), "dat", "drei kleinen Kindern", "three little children"),
        (phrase(SEVERAL, "rot", "Auto"), "nom", "mehrere rote Autos", "several red cars"),
        (phrase(NONE_MANY, "rot", "Auto"), "dat", "roten Autos", "red cars"),
        (phrase(A, "groß", "rot", "Ball"), "acc", "einen großen roten Ball", "a big red ball"),
        (phrase(A, "groß", "Kirche"), "nom", "eine große Kirche", "a large church"),
        (phrase(A, "Junge"), "dat", "einem Jungen", "a boy"),
        (phrase(THE, "müd", "Elefant"), "acc", "den müden Elefanten", "the tired elephant"),
        (phrase(A, "Apfel"), "acc", "einen Apfel", "an apple"),
        (phrase(A, "Uniform"), "acc", "eine Uniform", "a uniform"),
        (phrase(A, "jung", "Affe"), "nom", "ein junger Affe", "a young monkey"),
        (phrase(A, "schwarz", "Sonnenbrille"), "acc", "eine schwarze Sonnenbrille", "black sunglasses"),
        (phrase(TWO, "rot", "Hose"), "acc", "zwei rote Hosen", "two pairs of red pants"),
        (phrase(OWN, "rot", "Auto"), "acc", "ihr rotes Auto", "her red car"),
        (phrase(OWN, "rot", "Jacke"), "acc", "ihre rote Jacke", "her red jacket"),
        (phrase(OWN_MANY, "rot", "Jacke"), "acc", "ihre roten Jacken", "her red jackets"),
    ],
)
def test_articles_adjectives_and_nouns(noun_phrase, case, german, english):
    said = _sentences.say_noun_phrase(noun_phrase, case, _sentences.Agreement("f", "her"))
    assert " ".join(word.text for word in said.german) == german
    assert " ".join(word.text for word in said.english) == english


@pytest.mark.parametrize(
    ("subject", "german", "english"),
    [
        (phrase(A, "Mann"), "Ein Mann zieht seine", "A man puts on his"),
        (phrase(A, "Frau"), "Eine Frau zieht ihre", "A woman puts on her"),
        (phrase(A, "Mädchen"), "Ein Mädchen zieht seine", "A girl puts on her"),
        (phrase(A, "Kind"), "Ein Kind zieht seine", "A child puts on their"),
        (phrase(TWO, "Kind"), "Zwei Kinder ziehen ihre", "Two children put on their"),
        (Both(BOY, phrase(A, "Frau")), "Ein Junge und eine Frau ziehen ihre", "A boy and a woman put on their"),
        (phrase(A, "Hund"), "Ein Hund zieht seine", "A dog puts on its"),
    ],
)
def test_sein_and_ihr_are_decided_by_the_subject(subject, german, english):
    clause = Clause(subject, deed("an|ziehen", phrase(OWN, "Jacke")))
    assert said(clause) == (f"{german} Jacke an.", f"{english} jacket.")


@pytest.mark.parametrize(
    ("predicate", "german", "english"),
    [
        (deed("ziehen", phrase(A, "Karren")), "zieht einen Karren", "is pulling a cart"),
        (deed("an|ziehen", phrase(A, "Hose")), "zieht eine Hose an", "puts on pants"),
        (deed("aus|ziehen", phrase(A, "Hose")), "zieht eine Hose aus", "takes off pants"),
        (deed("streichen", phrase(A, "Bank(bench)")), "streicht eine Bank", "is painting a bench"),
        (deed("betreten", phrase(A, "Bank(bank)")), "betritt eine Bank", "enters a bank"),
        (deed("essen", phrase(A, "Birne(pear)")), "isst eine Birne", "is eating a pear"),
        (deed("spielen", phrase(NONE, "Geige")), "spielt Geige", "is playing the violin"),
        (deed("helfen", phrase(A, "Nachbar")), "hilft einem Nachbarn", "is helping a neighbor"),
        (deed("reiten", phrase(A, "Esel")), "reitet auf einem Esel", "is riding a donkey"),
        (deed("vorbei|gehen", phrase(THE, "Haus")), "geht am Haus vorbei", "is walking past the house"),
        (deed("laufen", phrase(THE, "Wald")), "läuft in den Wald", "is running into the forest"),
        (deed("fangen", phrase(A, "Ball")), "fängt einen Ball", "catches a ball"),
        (deed("weg|tragen", phrase(A, "Eimer")), "trägt einen Eimer weg", "carries away a bucket"),
        (deed("kaufen", phrase(A, "Eis"), "leise"), "kauft leise ein Eis", "quietly buys an ice cream"),
        (deed("fressen", phrase(A, "Apfel"), "leise"), "frisst leise einen Apfel", "is quietly eating an apple"),
    ],
)
def test_what_a_verb_or_noun_means_is_decided_by_its_company(predicate, german, english):
    assert said(Clause(phrase(A, "Frau"), predicate)) == (f"Eine Frau {german}.", f"A woman {english}.")


# ---- Properties of what is drawn -------------------------------------------------------------------------------------

# Written down again, as a grammar book does: which case and gender a form can be, by article and by adjective ending.
ARTICLES = {
    "der": "nom-m dat-f", "die": "nom-f acc-f nom-p acc-p", "das": "nom-n acc-n", "den": "acc-m dat-p",
    "dem": "dat-m dat-n",
    "ein": "nom-m nom-n acc-n", "eine": "nom-f acc-f", "einen": "acc-m", "einem": "dat-m dat-n", "einer": "dat-f",
    "sein": "acc-n", "seine": "acc-f acc-p", "seinen": "acc-m dat-p", "seinem": "dat-m dat-n", "seiner": "dat-f",
    "ihr": "acc-n", "ihre": "acc-f acc-p", "ihren": "acc-m dat-p", "ihrem": "dat-m dat-n", "ihrer": "dat-f",
    "zwei": "nom-p acc-p dat-p", "drei": "nom-p acc-p dat-p", "mehrere": "nom-p acc-p", "mehreren": "dat-p",
    "im": "dat-m dat-n", "am": "dat-m dat-n", "ins": "acc-n", "ans": "acc-n", "": "nom-p acc-p dat-p",
}  # fmt: skip
WITHOUT_ENDING = ("zwei", "drei", "mehrere", "mehreren", "")
WEAK = {"nom-m": "e", "nom-f": "e", "nom-n": "e", "acc-f": "e", "acc-n": "e"}  # all others: en
STRONG = {"nom-p": "e", "acc-p": "e", "dat-p": "en"}
MIXED = {"nom-m": "er", "nom-n": "es", "acc-n": "es"}  # after ein, sein, ihr
CASES = {
    "mit": "dat", "aus": "dat", "vor": "dat", "neben": "dat", "unter": "dat", "im": "dat", "am": "dat", "ins": "acc",
    "durch": "acc", "über": "acc",
}  # fmt: skip
STEMS = sorted({pair.split("=")[0] for row in _lexicon.ADJECTIVES.values() for pair in row.split()}, key=len)


def bare_words(sentence):
    return [word.strip(".,") for word in sentence[0].lower().join(["", sentence[1:]]).split()]


@cache
def noun_forms():
    """German form → its possible case-genders, from the table alone."""
    forms = defaultdict(set)
    for noun in _lexicon.all_nouns():
        for case in ("nom", "acc", "dat"):
            forms[noun.plural if noun.weak and case != "nom" else noun.german].add(f"{case}-{noun.gender}")
        forms[noun.plural] |= {"nom-p", "acc-p"}
        forms[noun.plural if noun.plural[-1] in "ns" else noun.plural + "n"].add("dat-p")
    return forms


def ending_of(adjective):
    return next(
        (adjective[len(stem) :] for stem in reversed(STEMS) if re.fullmatch(f"{stem}(e|en|er|es|em)", adjective)), None
    )


def analyses(words, at, after_comma=()):
    """Case-genders in which the noun phrase that ends with the noun `words[at]` is right."""
    start = at
    while start and ending_of(words[start - 1]):
        start -= 1
    article = words[start - 1] if start and words[start - 1] in ARTICLES else ""
    before = start - 1 - bool(article)
    case = CASES.get(article) or (CASES.get(words[before]) if before >= 0 else None)
    endings = {ending_of(word) for word in words[start:at]}
    readings = {article, ""} if start - 1 in after_comma else {article}  # ", die rote Hüte tragen": no article
    return {one for reading in readings for one in agreeing(reading, endings, words[at]) if not case or case in one}


def agreeing(article, endings, noun):
    possible = set(ARTICLES[article].split()) & noun_forms()[noun]
    if noun in ("Tennis", "Fußball", "Volleyball", "Schach", "Gitarre", "Geige", "Trompete", "Klavier") and not article:
        return noun_forms()[noun]
    for ending in endings:
        if article in WITHOUT_ENDING:
            possible = {one for one in possible if STRONG.get(one) == ending}
        elif article in ("ein", "sein", "ihr"):
            possible = {one for one in possible if MIXED.get(one) == ending}
        else:
            possible = {one for one in possible if WEAK.get(one, "en") == ending}
    return possible


def test_noun_phrases_agree_in_gender_number_and_case():
    seen = 0
    for caption in sample():
        words = bare_words(caption.german)
        for at, word in enumerate(words):
            if word[0].isupper():
                seen += 1
                commas = {i + 1 for i, word in enumerate(caption.german.split()) if word.endswith(",")}
                assert analyses(words, at, commas), (word, caption.german)
    assert seen > 6000


@pytest.mark.parametrize(
    "wrong",
    ["Eine Junge schläft.", "Ein kleine Hund schläft.", "Der kleiner Hund schläft.", "Er spielt mit einen Ball.",
     "Im große Park schläft er.", "Zwei kleinen Hunde schlafen.", "Er füttert den Junge.", "Mit kleine Kindern."],
)  # fmt: skip
def test_the_agreement_test_sees_mistakes(wrong):
    words = bare_words(wrong)
    assert not all(analyses(words, at) for at, word in enumerate(words) if word[0].isupper())


def clauses_of(german):
    return [part.strip(" .").split() for part in re.split(", | und (?!eine? )", german.rstrip("."))]


def finite_forms(verb):
    """Its prefix, and the forms for one and for several."""
    prefix, _, stem = verb.german.split(" ")[-1].rpartition("|")
    return prefix, verb.singular, stem


def test_separated_prefix_ends_its_clause():
    separable = defaultdict(set)
    for prefix, *forms in map(finite_forms, VERBS):
        for form in forms:
            separable[form].add(prefix)
    always = {form for form, prefixes in separable.items() if "" not in prefixes}
    seen = [
        (clause[-1] in separable[form], caption.german)
        for caption in sample()
        for clause in clauses_of(caption.german)
        for form in always.intersection(clause)
    ]
    assert [german for right, german in seen if not right] == []
    assert len(seen) > 500


def test_verb_ends_subordinate_clauses_and_infinitives():
    verbs = [*map(finite_forms, VERBS)]
    finite = {prefix + form for prefix, *forms in verbs for form in forms}
    to = tuple(f"{prefix}zu{stem}" if prefix else f"zu {stem}" for prefix, _, stem in verbs)
    seen = {"während": 0, "relative": 0, "zu": 0}
    for caption in sample():
        parts = clauses_of(caption.german)
        for number, clause in enumerate(parts):
            if clause[0].lower() == "während":
                seen["während"] += 1
                assert clause[-1] in finite, caption.german
            elif number and re.search("versuch(t|en)", " ".join(parts[number - 1])):
                seen["zu"] += 1
                assert " ".join(clause).endswith(to), caption.german
            elif number and clause[0] in ("der", "die", "das"):
                seen["relative"] += 1
                assert clause[-1] in ("trägt", "tragen", "hält", "halten"), caption.german
    assert min(seen.values()) > 200


def test_verb_is_second_in_main_clauses():
    """Before the finite verb stands one thing: the subject, or a place when the subject follows."""
    forms = {form for _, *both in map(finite_forms, VERBS) for form in both} | {"versucht", "versuchen"}
    inverted = 0
    for caption in sample():
        words = bare_words(" ".join(clauses_of(caption.german)[0]))
        if words[0] in ("im", "am", "in", "an", "auf", "vor", "neben", "unter"):
            inverted += 1
            verb = next(at for at, word in enumerate(words) if word in forms)
            assert verb <= 4, caption.german
            assert sum(word[0].isupper() for word in words[:verb]) == 1, caption.german
    assert inverted > 500


def test_every_caption_is_well_formed():
    """Upper case and a full stop, size before colour, "a" or "an", five to 22 words."""
    wrong_german = re.compile(r"\b(rot|blau|grün|gelb)\w+ (klein|groß)")
    wrong_english = re.compile(r"\ba [aeio]|\ban [^aeiou]|\ban? (pants|glasses|sunglasses)|\ba umb|\ban uni", re.I)
    for caption in sample():
        for side in (caption.german, caption.english):
            assert side[0].isupper()
            assert re.fullmatch(r"[^.]*[^.,]\.", side), side
            assert "  " not in side
            assert ",," not in side
        assert not wrong_german.search(caption.german)
        assert not wrong_english.search(caption.english)
    assert sum(bool(re.search(r"\b(klein|groß)\w+ (rot|blau|grün|gelb)", one.german)) for one in sample()) > 50
    lengths = [len(caption.german.split()) for caption in sample()]
    assert min(lengths) >= 5
    assert 17 <= max(lengths) <= 22


@pytest.mark.parametrize(
    ("determiner", "noun", "fits"),
    [(OWN, "Jacke", True), (OWN, "Kirche", False), (OWN, "Bruder", True), (A, "Bruder", False), (THE, "Kirche", True),
     (A, "Tennis", False), (NONE, "Tennis", True), (NONE, "Kirche", False), (NONE_MANY, "Kirche", True)],
)  # fmt: skip
def test_determiner_fits_the_noun(determiner, noun, fits):
    assert grammar.fits(determiner, nouns(noun)[0]) is fits


# ---- Alignment -------------------------------------------------------------------------------------------------------


def test_alignment_of_a_sentence():
    caption = grammar.finished(grammar.say_clause(Clause(BOY, PICKS_UP), "place"))
    # Im Park hebt ein Junge einen roten Ball auf. / A boy picks up a red ball in the park.
    together = {(0, 7), (0, 8), (1, 9), (2, 2), (2, 3), (3, 0), (4, 1), (5, 4), (6, 5), (7, 6), (8, 2), (8, 3)}
    assert set(caption.alignment) == together
    assert len(caption.alignment) == len(together)


def test_all_words_are_aligned_but_articles_that_english_lacks():
    for caption in sample():
        german, english = caption.german.split(), caption.english.split()
        assert all(0 <= i < len(german) and 0 <= j < len(english) for i, j in caption.alignment)
        left_out = {german[i].lower() for i in {*range(len(german))} - {i for i, _ in caption.alignment}}
        assert left_out <= {"ein", "eine", "einen", "einem", "einer"}, caption
        assert {j for _, j in caption.alignment} == {*range(len(english))}, caption


def test_nouns_are_aligned_with_their_english():
    meanings = defaultdict(set)
    for noun in _lexicon.all_nouns():
        for form in {noun.german, noun.plural, noun.plural + "n"}:
            meanings[form] |= {noun.english, noun.english_plural, f"pairs of {noun.english}"}
    for caption in sample():
        english = bare_words(caption.english)
        for i, word in enumerate(bare_words(caption.german)):
            if word[0].isupper():
                aligned = " ".join(english[j] for one, j in sorted(caption.alignment) if one == i)
                assert aligned in meanings[word], (word, aligned, caption)


# ---- Phenomena are frequent, English is a function of German ---------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "what", "pattern"),
    [
        (0.2, "a place before the verb", r"^(Im|Am|In|An|Auf|Vor|Neben|Unter) "),
        (0.15, "a clause with the verb at its end", r"(?i)\bwährend\b"),
        (0.05, "a relative clause", r", (der|die|das) .*(trägt|tragen|hält|halten),"),
        (0.05, "an infinitive", r"versuch(t|en)\b"),
        (0.2, "a number", r"(?i)\b(zwei|drei|mehrere)\b"),
        (0.15, "a prefix", r" (auf|ab|an|aus|ein|zu|um|weg|hoch|vor|nach|vorbei|hinauf|hinunter|zusammen)[,.]"),
        (0.08, "sein or ihr", r"\b(sein|ihr)(e|en|em|er)?\b"),
        (0.1, "a noun of two meanings", r"\b(Bank|Schloss|Birne|Strauß|Schläger|Decke)\b"),
        (0.05, "a verb of two meanings", r"\b(zieh(t|en)|trägt|tragen|hält|halten)\b"),
    ],
)
def test_what_attention_is_needed_for_is_frequent(share, what, pattern):
    assert sum(bool(re.search(pattern, caption.german)) for caption in sample()) > share * len(sample()), what


def test_english_is_a_function_of_the_german():
    source, english = random.Random(1), {}
    simple = grammar.clauses("short", "no", who="Tennisspieler", most=0)
    for _ in range(10_000):  # of the simple clauses many come up twice
        for clause in (
            grammar.say_clause(grammar.draw(simple, source), "first"),
            grammar.draw(grammar.captions(), source),
        ):
            german, its_english = pair(clause)
            assert english.setdefault(german, its_english) == its_english
    assert len(english) < 18_000


def texts(both):
    return tuple(" ".join(word.text for word in side) for side in (both.german, both.english))


def all_objects(verb, plural):
    """What the verb can be said with, in German, adjectives left out."""
    choice = grammar.predicates(verb, plural, False, 0).parts[1]
    agrees = _sentences.Agreement("p", "their") if plural else _sentences.Agreement("m", "his")
    for every in choice.options if choice else ():
        for determiner in every.parts[0].options:
            predicate = Predicate(verb, NounPhrase(determiner, (), every.parts[2]))
            yield texts(_sentences.say_object(predicate, agrees, object()))[0]


def all_places(verb):
    for row in grammar.predicates(verb, False, True, 1).parts[3].options if verb.where else ():
        german, english, phrases = row.parts
        for every in phrases.options:
            for determiner in every.parts[0].options:
                yield Prepositional(german, english, NounPhrase(determiner, (), every.parts[2]))


@pytest.mark.parametrize("plural", [False, True])
def test_no_german_can_be_meant_in_two_ways(plural):
    """Per subject and verb, each object and each place has one spelling of its own; so derivations are sentences."""
    for subject in nouns("person animal Baby"):
        seen = defaultdict(list)
        for verb in VERBS:
            if subject in nouns(verb.subject):
                seen[verb.german] += all_objects(verb, plural)
        for german, objects in seen.items():
            assert len(objects) == len(set(objects)), (subject.german, german)


def test_places_are_spelled_in_one_way_and_a_preposition_of_one_has_one_english():
    english = defaultdict(set)
    for verb in VERBS:
        places = [*all_places(verb)]
        spelled = {texts(_sentences.say_prepositional(place, "dat"))[0] for place in places}
        assert len(places) == len(spelled), verb
        for place in places:
            english[place.german, place.noun_phrase.noun].add(place.english)
    assert all(len(one) == 1 for one in english.values())


def listed(choice):
    if isinstance(choice, grammar.OneOf):
        yield from itertools.chain.from_iterable(map(listed, choice.options))
    elif isinstance(choice, grammar.Every):
        yield from itertools.starmap(choice.build, itertools.product(*map(listed, choice.parts)))
    else:
        yield choice


def test_the_count_is_that_of_different_german_sentences():
    few = [
        (grammar.clauses("short", "instead", who="Baby", most=1), lambda clause: grammar.say_clause(clause, "place")),
        (grammar.clauses("short", "no", who="Kuh", most=0), lambda clause: grammar.say_clause(clause, "first")),
        (grammar.predicates(PICKS_UP.verb, False, False, 1), lambda what: grammar.say_attempt(Clause(BOY, what))),
    ]
    for choice, say in few:
        german = [pair(say(clause))[0] for clause in listed(choice)]
        assert len(german) == len(set(german)) == grammar.count(choice) > 900


def test_an_adjective_has_one_english_for_a_noun():
    for noun in _lexicon.all_nouns():
        rows = [row.split() for kinds, row in _lexicon.ADJECTIVES.items() if noun in nouns(kinds)]
        pairs = {tuple(entry.split("=")) for entry in itertools.chain(*rows)}
        assert dict(pairs) == _lexicon.adjectives(noun)
        assert len(pairs) == len(_lexicon.adjectives(noun)), noun


# ---- Drawing, counting, errors ---------------------------------------------------------------------------------------


def test_captions_are_different_and_pairs_are_the_same_captions():
    captions = sample()
    assert len(captions) == len({caption.german for caption in captions}) == 3000
    assert grammar.caption_pairs(40, seed=7) == [(one.german, one.english) for one in captions[:40]]


def test_repeated_sentences_are_left_out(monkeypatch):
    sleep = deed("schlafen", place=there("auf", "on", A, "Sofa"))
    dogs = [Clause(phrase(A, name), sleep) for name in ("Hund", "Katze", "Frau")]
    few = grammar.Every(lambda clause: grammar.say_clause(clause, "first"), grammar.OneOf(dogs))
    monkeypatch.setattr(grammar, "captions", lambda: few)
    assert {german.split()[1] for german, _ in grammar.caption_pairs(3, seed=0)} == {"Hund", "Katze", "Frau"}


def test_seed_decides_and_nothing_else():
    """In another process, too."""
    state, drawn = random.getstate(), grammar.caption_pairs(20, seed=3)
    assert random.getstate() == state
    assert drawn == grammar.caption_pairs(20, seed=3) != grammar.caption_pairs(20, seed=2)
    program = "from course_kit.data.grammar import caption_pairs; print(caption_pairs(20, seed=3))"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == str(drawn)


def test_more_captions_than_there_are_or_none_are_refused():
    assert grammar.number_of_captions() > 1_000_000
    for number in (0, -3, grammar.number_of_captions() + 1):
        with pytest.raises(
            ValueError, match=rf"captions from 1 to {grammar.number_of_captions():,}, .* got {number:,}: "
        ):
            grammar.aligned_captions(number, seed=0)


def test_choices_are_counted_and_weighted():
    letters = grammar.OneOf("abc", [1, 0, 3])
    one_of = grammar.OneOf([grammar.OneOf("xy"), "z"])
    words = grammar.Every("".join, grammar.Every(lambda *parts: parts, letters, one_of))
    assert grammar.count(words) == 9
    source = random.Random(0)
    drawn = [grammar.draw(words, source) for _ in range(2000)]
    assert {word[0] for word in drawn} == {"a", "c"}
    assert 0.7 < sum(word[0] == "c" for word in drawn) / 2000 < 0.8
    assert 0.45 < sum(word[1] == "z" for word in drawn) / 2000 < 0.55


@pytest.mark.thorough
def test_one_subject_is_twice_as_frequent_as_several():
    """A verb that has both is drawn so."""
    source, several = random.Random(0), (TWO, THREE, SEVERAL, THE_MANY)
    drawn = [grammar.draw(grammar.clauses("short", "yes"), source) for _ in range(3000)]
    assert 0.3 < sum(clause.subject.determiner in several for clause in drawn) / 3000 < 0.37


# ---- The tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("der Junge*, Jungen = boy", ("Junge", "m", "Jungen", True, "boy", "boys", "his")),
        ("das Kind, Kinder = child/children (their)", ("Kind", "n", "Kinder", False, "child", "children", "their")),
        ("die Party, Partys = party", ("Party", "f", "Partys", False, "party", "parties", "her")),
        ("die Bank, Bänke = bench", ("Bank", "f", "Bänke", False, "bench", "benches", "her")),
    ],
)
def test_noun_of_an_entry(entry, expected):
    assert dataclasses.astuple(_lexicon.noun_of(entry)) == expected


def test_an_entry_or_a_name_that_cannot_be_read_is_named():
    for entry in ("Hut = hat", "dem Hut, Hüte = hat", "der Hut, Hüte"):
        with pytest.raises(ValueError, match=f"a noun like \"der Hut, Hüte = hat\", got '{entry}': mend the line"):
            _lexicon.noun_of(entry)
    for name, matches in (("Bank", 2), ("Nashorn", 0)):
        with pytest.raises(ValueError, match=f"a kind or a noun, got '{name}', which fits {matches} nouns: write"):
            nouns(f"Hund {name}")


def test_every_word_of_the_tables_is_used():
    used = {noun for kind in _lexicon.KINDS for noun in nouns(kind)}
    used |= {noun for verb in VERBS for noun in nouns(f"{verb.subject} {verb.object}")}
    used |= {place.noun_phrase.noun for verb in VERBS for place in all_places(verb)}
    assert [noun.german for noun in _lexicon.all_nouns() if noun not in used] == []
    assert {name for verb in VERBS for name in verb.where.split()} == {*_lexicon.PLACES}
    assert {name for verb in VERBS for name in verb.how.split()} == {*_lexicon.ADVERBS}
