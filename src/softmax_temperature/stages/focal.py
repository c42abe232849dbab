"""The stage `train_focal`: train a network per task, arm and seed of the focal paper.

The paper describes these experiments in section 5 and in appendices E and F.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from softmax_temperature.data.gaussian_noise import (
    add_noise,
    archive_digest,
    read_archive,
)
from softmax_temperature.data.logits import LAST_LOGITS, LOGITS
from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT, SplitName
from softmax_temperature.data.word_vectors import word_vectors_digest
from softmax_temperature.losses.registry import make_loss
from softmax_temperature.networks.registry import build_network, check_networks
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Arm, TaskTraining, Watching
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import (
    PREPARED,
    part_of,
    stage,
)
from softmax_temperature.training import BestEpoch, Samples, Watch, scaled_epochs
from softmax_temperature.training.prepared_sets import image_set, training_sets
from softmax_temperature.training.run import TrainingRun
from softmax_temperature.training.texts import OverLabelledNodes, TreeSet
from softmax_temperature.training.word_embeddings import EmbeddingSteps, start_embedding

OUT_OF_DISTRIBUTION = "out_of_distribution/"
SHIFTED = "shifted/"
NOISE = "gaussian-noise"


@stage
def train_focal(params: Params) -> Iterator[Cell]:
    """Yield one cell per task, arm and seed."""
    paper = params.focal
    root = Path(params.data.root)
    check_networks(params.networks, [task.network for task in paper.tasks.values()])
    for name, arm_name, seed in paper.trainings():
        task = paper.tasks[name]
        arm = paper.arm_of(name, arm_name)
        network = params.networks[task.network]
        # Refuse wrong options before any run starts.
        make_loss(arm.loss, arm.options)
        vectors_sha256 = None
        if task.embeddings:
            # The digest is None if the file is missing, so that only the cells that
            # need the file fail.
            vectors_sha256 = word_vectors_digest(root / task.embeddings.file)
        noise_archive = None
        source = params.datasets[task.dataset].source or task.dataset
        if task.gaussian_noise and source == "cifar10":
            # The noisy images come from CIFAR-10-C if it is present, else from our own
            # generator.
            noise_archive = archive_digest(root)
        plan = {
            "task": part_of(task, TaskTraining),
            "network": network,
            "recipe": paper.recipe_of(name, arm_name),
            "arm": arm,
            "watching": paper.watching,
            "vectors_sha256": vectors_sha256,
            "noise_archive": noise_archive,
            "training_seed": seed_of(
                params.seed, "focal", task.variant_of or name, str(seed)
            ),
        }
        inputs = {"data": PREPARED / task.dataset}
        for dataset in task.out_of_distribution:
            inputs[OUT_OF_DISTRIBUTION + dataset] = PREPARED / dataset
        for dataset in task.shifted:
            inputs[SHIFTED + dataset] = PREPARED / dataset
        yield Cell(
            f"{name}/{arm_name}/{seed}",
            _train,
            plan,
            inputs,
            network.gpu_share,
            places={"root": params.data.root},
        )


def _train(
    job: Job,
    *,
    task: TaskTraining,
    network: Network,
    recipe: Recipe,
    arm: Arm,
    watching: Watching,
    vectors_sha256: str | None,
    noise_archive: str | None,
    root: str,
    training_seed: int,
) -> None:
    """Train one network.

    Writes the weights, the record, the rows of `Watch` and, unless training diverged,
    the logits of held-out data and of other data sets. If the best epoch is selected,
    `last-logits.safetensors` has the logits of held-out data after the last epoch.
    """
    data = training_sets(job.inputs["data"], root, task.text)
    sets = data.sets
    test = sets["test"].inputs
    outliers = _outliers(job, task, test, noise_archive, root, training_seed)
    noise = None
    if NOISE in outliers:
        noise = "CIFAR-10-C" if noise_archive else "generated"
    shifted = _others(job, SHIFTED, test, root)
    model = build_network(network, classes=data.classes, seed=training_seed)
    embeddings = start_embedding(
        model,
        data.words,
        sets["train"],
        task.embeddings,
        root=root,
        sha256=vectors_sha256,
    )
    loss = make_loss(arm.loss, arm.options)
    trained = sets["train"]
    if isinstance(trained, TreeSet):
        trained = trained.labelled_nodes()
        loss = OverLabelledNodes(loss)
    training = TrainingRun(job, recipe, training_seed, model, loss, trained)
    if task.embeddings and task.embeddings.step:
        steps = EmbeddingSteps(training.trainer, task.embeddings.step)
        training.trainer.after_batch.append(steps)
    watch = _watch(task, recipe, watching, sets)
    best = BestEpoch(watch) if task.select == "best_validation" else None
    training.run(watch=watch, best=best)
    held_out: dict[str, Samples] = {split: sets[split] for split in HELD_OUT}
    if best and training.finite:
        training.save_logits(LAST_LOGITS, held_out)
        best.restore(training.trainer)
    training.save_logits(LOGITS, {**held_out, **shifted}, outliers)
    record = {
        "selected_epoch": best.epoch if best else training.trainer.epochs_done,
        "classes": data.classes,
        "samples": data.sizes,
        "embeddings": embeddings,
        "noise": noise,
    }
    _save(training, watch, record)


# Deviation: metrics of training images use a sample, unless a profile asks for all of
# them (`train_images: null`), as profile `paper` does; the paper's figures use all
# 45,000.


def _watch(
    task: TaskTraining,
    recipe: Recipe,
    watching: Watching,
    sets: Mapping[SplitName, Samples],
) -> Watch:
    """Make the callback that evaluates all splits during training."""
    train = sets["train"].sample(watching.train_images)
    lengths = (recipe.epochs, recipe.planned_epochs)
    return Watch(
        {**sets, "train": train},
        gradient_epochs=scaled_epochs(watching.gradient_epochs, *lengths),
        reliability_epochs=scaled_epochs(watching.reliability_epochs, *lengths),
        every=1 if task.select == "best_validation" else watching.every,
    )


def _save(training: TrainingRun, watch: Watch, record: dict[str, Any]) -> None:
    training.save_json("history.json", watch.history)
    training.save_json("gradient_norms.json", watch.gradient_norms)
    training.save_json("reliability.json", watch.reliability)
    training.save_record(record)
    training.save_weights()


# Deviation: images of another size are resized to the training images' size; the
# paper's images all have the same size. All images are normalised like the training
# images, as in the released code.


def _others(job: Job, role: str, test: Tensor, root: str) -> dict[str, Samples]:
    """Read the test images of the inputs whose names start with `role`.

    The images are resized to the size of `test`.
    """
    others: dict[str, Samples] = {}
    for name, prepared in job.inputs.items():
        if name.startswith(role):
            images = image_set(prepared, "test", root, test.shape[-1])
            others[name.removeprefix(role)] = images
    return others


def _outliers(
    job: Job,
    task: TaskTraining,
    test: Tensor,
    noise_archive: str | None,
    root: str,
    training_seed: int,
) -> dict[str, Tensor]:
    """Collect images of other data sets, and noisy test images if the task has them."""
    others = _others(job, OUT_OF_DISTRIBUTION, test, root)
    outliers = {name: samples.inputs for name, samples in others.items()}
    if task.gaussian_noise is not None:
        noise_seed = seed_of(training_seed, "noise")
        outliers[NOISE] = _noisy(
            job, test, task.gaussian_noise, noise_archive, root, noise_seed
        )
    return outliers


def _noisy(
    job: Job, test: Tensor, deviation: float, archive: str | None, root: str, seed: int
) -> Tensor:
    """Add noise to `test`, or read noisy images from CIFAR-10-C.

    The images are read if `archive`, the digest of CIFAR-10-C's files, is given.
    """
    if archive is None:
        return add_noise(test, deviation, seed=seed)
    prepared = open_prepared(job.inputs["data"], root=Path(root))
    return read_archive(Path(root), prepared.index("test"), prepared.labels("test"))
