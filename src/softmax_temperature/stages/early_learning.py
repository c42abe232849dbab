"""Stage early_learning: gradient flow of networks against what its theory predicts (temperature_check paper)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.params.network import Network
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.runner.jobs import Cell, Job, seed_of

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.early_learning.problem import Problem, Start
    from softmax_temperature.params import Params
    from softmax_temperature.params.early_learning import EarlyLearning

OUTPUT = Path("data/temperature_check/early_learning")
CURVES, NORMS = "curves", "norms"

# Deviation: the samples, networks and ranges with which the temperature_check paper shows its theory are not at hand.
# All of them are parameters of ours. Networks learn by gradient flow, integrated numerically, so that no learning rate
# is too large for the comparison.


def courses(section: EarlyLearning | None) -> list[tuple[str, str, int]]:
    """Network, question and seed of every cell; none where the section is left out."""
    if section is None:
        return []
    return [
        (network, question, seed)
        for network, seeds in section.networks.items()
        for question in (CURVES, NORMS)
        for seed in range(seeds)
    ]


def cells(params: Params) -> list[Cell]:
    """One cell per network, question and seed.

    Raises:
        InputError: a network does not take its arguments, or has batch normalisation.
    """
    section = params.temperature_check.early_learning
    if section is None:
        return []
    for name in section.networks:
        _check(name, params.networks[name])
    return [_cell(params, section, *names) for names in courses(section)]


def _check(name: str, spec: Network) -> None:
    from softmax_temperature.early_learning.tangent_kernel import refuse_batch_norm  # Imports torch, as all of these.
    from softmax_temperature.networks.shapes_only import shapes_only
    from softmax_temperature.training import build_network

    with shapes_only():
        network = build_network(spec, classes=2, seed=0)
    try:
        refuse_batch_norm(network)
    except ValueError as error:
        where = f"temperature_check.early_learning.networks: {name}"
        raise InputError(str(error), where=where, remedy="Name one without.") from error


def _cell(params: Params, section: EarlyLearning, network: str, question: str, seed: int) -> Cell:
    spec = params.networks[network]
    shared = section.model_dump(include={"images", "probes", "chunk", "tolerance", "evaluations"})
    parameters = {
        "network": spec.model_dump(),
        "root": params.data.root,
        # The seed's alone: both questions look at the same network and images.
        "start_seed": seed_of(params.seed, "temperature_check", "early_learning", str(seed)),
        **shared,
    }
    name, inputs = f"{network}/{question}/{seed}", {"images": PREPARED / section.dataset}
    if question == NORMS:
        return Cell(name, run_norms, parameters | section.norms.model_dump(), inputs, (spec.module,))
    grid = section.curves
    parameters |= {"inverse_temperatures": grid.inverse_temperatures, "times": grid.times, "stride": grid.stride}
    return Cell(name, run_curves, parameters, inputs, (spec.module,))


def run_curves(
    job: Job,
    *,
    network: dict[str, Any],
    root: str,
    start_seed: int,
    images: int,
    probes: int | None,
    chunk: int,
    tolerance: float,
    evaluations: int,
    inverse_temperatures: list[float],
    times: list[float],
    stride: int,
) -> None:
    """Learning from logits of 0, at each inverse temperature and with the kernel of the start.

    Writes `record.json`, what is predicted from the start, and `courses.json`: for each inverse temperature, and for
    the linearised dynamics (null), how the course ended, and a row for each wanted time and each event.

    Args:
        job: nothing of it is resumed.
        network: a `Network`, as JSON.
        root: the folder of the raw data.
        start_seed: of weights, images and probes.
        images: how many.
        probes: of the kernel.
        chunk: images at a time.
        tolerance: of the integrator.
        evaluations: of the gradient, at most, for each course.
        inverse_temperatures: of the softmax.
        times: when to look, in units of time.
        stride: the kernel is computed at every so many of them.
    """
    from softmax_temperature.early_learning.courses import drift_rate, linearised_course, real_course
    from softmax_temperature.early_learning.flows import Settings

    problem = _problem(job, network, root, start_seed, images, probes, chunk)
    start = problem.start(1.0, 1.0)
    unit = start.scales.unit_time
    settings = Settings(unit, times[-1] * unit, tolerance, evaluations)
    moments = [time * unit for time in times]
    linearised, states = linearised_course(problem, start, settings, moments)
    found = [{"inverse_temperature": None, **linearised}]
    for done, inverse_temperature in enumerate(inverse_temperatures):
        job.progress(done, len(inverse_temperatures))
        own = problem.start(1.0, inverse_temperature)
        course = real_course(problem, own, settings, moments, kernel_times=moments[::stride], linearised=states)
        found.append({"inverse_temperature": inverse_temperature, **course})
    write_json(job.output / "courses.json", found)
    rate = drift_rate(start.network, problem.sketch, start.residual, unit)
    write_json(job.output / "record.json", {**_about(problem, start), "drift_rate": rate})


def run_norms(
    job: Job,
    *,
    network: dict[str, Any],
    root: str,
    start_seed: int,
    images: int,
    probes: int | None,
    chunk: int,
    tolerance: float,
    evaluations: int,
    inverse_temperature: float,
    logit_norms: list[float],
    horizon: float,
) -> None:
    """Learning from tempered logits of each norm, by the network and with the kernel of the start.

    Writes `record.json`, as `run_curves`, and `starts.json`: for each norm the correlation that has it, what is
    predicted from there, and when the events happened, in both dynamics.

    Args:
        job: nothing of it is resumed.
        network: a `Network`, as JSON.
        root: the folder of the raw data.
        start_seed: of weights, images and probes.
        images: how many.
        probes: of the kernel.
        chunk: images at a time.
        tolerance: of the integrator.
        evaluations: of the gradient, at most, for each course.
        inverse_temperature: of the softmax.
        logit_norms: of the tempered logits, over all images and classes.
        horizon: where a course ends, in the larger of its two predicted times.

    Raises:
        InputError: the networks cannot start with one of the norms.
    """
    from softmax_temperature.early_learning.courses import event_times
    from softmax_temperature.early_learning.flows import Settings

    problem = _problem(job, network, root, start_seed, images, probes, chunk)
    found = []
    for done, logit_norm in enumerate(logit_norms):
        job.progress(done, len(logit_norms))
        correlation = _correlation(problem, logit_norm, inverse_temperature, network["architecture"])
        start = problem.start(correlation, inverse_temperature)
        scales = start.scales
        until = horizon * max(scales.unit_time, scales.logit_time)
        settings = Settings(scales.unit_time, until, tolerance, evaluations)
        found.append(
            {
                "wanted_norm": logit_norm,
                "correlation": correlation,
                "logit_norm": scales.logit_norm,
                "unit_time": scales.unit_time,
                "logit_time": scales.logit_time,
                "real": event_times(start.gradient_flow(), problem.loss, settings),
                "linearised": event_times(start.linearised_flow(), problem.loss, settings),
            }
        )
    write_json(job.output / "starts.json", found)
    about = _about(problem, problem.start(1.0, inverse_temperature))
    write_json(job.output / "record.json", {**about, "inverse_temperature": inverse_temperature})


def _problem(
    job: Job, network: dict[str, Any], root: str, seed: int, count: int, probes: int | None, chunk: int
) -> Problem:
    from softmax_temperature.data.prepared import open_prepared
    from softmax_temperature.early_learning.problem import Problem, SoftmaxCrossEntropy
    from softmax_temperature.training import build_network

    classes = open_prepared(job.inputs["images"], root=Path(root)).classes
    spec = Network.model_validate(network)
    drawn = [build_network(spec, classes=classes, seed=seed_of(seed, name)) for name in ("trained", "frozen")]
    first, second = (each.double().eval().to(job.device) for each in drawn)
    inputs, labels = (each.to(job.device) for each in _samples(job, root, count, seed))
    loss = SoftmaxCrossEntropy(labels, classes)
    return Problem(first, second, inputs, loss, probes, chunk, seed_of(seed, "probes"))


def _samples(job: Job, root: str, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Training images, balanced over classes, with mean 0 and standard deviation 1 over all their pixels; labels."""
    from softmax_temperature.data.sampling import balanced_subset, generator_for
    from softmax_temperature.stages.training_sets import image_set

    images = image_set(job.inputs["images"], "train", root)
    rows = balanced_subset(images.labels.numpy(), count, generator_for(seed, "early learning"))
    pixels = images.images[rows].double()
    return (pixels - pixels.mean()) / pixels.std(), images.labels[rows]


def _correlation(problem: Problem, logit_norm: float, inverse_temperature: float, architecture: str) -> float:
    try:
        return problem.correlation(logit_norm, inverse_temperature)
    except ValueError as error:
        where = f"temperature_check.early_learning.norms, {architecture}"
        raise InputError(
            str(error), where=where, remedy="Lower the norms, or raise the inverse temperature."
        ) from error


def _about(problem: Problem, start: Start) -> dict[str, Any]:
    """The problem as a record tells it; norms of the kernel with their standard errors."""
    from softmax_temperature.early_learning.courses import is_smooth

    norm = problem.sketch.norm(problem.kernel)
    return {
        "parameters": start.network.start.numel(),
        "smooth": is_smooth(problem.network),
        "images": start.network.shape[0],
        "classes": start.network.shape[1],
        "kernel_norm": norm.value,
        "kernel_norm_error": norm.standard_error,
        "unit_time": start.scales.unit_time,
    }
