"""The commands plan, verify, rejudge and profile work in a project's root folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.records import metrics_of
from softmax_temperature.papers.shared.results import CLAIMS
from softmax_temperature.runner.artifacts import new_artifact, open_artifact
from softmax_temperature.runner.cells import WORK, run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.tools import cli, profiles, project
from softmax_temperature.tools.project import StagePlan, plan, summary, verify
from softmax_temperature.tools.verdicts import rejudge
from tests.profiles import profile, rendered
from tests.serial import SERIAL


@pytest.fixture(autouse=True)
def _in_a_project(
    project_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(project_root / "dvc.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)


def test_a_cell_that_has_run_is_up_to_date_and_a_reader_of_a_pending_one_is_not() -> (
    None
):
    params = profile("smoke")
    before = {stage.stage: stage for stage in plan(params)}
    assert len(before["fetch"].to_run) == before["fetch"].cells == len(params.datasets)
    # Preparing the other data sets, drawn letters, would take seconds.
    drawn = ("glyphs-12", "glyphs-20")
    run_cells(
        [cell for cell in fetch.cells(params) if cell.name not in drawn],
        output=fetch.output,
        compute=SERIAL,
        seed=params.seed,
    )
    after = {stage.stage: stage for stage in plan(params)}
    assert after["fetch"].to_run == drawn
    assert after["embed"].to_run == before["embed"].to_run != ()
    lines = summary(list(after.values()), params).splitlines()
    [line] = [line for line in lines if line.startswith("fetch ")]
    assert "2 of 4 cells to run" in line
    assert "4 cells up to date" in summary([StagePlan("fetch", 4)], params)
    shutil.rmtree(WORK)  # This is the state of a fresh clone after `dvc pull`.
    pulled = {stage.stage: stage for stage in plan(params)}
    assert pulled["fetch"].to_run == drawn


def test_a_flipped_byte_is_named_and_set_aside() -> None:
    with new_artifact(Path("data/numbers"), kind="numbers", about={}) as folder:
        (folder / "a.txt").write_text("one")
    assert verify().problems == []
    Path("data/numbers/a.txt").write_text("two")
    (line,) = verify().problems
    assert line.startswith("data/numbers/a.txt: damaged")
    assert not Path("data/numbers/a.txt").exists()
    assert open_artifact(Path("data/numbers")).problems() == [
        "data/numbers/a.txt: missing"
    ]


@pytest.mark.parametrize("linked", ["data/numbers", "data/cells"])
def test_damage_behind_a_link_is_found(linked: str, tmp_path: Path) -> None:
    with new_artifact(Path(linked) / "some", kind="numbers", about={}) as folder:
        (folder / "a.txt").write_text("one")
    (tmp_path / "other-disk").mkdir()
    Path(linked).rename(tmp_path / "other-disk" / "here")
    Path(linked).symlink_to(tmp_path / "other-disk" / "here")
    # A link to a parent folder must not be followed forever.
    Path(linked, "back").symlink_to(Path(linked).parent.resolve())
    assert verify()[::2] == (1, [])
    Path(linked, "some", "a.txt").write_text("two")
    (line,) = verify().problems
    assert line.startswith(f"{linked}/some/a.txt: damaged")


def test_rejudging_writes_what_follows_from_the_records_and_prints_what_changed(
    project_root: Path,
) -> None:
    # Its claims take the least time to judge.
    study = Path("results/mini/classifier_temperature")
    shown = "mini/classifier_temperature, "
    shutil.copytree(project_root / study, study)
    Path("data").mkdir(exist_ok=True)
    Path("data/published").symlink_to(project_root / "data/published")
    right = json.loads((study / CLAIMS).read_text())
    first, second, *others = right
    old = [first | {"verdict": "made up"}, *others, second | {"id": "withdrawn"}]
    (study / CLAIMS).write_text(json.dumps(old))
    (study / "metrics.json").unlink()
    (study / "tables/table_1.csv").unlink()
    (study / "tables/deviations.csv").write_text("where,what\nthen,another\n")
    for arguments, lines in (
        (
            ["mini"],
            [
                f"{first['id']}: made up -> {first['verdict']}",
                f"{second['id']}: no claim -> {second['verdict']}",
                f"withdrawn: {second['verdict']} -> no claim",
            ],
        ),
        ([], []),
    ):
        printed = CliRunner().invoke(cli.app, ["rejudge", *arguments]).stdout
        *changes, counts = printed.splitlines()
        files = changes[: len(changes) - len(lines)]
        assert changes[len(files) :] == [shown + line for line in lines]
        assert counts == f"{len(files)} files and {len(lines)} verdicts changed"
        if lines:
            assert f"changed {(study / CLAIMS).as_posix()}" in files
            assert f"added {(study / 'metrics.json').as_posix()}" in files
            assert f"added {(study / 'tables/table_1.csv').as_posix()}" in files
        else:
            assert files == []
    found = json.loads((study / CLAIMS).read_text())
    assert [(row["id"], row["verdict"]) for row in found] == [
        (row["id"], row["verdict"]) for row in right
    ]
    assert json.loads((study / "metrics.json").read_text()) == metrics_of(right)
    expected = read_csv(project_root / study / "tables/table_1.csv")
    pd.testing.assert_frame_equal(
        read_csv(study / "tables/table_1.csv"), expected, rtol=1e-9
    )
    assert "then,another" in (study / "tables/deviations.csv").read_text(), (
        "the code has changed since"
    )


def test_metrics_count_the_verdicts_of_claims_that_were_tested() -> None:
    verdicts = {"holds": 1, "contradicted": 2, "inconclusive": 3, "not tested": 4}
    rows = [{"verdict": name} for name, count in verdicts.items() for _ in range(count)]
    assert metrics_of(rows) == {"holds": 1, "fails": 2, "open": 3}


@pytest.mark.parametrize(
    ("study", "says"),
    [
        (None, "no results of any paper"),
        ("mini", "no results of profile 'minni'.*'mini'"),
    ],
)
def test_what_cannot_be_rejudged_is_named(study: str | None, says: str) -> None:
    if study:
        (Path("results") / study / "cooling").mkdir(parents=True)
        (Path("results") / study / "cooling" / CLAIMS).write_text("[]")
    with pytest.raises(InputError, match=f"^results: {says}"):
        rejudge(["minni"])


def test_only_the_named_papers_are_rejudged(project_root: Path) -> None:
    shutil.copytree(project_root / "results/mini", "results/mini")
    Path("data").mkdir(exist_ok=True)
    Path("data/published").symlink_to(project_root / "data/published")
    metrics = Path("results/mini/{}/metrics.json")
    for paper in ("focal", "classifier_temperature"):
        Path(str(metrics).format(paper)).write_text("{}")
    rejudged = rejudge(["mini"], papers=["classifier_temperature"])
    changed = "changed results/mini/classifier_temperature/metrics.json"
    assert rejudged.files == [changed]
    assert Path(str(metrics).format("focal")).read_text() == "{}"
    with pytest.raises(InputError, match=r"^--paper: unknown paper 'focl'.*'focal'"):
        rejudge(["mini"], papers=["focl"])


@pytest.fixture
def _profiles(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed profiles, in a folder of the test's own, each rendered once."""
    shutil.copytree(project_root / "profiles", "profiles")
    monkeypatch.setattr(
        profiles,
        "render_profile",
        lambda name, folder=profiles.PROFILES: rendered(name, folder),
    )


