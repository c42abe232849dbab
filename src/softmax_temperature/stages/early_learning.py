"""Stage early_learning: gradient flow of networks against what its theory predicts (temperature_check paper)."""

from pathlib import Path
from typing import Any

from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.sampling import balanced_subset, generator_for
from softmax_temperature.early_learning.courses import (
    drift_rate,
    event_times,
    is_smooth,
    linearised_course,
    real_course,
)
from softmax_temperature.early_learning.flows import Settings
from softmax_temperature.early_learning.problem import Problem, SoftmaxCrossEntropy, Start
from softmax_temperature.early_learning.tangent_kernel import refuse_batch_norm
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.temperature_check import EarlyLearning, GradientFlow, Norms
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages.training_sets import image_set
from softmax_temperature.training import build_network, check_network

PAPER = "temperature_check"
OUTPUT = Path("data/temperature_check/early_learning")
CURVES, NORMS = "curves", "norms"

# Deviation: the samples, networks and ranges with which the temperature_check paper shows its theory are not at hand.
# All of them are parameters of ours. Networks learn by gradient flow, integrated numerically, so that no learning rate
# is too large for the comparison.


class FlowCell(GradientFlow):
    """What every cell is given; `start_seed` is of weights, images and probes."""

    network: Network
    root: str
    start_seed: int


class CurvesCell(FlowCell):
    """What `run_curves` is given; `times` are in units of time."""

    inverse_temperatures: list[float]
    times: list[float]
    stride: int


class NormsCell(FlowCell, Norms):
    """What `run_norms` is given."""


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
        try:
            refuse_batch_norm(check_network(params.networks[name]))
        except ValueError as error:
            where = f"temperature_check.early_learning.networks: {name}"
            raise InputError(str(error), where=where, remedy="Name one without.") from error
    return [_cell(params, section, *names) for names in courses(section)]


def _cell(params: Params, section: EarlyLearning, network: str, question: str, seed: int) -> Cell:
    shared = section.model_dump(include=set(GradientFlow.model_fields)) | {
        "network": params.networks[network],
        "root": params.data.root,
        # The same for both questions: they look at the same network and images.
        "start_seed": seed_of(params.seed, "temperature_check", "early_learning", str(seed)),
    }
    name, inputs = f"{network}/{question}/{seed}", {"images": PREPARED / section.dataset}
    if question == NORMS:
        norms = NormsCell(**shared, **section.norms.model_dump())
        return Cell(name, run_norms, norms, inputs)
    grid = section.curves
    curves = CurvesCell(**shared, inverse_temperatures=grid.inverse_temperatures, times=grid.times, stride=grid.stride)
    return Cell(name, run_curves, curves, inputs)


def run_curves(job: Job, plan: CurvesCell) -> None:
    """Learning from logits of 0, at each inverse temperature and with the kernel of the start.

    Writes `record.json`, what is predicted from the start, and `courses.json`: for each inverse temperature, and for
    the linearised dynamics (null), how the course ended, and a row for each wanted time and each event.
    """
    problem = _problem(job, plan)
    start = problem.start(1.0, 1.0)
    unit = start.scales.unit_time
    settings = Settings(unit, plan.times[-1] * unit, plan.tolerance, plan.evaluations)
    moments = [time * unit for time in plan.times]
    linearised, states = linearised_course(problem, start, settings, moments)
    found = [{"inverse_temperature": None, **linearised}]
    for done, inverse_temperature in enumerate(plan.inverse_temperatures):
        job.progress(done, len(plan.inverse_temperatures))
        own = problem.start(1.0, inverse_temperature)
        course = real_course(problem, own, settings, moments, kernel_times=moments[:: plan.stride], linearised=states)
        found.append({"inverse_temperature": inverse_temperature, **course})
    write_json(job.output / "courses.json", found)
    rate = drift_rate(start.network, problem.sketch, start.residual, unit)
    write_json(job.output / "record.json", {**_about(problem, start), "drift_rate": rate})


def run_norms(job: Job, plan: NormsCell) -> None:
    """Learning from tempered logits of each norm, by the network and with the kernel of the start.

    Writes `record.json`, as `run_curves`, and `starts.json`: for each norm the correlation that has it, what is
    predicted from there, and when the events happened, in both dynamics.

    Raises:
        InputError: the networks cannot start with one of the norms.
    """
    problem = _problem(job, plan)
    found = []
    for done, logit_norm in enumerate(plan.logit_norms):
        job.progress(done, len(plan.logit_norms))
        try:
            correlation = problem.correlation(logit_norm, plan.inverse_temperature)
        except ValueError as error:
            where = f"temperature_check.early_learning.norms, {plan.network.architecture}"
            remedy = "Lower the norms, or raise the inverse temperature."
            raise InputError(str(error), where=where, remedy=remedy) from error
        start = problem.start(correlation, plan.inverse_temperature)
        scales = start.scales
        until = plan.horizon * max(scales.unit_time, scales.logit_time)
        settings = Settings(scales.unit_time, until, plan.tolerance, plan.evaluations)
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
    about = _about(problem, problem.start(1.0, plan.inverse_temperature))
    write_json(job.output / "record.json", {**about, "inverse_temperature": plan.inverse_temperature})


def _problem(job: Job, plan: FlowCell) -> Problem:
    """Two draws of the network, and training images, balanced over classes, with mean 0 and standard deviation 1."""
    seed = plan.start_seed
    classes = open_prepared(job.inputs["images"], root=Path(plan.root)).classes
    first, second = (
        build_network(plan.network, classes=classes, seed=seed_of(seed, name)).double().eval().to(job.device)
        for name in ("trained", "frozen")
    )
    images = image_set(job.inputs["images"], "train", plan.root)
    rows = balanced_subset(images.labels.numpy(), plan.images, generator_for(seed, "early learning"))
    pixels = images.inputs[rows].double()
    inputs, labels = ((pixels - pixels.mean()) / pixels.std()).to(job.device), images.labels[rows].to(job.device)
    loss = SoftmaxCrossEntropy(labels, classes)
    return Problem(first, second, inputs, loss, plan.probes, plan.chunk, seed_of(seed, "probes"))


def _about(problem: Problem, start: Start) -> dict[str, Any]:
    """The problem as a record describes it; norms of the kernel with their standard errors."""
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
