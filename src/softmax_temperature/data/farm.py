"""Farm: made-up English sentences and their German translations; parallel texts offline, and a stand-in for real ones.

"a small dog saw the 23 old cows yesterday." is "gestern hat ein kleiner Hund die dreiundzwanzig alten Kühe gesehen."
The generator knows as much German as these sentences need: genders, cases, numbers and the endings that follow from
them; the verb in second place, and a participle at the end for the English past; numbers in words, units before tens.
What English leaves open is drawn at random, so that no translation can be foreseen with certainty: whether a German
sentence opens with its adverb, and one of two words for some adjectives.
"""

from itertools import islice
from typing import Any

import numpy as np

from softmax_temperature.data.phrases import joined
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import SplitName

FARM = "farm"
LANGUAGES = ("en", "de")
SIZES: dict[SplitName, int] = {"train": 3000, "validation": 500, "test": 500}

_NOUN_FORMS = (  # Masculine, feminine, neuter.
    """dog dogs Hund Hunde, donkey donkeys Esel Esel, rooster roosters Hahn Hähne, fox foxes Fuchs Füchse,
    bird birds Vogel Vögel, frog frogs Frosch Frösche""",
    """cat cats Katze Katzen, cow cows Kuh Kühe, duck ducks Ente Enten, goat goats Ziege Ziegen,
    goose geese Gans Gänse, mouse mice Maus Mäuse""",
    """horse horses Pferd Pferde, sheep sheep Schaf Schafe, hen hens Huhn Hühner, pig pigs Schwein Schweine,
    calf calves Kalb Kälber, lamb lambs Lamm Lämmer""",
)
_NOUNS = [(gender, noun.split()) for gender, nouns in enumerate(_NOUN_FORMS) for noun in nouns.split(",")]
_VERB_FORMS = """see sees saw sieht sehen gesehen, hear hears heard hört hören gehört,
    find finds found findet finden gefunden, seek seeks sought sucht suchen gesucht,
    chase chases chased jagt jagen gejagt, call calls called ruft rufen gerufen,
    push pushes pushed schiebt schieben geschoben, know knows knew kennt kennen gekannt"""
_VERBS = [forms.split() for forms in _VERB_FORMS.split(",")]
_ADJECTIVES = [
    *[("small", ("klein", "winzig")), ("old", ("alt",)), ("young", ("jung",)), ("brown", ("braun",))],
    *[("white", ("weiß",)), ("lazy", ("faul",)), ("clever", ("klug", "schlau"))],
    *[("beautiful", ("schön", "hübsch")), ("loud", ("laut",))],
]
_PRESENT_ADVERBS = (("now", "jetzt"), ("today", "heute"), ("often", "oft"), ("every day", "jeden Tag"))
_PAST_ADVERBS = (("yesterday", "gestern"), ("in the evening", "am Abend"), ("last week", "letzte Woche"))

_UNITS = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TEENS = ("zehn", "elf", "zwölf", *(f"{tens}zehn" for tens in ("drei", "vier", "fünf", "sech", "sieb", "acht", "neun")))
_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")

# Article and ending of the adjective of the masculine, feminine and neuter, as a subject and as an object.
_DEFINITE = ((("der", "e"), ("die", "e"), ("das", "e")), (("den", "en"), ("die", "e"), ("das", "e")))
_INDEFINITE = ((("ein", "er"), ("eine", "e"), ("ein", "es")), (("einen", "en"), ("eine", "e"), ("ein", "es")))


def read_farm(*, seed: int) -> dict[SplitName, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Generate SIZES of English and German sentences, no English one twice."""
    generator = generator_for(seed, FARM)
    pairs: dict[str, str] = {}
    while len(pairs) < sum(SIZES.values()):
        english, german = _pair(generator)
        pairs.setdefault(english, german)
    sentences = iter(pairs.items())
    some = {split: dict(islice(sentences, size)) for split, size in SIZES.items()}
    return {split: (tuple(own), tuple(own.values())) for split, own in some.items()}


def _in_words(number: int) -> str:
    tens, units = divmod(number, 10)
    if tens == 1:
        return _TEENS[units]
    return f"{_UNITS[units]}und{_TENS[tens]}" if tens and units else _UNITS[units] or _TENS[tens]


def _pair(generator: np.random.Generator) -> tuple[str, str]:
    def one_of(choices: Any) -> Any:
        return choices[generator.integers(len(choices))]

    def phrase(*, is_object: bool) -> tuple[str, str, bool]:
        """A subject or an object in English and German, and whether it is plural."""
        gender, (dog, dogs, hund, hunde) = one_of(_NOUNS)
        english, choices = one_of(_ADJECTIVES) if generator.integers(2) else ("", ("",))
        german, definite = one_of(choices), bool(generator.integers(2))
        if generator.integers(2):
            number = int(generator.integers(2, 100))
            the, die, ending = ("the", "die", "en") if definite else ("", "", "e")
            counted = _in_words(number), german and german + ending, hunde
            return joined(the, str(number), english, dogs), joined(die, *counted), True
        the = "the" if definite else "an" if (english or dog)[0] in "aeiou" else "a"
        article, ending = (_DEFINITE if definite else _INDEFINITE)[is_object][gender]
        return joined(the, english, dog), joined(article, german and german + ending, hund), False

    (subject, subjekt, plural), (thing, ding, _) = phrase(is_object=False), phrase(is_object=True)
    see, sees, saw, sieht, sehen, gesehen = one_of(_VERBS)
    past = bool(generator.integers(2))
    when, wann = one_of(_PAST_ADVERBS if past else _PRESENT_ADVERBS)
    if past:
        does, tut, end = saw, "haben" if plural else "hat", gesehen
    else:
        does, tut, end = (see, sehen, "") if plural else (sees, sieht, "")
    opens = [wann, tut, subjekt] if generator.integers(2) else [subjekt, tut, wann]
    return f"{subject} {does} {thing} {when}.", f"{joined(*opens, ding, end)}."
