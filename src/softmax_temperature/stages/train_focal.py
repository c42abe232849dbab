"""Stage train_focal: every loss on every task, several times (focal paper, section 5, appendices E and F)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.folders import FOCAL_TRAINING, PREPARED
from softmax_temperature.runner.jobs import Cell, Job, seed_of
from softmax_temperature.stages.training_sets import image_set

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.params import Params
    from softmax_temperature.params.focal import Embeddings
    from softmax_temperature.training import Follower, Samples, Trainer, Watch

OUTPUT = FOCAL_TRAINING
OUT_OF_DISTRIBUTION = "out_of_distribution/"
NOISE = "gaussian-noise"


def cells(params: Params) -> list[Cell]:
    """One cell per task, arm and seed."""
    return [
        _cell(params, task, arm, seed)
        for task in params.focal.tasks
        for arm in params.focal.arms_of(task)
        for seed in range(params.focal.seeds)
    ]


def _cell(params: Params, task: str, arm: str, seed: int) -> Cell:
    from softmax_temperature.data.gaussian_noise import archive_digest  # Imports torch; --help must not.
    from softmax_temperature.losses import make_objective, objective_module
    from softmax_temperature.training import check_network

    paper = params.focal
    place, chosen = paper.tasks[task], paper.arm_of(task, arm)
    # Before any training: what is wrong with these is an error of the parameters, not of a cell.
    make_objective(chosen.loss, chosen.options)
    check_network(params.networks[place.network])
    main_task = place.variant_of or task
    source, noisy = params.datasets[place.dataset].source or place.dataset, place.gaussian_noise is not None
    parameters = {
        "network": params.networks[place.network].model_dump(),
        "recipe": paper.recipe_of(task, arm).model_dump(),
        "loss": chosen.loss,
        "options": chosen.options,
        "watching": paper.watching.model_dump(),
        "root": params.data.root,
        "text": place.text.model_dump() if place.text else None,
        "embeddings": _described(place.embeddings, params.data.root),
        "select": place.select,
        "gaussian_noise": place.gaussian_noise,
        # CIFAR-10-C stands beside the data sets, for whoever has it; noise of our own otherwise.
        "noise_archive": archive_digest(Path(params.data.root)) if noisy and source == "cifar10" else None,
        # The seed's, not the cell's: all arms start from the same weights and see the same batches, so that their
        # differences are paired.
        "training_seed": seed_of(params.seed, "focal", main_task, str(seed)),
    }
    others = {OUT_OF_DISTRIBUTION + name: PREPARED / name for name in place.out_of_distribution}
    code = (params.networks[place.network].module, objective_module(chosen.loss))
    return Cell(f"{task}/{arm}/{seed}", run, parameters, {"data": PREPARED / place.dataset, **others}, code)


def _described(embeddings: Embeddings | None, root: str) -> dict[str, Any] | None:
    """The word vectors of a task, with the digest of their file: without the file, its cells fail and others do not."""
    from softmax_temperature.data.word_vectors import word_vectors_digest

    if embeddings is None:
        return None
    return {**embeddings.model_dump(), "sha256": word_vectors_digest(Path(root) / embeddings.file)}


def run(
    job: Job,
    *,
    network: dict[str, Any],
    recipe: dict[str, Any],
    loss: str,
    options: dict[str, Any],
    watching: dict[str, Any],
    root: str,
    text: dict[str, Any] | None,
    embeddings: dict[str, Any] | None,
    select: str,
    gaussian_noise: float | None,
    noise_archive: str | None,
    training_seed: int,
) -> None:
    """Train one network.

    Writes `weights.safetensors`; `logits.safetensors`, of validation, test and each out-of-distribution set; the rows
    of `training.Watch` in `history.json`, `gradient_norms.json` and `reliability.json`; and `record.json`. A training
    that diverged is a result: its record says so, its weights are the last finite ones, and there are no logits.

    Args:
        job: resumes from its checkpoint.
        network: a `Network`, as JSON.
        recipe: a `Recipe`, as JSON.
        loss: the name of the objective.
        options: of the objective.
        watching: `train_images`, `every`, `gradient_epochs` and `reliability_epochs`, as in `params.focal.watching`.
        root: the folder of the raw data.
        text: `vocabulary`, `length` and `keep`, as in the task; images have none.
        embeddings: `file` of word vectors below `root`, its `sha256`, and `step`, as in the task; None learns them.
        select: "last" or "best_validation": the epoch whose weights and logits are written.
        gaussian_noise: the standard deviation of the noise on one more set, or None for no such set.
        noise_archive: the digest of CIFAR-10-C, which that set is then read from, or None.
        training_seed: of weights, order and augmentation.
    """
    from safetensors.torch import save_file

    from softmax_temperature.stages.training_sets import training_sets
    from softmax_temperature.training import BestEpoch, build_network, count_parameters, train

    plan = Recipe.model_validate(recipe)
    sets, classes, words = training_sets(job.inputs["data"], root, text)
    outliers = _outliers(job, sets["test"].inputs, root)
    if gaussian_noise is not None:
        noise_seed = seed_of(training_seed, "noise")
        outliers[NOISE] = _noise(job, root, gaussian_noise, archive=noise_archive is not None, seed=noise_seed)
    model = build_network(Network.model_validate(network), classes=classes, seed=training_seed)
    about = _start_embedding(model, words, embeddings, root)
    trainer = _trainer(model, sets["train"], plan, (loss, options), training_seed, job.device)
    _tune_embedding(trainer, embeddings)
    selects = select == "best_validation"
    watch = _watch(sets, watching, plan, every=1 if selects else watching["every"])
    best = BestEpoch(watch) if selects else None
    followers: dict[str, Follower] = {"watch": watch} | ({"best": best} if best else {})
    diverged = train(trainer, followers, job)
    if best and not diverged:
        best.restore(trainer)
    found = None if diverged else _logits(trainer, sets, outliers)
    if found is not None:
        save_file(found, job.output / "logits.safetensors")

    weights = {name: value.cpu().contiguous() for name, value in trainer.network.state_dict().items()}
    save_file(weights, job.output / "weights.safetensors")
    for name, rows in watch.state_dict().items():
        write_json(job.output / f"{name}.json", rows)
    record = {
        "epochs": plan.epochs,
        "planned_epochs": plan.planned_epochs,
        "epochs_done": trainer.epochs_done,
        "micro_batches": trainer.micro_batches,
        "selected_epoch": best.epoch if best else trainer.epochs_done,
        "diverged": found is None,
        "parameters": count_parameters(model),
        "classes": classes,
        "samples": {split: len(some) for split, some in sets.items()},
        "embeddings": about,
        "noise": None if gaussian_noise is None else "CIFAR-10-C" if noise_archive else "generated",
    }
    write_json(job.output / "record.json", record)


def _start_embedding(
    model: nn.Module, words: tuple[str, ...], embeddings: dict[str, Any] | None, root: str
) -> dict[str, Any] | None:
    """What the record says of the words: None for images; otherwise how many there are, and which share has vectors."""
    from softmax_temperature.data.word_vectors import read_word_vectors
    from softmax_temperature.training.embeddings import embedding_of, freeze_embedding, set_embedding

    if not words:
        return None
    if embeddings is None:
        return {"file": None, "step": None, "words": len(words), "covered": None}
    found = read_word_vectors(Path(root) / embeddings["file"], words, width=embedding_of(model).embedding_dim)
    set_embedding(model, found.vectors)
    if not embeddings["step"]:
        freeze_embedding(model)
    return {**embeddings, "words": len(words), "covered": found.share}


def _trainer(
    model: nn.Module, samples: Samples, plan: Recipe, loss: tuple[str, dict[str, Any]], seed: int, device: str
) -> Trainer:
    """Training on the labels of the samples; of trees, on those of all nodes."""
    from softmax_temperature.losses import make_objective
    from softmax_temperature.training import Trainer
    from softmax_temperature.training.trees import TreeSet, over_labelled_nodes

    objective = make_objective(*loss)
    if isinstance(samples, TreeSet):
        samples, objective = samples.labelled_nodes(), over_labelled_nodes(objective)
    return Trainer(model, objective, samples, plan, seed=seed, device=device)


def _tune_embedding(trainer: Trainer, embeddings: dict[str, Any] | None) -> None:
    from softmax_temperature.training.embeddings import EmbeddingSteps

    if embeddings and embeddings["step"]:
        trainer.after_batch.append(EmbeddingSteps(trainer, embeddings["step"]))


def _watch(sets: Mapping[SplitName, Samples], watching: dict[str, Any], plan: Recipe, *, every: int) -> Watch:
    from softmax_temperature.training import ClosePlaces, Watch, close_epochs

    gradients, reliability = (
        close_epochs(watching[name], plan.epochs, plan.planned_epochs)
        for name in ("gradient_epochs", "reliability_epochs")
    )
    sample = sets["train"].sample(watching["train_images"])
    splits = {"train": sample, "validation": sets["validation"], "test": sets["test"]}
    return Watch(splits, ClosePlaces(gradients, reliability), every=every)


def _outliers(job: Job, test: Tensor, root: str) -> dict[str, Tensor]:
    """The test images of the out-of-distribution sets, as RGB of the size of the task's."""
    # Deviation: sets of another size are resized to that of the training images; the paper's are all of one size. All
    # are normalised as the training images, as in the released code.
    return {
        name.removeprefix(OUT_OF_DISTRIBUTION): image_set(artifact, "test", root, test.shape[-1]).images
        for name, artifact in job.inputs.items()
        if name.startswith(OUT_OF_DISTRIBUTION)
    }


def _noise(job: Job, root: str, deviation: float, *, archive: bool, seed: int) -> Tensor:
    """The test images with noise, as RGB."""
    from softmax_temperature.data.gaussian_noise import add_noise, read_archive
    from softmax_temperature.data.prepared import open_prepared

    if archive:
        prepared = open_prepared(job.inputs["data"], root=Path(root))
        return read_archive(Path(root), prepared.index("test"), prepared.labels("test"))
    return add_noise(image_set(job.inputs["data"], "test", root).images, deviation, seed=seed)


def _logits(
    trainer: Trainer, sets: Mapping[SplitName, Samples], outliers: dict[str, Tensor]
) -> dict[str, Tensor] | None:
    """Final logits of what the network was not trained on, and the labels of validation and test.

    None if a logit is not finite.
    """
    from softmax_temperature.training import Diverged

    held_out: tuple[SplitName, ...] = ("validation", "test")
    inputs: dict[str, Tensor] = {split: sets[split].inputs for split in held_out} | outliers
    try:
        logits = {f"{name}.logits": trainer.evaluate(some)[0] for name, some in inputs.items()}
    except Diverged:
        return None
    return logits | {f"{split}.labels": sets[split].labels for split in held_out}
