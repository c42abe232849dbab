"""GPU code stays on one device, calls only kernels that exist, and rarely makes the
host wait.

Each scenario runs on a simulated GPU (`pretended_gpu.py`) and, with the marker `gpu`,
on a real one.
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.cosine_classifier import TemperatureGridTrainer
from softmax_temperature.data.splits import Part
from softmax_temperature.early_learning.courses import Problem, Start, event_times
from softmax_temperature.early_learning.flows import Settings, SoftmaxCrossEntropy
from softmax_temperature.losses import make_loss
from softmax_temperature.networks.embeddings import extract
from softmax_temperature.networks.preprocess import Preprocess
from softmax_temperature.networks.registry import network_class
from softmax_temperature.params.classifier_temperature import GridTraining
from softmax_temperature.params.focal import BeamSearch
from softmax_temperature.params.shared import PretrainRecipe
from softmax_temperature.runner.cells import Job
from softmax_temperature.runner.machine import denormals_as_zero, prepare_torch
from softmax_temperature.stages.classifier_temperature import train_with_curves
from softmax_temperature.training import Diverged, Trainer
from softmax_temperature.training.pixels import pixel_predictions
from softmax_temperature.training.pretraining import (
    PreprocessedImages,
    WholeNetwork,
    pretraining_recipe,
)
from softmax_temperature.training.translation.network import translate
from softmax_temperature.training.translation.scores import (
    calibration_by_temperature,
    token_logits,
)
from tests import small_trainings as small
from tests.pretended_gpu import Mixed, PretendedGPU, pretended_gpu
from tests.small_trainings import Training

PER_EPOCH = 2
"""Allowed waits per training epoch, none of them in a step.

The order of the samples is uploaded; the loss and the check for finite values are
downloaded.
"""


@dataclass
class Device:
    """A GPU: the name that code uses for it, and a record of the host's waits."""

    name: str = "cuda"
    pretended: PretendedGPU | None = None
    seen: list[warnings.WarningMessage] = field(default_factory=list)

    def waits(self) -> list[str]:
        """The waits since the last call of this method."""
        if self.pretended is not None:
            found = list(self.pretended.waits)
            self.pretended.waits.clear()
            return found
        found = [
            str(each.message)
            for each in self.seen
            if "synchronizing" in str(each.message)
        ]
        self.seen.clear()
        return found


@pytest.fixture(params=["pretended", pytest.param("real", marks=pytest.mark.gpu)])
def gpu(request: pytest.FixtureRequest) -> Iterator[Device]:
    with ExitStack() as stack:
        if request.param == "pretended":
            yield Device(pretended=stack.enter_context(pretended_gpu()))
            return
        seen = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        stack.callback(torch.cuda.set_sync_debug_mode, "default")
        prepare_torch(1, "cuda")
        yield Device(seen=seen)


def after_epoch(training: Training) -> None:
    for callback in training.callbacks.values():
        callback.after_epoch(training.trainer)


def epoch(training: Training) -> None:
    training.trainer.epoch()
    after_epoch(training)


def without_dropout(training: Training) -> Training:
    """Turn off dropout in the training run, and return the training run.

    A GPU draws dropout masks from its own generator, so results would differ.
    """
    for module in training.trainer.network.modules():
        for name in {"p", "dropout"} & vars(
            module
        ).keys():  # This turns off nn.Dropout and attention dropout.
            setattr(module, name, 0.0)
    return training


# ---- training runs

