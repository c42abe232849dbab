"""Stage train_focal: every loss on every task, several times (focal paper, section 5, appendices E and F)."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from softmax_temperature.data.gaussian_noise import add_noise, archive_digest, read_archive
from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.tokens import WORD
from softmax_temperature.data.word_vectors import read_word_vectors, word_vectors_digest
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import FOCAL_TRAINING, PREPARED, stage, trainings
from softmax_temperature.stages.trainings import HELD_OUT, LAST_LOGITS, TrainingRun
from softmax_temperature.training import BestEpoch, Samples, Watch, build_network, scaled_epochs, texts

OUT_OF_DISTRIBUTION, SHIFTED = "out_of_distribution/", "shifted/"
NOISE = "gaussian-noise"


@stage("focal", FOCAL_TRAINING)
def train_focal(params: Params) -> Iterator[Cell]:
    """One cell per task, arm and seed."""
    paper, root = params.focal, Path(params.data.root)
    trainings.check_networks(params, paper.tasks)
    for name, arm, seed in paper.trainings():
        task, chosen = paper.tasks[name], paper.arm_of(name, arm)
        make_objective(chosen.loss, chosen.options)  # Refuses wrong options before any training.
        # CIFAR-10-C is used where it is found beside the data sets; noise of our own otherwise.
        is_noisy_cifar = task.gaussian_noise and (params.datasets[task.dataset].source or task.dataset) == "cifar10"
        network = params.networks[task.network]
        plan = {part: getattr(task, part) for part in ("text", "embeddings", "select", "gaussian_noise")}
        plan |= {"network": network, "recipe": paper.recipe_of(name, arm), "arm": chosen, "watching": paper.watching}
        # None if the file is missing: only the cells that need it fail.
        plan["vectors_sha256"] = word_vectors_digest(root / task.embeddings.file) if task.embeddings else None
        plan |= {"noise_archive": archive_digest(root) if is_noisy_cifar else None, "root": params.data.root}
        plan["training_seed"] = seed_of(params.seed, "focal", task.variant_of or name, str(seed))
        inputs = {OUT_OF_DISTRIBUTION + other: PREPARED / other for other in task.out_of_distribution}
        inputs |= {SHIFTED + other: PREPARED / other for other in task.shifted}
        inputs["data"] = PREPARED / task.dataset
        yield Cell(f"{name}/{arm}/{seed}", _train, plan, inputs, network.gpu_share)


def _train(job: Job, **settings: Any) -> None:
    """Train one network; writes weights, record, the rows of `Watch`, and the logits of all held-out and other sets.

    Where the best epoch is selected, `last-logits.safetensors` has those of held-out data after the last one.
    """
    plan = SimpleNamespace(**settings)
    data = trainings.training_sets(job.inputs["data"], plan.root, plan.text)
    sets, watching, lengths = data.sets, plan.watching, (plan.recipe.epochs, plan.recipe.planned_epochs)
    outliers, shifted = _outliers(job, plan, sets["test"].inputs), _others(job, plan, SHIFTED, sets["test"].inputs)
    model = build_network(plan.network, classes=data.classes, seed=plan.training_seed)
    embeddings = _start_embedding(model, data.words, sets["train"], plan)
    objective, trained = make_objective(plan.arm.loss, plan.arm.options), sets["train"]
    if isinstance(trained, texts.TreeSet):
        trained, objective = trained.labelled_nodes(), texts.over_labelled_nodes(objective)
    training = TrainingRun(job, plan.recipe, plan.training_seed, model, objective, trained)
    if plan.embeddings and plan.embeddings.step:
        training.trainer.after_batch.append(texts.EmbeddingSteps(training.trainer, plan.embeddings.step))
    watch = Watch(
        {**sets, "train": sets["train"].sample(watching.train_images)},
        gradient_epochs=scaled_epochs(watching.gradient_epochs, *lengths),
        reliability_epochs=scaled_epochs(watching.reliability_epochs, *lengths),
        every=1 if plan.select == "best_validation" else watching.every,
    )
    best = BestEpoch(watch) if plan.select == "best_validation" else None
    training.run(watch=watch, best=best)
    held_out: dict[str, Samples] = {split: sets[split] for split in HELD_OUT}
    if best and training.finite:
        training.save_logits(held_out, file=LAST_LOGITS)
        best.restore(training.trainer)
    training.save_logits({**held_out, **shifted}, outliers)
    about = {
        "selected_epoch": best.epoch if best else training.trainer.epochs_done,
        "classes": data.classes,
        "samples": data.sizes,
        "embeddings": embeddings,
        "noise": None if plan.gaussian_noise is None else "CIFAR-10-C" if plan.noise_archive else "generated",
    }
    training.save(about, **watch.state_dict())


def _start_embedding(model: nn.Module, words: tuple[str, ...], samples: Samples, plan: Any) -> dict[str, Any] | None:
    """Give the network its word vectors; returns what the record says of the words, None for images."""
    vectors = plan.embeddings
    if not words:
        return None
    if vectors is None:
        return {"file": None, "step": None, "words": len(words), "covered": None}
    width = texts.embedding_of(model).embedding_dim
    found = read_word_vectors(Path(plan.root) / vectors.file, words, width=width)
    texts.set_embedding(model, found.vectors)
    if not vectors.step:
        texts.freeze_embedding(model)
    numbers = samples.inputs[..., WORD] if isinstance(samples, texts.TreeSet) else samples.inputs
    covered = {"covered": found.share, "covered_tokens": found.share_of_tokens(numbers)}
    return {**vectors.model_dump(), "sha256": plan.vectors_sha256, "words": len(words), **covered}


def _outliers(job: Job, plan: Any, test: Tensor) -> dict[str, Tensor]:
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


def _others(job: Job, plan: Any, role: str, test: Tensor) -> dict[str, Samples]:
    """The test images of other data sets, as RGB of the task's size."""
    others = {name.removeprefix(role): one for name, one in job.inputs.items() if name.startswith(role)}
    return {name: trainings.image_set(one, "test", plan.root, test.shape[-1]) for name, one in others.items()}
