"""Runs the callbacks in real training loops of Lightning and Hugging Face.

After each epoch, the best temperature on the held-out set must be 1.

Importing the two libraries takes seconds, and every process of pytest-xdist imports all
test modules, so the functions import the libraries themselves.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from softmax_temperature import Cooling
from softmax_temperature.cooling.callbacks import lightning_callback, trainer_callback
from softmax_temperature.scaling import fit_temperature
from tests.cooling.trainers import lightning_trainer


def drawn(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Inputs of shape (rows, 4) from two overlapping classes, and labels of shape
    (rows,).
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 2
    return torch.randn(rows, 4, generator=generator) + labels[:, None], labels


def lightning_module(trained: nn.Module) -> Any:
    """A Lightning module that trains a network."""
    from lightning.pytorch import LightningModule

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = trained

        def training_step(self, batch: Any, _: int) -> Tensor:
            assert self.network.training
            return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=2.0, momentum=0.9)

    return Module()


@pytest.mark.parametrize("mode", ["last_layer", "distributed"])
@pytest.mark.filterwarnings(
    "ignore::UserWarning:lightning",
    "ignore::FutureWarning",
    "ignore::DeprecationWarning",
)
def test_lightning_cools_after_each_epoch(mode: str, tmp_path: Path) -> None:

    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2)
    )
    cooling, (inputs, labels) = Cooling(network, mode=mode), drawn(60, 1)
    temperatures = []
    cool = cooling.cool
    cooling.cool = lambda *args, **options: temperatures.append(cool(*args, **options))  # type: ignore[method-assign]
    held_out = DataLoader(TensorDataset(inputs, labels), 25)
    callback = lightning_callback(cooling, held_out, policy="rescale")
    trainer = lightning_trainer(tmp_path, callback, epochs=3)
    trainer.fit(lightning_module(network), DataLoader(TensorDataset(*drawn(40, 0)), 20))
    assert len(temperatures) == 3
    assert temperatures[0] != 1
    with torch.no_grad():
        assert fit_temperature(
            network.eval()(inputs), labels
        ).temperature == pytest.approx(1, abs=1e-3)


class Skipped(nn.Module):
    """A network whose training step calls only a part of the network."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Linear(4, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs)
        return logits


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_training_that_does_not_call_the_cooled_network_is_warned_of_once(
    whole: bool, frozen: bool
) -> None:
    module: Any = Skipped()
    module.device = "cpu"
    cooled = module if whole else module.network
    module.train(not frozen)
    cooling, (inputs, labels) = Cooling(cooled), drawn(60, 1)
    trainer: Any = SimpleNamespace(optimizers=[])
    lightning: Any = lightning_callback(cooling, [(inputs, labels)])

    def epoch() -> None:
        for _ in range(2):
            module.network(inputs).sum().backward()
            lightning.on_train_batch_end(trainer, module, None, None, 0)
        lightning.on_train_epoch_end(trainer, module)

    if whole:
        with pytest.warns(
            UserWarning, match=r"called the Skipped .* Cooling\(module\.network\)"
        ):
            epoch()
    epoch()
    epoch()


def test_a_trainer_that_does_not_call_the_cooled_part_is_warned_of_once() -> None:
    class Named(Skipped):
        def forward(self, inputs: Tensor, labels: Tensor) -> Any:  # type: ignore[override]
            del labels
            # A direct call of `forward` skips the hook, so the hook runs only in
            # evaluation.
            skips = self.training
            logits = (self.network.forward if skips else self.network)(inputs)
            return SimpleNamespace(logits=logits)

    model = Named()
    inputs, labels = drawn(60, 1)
    batch = {"inputs": inputs, "labels": labels}
    callback: Any = trainer_callback(Cooling(model.network), [batch])

    def epoch() -> None:
        model(**batch)
        callback.on_step_end(None, None, None)
        arguments = SimpleNamespace(device="cpu")
        callback.on_epoch_end(arguments, None, None, model=model, optimizer=None)

    with pytest.warns(UserWarning, match=r"called the Linear .* loss uses, such as"):
        epoch()
    epoch()


def test_with_two_optimizers_in_lightning_the_error_names_a_policy_that_works() -> None:
    network = nn.Linear(4, 2)
    held_out = [drawn(60, 1)]
    callback = lightning_callback(Cooling(network), held_out, policy="rescale")
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for _ in range(2)]
    trainer: Any = SimpleNamespace(optimizers=optimizers)
    with pytest.raises(ValueError, match=r"got 2\. Give the callback policy 'keep'"):
        callback.on_train_epoch_end(trainer, lightning_module(network))
    kept = lightning_callback(Cooling(network), held_out)
    kept.on_train_epoch_end(trainer, lightning_module(network))


def sentences(rows: int, seed: int) -> list[dict[str, Tensor]]:
    """Sentences of two classes; on average, one word in four comes from the other
    class.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 2
    from_other_class = torch.rand(rows, 6, generator=generator) < 0.25
    word_class = labels[:, None] ^ from_other_class.long()
    words = torch.randint(4, (rows, 6), generator=generator) + 4 * word_class
    return [
        {"input_ids": word, "labels": label}
        for word, label in zip(words, labels, strict=True)
    ]


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)
def test_hugging_faces_trainer_cools_after_each_epoch_and_trains_on_cooled_logits(
    tmp_path: Path,
) -> None:
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=8,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    cooling, held_out = Cooling(model.classifier), DataLoader(sentences(64, 1), 64)  # type: ignore[arg-type]
    epochs = []

    class Watch(TrainerCallback):
        def on_epoch_end(self, *_: Any, **__: Any) -> None:
            epochs.append(cooling.temperature)

    arguments = TrainingArguments(
        str(tmp_path),
        num_train_epochs=2,
        learning_rate=0.03,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
    )
    callbacks = [trainer_callback(cooling, held_out), Watch()]
    Trainer(
        model, arguments, train_dataset=sentences(64, 0), callbacks=callbacks
    ).train()
    assert len(set(epochs)) == 2
    (batch,) = held_out
    with torch.no_grad():
        outputs = model.eval()(**batch)
    fit = fit_temperature(outputs.logits, batch["labels"])
    assert fit.temperature == pytest.approx(1, abs=1e-3)
    expected = nn.functional.cross_entropy(outputs.logits, batch["labels"])
    assert outputs.loss.item() == pytest.approx(expected.item(), rel=1e-6)
