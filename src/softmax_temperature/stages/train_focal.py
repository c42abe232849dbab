"""Stage train_focal: every loss on every task, several times (focal paper, section 5, appendices E and F)."""

from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from softmax_temperature.data.gaussian_noise import add_noise, archive_digest, read_archive
from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.splits import SplitName
from softmax_temperature.data.trees import WORD
from softmax_temperature.data.word_vectors import read_word_vectors, word_vectors_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Embeddings, Watching
from softmax_temperature.params.shared import Text
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.folders import FOCAL_TRAINING, PREPARED
from softmax_temperature.stages.training_cells import (
    LAST_LOGITS,
    TrainingCell,
    check_networks,
    save_logits,
    save_record,
    save_weights,
)
from softmax_temperature.stages.training_sets import image_set, training_sets
from softmax_temperature.training import (
    BestEpoch,
    Callback,
    Samples,
    Trainer,
    Watch,
    build_network,
    scaled_epochs,
    train,
)
from softmax_temperature.training.texts import (
    EmbeddingSteps,
    TreeSet,
    embedding_of,
    freeze_embedding,
    over_labelled_nodes,
    set_embedding,
)

PAPER = "focal"
OUTPUT = FOCAL_TRAINING
OUT_OF_DISTRIBUTION = "out_of_distribution/"
SHIFTED = "shifted/"
NOISE = "gaussian-noise"


class WordVectors(Embeddings):
    """The word vectors of a task; `sha256` is None if the file is missing: then only the cells that need it fail."""

    sha256: str | None


class FocalCell(TrainingCell):
    """What a cell is given.

    `gaussian_noise` is the standard deviation of the noise on one more set, or None for no such set; `noise_archive` is
    the digest of CIFAR-10-C, which that set is then read from, or None.
    """

    loss: str
    options: dict[str, Any]
    watching: Watching
    text: Text | None
    embeddings: WordVectors | None
    select: Literal["last", "best_validation"]
    gaussian_noise: float | None
    noise_archive: str | None


def cells(params: Params) -> list[Cell]:
    """One cell per task, arm and seed."""
    paper = params.focal
    check_networks(params, [task.network for task in paper.tasks.values()])
    return [_cell(params, *names) for names in paper.trainings()]


def _cell(params: Params, name: str, arm: str, seed: int) -> Cell:
    paper, root = params.focal, Path(params.data.root)
    task, chosen = paper.tasks[name], paper.arm_of(name, arm)
    make_objective(chosen.loss, chosen.options)  # Refuses wrong options before any training.
    source = params.datasets[task.dataset].source or task.dataset
    vectors = task.embeddings
    plan = FocalCell(
        network=params.networks[task.network],
        recipe=paper.recipe_of(name, arm),
        loss=chosen.loss,
        options=chosen.options,
        watching=paper.watching,
        root=params.data.root,
        text=task.text,
        embeddings=WordVectors(**vectors.model_dump(), sha256=word_vectors_digest(root / vectors.file))
        if vectors
        else None,
        select=task.select,
        gaussian_noise=task.gaussian_noise,
        # CIFAR-10-C is used where it is found beside the data sets; noise of our own otherwise.
        noise_archive=archive_digest(root) if task.gaussian_noise is not None and source == "cifar10" else None,
        # One for all arms: they start from the same weights and see the same batches, so that their differences are
        # paired.
        training_seed=seed_of(params.seed, "focal", task.variant_of or name, str(seed)),
    )
    inputs = {OUT_OF_DISTRIBUTION + other: PREPARED / other for other in task.out_of_distribution}
    inputs |= {SHIFTED + other: PREPARED / other for other in task.shifted}
    inputs["data"] = PREPARED / task.dataset
    return Cell(f"{name}/{arm}/{seed}", run, plan, inputs, plan.network.gpu_share)


