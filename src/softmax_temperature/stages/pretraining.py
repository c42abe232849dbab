"""The stage `pretrain`: train the pipeline's own backbones."""

from collections.abc import Iterator

import torch
from safetensors.torch import save_model

from softmax_temperature.data.glyphs import draw_pretraining_glyphs
from softmax_temperature.data.seeds import drawn_from, generator_for
from softmax_temperature.data.splits import stratified_holdout
from softmax_temperature.losses.cross_entropy import CrossEntropyLoss
from softmax_temperature.networks.backbone_networks import build_classifier
from softmax_temperature.networks.preprocess import described_preprocess
from softmax_temperature.networks.registry import WEIGHTS
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.shared import Pretrain
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import stage
from softmax_temperature.training.pretraining import (
    PreprocessedImages,
    WholeNetwork,
    pretraining_recipe,
)
from softmax_temperature.training.run import TrainingRun

HELD_OUT = 0.1
"""The share of each class's images that is held out for the accuracy in the record.

Nothing is selected by this accuracy.
"""


@stage
def pretrain(params: Params) -> Iterator[Cell]:
    """Yield one cell per backbone whose weights are "pretrain".

    The widest backbone comes first, so that the longest run does not start last.
    """
    backbones = params.backbones
    for name in sorted(backbones, key=lambda name: -backbones[name].embedding):
        spec = backbones[name]
        if spec.weights == "pretrain":
            # Use the project's seed, so that all backbones see the same images.
            plan = {"spec": spec, "how": params.pretrain, "data_seed": params.seed}
            yield Cell(name, _pretrain, plan)


def _pretrain(job: Job, *, spec: Backbone, how: Pretrain, data_seed: int) -> None:
    """Train the backbone `spec` on characters that no data set `glyphs-N` contains.

    Writes the weights of the whole network, and a record of the training run.
    """
    drawn, numbers = draw_pretraining_glyphs(
        how.classes, how.images_per_class, seed=data_seed
    )
    generator = generator_for(data_seed, "pretrain")
    held_out = torch.from_numpy(stratified_holdout(numbers, HELD_OUT, generator))
    images = torch.from_numpy(drawn).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(numbers)
    with drawn_from(job.seed):
        network = build_classifier(spec, num_classes=how.classes)
    samples = PreprocessedImages(
        images[~held_out], labels[~held_out], "train", described_preprocess(spec)
    )
    objective = CrossEntropyLoss(ignore_index=None)
    training = TrainingRun(
        job,
        pretraining_recipe(how),
        job.seed,
        WholeNetwork(network),
        objective,
        samples,
    )
    training.run()
    if not training.finite:
        remedy = f"Lower it; it is {how.lr:g}."
        raise InputError("the training diverged", where="pretrain.lr", remedy=remedy)
    logits, _ = training.trainer.evaluate(images[held_out])
    right = int((logits.argmax(1) == labels[held_out]).sum())
    record = {
        "classes": how.classes,
        "images": {"train": int((~held_out).sum()), "held_out": int(held_out.sum())},
        "final_train_loss": training.trainer.loss,
        "held_out_accuracy": right / len(logits),
    }
    save_model(network.cpu(), str(job.output / WEIGHTS))
    write_json(job.output / "record.json", record)
