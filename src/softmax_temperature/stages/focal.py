"""Stage train_focal: every loss on every task, several times (focal paper, section 5,
appendices E and F).
"""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from softmax_temperature.data.gaussian_noise import (
    add_noise,
    archive_digest,
    read_archive,
)
from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.data.word_vectors import word_vectors_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.networks.registry import build_network, check_networks
from softmax_temperature.params import Params
from softmax_temperature.params.focal import Arm, TaskTraining, Watching
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import (
    LAST_LOGITS,
    LOGITS,
    PREPARED,
    part_of,
    stage,
)
from softmax_temperature.training import BestEpoch, Samples, Watch, scaled_epochs
from softmax_temperature.training.prepared_sets import image_set, training_sets
from softmax_temperature.training.run import TrainingRun
from softmax_temperature.training.texts import TreeSet, over_labelled_nodes
from softmax_temperature.training.word_embeddings import EmbeddingSteps, start_embedding

OUT_OF_DISTRIBUTION, SHIFTED = "out_of_distribution/", "shifted/"
NOISE = "gaussian-noise"


@stage
def train_focal(params: Params) -> Iterator[Cell]:
    """One cell per task, arm and seed."""
    paper, root = params.focal, Path(params.data.root)
    check_networks(params.networks, (task.network for task in paper.tasks.values()))
    for name, arm, seed in paper.trainings():
        task, chosen = paper.tasks[name], paper.arm_of(name, arm)
        make_objective(
            chosen.loss, chosen.options
        )  # Refuses wrong options before any training.
        # CIFAR-10-C is used where it is found beside the data sets; noise of our own
        # otherwise.
        is_noisy_cifar = (
            task.gaussian_noise
            and (params.datasets[task.dataset].source or task.dataset) == "cifar10"
        )
        network = params.networks[task.network]
        plan = {
            "task": part_of(task, TaskTraining),
            "network": network,
            "recipe": paper.recipe_of(name, arm),
            "arm": chosen,
            "watching": paper.watching,
            # None if the file is missing: only the cells that need it fail.
            "vectors_sha256": word_vectors_digest(root / task.embeddings.file)
            if task.embeddings
            else None,
            "noise_archive": archive_digest(root) if is_noisy_cifar else None,
            "root": params.data.root,
            "training_seed": seed_of(
                params.seed, "focal", task.variant_of or name, str(seed)
            ),
        }
        inputs = {
            OUT_OF_DISTRIBUTION + other: PREPARED / other
            for other in task.out_of_distribution
        }
        inputs |= {SHIFTED + other: PREPARED / other for other in task.shifted}
        inputs["data"] = PREPARED / task.dataset
        yield Cell(f"{name}/{arm}/{seed}", _train, plan, inputs, network.gpu_share)


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
    """Train one network; writes weights, record, the rows of `Watch`, and the logits of
    all held-out and other sets.

    Where the best epoch is selected, `last-logits.safetensors` has those of held-out
    data after the last one.
    """
    data = training_sets(job.inputs["data"], root, task.text)
    sets, lengths, selects = (
        data.sets,
        (recipe.epochs, recipe.planned_epochs),
        task.select == "best_validation",
    )
    test = sets["test"].inputs
    outliers = {
        name: some.inputs
        for name, some in _others(job, OUT_OF_DISTRIBUTION, test, root).items()
    }
    if task.gaussian_noise is not None:
        outliers[NOISE] = _noisy(
            job,
            test,
            task.gaussian_noise,
            noise_archive,
            root,
            seed_of(training_seed, "noise"),
        )
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
    objective, trained = make_objective(arm.loss, arm.options), sets["train"]
    if isinstance(trained, TreeSet):
        trained, objective = trained.labelled_nodes(), over_labelled_nodes(objective)
    training = TrainingRun(job, recipe, training_seed, model, objective, trained)
    if task.embeddings and task.embeddings.step:
        training.trainer.after_batch.append(
            EmbeddingSteps(training.trainer, task.embeddings.step)
        )
    watch = Watch(
        {**sets, "train": sets["train"].sample(watching.train_images)},
        gradient_epochs=scaled_epochs(watching.gradient_epochs, *lengths),
        reliability_epochs=scaled_epochs(watching.reliability_epochs, *lengths),
        every=1 if selects else watching.every,
    )
    best = BestEpoch(watch) if selects else None
    training.run(watch=watch, best=best)
    held_out: dict[str, Samples] = {split: sets[split] for split in HELD_OUT}
    if best and training.finite:
        training.save_logits(LAST_LOGITS, held_out)
        best.restore(training.trainer)
    training.save_logits(LOGITS, {**held_out, **shifted}, outliers)
    about = {
        "selected_epoch": best.epoch if best else training.trainer.epochs_done,
        "classes": data.classes,
        "samples": data.sizes,
        "embeddings": embeddings,
        "noise": None
        if task.gaussian_noise is None
        else "CIFAR-10-C"
        if noise_archive
        else "generated",
    }
    training.save(about, **watch.state_dict())


# Deviation: sets of another size are resized to that of the training images; the
# paper's are all of one size. All are normalised as the training images, as in the
# released code.


def _others(job: Job, role: str, test: Tensor, root: str) -> dict[str, Samples]:
    """The test images of other data sets, as RGB of the task's size."""
    others = {
        name.removeprefix(role): one
        for name, one in job.inputs.items()
        if name.startswith(role)
    }
    return {
        name: image_set(one, "test", root, test.shape[-1])
        for name, one in others.items()
    }


def _noisy(
    job: Job, test: Tensor, deviation: float, archive: str | None, root: str, seed: int
) -> Tensor:
    """The task's test images with noise: those of CIFAR-10-C where it is at hand."""
    if archive is None:
        return add_noise(test, deviation, seed=seed)
    prepared = open_prepared(job.inputs["data"], root=Path(root))
    return read_archive(Path(root), prepared.index("test"), prepared.labels("test"))