def write_profile(*arguments: str) -> str:
    """Run `profile` with `arguments`, and return the error message, or "" if none is
    raised.
    """
    ran = CliRunner().invoke(cli.app, ["profile", *arguments])
    if ran.exception is None:
        return ""
    assert isinstance(ran.exception, InputError)
    return str(ran.exception)


@pytest.mark.usefixtures("_profiles")
def test_a_profile_does_not_overwrite_edits_without_force() -> None:
    params = Path("params.yaml")
    assert write_profile("smoke") == ""
    assert write_profile("mini") == "", "the file held a profile"
    edited = params.read_text().replace("\nseed: 0", "\nseed: 7")
    params.write_text(edited)
    refusal = write_profile("smoke")
    assert refusal.startswith("params.yaml: has edits that profile mini lacks (seed). ")
    assert refusal.endswith("softmax-temperature profile smoke --force")
    assert "\n" not in refusal
    assert params.read_text() == edited
    assert write_profile("smoke", "--force") == ""
    assert params.read_text().splitlines()[0].endswith("dvc repro`.")
    assert params.read_text() == rendered("smoke")[0]


@pytest.mark.parametrize("text", ["profile: [", "profile: gone\n", "[]\n"])
@pytest.mark.usefixtures("_profiles")
def test_a_file_that_is_no_profile_is_not_overwritten(text: str) -> None:
    Path("params.yaml").write_text(text)
    assert write_profile("smoke").startswith("params.yaml: ")
    assert Path("params.yaml").read_text() == text


