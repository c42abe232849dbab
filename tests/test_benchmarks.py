"""Promises are judged, results name their machine, and timed sides do the same work."""

import importlib
import json
import sys
from contextlib import nullcontext
from math import ceil
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from benchmarks import __main__ as programs
from benchmarks import (
    gpu_check,
    gpu_hours,
    precision,
    side_by_side,
    temperature_grid,
    training,
)
from benchmarks.__main__ import BENCHMARKS, PROMISES, Promise, main
from benchmarks.program import print_result
from softmax_temperature.cosine_classifier.products import Products, RoundedProducts
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network
from softmax_temperature.runner.machine import machine, versions
from softmax_temperature.stages import REGISTRY
from softmax_temperature.tools.programs import run_program
from tests.pretended_gpu import pretended_gpu
from tests.profiles import profile

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("at_least", "measured", "met"),
    [(True, 2.5, True), (True, 2.4, False), (False, 2.6, False)],
)
def test_a_promise_is_a_bound(at_least: bool, measured: float, met: bool) -> None:
    verdict = Promise("ratio", 2.5, at_least=at_least).judge({"ratio": measured})
    assert (verdict["met"], verdict["measured"]) == (met, measured)


def test_a_new_result_replaces_only_its_own_and_names_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"gpu": {"results": {}}, "cpu": {"results": {"overhead": {"ratio": 3}}}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(old), encoding="utf-8")
    monkeypatch.setattr(programs, "RESULTS", path)
    monkeypatch.setattr(programs, "section_here", lambda: "cpu")
    for ratio in (11.0, 12.0):
        measured = Mock(return_value={"ratio": ratio})
        monkeypatch.setattr(programs, "measured", measured)
        assert programs.record("statistics")
    new = json.loads(path.read_text(encoding="utf-8"))
    statistics = new["cpu"]["results"].pop("statistics")
    assert new == old
    assert statistics["ratio"] == 12
    assert statistics["machine"] == machine()
    assert statistics["versions"]["torch"] == versions(("torch",))["torch"]


def test_every_committed_result_names_its_machine_and_meets_its_promises() -> None:
    content = json.loads(programs.RESULTS.read_text(encoding="utf-8"))
    assert content["cpu"]["results"].keys() == set(BENCHMARKS)
    for section in content.values():
        for name, result in section["results"].items():
            assert result["machine"]["processor"]
            assert result["versions"]["torch"]
            assert all(promise["met"] for promise in result["promises"]), name


def test_every_benchmark_has_a_list_of_promises_and_a_program() -> None:
    assert set(PROMISES) == set(BENCHMARKS)
    for name in BENCHMARKS:
        assert callable(importlib.import_module(f"benchmarks.{name}").measure)


@pytest.mark.parametrize(
    ("products", "fastest"),
    [(RoundedProducts(CPU), "float32"), (Products(torch.bfloat16, CPU), "bfloat16")],
)
def test_networks_are_timed_in_the_precisions_that_the_machine_multiplies_in(
    products: Products, fastest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "choose_products", lambda *_: products)
    assert precision.native_precisions()[0] == "float32"
    assert precision.fastest_precision() == fastest


