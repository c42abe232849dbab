"""Every judged claim is registered, and every change of a claim is recorded."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.shared import registry, results
from softmax_temperature.papers.shared.claims import Claim, above
from softmax_temperature.papers.shared.contrasts import Difference
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.metrics import Metric, at_epoch, last_epoch
from softmax_temperature.papers.shared.registry import (
    WITHDRAWN,
    changed,
    described,
    design_digest,
    needing_history,
    registered,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import verdicts

CLAIM = Claim(
    id="better",
    where="Table 1",
    statement="A beats B.",
    compares="A minus B.",
    contrast=Difference(
        of=Metric("ece"), first=where(loss="a"), second=where(loss="b").called("B")
    ),
    criterion=above(),
    primary="study",
)
DIGEST = design_digest(CLAIM, "study")


@pytest.mark.parametrize(
    "change",
    [
        {"statement": "A beats B by far."},
        {"compares": "A over B."},
        {"criterion": above(0.1)},
        {"contrast": replace(CLAIM.contrast, of=Metric("nll"))},
        {"contrast": replace(CLAIM.contrast, of=Metric("ece", scaled=True))},
        {"contrast": replace(CLAIM.contrast, of=Metric("ece", epochs=at_epoch("a")))},
        {"contrast": replace(CLAIM.contrast, averaged_over=("schedule",))},
        # The claim's words stay the same, but it compares different runs.
        {"contrast": replace(CLAIM.contrast, second=where(loss="c").called("B"))},
        {"looks": {"study": 2}},
        {"primary": "another"},
        {"n": {"study": 3}},
    ],
)
def test_every_change_of_a_design_changes_its_digest(change: dict[str, Any]) -> None:
    assert design_digest(replace(CLAIM, **change), "study") != DIGEST


def test_changes_outside_the_design_keep_the_digest() -> None:
    other = replace(
        CLAIM,
        where="Table 2",
        published=0.5,
        stand_in={"study": "digits"},
        contrast=replace(
            CLAIM.contrast,
            of=Metric("ece", epochs=last_epoch),
            first=where(loss="a").called("A"),
        ),
    )
    assert design_digest(other, "study") == DIGEST
    assert design_digest(CLAIM, "another") != DIGEST


def test_a_renamed_field_keeps_the_name_that_it_was_registered_with() -> None:
    split = replace(
        CLAIM.contrast, split_by="gamma", note_metrics={"NLL": Metric("nll")}
    )
    renamed = {"split_by", "note_metrics"}
    described_split = described(split)
    assert described_split["each"] == "gamma"
    assert described_split["beside"] == [["NLL", described(Metric("nll"))]]
    assert renamed.isdisjoint(described_split)


def test_every_claim_has_a_digest_of_its_own_in_every_study() -> None:
    digests = [
        design_digest(claim, study) for claim in CLAIMS for study in ("one", "two")
    ]
    assert len(set(digests)) == 2 * len(CLAIMS)


def row(**different: str) -> dict[str, str]:
    known = {"paper": "focal", "claim": "better", "study": "study", "n": "3"}
    known |= {"looks": "1", "digest": "one", "result": "holds 1 [0.5, 2]"}
    return known | different


def table(*rows: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(registry.COLUMNS))


@pytest.mark.parametrize(
    "different",
    [
        {"digest": "two"},
        {"result": "contradicted 1 [0.5, 2]"},
        {"n": "5"},
        {"looks": "2"},
    ],
)
def test_a_change_is_a_new_row_that_needs_a_line_in_the_history(
    different: dict[str, str],
) -> None:
    known = table(row())
    assert changed(known, known).empty
    added = changed(known, table(row(**different)))
    assert added.to_dict("records") == [row(**different)]
    needing = needing_history(pd.concat([known, added], ignore_index=True))
    assert needing.to_dict("records") == [row(**different)]


def test_the_first_result_of_a_registered_design_needs_no_line() -> None:
    before = row(result="")
    assert needing_history(table(before, row())).empty
    assert needing_history(table(row(result="", n=""), row())).empty
    assert len(needing_history(table(before, row(n="4")))) == 1


def test_a_removed_claim_is_withdrawn_and_needs_a_line() -> None:
    known = table(row())
    gone = changed(known, table())
    assert gone["digest"].tolist() == [WITHDRAWN]
    together = pd.concat([known, gone], ignore_index=True)
    assert needing_history(together)["digest"].tolist() == [WITHDRAWN]
    assert changed(together, table()).empty, "withdrawn again"


def test_the_committed_claims_are_those_that_are_registered(project_root: Path) -> None:
    added = changed(registered(project_root), verdicts.state(project_root))
    assert added.empty, (
        "run `softmax-temperature register`, then add to docs/protocol_history.md:\n"
        f"{added.to_string()}"
    )


def test_every_change_of_a_registered_claim_is_in_the_history(
    project_root: Path,
) -> None:
    history = project_root / "docs" / "protocol_history.md"
    lines = history.read_text().splitlines()
    unsaid = [
        (change["claim"], change["digest"])
        for change in needing_history(registered(project_root)).to_dict("records")
        if not any(
            f"`{change['claim']}`" in line and change["digest"] in line
            for line in lines
        )
    ]
    assert not unsaid


def test_a_claim_is_registered_only_after_studies_with_results_are_judged(
    tmp_path: Path, project_root: Path
) -> None:
    # Otherwise, a claim that was written after a study would look as if it had been
    # registered before.
    study = Path("results/cooling_full/cooling")
    shutil.copytree(project_root / study, tmp_path / study)
    (tmp_path / "data").mkdir()
    shutil.copy(project_root / registry.REGISTERED, tmp_path / registry.REGISTERED)
    before = (tmp_path / registry.REGISTERED).read_bytes()
    path = tmp_path / study / results.CLAIMS
    rows = results.read_json(path)
    assert rows
    for stale in (rows[1:], [{**rows[0], "digest": "0"}, *rows[1:]]):
        path.write_text(json.dumps(stale))
        with pytest.raises(InputError, match=r"claims.json: .*rejudge --paper cooling"):
            verdicts.register(tmp_path)
    assert (tmp_path / registry.REGISTERED).read_bytes() == before


def test_the_digests_in_the_results_are_those_of_the_claims(project_root: Path) -> None:
    state = verdicts.state(project_root).set_index(registry.KEY)["digest"]
    folder = project_root / results.RESULTS
    for study in results.studies_with_results(folder):
        for paper in results.PAPERS:
            for one in results.read_json(folder / study / paper / "claims.json") or []:
                assert one["digest"] == state[paper, one["id"], study], "run `rejudge`"