TRAININGS: dict[str, tuple[Callable[..., Training], int]] = {
    # The function that builds the training run, and the number of waits that the run's
    # callbacks are allowed after an epoch.
    "VGG": (small.vgg, 11),
    "ResNet": (small.resnet, 11),
    "text CNN": (small.text_cnn, 8),
    "GRU, cooled": (small.gru, 14),
    "Tree-LSTM": (small.tree_lstm, 11),
    "Transformer": (small.transformer, 30),
    "U-Net, cooled": (small.unet, 18),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_no_training_step_waits_and_results_equal_the_cpus(
    gpu: Device, name: str
) -> None:
    build, after = TRAININGS[name]
    training, on_cpu = (without_dropout(build(device)) for device in (gpu.name, "cpu"))
    for number in range(2):
        gpu.waits()
        training.trainer.epoch()
        in_epoch = gpu.waits()
        after_epoch(training)
        afterwards = gpu.waits()
        epoch(on_cpu)
        if number:  # By now, the splits are on the device.
            assert len(in_epoch) <= PER_EPOCH, in_epoch
            assert len(afterwards) <= after, afterwards
    assert training.trainer.loss == pytest.approx(on_cpu.trainer.loss, rel=1e-3)


@pytest.mark.parametrize("loss", small.LOSSES)
def test_no_loss_waits(gpu: Device, loss: str) -> None:
    training = small.vgg(gpu.name, loss=loss)
    training.trainer.epoch()
    gpu.waits()
    training.trainer.epoch()
    assert len(gpu.waits()) <= PER_EPOCH


@pytest.mark.parametrize(
    ("mode", "settings"),
    [
        ("last_layer", {}),
        ("distributed", {"optimizer_state": "rescale"}),
        ("periodic", {"max_temperature": 0.1, "reset_temperature": 1.0}),
        ("periodic", {"period": 2, "refit": "increment"}),
    ],
)
def test_cooling_equals_that_of_the_cpu(
    gpu: Device, mode: str, settings: dict[str, Any]
) -> None:
    rows = []
    for device in (gpu.name, "cpu"):
        training = small.vgg(
            device, cooling={"mode": mode, **settings}, optimizer="adam", lr=0.002
        )
        cools = training.callbacks["cooling"]
        for _ in range(2):
            training.trainer.epoch()
            cools.after_epoch(training.trainer)
        rows.append([row["applied"] for row in cools.state_dict()["temperatures"]])
    assert rows[0] == pytest.approx(rows[1], rel=1e-2)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
def test_a_training_resumes_on_another_device(
    gpu: Device, tmp_path: Path, optimizer: str
) -> None:
    whole = small.vgg("cpu", optimizer=optimizer, lr=0.002)
    whole.trainer.epoch()
    torch.save(whole.trainer.state_dict(), tmp_path / "state")
    resumed = small.vgg(gpu.name, optimizer=optimizer, lr=0.002)
    resumed.trainer.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert all(parameter.is_cuda for parameter in resumed.trainer.network.parameters())
    assert bool(resumed.trainer.optimizer.param_groups[0].get("fused")) is (
        optimizer != "adagrad"
    )
    back = small.vgg("cpu", optimizer=optimizer, lr=0.002)
    resumed.trainer.epoch()
    # Checkpoints are loaded onto the CPU.
    state = torch.utils._pytree.tree_map(
        lambda leaf: leaf.cpu() if isinstance(leaf, Tensor) else leaf,
        copy.copy(resumed.trainer.state_dict()),
    )
    back.trainer.load_state_dict(state)
    assert not back.trainer.optimizer.param_groups[0].get("fused")
    for training in (whole, whole, back):
        training.trainer.epoch()
    assert back.trainer.loss == pytest.approx(whole.trainer.loss, rel=1e-3)


def test_a_divergence_is_found_at_the_end_of_its_epoch(gpu: Device) -> None:
    with pytest.raises(Diverged, match="epoch 1"):
        small.vgg(gpu.name, lr=1e30).trainer.epoch()


def test_float32_is_exact() -> None:
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    prepare_torch(1, "cpu")
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == (
        False,
        False,
    )


@pytest.mark.parametrize(
    ("device", "asked", "expected"),
    [("cpu", None, 1), ("cuda", None, 0), ("cuda", True, 1)],
)
def test_by_default_deterministic_results_are_required_only_on_a_cpu(
    device: str, asked: bool | None, expected: int
) -> None:
    prepare_torch(1, device, deterministic=asked)
    assert torch.get_deterministic_debug_mode() == expected
    assert not torch.utils.deterministic.fill_uninitialized_memory
    prepare_torch(1, "cpu")


def test_denormal_numbers_are_0_only_inside_the_block() -> None:
    smallest = torch.tensor(torch.finfo(torch.float32).smallest_normal)
    with denormals_as_zero():
        assert smallest / 2 == 0
    assert smallest / 2 > 0


# ---- CUDA graphs


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "sgd"},
        {
            "optimizer": "sgd",
            "loss": "mmce",
            "reduction": "sum",
            "clip_norm": None,
            "lr": 0.001,
        },
        {
            "optimizer": "adam",
            "lr": 0.002,
            "cooling": {"mode": "distributed", "period": 2},
        },
        {
            "optimizer": "sgd",
            "network": {"batch_norm": True, "activation": "crelu"},
            "precision": "bfloat16",
        },
    ],
)
def test_captured_steps_equal_plain_ones(gpu: Device, options: dict[str, Any]) -> None:
    plain, captured = (small.vgg(gpu.name, **options) for _ in range(2))
    # The scores are tested above, and computing them takes longer than the steps.
    for training in (plain, captured):
        del training.callbacks["watch"]
    assert captured.trainer.capture_steps() is None
    for number in range(3):
        epoch(plain)
        gpu.waits()
        captured.trainer.epoch()
        if number and "cooling" not in options:
            assert len(gpu.waits()) <= PER_EPOCH
        after_epoch(captured)
        if number == 1:  # After a state is loaded, the graph is captured again.
            captured.trainer.load_state_dict(
                copy.deepcopy(captured.trainer.state_dict())
            )
    assert captured.trainer._graph is not None
    assert captured.trainer._graph.fallback is None
    assert captured.trainer._graph._captured is not None
    states = plain.trainer.network.state_dict(), captured.trainer.network.state_dict()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    memories = [
        each.trainer.optimizer.state_dict()["state"] for each in (plain, captured)
    ]
    pairs = [
        (value, memories[1][key][name])
        for key, each in memories[0].items()
        for name, value in each.items()
    ]
    assert all(one is other is None or torch.equal(one, other) for one, other in pairs)
    assert (
        captured.callbacks["norms"].state_dict()
        == plain.callbacks["norms"].state_dict()
    )


