"""Stage early_learning: gradient flow of networks against what its theory predicts
(temperature_check paper).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import generator_for, seed_of
from softmax_temperature.data.splits import balanced_subset
from softmax_temperature.early_learning import courses
from softmax_temperature.early_learning.courses import Problem, Start
from softmax_temperature.early_learning.flows import Settings, SoftmaxCrossEntropy
from softmax_temperature.early_learning.tangent_kernel import refuse_batch_norm
from softmax_temperature.networks.registry import build_network, check_network
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.temperature_check import (
    CURVES,
    Curves,
    GradientFlow,
    Norms,
)
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import PREPARED, part_of, stage
from softmax_temperature.training.prepared_sets import image_set

# Deviation: the samples, networks and ranges with which the temperature_check paper
# shows its theory are not at hand. All of them are parameters of ours. Networks learn
# by gradient flow, integrated numerically, so that no learning rate is too large for
# the comparison.


@stage
def early_learning(params: Params) -> Iterator[Cell]:
    """One cell per network, question and seed; a network with batch normalisation
    raises InputError.
    """
    section = params.temperature_check.early_learning
    if section is None:
        return
    for name in section.networks:
        try:
            refuse_batch_norm(check_network(params.networks[name]))
        except ValueError as error:
            where = f"temperature_check.early_learning.networks: {name}"
            raise InputError(
                str(error), where=where, remedy="Name one without."
            ) from error
    shared = {"flow": part_of(section, GradientFlow), "root": params.data.root}
    for name, question, seed in section.courses():
        # One for both questions: of weights, images and probes.
        start_seed = seed_of(
            params.seed, "temperature_check", "early_learning", str(seed)
        )
        own = {
            "network": params.networks[name],
            "question": getattr(section, question),
            "start_seed": start_seed,
        }
        plan, inputs = shared | own, {"images": PREPARED / section.dataset}
        yield Cell(
            f"{name}/{question}/{seed}",
            _curves if question == CURVES else _norms,
            plan,
            inputs,
        )


def _curves(job: Job, *, question: Curves, flow: GradientFlow, **given: Any) -> None:
    """Learning from logits of 0, at each inverse temperature and, as inverse
    temperature null, with the first kernel.

    Writes `record.json`, what is predicted from the start, and `courses.json`, a
    `courses.course` for each.
    """
    problem = _problem(job, flow, **given)
    start = Start(problem, 1.0, 1.0)
    unit = start.scales.unit_time
    moments = [
        time * unit
        for time in courses.log_times(question.first, question.last, question.points)
    ]
    settings = Settings(unit, moments[-1], flow.tolerance, flow.evaluations)
    linearised, states = courses.course(start, settings, moments)
    found = [{"inverse_temperature": None, **linearised}]
    for done, inverse_temperature in enumerate(question.inverse_temperatures):
        job.progress(done, len(question.inverse_temperatures))
        how: dict[str, Any] = {
            "kernel_times": moments[:: question.stride],
            "linearised": states,
        }
        course, _ = courses.course(
            Start(problem, 1.0, inverse_temperature), settings, moments, **how
        )
        found.append({"inverse_temperature": inverse_temperature, **course})
    write_json(job.output / "courses.json", found)
    write_json(
        job.output / "record.json",
        {**start.described(), "drift_rate": start.drift_rate()},
    )


def _norms(job: Job, *, question: Norms, flow: GradientFlow, **given: Any) -> None:
    """Learning from tempered logits of each norm, by the network ("real") and with the
    first kernel.

    Writes `record.json`, and `starts.json`: for each norm what is predicted, and when
        the events happened.
    """
    problem, found = _problem(job, flow, **given), []
    for done, logit_norm in enumerate(question.logit_norms):
        job.progress(done, len(question.logit_norms))
        try:
            correlation = problem.correlation(logit_norm, question.inverse_temperature)
        except ValueError as error:
            where = "temperature_check.early_learning.norms"
            remedy = "Lower the norms, or raise the inverse temperature."
            raise InputError(str(error), where=where, remedy=remedy) from error
        start = Start(problem, correlation, question.inverse_temperature)
        scales = start.scales
        until = question.horizon * max(scales.unit_time, scales.logit_time)
        settings = Settings(scales.unit_time, until, flow.tolerance, flow.evaluations)
        flows = {"real": start.gradient_flow, "linearised": start.linearised_flow}
        happened = {
            name: courses.event_times(each, problem.loss, settings)
            for name, each in flows.items()
        }
        found.append(
            {
                "wanted_norm": logit_norm,
                "correlation": correlation,
                **scales._asdict(),
                **happened,
            }
        )
    write_json(job.output / "starts.json", found)
    about = Start(problem, 1.0, question.inverse_temperature).described()
    write_json(
        job.output / "record.json",
        {**about, "inverse_temperature": question.inverse_temperature},
    )


def _problem(
    job: Job, flow: GradientFlow, *, network: Network, root: str, start_seed: int
) -> Problem:
    """Two draws of the network, and training images, balanced over classes, with mean 0
    and standard deviation 1.
    """
    classes = open_prepared(job.inputs["images"], root=Path(root)).classes
    first, second = (
        build_network(network, classes=classes, seed=seed_of(start_seed, name))
        .double()
        .eval()
        .to(job.device)
        for name in ("trained", "frozen")
    )
    train = image_set(job.inputs["images"], "train", root).for_fitting()
    rows = balanced_subset(
        train.labels.numpy(), flow.images, generator_for(start_seed, "early learning")
    )
    pixels = train.inputs[rows].double()
    inputs, labels = (
        ((pixels - pixels.mean()) / pixels.std()).to(job.device),
        train.labels[rows].to(job.device),
    )
    loss = SoftmaxCrossEntropy(labels, classes)
    return Problem(
        first,
        second,
        inputs,
        loss,
        flow.probes,
        flow.chunk,
        seed_of(start_seed, "probes"),
    )
