"""Stage focal-linear: the focal paper's linear model, trained with cross-entropy and focal loss (appendix C)."""

from pathlib import Path

from safetensors.torch import save_file

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.params import Params
from softmax_temperature.params.focal import LinearTraining
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.training import linear_model

PAPER = "focal"
OUTPUT = Path("data/focal/linear")
TENSORS = "linear.safetensors"


class LinearCell(LinearTraining):
    """What a cell is given."""

    gamma: float
    data_seed: int


def cells(params: Params) -> list[Cell]:
    """One cell per loss and seed; the losses of one seed see the same data, so differences are paired."""
    linear, found = params.focal.linear, []
    shared = linear.model_dump(include=set(LinearTraining.model_fields))
    for name, gamma in linear.gammas.items():
        for seed in range(linear.seeds):
            data_seed = seed_of(params.seed, "focal", "linear", str(seed))
            found.append(Cell(f"{name}/{seed}", run, LinearCell(gamma=gamma, data_seed=data_seed, **shared)))
    return found


def run(job: Job, plan: LinearCell) -> None:
    """Train one loss on one draw of the data.

    Writes `linear.safetensors`: weight_norm and logit_norm (epochs,), the latter a mean over the test points; weights
    (2,) and misclassified_confidence (m,) at the end; test_points (test, 2) and test_labels (test,). Beside it
    `record.json`, the gamma and the accuracies at the end.
    """
    fitted, held_out = linear_model.make_data(plan.train, plan.test, seed=plan.data_seed)
    # On the CPU even where there is a GPU: a step is four thousand products of pairs.
    path = linear_model.train_logistic(*fitted.for_fitting(), plan.gamma, epochs=plan.epochs, lr=plan.lr)
    points, labels = held_out.for_evaluation()
    weights = path[-1].clone()
    mistakes = linear_model.misclassified_confidences(points, labels, weights)
    tensors = {
        "weight_norm": path.norm(dim=1),
        "logit_norm": linear_model.mean_logit_norms(points, path),
        "weights": weights,
        "misclassified_confidence": mistakes,
        "test_points": points.contiguous(),
        "test_labels": labels.contiguous(),
    }
    save_file(tensors, job.output / TENSORS)
    missed = len(linear_model.misclassified_confidences(*fitted.for_evaluation(), weights))
    accuracy = {"train": 1 - missed / plan.train, "test": 1 - len(mistakes) / plan.test}
    write_json(job.output / "record.json", {"gamma": plan.gamma, "accuracy": accuracy})