def test_a_captured_step_draws_new_dropout(gpu: Device) -> None:
    losses = []
    for captured in (False, True):
        trainer = small.vgg(gpu.name, epochs=4).trainer
        trainer.network.dense = nn.Sequential(trainer.network.dense, nn.Dropout(0.5))
        if captured:
            trainer.capture_steps()
        trainer.epoch()
        trainer.epoch()
        losses.append(trainer.loss)
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("build", "options", "says"),
    [
        (small.gru, {}, "its batches differ in shape"),
        (small.vgg, {"optimizer": "adagrad"}, "adagrad has no fused form"),
    ],
)
def test_steps_that_cannot_be_captured_say_why(
    gpu: Device, capsys: pytest.CaptureFixture[str], build: Any, options: Any, says: str
) -> None:
    training = build(gpu.name, **options)
    assert training.trainer.capture_steps() == says
    assert (
        capsys.readouterr().err
        == f"the steps of this training are not captured as a CUDA graph: {says}\n"
    )
    training.trainer.epoch()


@pytest.mark.parametrize(
    ("loss", "says"),
    [("scheduled_focal", "its loss changes with the epoch"), ("brier", "captur")],
)
def test_a_step_that_cannot_be_captured_runs_without_capture(
    gpu: Device, capsys: pytest.CaptureFixture[str], loss: str, says: str
) -> None:
    plain, captured = (small.vgg(gpu.name, loss=loss).trainer for _ in range(2))
    captured.capture_steps()
    for trainer in (plain, captured):
        if loss == "brier":  # Make the host wait for the loss.
            own = trainer.objective
            trainer.objective = lambda logits, *more, own=own: (
                own(logits, *more) * (logits.sum().item() > -1e9)
            )
        trainer.epoch()
        trainer.epoch()
    assert says in capsys.readouterr().err
    assert captured.loss == plain.loss


# ---- everything else


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_grid_uploads_its_samples_once(
    gpu: Device, precision: str, optimizer: str
) -> None:
    held = small.embeddings(60, 1)
    settings = {
        "batch_size": 32,
        "lr": 0.05,
        "optimizer": optimizer,
        "precision": precision,
        "repeats": 2,
    }
    grids = [
        TemperatureGridTrainer(
            small.embeddings(120, 0), [1.0, 10.0, 60.0], **settings, device=device
        )
        for device in (gpu.name, "cpu")
    ]
    samples = [grid.prepare_test(*held) for grid in grids]
    accuracies: list[Tensor] = []
    for grid, some in zip(grids, samples, strict=True):
        gpu.waits()
        for _ in range(3):
            grid.epoch()
            accuracy = grid.evaluate(some)
        accuracies.append(accuracy)
        assert (
            len(gpu.waits()) <= 3 * 3
        )  # The order is uploaded; accuracies and a finiteness check are downloaded.
    torch.testing.assert_close(*accuracies, rtol=0, atol=0.05)


def test_a_search_uploads_its_samples_once(gpu: Device, tmp_path: Path) -> None:
    parts: Any = {
        split: Part(
            "clusters", split, *small.embeddings(count, seed), torch.arange(count)
        )  # type: ignore[arg-type]
        for seed, (split, count) in enumerate(
            {"train": 90, "validation": 40, "test": 40}.items()
        )
    }
    grid = {
        "inverse_temperatures": [1.0, 20.0],
        "batch_size": 32,
        "lr": 0.1,
        "momentum": 0.9,
        "repeats": 1,
    }
    waits = []
    for epochs in (2, 4):
        settings = GridTraining(**grid, epochs=epochs, precision="float32")
        job = Job(0, {}, tmp_path, tmp_path, gpu.name, math.inf)
        gpu.waits()
        train_with_curves(job, settings, parts, ("test", "validation"), seed=0)
        waits.append(len(gpu.waits()))
    # A further epoch uploads its order of samples, and downloads the check for finite
    # values and two accuracies.
    assert waits[1] - waits[0] <= 2 * 4