@pytest.mark.parametrize("name", ["mlp", "wrn-8-1"])
def test_a_sweep_in_one_batched_step_is_that_of_one_network_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "RATE", 0.01)
    architecture, arguments, side, _ = side_by_side.NETWORKS[name]
    spec = Network(architecture=architecture, arguments=arguments)
    networks = [
        build_network(spec, classes=10, seed=seed)
        for seed in range(len(side_by_side.INVERSE_TEMPERATURES))
    ]
    images = torch.randn(4, 3, side, side, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(4)
    batched, stacked = side_by_side.batched_step(networks, images, labels)
    single = side_by_side.single_steps(networks, images, labels)
    for _ in range(3):
        batched()
    assert side_by_side.difference(networks, stacked) > 1e-3
    for _ in range(3):
        single()
    assert side_by_side.difference(networks, stacked) < 1e-5


def test_the_plain_loop_trains_the_same_vgg_in_the_usual_order() -> None:
    spec = Network(architecture="vgg")
    images = torch.randn(4, 3, 32, 32)
    ours, plain = (build_network(spec, classes=10, seed=0) for _ in range(2))
    plain = training.in_the_usual_order(plain)
    kinds = [type(layer).__name__ for layer in plain.get_submodule("convolutions")]
    assert kinds == 3 * ["Conv2d", "ReLU", "Conv2d", "ReLU", "MaxPool2d"]
    for network in (ours, plain):
        network(images).square().sum().backward()
    assert torch.equal(ours(images), plain(images))
    assert [*dict(ours.named_parameters())] == [*dict(plain.named_parameters())]
    for name, parameter in ours.named_parameters():
        assert torch.equal(parameter.grad, plain.get_parameter(name).grad), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--only", "statistic"],
            "unknown name 'statistic'. Did you mean 'statistics'",
        ),
        (["--onyl", "statistics"], "No such option"),
    ],
)
def test_an_unknown_benchmark_or_option_measures_nothing(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_program(main, None, ["--quick", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_a_program_prints_the_result_of_its_benchmark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ratio.py", "--quick"])
    assert print_result(lambda *, quick: {"quick": quick}, None) == 0
    assert json.loads(capsys.readouterr().out) == {"quick": True}


def test_without_a_gpu_its_check_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_check.main() == 0
    assert (
        capsys.readouterr().out
        == "There is no GPU: torch sees none on this machine, so nothing was checked.\n"
    )


def pretend_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("reset_peak_memory_stats", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 2**29)


def test_the_check_of_a_gpu_prints_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_to_measure(monkeypatch)
    monkeypatch.setattr(gpu_check, "STEPS", 5)
    tiny = Network(architecture="mlp", arguments={"widths": [8], "image_size": 32})
    with pretended_gpu():
        for captured, kind in ((False, "plain"), (True, "captured")):
            name, shown_kind, per_second, _, gibibytes, _ = gpu_check.row(
                "vgg", tiny, 4, captured=captured
            )
            assert (name, shown_kind, gibibytes) == ("vgg", kind, "0.50")
            assert float(per_second.replace(",", "")) > 0


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize(
    ("name", "promises"),
    [
        ("temperature_grid", ["ratio >= 20", "peak_fraction >= 0.5"]),
        ("tree_lstm", ["ratio >= 5"]),
    ],
)
def test_the_check_of_a_gpu_compares_with_what_is_promised(
    name: str, promises: list[str], on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temperature_grid, "QUICK_SIZE", (64, 32, 4))
    monkeypatch.setattr(temperature_grid, "HALF_DIM", 16)
    monkeypatch.setattr(temperature_grid, "PRODUCT_SIZES", ((16, 16, 16),))
    pretend_to_measure(monkeypatch)
    with pretended_gpu() if on_gpu else nullcontext():
        result = importlib.import_module(f"benchmarks.{name}").measure(quick=True)
    assert result["gpu_gibibytes"] == (0.5 if on_gpu else 0.0)
    lines = [line.split("  ") for line in gpu_check.comparison(name, result)]
    assert [line[:2] for line in lines] == [
        [name, expected] for expected in [*promises, "-", "-"]
    ]
    assert all(float(line[2].split()[0].replace(",", "")) > 0 for line in lines[:-1])
    assert lines[-1][2] == ("0.50 GiB" if on_gpu else "0.00 GiB")


@pytest.mark.parametrize("name", ["paper", "paper_imagenet64"])
def test_a_profiles_gpu_hours_are_those_of_the_estimate(
    name: str,
) -> None:
    params = profile(name)
    sums: dict[str, float] = {}
    for block in gpu_hours.blocks(params):
        sums[block.stage] = sums.get(block.stage, 0) + block.hours
    assert params.compute.gpu_hours == {
        stage: ceil(hours) for stage, hours in sums.items()
    }
    stages = {entry.name for entry in REGISTRY}
    assert sums.keys() <= stages
