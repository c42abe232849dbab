"""Farm: made-up English sentences and their German translations.

They need no download and replace a real corpus. For example, "a small dog saw the 23
old cows yesterday." becomes "gestern hat ein kleiner Hund die dreiundzwanzig alten Kühe
gesehen."

The generator knows the German grammar that these sentences need: genders, cases and
endings, the verb in second place, a participle at the end for the English past, units
before tens. If the English sentence allows several translations, a random draw decides
whether the German sentence opens with its adverb, and which of two words translates an
adjective.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from softmax_temperature.data.phrases import joined
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import SplitName

FARM = "farm"
ENGLISH = "en"
GERMAN = "de"
LANGUAGES = (ENGLISH, GERMAN)
SIZES: dict[SplitName, int] = {"train": 3000, "validation": 500, "test": 500}

_T = TypeVar("_T")


class _Noun(NamedTuple):
    """A noun in both languages, singular and plural."""

    gender: int
    dog: str
    dogs: str
    hund: str
    hunde: str


class _Verb(NamedTuple):
    """A verb in both languages, in the forms of "see" and "sehen"."""

    see: str
    sees: str
    saw: str
    sieht: str
    sehen: str
    gesehen: str


class _Adjective(NamedTuple):
    """An English adjective, and the German adjectives that translate it."""

    english: str
    german: tuple[str, ...]


class _Adverb(NamedTuple):
    english: str
    german: str


class _NounPhrase(NamedTuple):
    """Article or number, adjective and noun, in both languages."""

    english: str
    german: str
    is_plural: bool


_MASCULINE = 0
_FEMININE = 1
_NEUTER = 2

_NOUNS = (
    _Noun(_MASCULINE, "dog", "dogs", "Hund", "Hunde"),
    _Noun(_MASCULINE, "donkey", "donkeys", "Esel", "Esel"),
    _Noun(_MASCULINE, "rooster", "roosters", "Hahn", "Hähne"),
    _Noun(_MASCULINE, "fox", "foxes", "Fuchs", "Füchse"),
    _Noun(_MASCULINE, "bird", "birds", "Vogel", "Vögel"),
    _Noun(_MASCULINE, "frog", "frogs", "Frosch", "Frösche"),
    _Noun(_FEMININE, "cat", "cats", "Katze", "Katzen"),
    _Noun(_FEMININE, "cow", "cows", "Kuh", "Kühe"),
    _Noun(_FEMININE, "duck", "ducks", "Ente", "Enten"),
    _Noun(_FEMININE, "goat", "goats", "Ziege", "Ziegen"),
    _Noun(_FEMININE, "goose", "geese", "Gans", "Gänse"),
    _Noun(_FEMININE, "mouse", "mice", "Maus", "Mäuse"),
    _Noun(_NEUTER, "horse", "horses", "Pferd", "Pferde"),
    _Noun(_NEUTER, "sheep", "sheep", "Schaf", "Schafe"),
    _Noun(_NEUTER, "hen", "hens", "Huhn", "Hühner"),
    _Noun(_NEUTER, "pig", "pigs", "Schwein", "Schweine"),
    _Noun(_NEUTER, "calf", "calves", "Kalb", "Kälber"),
    _Noun(_NEUTER, "lamb", "lambs", "Lamm", "Lämmer"),
)
_VERBS = (
    _Verb("see", "sees", "saw", "sieht", "sehen", "gesehen"),
    _Verb("hear", "hears", "heard", "hört", "hören", "gehört"),
    _Verb("find", "finds", "found", "findet", "finden", "gefunden"),
    _Verb("seek", "seeks", "sought", "sucht", "suchen", "gesucht"),
    _Verb("chase", "chases", "chased", "jagt", "jagen", "gejagt"),
    _Verb("call", "calls", "called", "ruft", "rufen", "gerufen"),
    _Verb("push", "pushes", "pushed", "schiebt", "schieben", "geschoben"),
    _Verb("know", "knows", "knew", "kennt", "kennen", "gekannt"),
)
_ADJECTIVES = (
    _Adjective("small", ("klein", "winzig")),
    _Adjective("old", ("alt",)),
    _Adjective("young", ("jung",)),
    _Adjective("brown", ("braun",)),
    _Adjective("white", ("weiß",)),
    _Adjective("lazy", ("faul",)),
    _Adjective("clever", ("klug", "schlau")),
    _Adjective("beautiful", ("schön", "hübsch")),
    _Adjective("loud", ("laut",)),
)
_NO_ADJECTIVE = _Adjective("", ("",))
_PRESENT_ADVERBS = (
    _Adverb("now", "jetzt"),
    _Adverb("today", "heute"),
    _Adverb("often", "oft"),
    _Adverb("every day", "jeden Tag"),
)
_PAST_ADVERBS = (
    _Adverb("yesterday", "gestern"),
    _Adverb("in the evening", "am Abend"),
    _Adverb("last week", "letzte Woche"),
)

_UNITS = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TEENS = (
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
)
_TENS = (
    "",
    "",
    "zwanzig",
    "dreißig",
    "vierzig",
    "fünfzig",
    "sechzig",
    "siebzig",
    "achtzig",
    "neunzig",
)

# The article and the adjective's ending for each gender: masculine, feminine, neuter.
_DEFINITE_SUBJECT = (("der", "e"), ("die", "e"), ("das", "e"))
_DEFINITE_OBJECT = (("den", "en"), ("die", "e"), ("das", "e"))
_INDEFINITE_SUBJECT = (("ein", "er"), ("eine", "e"), ("ein", "es"))
_INDEFINITE_OBJECT = (("einen", "en"), ("eine", "e"), ("ein", "es"))


def read_farm(*, seed: int) -> dict[SplitName, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Generate each split's distinct English sentences, and their translations."""
    generator = generator_for(seed, FARM)
    translations: dict[str, str] = {}
    while len(translations) < sum(SIZES.values()):
        english, german = _pair(generator)
        translations.setdefault(english, german)
    remaining = iter(translations.items())
    splits: dict[SplitName, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for split, size in SIZES.items():
        pairs = list(islice(remaining, size))
        english_side = tuple(english for english, _ in pairs)
        german_side = tuple(german for _, german in pairs)
        splits[split] = (english_side, german_side)
    return splits


def _pair(generator: np.random.Generator) -> tuple[str, str]:
    """Draw a random English sentence and its German translation."""
    subject = _noun_phrase(generator, is_object=False)
    direct_object = _noun_phrase(generator, is_object=True)
    verb = _one_of(_VERBS, generator)
    is_past = _coin(generator)
    adverb = _one_of(_PAST_ADVERBS if is_past else _PRESENT_ADVERBS, generator)
    if is_past:
        english_verb = verb.saw
        german_verb = "haben" if subject.is_plural else "hat"
        german_end = verb.gesehen
    else:
        english_verb = verb.see if subject.is_plural else verb.sees
        german_verb = verb.sehen if subject.is_plural else verb.sieht
        german_end = ""
    if _coin(generator):
        german_opening = (adverb.german, german_verb, subject.german)
    else:
        german_opening = (subject.german, german_verb, adverb.german)
    english = joined(
        subject.english, english_verb, direct_object.english, adverb.english
    )
    german = joined(*german_opening, direct_object.german, german_end)
    return f"{english}.", f"{german}."


def _noun_phrase(generator: np.random.Generator, *, is_object: bool) -> _NounPhrase:
    noun = _one_of(_NOUNS, generator)
    adjective = _one_of(_ADJECTIVES, generator) if _coin(generator) else _NO_ADJECTIVE
    german_adjective = _one_of(adjective.german, generator)
    is_definite = _coin(generator)
    if _coin(generator):
        number = int(generator.integers(2, 100))
        return _counted(number, adjective.english, german_adjective, noun, is_definite)
    if is_definite:
        english_article = "the"
        articles = _DEFINITE_OBJECT if is_object else _DEFINITE_SUBJECT
    else:
        first_word = adjective.english or noun.dog
        english_article = "an" if first_word[0] in "aeiou" else "a"
        articles = _INDEFINITE_OBJECT if is_object else _INDEFINITE_SUBJECT
    german_article, ending = articles[noun.gender]
    return _NounPhrase(
        joined(english_article, adjective.english, noun.dog),
        joined(german_article, _inflected(german_adjective, ending), noun.hund),
        is_plural=False,
    )


def _counted(
    number: int, english_adjective: str, german_adjective: str, noun: _Noun, the: bool
) -> _NounPhrase:
    """Make a plural noun phrase with a number, such as "the 23 old cows"."""
    ending = "en" if the else "e"
    german_number = _in_words(number)
    return _NounPhrase(
        joined("the" if the else "", str(number), english_adjective, noun.dogs),
        joined(
            "die" if the else "",
            german_number,
            _inflected(german_adjective, ending),
            noun.hunde,
        ),
        is_plural=True,
    )


def _inflected(adjective: str, ending: str) -> str:
    return adjective + ending if adjective else ""


def _in_words(number: int) -> str:
    """Spell out a number from 2 to 99 in German."""
    tens, units = divmod(number, 10)
    if tens == 1:
        return _TEENS[units]
    if tens and units:
        return f"{_UNITS[units]}und{_TENS[tens]}"
    return _UNITS[units] or _TENS[tens]


def _coin(generator: np.random.Generator) -> bool:
    return bool(generator.integers(2))


def _one_of(choices: Sequence[_T], generator: np.random.Generator) -> _T:
    return choices[int(generator.integers(len(choices)))]