def run(job: Job, plan: FocalCell) -> None:
    """Train one network.

    Writes `weights.safetensors`; `logits.safetensors`, of validation, test and each out-of-distribution and shifted
    set; `last-logits.safetensors`, of validation and test data after the last epoch, where the best one is selected;
    the rows of `Watch` in `history.json`, `gradient_norms.json` and `reliability.json`; and `record.json`. A training
    that diverged is a result: its record says so, its weights are the last finite ones, and there are no logits.
    """
    text = plan.text.model_dump() if plan.text else None
    sets, classes, words = training_sets(job.inputs["data"], plan.root, text)
    outliers = _outliers(job, plan, sets["test"].inputs)
    shifted = _others(job, plan, SHIFTED, sets["test"].inputs)
    model = build_network(plan.network, classes=classes, seed=plan.training_seed)
    embeddings = _start_embedding(model, words, sets["train"], plan)
    trainer = _trainer(job, plan, model, sets["train"])
    watch = _watch(plan, dict(sets) | {"train": sets["train"].sample(plan.watching.train_images)})
    callbacks: dict[str, Callback] = {"watch": watch}
    best = None
    if plan.select == "best_validation":
        best = callbacks["best"] = BestEpoch(watch)
    finite = not train(trainer, callbacks, job)
    if best and finite:
        finite = save_logits(job, trainer, sets, file=LAST_LOGITS)
        best.restore(trainer)
    finite = finite and save_logits(job, trainer, sets, outliers, shifted)

    save_weights(job, trainer.network)
    for name, rows in watch.state_dict().items():
        write_json(job.output / f"{name}.json", rows)
    about = {
        "selected_epoch": best.epoch if best else trainer.epochs_done,
        "classes": classes,
        "samples": {split: len(some) for split, some in sets.items()},
        "embeddings": embeddings,
        "noise": None if plan.gaussian_noise is None else "CIFAR-10-C" if plan.noise_archive else "generated",
    }
    save_record(job, trainer, diverged=not finite, recipe=plan.recipe, **about)


def _start_embedding(
    model: nn.Module, words: tuple[str, ...], samples: Samples, plan: FocalCell
) -> dict[str, Any] | None:
    """What the record says of the words: None for images; otherwise how many there are, and which share has vectors.

    The share is that of the vocabulary, and that of all words of the training texts, each as often as it is there.
    """
    vectors = plan.embeddings
    if not words:
        return None
    if vectors is None:
        return {"file": None, "step": None, "words": len(words), "covered": None}
    found = read_word_vectors(Path(plan.root) / vectors.file, words, width=embedding_of(model).embedding_dim)
    set_embedding(model, found.vectors)
    if not vectors.step:
        freeze_embedding(model)
    numbers = samples.inputs[..., WORD] if isinstance(samples, TreeSet) else samples.inputs
    covered = {"covered": found.share, "covered_tokens": found.share_of_tokens(numbers)}
    return {**vectors.model_dump(), "words": len(words), **covered}


def _trainer(job: Job, plan: FocalCell, model: nn.Module, samples: Samples) -> Trainer:
    """Training on the labels of the samples; of trees, on those of all nodes."""
    objective = make_objective(plan.loss, plan.options)
    if isinstance(samples, TreeSet):
        samples, objective = samples.labelled_nodes(), over_labelled_nodes(objective)
    trainer = Trainer(model, objective, samples, plan.recipe, seed=plan.training_seed, device=job.device)
    if plan.embeddings and plan.embeddings.step:
        trainer.after_batch.append(EmbeddingSteps(trainer, plan.embeddings.step))
    return trainer


def _watch(plan: FocalCell, splits: dict[SplitName, Samples]) -> Watch:
    watching, recipe = plan.watching, plan.recipe
    return Watch(
        splits,
        gradient_epochs=scaled_epochs(watching.gradient_epochs, recipe.epochs, recipe.planned_epochs),
        reliability_epochs=scaled_epochs(watching.reliability_epochs, recipe.epochs, recipe.planned_epochs),
        every=1 if plan.select == "best_validation" else watching.every,
    )


def _outliers(job: Job, plan: FocalCell, test: Tensor) -> dict[str, Tensor]:
    """The test images of the out-of-distribution sets, and the task's own with noise, as RGB of the task's size."""
    # Deviation: sets of another size are resized to that of the training images; the paper's are all of one size. All
    # are normalised as the training images, as in the released code.
    found = {name: some.inputs for name, some in _others(job, plan, OUT_OF_DISTRIBUTION, test).items()}
    if plan.noise_archive:
        prepared = open_prepared(job.inputs["data"], root=Path(plan.root))
        found[NOISE] = read_archive(Path(plan.root), prepared.index("test"), prepared.labels("test"))
    elif plan.gaussian_noise is not None:
        found[NOISE] = add_noise(test, plan.gaussian_noise, seed=seed_of(plan.training_seed, "noise"))
    return found


def _others(job: Job, plan: FocalCell, role: str, test: Tensor) -> dict[str, Samples]:
    """The test images of other data sets, as RGB of the task's size."""
    return {
        name.removeprefix(role): image_set(artifact, "test", plan.root, test.shape[-1])
        for name, artifact in job.inputs.items()
        if name.startswith(role)
    }
