"""A run that was pushed to a remote and pulled in a clone is whole there, and what a remote damaged is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from softmax_temperature.tools.verification import verify

from softmax_temperature.runner.artifacts import digest_of_file
from tests.faults import tiny, toy
from tests.faults.damage import DAMAGES, damage
from tests.faults.tiny import Cold

S3_MODULES = ("moto", "flask", "flask_cors", "boto3", "dvc_s3")
BUCKET = "reference-runs"
SERVER = f"""
import sys
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
address = "http://{{}}:{{}}".format(*server.get_host_and_port())
boto3.client("s3", endpoint_url=address).create_bucket(Bucket="{BUCKET}")
print(address, flush=True)
sys.stdin.read()
server.stop()
"""


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Cold:
    return tiny.cold_run(tmp_path_factory.getbasetemp())


@pytest.fixture
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an S3-compatible server with an empty bucket, on this machine."""
    missing = [name for name in S3_MODULES if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    keys = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in keys.items():
        monkeypatch.setitem(toy.ENVIRONMENT, name, value)
    words = [sys.executable, "-c", SERVER]
    with subprocess.Popen(
        words, env=toy.ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate("")


def set_remote(project: Path, url: str, **options: str) -> None:
    """Name the remote in the settings that Git does not hold."""
    lines = [f"    {name} = {value}\n" for name, value in {"url": url, **options}.items()]
    settings = ["[core]\n", "    no_scm = true\n", "    remote = store\n", "['remote \"store\"']\n", *lines]
    (project / ".dvc/config.local").write_text("".join(settings))


def clone(project: Path, target: Path) -> Path:
    """What Git holds of a project: neither data nor DVC's cache."""
    shutil.copytree(project, target, ignore=shutil.ignore_patterns("cache", "tmp", "data"))
    if (project / "data/.gitignore").is_file():
        (target / "data").mkdir()
        shutil.copy(project / "data/.gitignore", target / "data")
        shutil.copytree(project / "data/published", target / "data/published")
    return target


def pulled(project: Path, target: Path, stages: tuple[str, ...], url: str, **options: str) -> Path:
    """A clone of a project, after a push there and a pull here."""
    set_remote(project, url, **options)
    toy.dvc(project, "push", *stages)
    there = clone(project, target)
    toy.dvc(there, "pull", *stages)
    return there


def data(project: Path) -> dict[str, str]:
    paths = [path for path in (project / "data").rglob("*") if path.is_file()]
    inside = [path for path in paths if not path.is_relative_to(project / "data/work")]
    return {path.relative_to(project).as_posix(): digest_of_file(path) for path in inside}


def check_reference_run(cold: Cold, there: Path) -> None:
    found = verify(there)
    assert found.problems == ()
    assert found.artifacts > 25
    assert found.objects > 100
    assert data(there) == data(cold.folder)
    assert "up to date" in toy.dvc(there, "repro", *cold.stages), "nothing has to run"


def test_a_reference_run_goes_through_a_folder(cold: Cold, tmp_path: Path) -> None:
    there = pulled(cold.folder, tmp_path / "clone", cold.stages, str(tmp_path / "store"), verify="true")
    check_reference_run(cold, there)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_reference_run_goes_through_an_s3_server(cold: Cold, s3_server: str, tmp_path: Path) -> None:
    options = {"endpointurl": s3_server, "verify": "true"}
    there = pulled(cold.folder, tmp_path / "clone", cold.stages, f"s3://{BUCKET}/tiny", **options)
    check_reference_run(cold, there)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small project that has run, and with the folder that it was pushed to."""
    folder = tmp_path_factory.mktemp("pushed")
    project = toy.make(folder / "project")
    toy.dvc(project, "repro")
    set_remote(project, "../../store")
    toy.dvc(project, "push")
    return folder


@pytest.fixture
def project(pushed: Path, tmp_path: Path) -> Path:
    """A copy of that project, with a remote of its own."""
    for name in ("project", "store"):
        shutil.copytree(pushed / name, tmp_path / name)
    return tmp_path / "project"


def test_a_small_run_goes_through_an_s3_server(project: Path, s3_server: str, tmp_path: Path) -> None:
    options = {"endpointurl": s3_server, "verify": "true"}
    there = pulled(project, tmp_path / "clone", (), f"s3://{BUCKET}/toy", **options)
    assert verify(there).problems == ()
    assert data(there) == data(project)


def stored(project: Path) -> Path:
    """What the remote holds of the numbers."""
    content = (project / "data/numbers/some.json").read_bytes()
    paths = (path for path in (project.parent / "store").rglob("*") if path.is_file())
    (found,) = (path for path in paths if path.read_bytes() == content)
    return found


@pytest.mark.parametrize(
    "how", ["flip", *(pytest.param(how, marks=pytest.mark.soak) for how in DAMAGES if how != "flip")]
)
def test_what_the_remote_damaged_is_found_in_the_clone(project: Path, tmp_path: Path, how: str) -> None:
    damage(stored(project), how, seed=0)
    there = clone(project, tmp_path / "clone")
    pull = toy.run(there, "dvc", "pull")
    problems = verify(there).problems
    assert any("data/numbers/some.json" in line for line in problems) or "data/numbers" in pull.stderr
    assert "RUN make_numbers.py" in toy.dvc(there, "repro")
    assert verify(there).problems == ()
    assert data(there) == data(project)


def test_a_remote_that_is_verified_hands_out_nothing_damaged(project: Path, tmp_path: Path) -> None:
    damage(stored(project), "flip", seed=0)
    there = clone(project, tmp_path / "clone")
    set_remote(there, "../../store", verify="true")
    assert toy.run(there, "dvc", "pull").returncode != 0
    assert not (there / "data/numbers/some.json").exists()
    assert not [line for line in verify(there).problems if "damaged" in line]
    toy.dvc(there, "repro")
    assert data(there) == data(project)