@pytest.mark.usefixtures("_profiles")
def test_a_profile_overwrites_values_that_are_committed_or_in_itself() -> None:
    params = Path("params.yaml")
    assert write_profile("mini") == ""
    params.write_text(params.read_text().replace("\nseed: 0", "\nseed: 7"))
    defaults = Path("profiles/defaults.yaml")
    unchanged = defaults.read_text()
    defaults.write_text(unchanged.replace("\nseed: 0", "\nseed: 7"))
    assert write_profile("mini") == "", "the edit is in the defaults now"
    defaults.write_text(unchanged)
    assert "(seed)" in write_profile("mini")
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (
        ["init", "-q"],
        ["add", "params.yaml"],
        [*author, "commit", "-qm", "Set a seed"],
    ):
        subprocess.run(["git", *command], check=True)  # noqa: S607
    assert write_profile("mini") == ""


def test_an_unknown_profile_is_one_line_and_exit_code_2(
    project_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(project_root / "profiles", "profiles")
    monkeypatch.setattr("sys.argv", ["softmax-temperature", "profile", "minni"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err
        == "error: profiles: unknown profile 'minni'. Did you mean 'mini'?\n"
    )
    assert not Path("params.yaml").exists()


def test_help_is_not_cut_and_lists_the_profiles(
    project_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project_root)
    assert "mini" in cli._profiles()
    text = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "80"}).stdout
    assert "--install-completion" in text
    commands = text.partition("Commands:")[2]
    assert "..." not in commands
    assert re.findall(r"^  (\w+)  ", commands, re.MULTILINE) == [
        "calibrate",
        "suggest",
        "scorecard",
        "profile",
        "convert",
        "plan",
        "compare",
        "verify",
        "rejudge",
        "register",
    ], "sort by order of use"
    assert max(map(len, text.splitlines())) <= 80


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "softmax_temperature.tools.calibrate", None)
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", "calibrate", "--sample"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert re.fullmatch(
        r"error: needs the package \S+\. Run: pip install '\.\[pipeline\]'\n",
        capsys.readouterr().err,
    )


def test_minutes_are_those_of_the_cells_that_ran_before() -> None:
    params = profile("smoke")
    folder = Path("results/smoke")
    (folder / "cooling").mkdir(parents=True)
    environment = {"cooling": {"cell_minutes": {"prepared": 6.0}}}
    (folder / "environment.json").write_text(json.dumps(environment))
    cells = [
        {"stage": "prepared", "cell": name}
        for name in ("digits", "phrases", "left-out")
    ]
    (folder / "cooling" / "records.json").write_text(json.dumps({"cells": cells}))
    plans = plan(params)
    [fetch_plan] = [stage for stage in plans if stage.stage == "fetch"]
    assert len(fetch_plan.to_run) == 4
    assert fetch_plan.minutes_to_run == 2 * 2.0, "digits and phrases"
    assert fetch_plan.unknown == 2
    [line] = [line for line in summary(plans, params).splitlines() if "fetch" in line]
    known, unknown = line.split(", ")[-2:]
    assert known.endswith("4.0 min on the recorded machine")
    assert unknown == "minutes unknown for 2 cells"
    last = summary(plans, params).splitlines()[-1]
    assert last.endswith(
        "about 2 minutes for the others with 2 at a time, on the machine of the "
        "recorded run"
    )


