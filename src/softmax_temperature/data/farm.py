"""Farm: made-up English sentences and their German translations; parallel texts offline, and a stand-in for real ones.

"a small dog saw the 23 old cows yesterday." is "gestern hat ein kleiner Hund die dreiundzwanzig alten Kühe gesehen."
The generator knows as much German as these sentences need: genders, cases, numbers and the endings that follow from
them; the verb in second place, and a participle at the end for the English past; numbers in words, units before tens.
What English leaves open is drawn at random, so that no translation can be foreseen with certainty: whether a German
sentence opens with its adverb, and one of two words for some adjectives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from softmax_temperature.data.sampling import generator_for
from softmax_temperature.data.splits import SplitName

FARM = "farm"
LANGUAGES = ("en", "de")
SIZES: dict[SplitName, int] = {"train": 3000, "validation": 500, "test": 500}


class _Noun(NamedTuple):
    gender: int
    english: str
    english_plural: str
    german: str
    german_plural: str


class _Verb(NamedTuple):
    english: str
    english_singular: str
    english_past: str
    german_singular: str
    german: str
    participle: str


class _Phrase(NamedTuple):
    """A subject or an object in both languages; its German verb has its number."""

    english: str
    german: str
    plural: bool


_MASCULINE = """dog dogs Hund Hunde, donkey donkeys Esel Esel, rooster roosters Hahn Hähne, fox foxes Fuchs Füchse,
    bird birds Vogel Vögel, frog frogs Frosch Frösche"""
_FEMININE = """cat cats Katze Katzen, cow cows Kuh Kühe, duck ducks Ente Enten, goat goats Ziege Ziegen,
    goose geese Gans Gänse, mouse mice Maus Mäuse"""
_NEUTER = """horse horses Pferd Pferde, sheep sheep Schaf Schafe, hen hens Huhn Hühner, pig pigs Schwein Schweine,
    calf calves Kalb Kälber, lamb lambs Lamm Lämmer"""
_NOUNS = [
    _Noun(gender, *noun.split())
    for gender, nouns in enumerate((_MASCULINE, _FEMININE, _NEUTER))
    for noun in nouns.split(",")
]
_VERBS = [
    _Verb("see", "sees", "saw", "sieht", "sehen", "gesehen"),
    _Verb("hear", "hears", "heard", "hört", "hören", "gehört"),
    _Verb("find", "finds", "found", "findet", "finden", "gefunden"),
    _Verb("seek", "seeks", "sought", "sucht", "suchen", "gesucht"),
    _Verb("chase", "chases", "chased", "jagt", "jagen", "gejagt"),
    _Verb("call", "calls", "called", "ruft", "rufen", "gerufen"),
    _Verb("push", "pushes", "pushed", "schiebt", "schieben", "geschoben"),
    _Verb("know", "knows", "knew", "kennt", "kennen", "gekannt"),
]
_ADJECTIVES = [
    *[("small", ("klein", "winzig")), ("old", ("alt",)), ("young", ("jung",)), ("brown", ("braun",))],
    *[("white", ("weiß",)), ("lazy", ("faul",)), ("clever", ("klug", "schlau"))],
    *[("beautiful", ("schön", "hübsch")), ("loud", ("laut",))],
]
_PRESENT_ADVERBS = (("now", "jetzt"), ("today", "heute"), ("often", "oft"), ("every day", "jeden Tag"))
_PAST_ADVERBS = (("yesterday", "gestern"), ("in the evening", "am Abend"), ("last week", "letzte Woche"))

_VOWELS = "aeiou"
_LARGEST = 99
_UNITS = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TEENS = ("zehn", "elf", "zwölf", *(f"{tens}zehn" for tens in ("drei", "vier", "fünf", "sech", "sieb", "acht", "neun")))
_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")

# Of the masculine, feminine and neuter, as a subject and as an object.
_DEFINITE = (("der", "die", "das"), ("den", "die", "das"))
_INDEFINITE = (("ein", "eine", "ein"), ("einen", "eine", "ein"))
_AFTER_DEFINITE = (("e", "e", "e"), ("en", "e", "e"))
_AFTER_INDEFINITE = (("er", "e", "es"), ("en", "e", "es"))


def read_farm(*, seed: int) -> dict[SplitName, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Generate SIZES of English and German sentences, no English one twice."""
    generator = generator_for(seed, FARM)
    pairs: dict[str, str] = {}
    while len(pairs) < sum(SIZES.values()):
        english, german = _pair(generator)
        pairs.setdefault(english, german)
    sentences = iter(pairs.items())
    parts: dict[SplitName, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for split, size in SIZES.items():
        some = dict(islice(sentences, size))
        parts[split] = tuple(some), tuple(some.values())
    return parts


def in_words(number: int) -> str:
    """A number of 2 to 99 in German words."""
    if not 2 <= number <= _LARGEST:
        raise ValueError(f"number: {number}, must be 2 to {_LARGEST}")
    tens, units = divmod(number, 10)
    if tens < 1:
        return _UNITS[units]
    if tens == 1:
        return _TEENS[units]
    return f"{_UNITS[units]}und{_TENS[tens]}" if units else _TENS[tens]


def _pair(generator: np.random.Generator) -> tuple[str, str]:
    subject, thing = _phrase(generator, is_object=False), _phrase(generator, is_object=True)
    verb = _VERBS[generator.integers(len(_VERBS))]
    past = bool(generator.integers(2))
    when, wann = _one_of(_PAST_ADVERBS if past else _PRESENT_ADVERBS, generator)
    if past:
        does, tut, end = verb.english_past, "haben" if subject.plural else "hat", [verb.participle]
    else:
        does = verb.english if subject.plural else verb.english_singular
        tut, end = verb.german if subject.plural else verb.german_singular, []
    opens = [wann, tut, subject.german] if generator.integers(2) else [subject.german, tut, wann]
    english = " ".join([subject.english, does, thing.english, when])
    return f"{english}.", f"{' '.join([*opens, thing.german, *end])}."


def _phrase(generator: np.random.Generator, *, is_object: bool) -> _Phrase:
    noun = _NOUNS[generator.integers(len(_NOUNS))]
    english, choices = _ADJECTIVES[generator.integers(len(_ADJECTIVES))] if generator.integers(2) else ("", ("",))
    german, definite = choices[generator.integers(len(choices))], bool(generator.integers(2))
    if generator.integers(2):
        number = int(generator.integers(2, _LARGEST + 1))
        the, die, ending = ("the", "die", "en") if definite else ("", "", "e")
        counted = in_words(number), german and german + ending, noun.german_plural
        return _Phrase(_joined(the, str(number), english, noun.english_plural), _joined(die, *counted), plural=True)
    the = "the" if definite else "an" if (english or noun.english)[0] in _VOWELS else "a"
    articles, endings = (_DEFINITE, _AFTER_DEFINITE) if definite else (_INDEFINITE, _AFTER_INDEFINITE)
    article, ending = (table[is_object][noun.gender] for table in (articles, endings))
    single = article, german and german + ending, noun.german
    return _Phrase(_joined(the, english, noun.english), _joined(*single), plural=False)


def _one_of(choices: Sequence[tuple[str, str]], generator: np.random.Generator) -> tuple[str, str]:
    return choices[int(generator.integers(len(choices)))]


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)