PREPROCESS = Preprocess(16, 18, "bilinear", (0.5, 0.4, 0.3), (0.2, 0.2, 0.2))


def backbone() -> nn.Module:
    network: nn.Module = small.seeded(
        network_class("cifar_resnet"), 1, small.CLASSES, widths=(4, 8, 16)
    )
    return network


def test_images_are_embedded_with_two_waits_a_batch(gpu: Device) -> None:
    images = small.images(20).inputs
    [*first] = extract(backbone().eval(), PREPROCESS, images.split(7), device=gpu.name)
    waits = gpu.waits()
    # The weights and each batch are uploaded; each batch's embeddings are downloaded.
    assert len(waits) <= len(backbone().state_dict()) + 1 + 2 * 3
    [*expected] = extract(backbone().eval(), PREPROCESS, images.split(7))
    torch.testing.assert_close(
        torch.cat(first), torch.cat(expected), rtol=0, atol=0.02
    )  # A few pixels differ by one grey level.


def test_a_backbone_is_trained_without_waits_in_its_steps(gpu: Device) -> None:
    images, recipe = (
        small.images(40),
        PretrainRecipe(
            epochs=2, batch_size=8, lr=0.05, momentum=0.9, weight_decay=1e-4
        ),
    )
    samples = PreprocessedImages(images.inputs, images.labels, "train", PREPROCESS)
    network, objective = WholeNetwork(backbone()), make_loss("cross_entropy", {})
    training = Trainer(
        network, objective, samples, pretraining_recipe(recipe), seed=1, device=gpu.name
    )
    training.epoch()
    gpu.waits()
    training.epoch()
    assert len(gpu.waits()) <= PER_EPOCH


def test_pixels_are_predicted(gpu: Device) -> None:
    images = small.segmented(18).inputs
    predicted = [
        pixel_predictions(small.unet(device).trainer, images)
        for device in (gpu.name, "cpu")
    ]
    assert (predicted[0] == predicted[1]).double().mean() > 0.99


def test_sentences_are_translated_and_scored(gpu: Device) -> None:
    search = BeamSearch(beam=3, extra_length=4, length_penalty=0.6, sentences=4)
    sources = small.pairs(10, 3).sources
    found = []
    for device in (gpu.name, "cpu"):
        trainer = small.transformer(device).trainer
        tokens = translate(
            trainer.network, sources, search, temperature=1.3, device=device
        )
        rows = calibration_by_temperature(
            token_logits(trainer, trainer.samples), [1.0, 2.0]
        )
        found.append((tokens, rows[1]["nll"]))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-4)


def test_early_learning_equals_that_of_the_cpu(gpu: Device) -> None:
    found = []
    for device in (gpu.name, "cpu"):
        build = partial(small.seeded, network_class("mlp"), 3, (8,), image_size=4)
        networks = [build().double().eval().to(device) for _ in range(2)]
        inputs = torch.randn(
            9, 3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
        ).to(device)
        problem = Problem(
            *networks,
            inputs,
            SoftmaxCrossEntropy((torch.arange(9) % 3).to(device), 3),
            4,
            4,
            0,
        )
        start = Start(problem, 0.5, 1.0)
        unit = start.scales.unit_time
        times = event_times(
            start.gradient_flow, problem.loss, Settings(unit, 2 * unit, 1e-3, 200)
        )
        found.append([problem.sketch.norm(problem.kernel).value, unit, times])
    assert found[0][:2] == pytest.approx(found[1][:2], rel=1e-6)
    assert found[0][2].keys() == found[1][2].keys()


# ---- the simulated GPU itself


def test_a_pretended_gpu_refuses_what_a_real_one_does() -> None:
    with pretended_gpu() as gpu:
        there, here = torch.ones(3, device="cuda"), torch.ones(3)
        assert [each.device.type for each in (there, 2 * there, here)] == [
            "cuda",
            "cuda",
            "cpu",
        ]
        with pytest.raises(Mixed, match="mixes devices"):
            there + here
        with pytest.raises(Mixed, match="no CUDA kernel"):
            torch.histogram(there, 3)
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        assert not gpu.waits
        actions: list[Callable[[], Any]] = [
            there.sum().item,
            there.tolist,
            there.cpu,
            there.nonzero,
        ]
        actions += [
            lambda: bool(there.all()),
            lambda: there[there > 0],
            lambda: here.to("cuda"),
        ]
        for wait in [*actions, lambda: there[torch.tensor([0])]]:
            wait()
        assert len(gpu.waits) == 8
        assert here.pin_memory().to("cuda", non_blocking=True).is_cuda
        assert len(gpu.waits) == 8
    assert torch.ones(2).device.type == "cpu"
