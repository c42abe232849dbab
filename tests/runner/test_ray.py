"""Ray gives the same results as one process, also on clusters; errors name remedies."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.engines import refuse_sharing_one_gpu, run_tasks
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import REGISTRY
from tests.conftest import ROOT
from tests.pipeline.whole_runs import digests
from tests.profiles import profile
from tests.runner import toy


def on_ray(program: str) -> None:
    """Run a program that starts Ray in its own process.

    Ray's child processes run until the interpreter that started Ray exits.
    """
    pytest.importorskip("ray")
    path = os.pathsep.join([str(ROOT), *sys.path])
    environment = {
        name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"
    }
    command = [sys.executable, "-c", f"from tests.runner import toy\n{program}"]
    subprocess.run(command, env={**environment, "PYTHONPATH": path}, check=True)


@pytest.mark.slow
def test_ray_gives_the_bytes_of_one_process() -> None:
    on_ray("toy.run(1, 2, 3, engine='ray')")
    found = toy.results()
    Path("data").rename("ray")
    toy.run(1, 2, 3)
    assert toy.results() == found


class Ray:
    """A fake Ray that calls remote functions at once, in this process."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.ended = 0

    def init(self, **options: Any) -> None:
        self.asked.append(options)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}]

    def remote(self, **options: Any) -> Any:
        self.asked.append(options)

        def decorate(function: Any) -> Any:
            def call(*arguments: Any) -> Any:
                done: Future[Any] = Future()
                try:
                    done.set_result(function(*arguments))
                except BaseException as error:  # noqa: BLE001 - as a worker of Ray
                    done.set_exception(error)
                return SimpleNamespace(future=lambda: done)

            return SimpleNamespace(remote=call)

        return decorate

    def shutdown(self) -> None:
        self.ended += 1


def test_cells_run_on_ray_as_in_one_process_and_ray_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ray itself, which takes half a minute to start, runs in `make soak`.
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    toy.run(1, 2, 3, engine="ray")
    assert ray.ended == 1
    joined, asked = ray.asked
    local = {"address": "local", "num_cpus": 2, "include_dashboard": False}
    assert local.items() <= joined.items()
    assert (asked["num_cpus"], asked["num_gpus"]) == (1, 0)
    found = toy.results()
    Path("data").rename("ray")
    toy.run(1, 2, 3)
    assert toy.results() == found


@pytest.mark.slow
def test_on_ray_no_two_cells_that_use_a_gpu_share_a_process() -> None:
    """A process keeps its first CUDA device, even if Ray assigns another one later."""
    start = (
        "import ray; ray.init("
        "address='local', num_cpus=2, num_gpus=2, include_dashboard=False)"
    )
    on_ray(f"{start}\ntoy.run(0, 1, 2, engine='ray', gpus_per_cell=1)")
    found = [each for processes in toy.processes().values() for each in processes]
    assert len({process for process, _ in found}) == len(found) == 3
    assert {devices for _, devices in found} <= {"0", "1"}


def documented(word: str) -> list[list[str]]:
    """The commands on the page about Ray that start with `word`, split into words."""
    lines = (
        (ROOT / "docs" / "how_to" / "ray.md")
        .read_text()
        .partition("## A Ray cluster")[2]
        .splitlines()
    )
    return [
        line.partition("#")[0].split() for line in lines if line.startswith(f"{word} ")
    ]


