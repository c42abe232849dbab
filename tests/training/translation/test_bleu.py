"""BLEU equals sacrebleu's, on fixed sentences, and the definition's where that is easy."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from softmax_temperature.data.farm import read_farm
from softmax_temperature.training.translation.scores import bleu

REFERENCES = ["the small cat sees the old dog now .", "three birds sing in the evening .", "a fox !"]
TRANSLATIONS = ["the small cat sees an old dog .", "three birds sing in the evening .", "the fox !"]


def test_it_is_what_the_program_sacrebleu_prints(tmp_path: Path) -> None:
    _, references = read_farm(seed=0)["test"]
    translations = [re.sub(r"\bdie\b", "der", one).replace("ein ", "eine ") for one in references]
    for name, lines in (("translations", translations), ("references", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    program = [sys.executable, "-m", "sacrebleu", "references", "-i", "translations", "-m", "bleu", "-b", "-w", "6"]
    printed = subprocess.run(program, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    score = bleu(translations, references)
    assert 100 * score["bleu"] == pytest.approx(float(printed), abs=1e-6)
    assert 20 < 100 * score["bleu"] < 90


def test_it_is_the_geometric_mean_of_precisions_times_the_brevity_penalty() -> None:
    # Of 18 words 16 are right, of 15 pairs 4 + 6 + 1, of 12 triples 2 + 5, of 9 quadruples 1 + 4; the references have
    # 19 words.
    precisions = (16 / 18, 11 / 15, 7 / 12, 5 / 9)
    expected = math.exp(1 - 19 / 18) * math.prod(precisions) ** 0.25
    score = bleu(TRANSLATIONS, REFERENCES)
    assert score["bleu"] == pytest.approx(expected)
    assert score["length_ratio"] == pytest.approx(18 / 19)
    assert score["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_perfect_translations_have_1_and_wrong_ones_0() -> None:
    assert bleu(REFERENCES, REFERENCES)["bleu"] == pytest.approx(1)
    assert bleu(["nothing", "of", "this"], REFERENCES)["bleu"] == 0
