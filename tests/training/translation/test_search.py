"""A wide beam finds what an exhaustive search finds.

The scores equal those of teacher forcing.
"""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from softmax_temperature.params.focal import BeamSearch
from softmax_temperature.training.translation.network import (
    Step,
    TranslationTransformer,
    beam_search,
    translate,
)
from softmax_temperature.training.translation.sentences import (
    END,
    PADDING,
    START,
    SentencePairs,
)

WORDS = (3, 4, 5)
LONGEST = 4


def made_up(seed: int, scale: float = 2.0) -> Step:
    """A random model, whose logits depend on the whole prefix and on the sentence."""

    def step(prefixes: Tensor, sentences: Tensor) -> Tensor:
        rows = []
        for prefix, sentence in zip(prefixes.tolist(), sentences.tolist(), strict=True):
            key = hash((seed, sentence, *prefix)) % (2**31)
            rows.append(
                scale
                * torch.randn(
                    len(WORDS) + 3, generator=torch.Generator().manual_seed(key)
                )
            )
        return torch.stack(rows)

    return step


def score(
    step: Step,
    words: tuple[int, ...],
    sentence: int,
    temperature: float,
    length_penalty: float,
) -> float:
    total, prefix = 0.0, [START]
    for token in (*words, END):
        logits = step(torch.tensor([prefix]), torch.tensor([sentence]))[0] / temperature
        total += torch.log_softmax(logits, 0)[token].item()
        prefix.append(token)
    return total / ((5 + len(words) + 1) / 6) ** length_penalty


@pytest.mark.parametrize(
    ("temperature", "length_penalty"), [(0.5, 0.0), (1.0, 0.6), (3.0, 2.0), (1.0, 2.0)]
)
@pytest.mark.parametrize("seed", range(2))
def test_a_beam_that_holds_everything_finds_the_best(
    seed: int, temperature: float, length_penalty: float
) -> None:
    step, limits, beam = (
        made_up(seed),
        [LONGEST, 1, 2, LONGEST, 3],
        len(WORDS) ** LONGEST,
    )
    how = {"temperature": temperature, "length_penalty": length_penalty}
    found = beam_search(step, torch.tensor(limits), beam=beam, **how)
    for sentence, limit in enumerate(limits):
        # Enumerate all sequences of at most `limit` tokens, including END.
        every = [
            words for length in range(limit) for words in product(WORDS, repeat=length)
        ]
        scores = {words: score(step, words, sentence, **how) for words in every}
        assert tuple(found[sentence]) == max(scores, key=lambda words: scores[words])


def test_padding_and_start_are_never_chosen_and_a_decided_search_stops() -> None:
    def fixed(logits: list[float]) -> Step:
        def step(prefixes: Tensor, _: Tensor) -> Tensor:
            calls.append(len(prefixes))
            return torch.tensor(logits).expand(len(prefixes), -1)

        return step

    calls: list[int] = []
    said = {PADDING: 50.0, START: 50.0, 4: 1.0}
    [words] = beam_search(
        fixed([said.get(n, 0.0) for n in range(6)]),
        torch.tensor([5]),
        beam=3,
        length_penalty=5.0,
    )
    assert set(words) <= set(WORDS)
    calls.clear()
    ends = fixed([20.0 * (number == END) for number in range(6)])
    assert beam_search(ends, torch.tensor([1000, 1000]), beam=2) == [[], []]
    assert calls == [2]


Make = Callable[..., TranslationTransformer]
# Long translations are favoured; otherwise an untrained network would return empty
# ones.
SEARCH = BeamSearch(beam=3, length_penalty=4.0, extra_length=2, sentences=64)


def test_translations_equal_those_of_the_teacher_forced_network(
    make: Make, pairs: SentencePairs
) -> None:
    network = make(seed=3).eval()
    found = translate(network, pairs.sources, SEARCH, temperature=1.5, device="cpu")

    @torch.no_grad()
    def step(prefixes: torch.Tensor, sentences: torch.Tensor) -> torch.Tensor:
        """The last logits of each prefix, computed prefix by prefix as in training."""
        rows = []
        for prefix, sentence in zip(prefixes, sentences, strict=True):
            source = pairs.sources.padded(sentence[None])[0]
            inputs = torch.full((1, 2, max(len(source), len(prefix))), PADDING)
            inputs[0, 0, : len(source)], inputs[0, 1, : len(prefix)] = source, prefix
            rows.append(network(inputs)[-1])
        return torch.stack(rows)

    limits = pairs.sources.lengths + SEARCH.extra_length
    assert found == beam_search(
        step, limits, beam=3, temperature=1.5, length_penalty=4.0
    )
    assert all(found)