def test_the_page_about_ray_has_the_commands_that_start_the_cluster() -> None:
    (setting,) = documented("export")
    assert setting == ["export", "RAY_AUTH_MODE=token"]
    assert [words[1] for words in documented("ray")] == [
        "get-auth-token",
        "start",
        "start",
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two one-core nodes, started as documented."""
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ExitStack() as running:
        patch = running.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(
            "HOME", str(tmp_path_factory.mktemp("home"))
        )  # Ray keeps its token in the home folder.
        for _, variable in documented("export"):
            patch.setenv(*variable.split("="))
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path])
        )  # Nodes import the cells of tests.runner.toy.
        patch.setenv(
            "PATH",
            os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        )
        token, *starts = documented("ray")
        subprocess.run(token, check=True, stdout=subprocess.DEVNULL)
        for number, words in enumerate(starts, 1):
            here = [
                word.replace("FIRST", "127.0.0.1").replace("6379", str(port))
                for word in words
            ]
            _start_node([*here, "--num-cpus=1"], number, port, running)
        yield f"127.0.0.1:{port}"


@pytest.mark.slow
def test_a_cluster_started_as_documented_gives_the_bytes_of_processes(
    cluster: str,
) -> None:
    Path("slow").touch()
    on_ray(f"toy.run(1, 2, 3, 4, engine='ray', ray_address='{cluster}')")
    found = toy.results()
    assert (
        len({process for each in toy.processes().values() for process, _ in each}) >= 2
    )
    Path("slow").unlink()
    Path("data").rename("ray")
    toy.run(1, 2, 3, 4, engine="processes")
    assert toy.results() == found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_profile_smoke_on_a_cluster_gives_the_bytes_of_processes(cluster: str) -> None:
    content = profile("smoke").model_dump(mode="json")
    for engine, address in (("ray", cluster), ("processes", None)):
        folder = Path(engine)
        folder.mkdir()
        compute = content["compute"] | {
            "engine": engine,
            "workers": 2,
            "ray_address": address,
        }
        write_json(
            folder / "params.yaml", content | {"compute": compute}
        )  # JSON is valid YAML.
        for program in dict.fromkeys(entry.program for entry in REGISTRY):
            subprocess.run(
                [sys.executable, ROOT / "pipeline" / f"{program}.py"],
                cwd=folder,
                check=True,
            )
    found = digests(Path("ray"), "data")
    assert "data/focal/linear/FL-3/0/record.json" in found
    assert found == digests(Path("processes"), "data")


def _start_node(words: list[str], number: int, port: int, running: ExitStack) -> None:
    """Start a node, which runs until the module's tests end.

    If the node ends because the machine is too busy for Ray's time limits, start it
    again.
    """
    program = (
        f"import ray, sys; ray.init('127.0.0.1:{port}'); "
        f"sys.exit(len(ray.nodes()) < {number})"
    )
    for _ in range(3):
        node = subprocess.Popen(words, start_new_session=True)
        deadline, answer = time.monotonic() + 120, ""
        while node.poll() is None:
            time.sleep(5)  # A query takes seconds of CPU time.
            asked = subprocess.run(
                [sys.executable, "-c", program],
                check=False,
                capture_output=True,
                text=True,
            )
            if asked.returncode == 0:
                running.callback(node.wait, 60)
                running.callback(os.killpg, node.pid, signal.SIGTERM)
                return
            answer = asked.stderr.strip()
            if "AuthenticationError" in answer or time.monotonic() > deadline:
                os.killpg(node.pid, signal.SIGTERM)
                node.wait(60)
                pytest.fail(
                    f"node {number} was started by {' '.join(words)}, and does not "
                    f"answer: {answer[-1500:]}"
                )
    pytest.fail(f"node {number} ended by itself, three times")


def test_an_unreachable_cluster_is_one_error() -> None:
    pytest.importorskip("ray")
    with pytest.raises(
        InputError,
        match=(
            r"compute\.ray_address: cannot connect to Ray at 127\.0\.0\.1:1 .*ray start"
        ),
    ):
        list(
            run_tasks(
                lambda _: None,
                [1],
                toy.compute("ray", ray_address="127.0.0.1:1"),
                [None],
            )
        )


NODES = [{"CPU": 16.0, "GPU": 8.0}, {"CPU": 64.0}]


@pytest.mark.parametrize(
    ("nodes", "changes", "says"),
    [
        (
            NODES,
            {"device": "auto"},
            r"compute\.gpus_per_cell: is 0, so all cells .* would use the first one",
        ),
        (NODES, {"device": "auto", "gpus_per_cell": 0.5}, None),
        (NODES, {"device": "cpu"}, None),
    ],
)
def test_cells_that_would_all_use_one_gpu_are_refused(
    nodes: Any, changes: dict[str, object], says: str | None
) -> None:
    with pytest.raises(InputError, match=says) if says else nullcontext():
        refuse_sharing_one_gpu(nodes, toy.compute("ray", **changes))