def commit_results_of(study: str) -> None:
    """Commit the parameters of a profile and a file of results."""
    text, _ = rendered(study)
    Path("params.yaml").write_text(text)
    Path("results", study).mkdir(parents=True)
    Path("results", study, "runs.csv").write_text("seed,accuracy\n0,0.5\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "Run"]):
        subprocess.run(["git", *arguments], check=True)  # noqa: S607


def test_committed_results_are_no_reproduction_before_their_cells_have_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit_results_of("smoke")
    ended = CliRunner().invoke(cli.app, ["compare"])
    assert ended.exit_code == 1
    equal, reason = ended.stdout.splitlines()
    assert equal == "Equal, but not run here: all 1 files are equal byte for byte."
    count = sum(len(stage.to_run) for stage in plan(profile("smoke")))
    assert count > 50
    assert reason == f"  {count} of {count} cells must still run. Run: dvc repro"
    ended = CliRunner().invoke(cli.app, ["compare", "--after-repro"])
    assert ended.exit_code == 0, "make repro has run what there is to run"
    assert ended.stdout == "Reproduced: all 1 files are equal byte for byte.\n"
    finished = [StagePlan("fetch", 5), StagePlan("collect", None)]
    monkeypatch.setattr(project, "plan", lambda _: finished)
    ended = CliRunner().invoke(cli.app, ["compare"])
    assert ended.exit_code == 0
    assert ended.stdout == "Reproduced: all 1 files are equal byte for byte.\n"
    finished[0] = StagePlan("fetch", None, note="data: no digits. Run: make data")
    ended = CliRunner().invoke(cli.app, ["compare"])
    assert ended.exit_code == 1
    assert "cells of fetch cannot be planned: data: no digits" in ended.stdout


@pytest.mark.parametrize(
    ("paper", "seeds", "says"),
    [
        ("focal", 0, ""),
        ("focal", 1, "since the last run, compute.workers, seed changed. Run: dvc"),
        # params.yaml leaves this paper out.
        ("another", 1, ""),
    ],
)
def test_committed_results_are_no_reproduction_with_other_parameters(
    paper: str, seeds: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "plan", lambda _: [StagePlan("fetch", 5)])
    commit_results_of("smoke")
    params = profile("smoke")
    recorded = {
        "profile": params.profile,
        "seed": params.seed + seeds,
        "compute.workers": params.compute.workers + seeds,
    }
    lock = {"stages": {f"collect@{paper}": {"params": {"params.yaml": recorded}}}}
    # JSON is valid YAML.
    Path("dvc.lock").write_text(json.dumps(lock))
    ended = CliRunner().invoke(cli.app, ["compare"])
    assert ended.exit_code == bool(says)
    assert says in ended.stdout
    assert ended.stdout.startswith("Equal" if says else "Reproduced")


def test_another_study_than_that_of_the_parameters_is_not_called_reproduced() -> None:
    commit_results_of("smoke")
    text, _ = rendered("mini")
    Path("params.yaml").write_text(text)
    ended = CliRunner().invoke(cli.app, ["compare", "--study", "smoke"])
    assert ended.exit_code == 1
    assert "params.yaml is of profile mini" in ended.stdout


def test_a_plan_says_which_stages_have_no_cells() -> None:
    params = profile("smoke")
    params = params.model_copy(update={"papers": ["focal"]})
    lines = summary(plan(params), params).splitlines()
    assert f"{'search':28} no cells for these parameters" in lines


def test_the_total_of_a_plan_names_stages_that_cannot_be_planned() -> None:
    unplanned = StagePlan("embed", None, note="no weights")
    plans = [StagePlan("fetch", 5, ("digits",)), unplanned, StagePlan("report", None)]
    total = summary(plans, profile("smoke")).splitlines()[-1]
    assert total == (
        "1 of 5 cells to run, and those of 1 stage that cannot be planned yet"
    )
    total = summary([*plans, unplanned], profile("smoke")).splitlines()[-1]
    assert "those of 2 stages that cannot be planned yet" in total


def test_a_plan_shows_estimated_gpu_hours_where_no_run_is_recorded() -> None:
    params = profile("smoke")
    compute = params.compute.model_copy(
        update={"gpu_hours": {"train_cooling": 7.0, "focal_linear": 2.0}}
    )
    params = params.model_copy(update={"compute": compute})
    *lines, total = summary(plan(params), params).splitlines()
    [line] = [line for line in lines if line.startswith("train_cooling ")]
    assert line.endswith("cells to run, about 7 GPU-hours for all (estimated)")
    assert "about 9 GPU-hours estimated (docs/costs.md)" in total


def test_a_plan_with_the_code_of_another_checkout_is_refused() -> None:
    params = profile("smoke")
    Path("src/softmax_temperature").mkdir(parents=True)
    with pytest.raises(InputError, match="not the imported package"):
        plan(params)


def test_an_unknown_backend_of_matplotlib_does_not_matter(tmp_path: Path) -> None:
    command = ["calibrate", "--sample", "--bootstrap", "0", "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", f"import {cli.__name__} as cli; cli.main()", *command],
        env=os.environ | {"MPLBACKEND": "nonsense"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Overconfident: divide the logits by 2.60")
    assert not done.stderr
    assert (tmp_path / "reliability.png").is_file()


def test_no_library_complains_when_plan_ends(project_root: Path) -> None:
    # A CUDA build of torch loads Triton if the parameters declare a text network.
    ended = subprocess.run(
        [sys.executable, "-c", f"import {cli.__name__} as cli; cli.main()", "plan"],
        cwd=project_root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cells to run" in ended.stdout
    assert "leak" not in ended.stderr
