"""The stage `early_learning`: gradient flow of networks, and the theory's predictions.

Source: the temperature_check paper.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

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

# Deviation: samples, networks and ranges are our parameters, because our copy lacks
# those with which the temperature_check paper illustrates its theory. Networks learn by
# gradient flow, integrated numerically, so that the comparison does not depend on a
# learning rate.


@stage
def early_learning(params: Params) -> Iterator[Cell]:
    """Yield one cell per network, question and seed.

    If a network has batch normalisation, InputError is raised.
    """
    section = params.temperature_check.early_learning
    if section is None:
        return
    for name in section.networks:
        try:
            refuse_batch_norm(check_network(params.networks[name]))
        except ValueError as error:
            where = f"temperature_check.early_learning.networks: {name}"
            remedy = "Name a network without batch normalisation."
            raise InputError(str(error), where=where, remedy=remedy) from error
    inputs = {"images": PREPARED / section.dataset}
    for name, question, seed in section.courses():
        plan = {
            "flow": part_of(section, GradientFlow),
            "network": params.networks[name],
            "question": getattr(section, question),
            # Weights, images and probes are the same for both questions.
            "start_seed": seed_of(
                params.seed, "temperature_check", "early_learning", str(seed)
            ),
        }
        run = _curves if question == CURVES else _norms
        yield Cell(
            f"{name}/{question}/{seed}",
            run,
            plan,
            inputs,
            places={"root": params.data.root},
        )


def _curves(job: Job, *, question: Curves, flow: GradientFlow, **start_of: Any) -> None:
    """Follow gradient flow from logits of 0, at each inverse temperature.

    One more trajectory follows the linearised flow, whose kernel stays the initial one.

    Writes `record.json` with facts and predictions about the start, and `courses.json`,
    a list of trajectories (see `courses.course`). Each has an `inverse_temperature`,
    which is null for the linearised flow.
    """
    problem = _problem(job, flow, **start_of)
    start = Start(problem, 1.0, 1.0)
    unit = start.scales.unit_time
    moments = [
        time * unit
        for time in courses.log_times(question.first, question.last, question.points)
    ]
    settings = Settings(unit, moments[-1], flow.tolerance, flow.evaluations)
    linearised, states = courses.course(start, settings, moments)
    rows = [{"inverse_temperature": None, **linearised}]
    for done, inverse_temperature in enumerate(question.inverse_temperatures):
        job.progress(done, len(question.inverse_temperatures))
        course, _ = courses.course(
            Start(problem, 1.0, inverse_temperature),
            settings,
            moments,
            kernel_times=moments[:: question.stride],
            linearised=states,
        )
        rows.append({"inverse_temperature": inverse_temperature, **course})
    write_json(job.output / "courses.json", rows)
    record = {**start.described(), "drift_rate": start.drift_rate()}
    write_json(job.output / "record.json", record)


def _norms(job: Job, *, question: Norms, flow: GradientFlow, **start_of: Any) -> None:
    """Follow gradient flow from tempered logits with each norm in `question`.

    Both the network and its linearisation with the initial kernel are trained. Writes
    `record.json` with facts about the problem, and `starts.json` with the predictions
    and the times of the events for each norm.
    """
    problem = _problem(job, flow, **start_of)
    rows = []
    for done, logit_norm in enumerate(question.logit_norms):
        job.progress(done, len(question.logit_norms))
        try:
            correlation = problem.correlation(logit_norm, question.inverse_temperature)
        except ValueError as error:
            where = "temperature_check.early_learning.norms"
            remedy = "Lower logit_norms, or raise the inverse temperature."
            raise InputError(str(error), where=where, remedy=remedy) from error
        start = Start(problem, correlation, question.inverse_temperature)
        scales = start.scales
        until = question.horizon * max(scales.unit_time, scales.logit_time)
        settings = Settings(scales.unit_time, until, flow.tolerance, flow.evaluations)
        loss = problem.loss
        real = courses.event_times(start.gradient_flow, loss, settings)
        linearised = courses.event_times(start.linearised_flow, loss, settings)
        rows.append(
            {
                "wanted_norm": logit_norm,
                "correlation": correlation,
                **scales._asdict(),
                "real": real,
                "linearised": linearised,
            }
        )
    write_json(job.output / "starts.json", rows)
    record = Start(problem, 1.0, question.inverse_temperature).described()
    record["inverse_temperature"] = question.inverse_temperature
    write_json(job.output / "record.json", record)


def _problem(
    job: Job, flow: GradientFlow, *, network: Network, root: str, start_seed: int
) -> Problem:
    """Make the problem to study: two draws of the network, and class-balanced images.

    The images' pixels are normalised to mean 0 and standard deviation 1.
    """
    classes = open_prepared(job.inputs["images"], root=Path(root)).classes

    def draw(name: str) -> nn.Module:
        seed = seed_of(start_seed, name)
        model = build_network(network, classes=classes, seed=seed)
        return model.double().eval().to(job.device)

    train = image_set(job.inputs["images"], "train", root).for_fitting()
    generator = generator_for(start_seed, "early learning")
    rows = balanced_subset(train.labels.numpy(), flow.images, generator)
    pixels = train.inputs[rows].double()
    inputs = (pixels - pixels.mean()) / pixels.std()
    labels = train.labels[rows].to(job.device)
    return Problem(
        draw("trained"),
        draw("frozen"),
        inputs.to(job.device),
        SoftmaxCrossEntropy(labels, classes),
        flow.probes,
        flow.chunk,
        seed_of(start_seed, "probes"),
    )
