"""The callbacks refuse held-out rows that the network is trained on, and no others."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from softmax_temperature import Cooling
from softmax_temperature.cooling.callbacks import lightning_callback, trainer_callback
from softmax_temperature.cooling.trained_rows import check_untrained
from tests.cooling.trainers import lightning_trainer

INPUTS = torch.randn(80, 4, generator=torch.manual_seed(0))
LABELS = torch.arange(80) % 2
DATA = TensorDataset(INPUTS, LABELS)
TRAIN = TensorDataset(INPUTS[:40], LABELS[:40])
HALVES: Any = (range(40), range(40, 80))
REFUSED = "that the network is trained on"


def sampled(rows: Any, data: Any = DATA) -> DataLoader[Any]:
    return DataLoader(data, 10, sampler=SubsetRandomSampler(list(rows)))


def in_batches(rows: Any) -> BatchSampler:
    return BatchSampler(SubsetRandomSampler(rows), 9, drop_last=False)


def weighted() -> DataLoader[Any]:
    weights = [1.0] * 40 + [0.0] * 40
    return DataLoader(DATA, 10, sampler=WeightedRandomSampler(weights, 40))


def split(seed: int) -> Any:
    return random_split(DATA, [40, 40], generator=torch.Generator().manual_seed(seed))


class Stream(IterableDataset[Any]):
    """A finite stream that yields other rows each time."""

    def __iter__(self) -> Iterator[Any]:
        yield from zip(torch.randn(20, 4), LABELS[:20], strict=True)


class Table(Dataset[Any]):
    """A table with the fingerprint of Hugging Face's datasets."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    def __len__(self) -> int:
        return 20

    def __getitem__(self, row: int) -> Any:
        return INPUTS[row], LABELS[row]


STREAM = Stream()
STREAMED = DataLoader(STREAM)
JOINED: Any = ConcatDataset([TRAIN, Table("a")])
BATCHES = [(INPUTS[:20], LABELS[:20]), (INPUTS[20:40], LABELS[20:40])]
SAMPLES: Any = [{"inputs": row} for row in INPUTS[:40]]
LOADER = DataLoader(TRAIN, 10, shuffle=True)

# Held-out batches, training batches, and what the error must say.
TRAINED: dict[str, tuple[Any, Any, str]] = {
    "same loader": (LOADER, LOADER, "held_out is the DataLoader"),
    "same loader of a stream": (STREAMED, STREAMED, "is the DataLoader"),
    "same list of batches": (BATCHES, BATCHES, "held_out is the list"),
    "same batches": ([BATCHES[1]], BATCHES, "1 of the 1 items that it reads from a li"),
    "same tensors": ([(*BATCHES[1],)], [[*BATCHES[1]]], "1 of the 1 items"),
    "other loader of a data set": (DataLoader(TRAIN, 40), LOADER, "40 of the 40 rows"),
    "without batches": (DataLoader(TRAIN, batch_size=None), LOADER, "40 of the 40"),
    "samples of one list": (
        DataLoader(SAMPLES[30:], 5),
        DataLoader(SAMPLES, 5, shuffle=True),
        "10 of the 10 items",
    ),
    "part of the training data": (
        DataLoader(Subset(TRAIN, range(7))),
        LOADER,
        "7 of the 7 rows that it reads from a TensorDataset",
    ),
    "negative index": (
        DataLoader(Subset(DATA, [-1, 3])),
        DataLoader(Subset(DATA, torch.tensor([79]))),  # type: ignore[arg-type]
        "1 of the 2 rows",
    ),
    "parts of parts": (
        DataLoader(Subset(Subset(DATA, range(30, 50)), range(15))),
        DataLoader(Subset(DATA, HALVES[0])),
        "10 of the 15 rows",
    ),
    "different splits": (DataLoader(split(1)[1]), DataLoader(split(0)[0]), "of the 40"),
    "concatenation": (
        DataLoader(TRAIN),
        DataLoader(
            ConcatDataset([TensorDataset(torch.zeros(5, 4), LABELS[:5]), TRAIN])
        ),
        "40 of the 40 rows",
    ),
    "part of a concatenation": (
        DataLoader(Subset(ConcatDataset([Table("a"), TRAIN]), range(10, 30))),
        LOADER,
        "10 of the 10 rows",
    ),
    "views of the same tensors": (
        DataLoader(TensorDataset(INPUTS[30:60], LABELS[30:60])),
        LOADER,
        "10 of the 30 rows",
    ),
    "samplers that overlap": (
        sampled(range(39, 50)),
        sampled(HALVES[0]),
        "1 of the 11",
    ),
    "distributed": (
        DataLoader(TRAIN),
        DataLoader(TRAIN, sampler=DistributedSampler(TRAIN, 2, 0)),
        "40 of the 40 rows",
    ),
    "same fingerprint": (
        DataLoader(Table("a")),
        DataLoader(Table("a")),
        "20 of the 20 rows that it reads from a Table",
    ),
    "one of several loaders": (
        LOADER,
        [weighted(), {"a": LOADER}],
        "is the DataLoader",
    ),
    "data of one of several": (DataLoader(TRAIN), {"a": [LOADER]}, "40 of the 40"),
    "combined": (
        DataLoader(TRAIN),
        SimpleNamespace(iterables=[LOADER]),
        "40 of the 40",
    ),
}

HELD_OUT: dict[str, tuple[Any, Any]] = {
    "unknown": (LOADER, None),
    "other tensors": (DataLoader(TensorDataset(INPUTS[40:], LABELS[40:])), LOADER),
    "copies": (DataLoader(TensorDataset(INPUTS[:40].clone(), LABELS[:40])), LOADER),
    "other inputs, same labels": (
        DataLoader(TensorDataset(torch.zeros(40, 4), LABELS[:40])),
        LOADER,
    ),
    "other columns": (
        DataLoader(TensorDataset(INPUTS[:, :2], LABELS)),
        DataLoader(TensorDataset(INPUTS[:, 2:], LABELS)),
    ),
    "even and odd rows": (
        DataLoader(TensorDataset(INPUTS[::2], LABELS[::2])),
        DataLoader(TensorDataset(INPUTS[1::2], LABELS[1::2])),
    ),
    "expanded": (
        DataLoader(TensorDataset(torch.zeros(1, 4).expand(9, 4))),
        DataLoader(TensorDataset(torch.zeros(1, 4).expand(9, 4))),
    ),
    "inputs without memory": (
        DataLoader(TensorDataset(torch.zeros(9, 4, device="meta"))),
        DataLoader(TensorDataset(torch.zeros(9, 4, device="meta"))),
    ),
    "one split": (DataLoader(split(0)[1]), DataLoader(split(0)[0], shuffle=True)),
    "two subsets": (
        DataLoader(Subset(DATA, HALVES[1])),
        DataLoader(Subset(DATA, HALVES[0])),
    ),
    "two samplers": (sampled(HALVES[1]), sampled(HALVES[0])),
    "weights of 0": (sampled(HALVES[1]), weighted()),
    "batch samplers": (
        DataLoader(
            DATA, batch_sampler=BatchSampler(SubsetRandomSampler(HALVES[1]), 9, False)
        ),
        DataLoader(
            DATA, batch_sampler=BatchSampler(SubsetRandomSampler(HALVES[0]), 9, False)
        ),
    ),
    "own batch samplers": (
        DataLoader(DATA, batch_sampler=[[1, 2], [3, 4]]),
        DataLoader(DATA, batch_sampler=[[5, 6]]),
    ),
    "sampler of a part": (
        DataLoader(DATA, sampler=SequentialSampler(range(40))),
        sampled(HALVES[1]),
    ),
    "own sampler": (DataLoader(DATA, sampler=[70, 71]), sampled(HALVES[0])),
    "halves of a concatenation": (
        DataLoader(Subset(JOINED, range(40, 60))),
        DataLoader(Subset(JOINED, range(40))),
    ),
    "named rows": (DataLoader(Subset(DATA, "ab")), DataLoader(DATA)),  # type: ignore[arg-type]
    "two loaders of a stream": (DataLoader(STREAM), DataLoader(STREAM)),
    "other fingerprint": (DataLoader(Table("a")), DataLoader(Table("b"))),
    "other batches": ([BATCHES[0]], [BATCHES[1]]),
    "equal constants": (DataLoader([(1, 2), (3, 4)]), DataLoader([(1, 2)])),  # type: ignore[arg-type]
    "no data set": (SimpleNamespace(dataset=None), SimpleNamespace(dataset="ab")),
    "several loaders": (sampled(HALVES[1]), {"a": [sampled(HALVES[0])], "b": None}),
    "own loader": (STREAM, LOADER),
}


@pytest.mark.parametrize("case", TRAINED)
def test_rows_that_the_network_is_trained_on_are_refused(case: str) -> None:
    held_out, training, message = TRAINED[case]
    with pytest.raises(ValueError, match=message) as error:
        check_untrained(held_out, training)
    assert REFUSED in str(error.value)
    assert "random_split" in str(error.value)


@pytest.mark.parametrize("case", HELD_OUT)
def test_rows_that_may_be_held_out_are_accepted(case: str) -> None:
    for held_out, training in (HELD_OUT[case], HELD_OUT[case][::-1]):
        check_untrained(held_out, training)


def cooled_in_lightning(held_out: Any, training: Any, folder: Path) -> bool:
    """Whether an epoch in Lightning has cooled the network."""
    from lightning.pytorch import LightningModule

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = nn.Linear(4, 2)

        def training_step(self, batch: Any, _: int) -> Tensor:
            if isinstance(batch, dict):
                batch = batch["a"]
            return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(0)
    module = Module()
    cooling = Cooling(module.network)
    callback = lightning_callback(cooling, held_out)
    trainer = lightning_trainer(folder, callback, epochs=1)
    try:
        trainer.fit(module, training)
    finally:
        assert (trainer.global_step > 0) == (cooling.last_fit is not None)
    return cooling.last_fit is not None


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)
def test_lightning_stops_before_it_trains_on_held_out_rows(tmp_path: Path) -> None:
    for training in (LOADER, {"a": DataLoader(TRAIN, 20, shuffle=True)}):
        with pytest.raises(ValueError, match=REFUSED):
            cooled_in_lightning(LOADER, training, tmp_path)
    first, second = split(0)
    held_out = DataLoader(second, 20)
    training = DataLoader(first, 20, shuffle=True)
    assert cooled_in_lightning(held_out, training, tmp_path)
    assert cooled_in_lightning(held_out, {"a": training}, tmp_path)


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)
def test_hugging_faces_trainer_stops_before_it_trains_on_held_out_rows(
    tmp_path: Path,
) -> None:
    from transformers import Trainer, TrainingArguments

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classifier = nn.Linear(4, 2)

        def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.classifier(inputs)
            return {
                "loss": nn.functional.cross_entropy(logits, labels),
                "logits": logits,
            }

    data: Any = [
        {"inputs": row, "labels": label}
        for row, label in zip(INPUTS, LABELS, strict=True)
    ]
    first, second = random_split(data, [40, 40], generator=torch.manual_seed(0))
    arguments = TrainingArguments(
        str(tmp_path),
        num_train_epochs=1,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
    )

    def cooled(held_out: Any, training: Any) -> bool:
        torch.manual_seed(0)
        model = Model()
        cooling = Cooling(model.classifier)
        before = model.classifier.weight.clone()
        callback = trainer_callback(cooling, DataLoader(held_out, 20))
        trainer = Trainer(model, arguments, None, training, callbacks=[callback])
        try:
            trainer.train()
        finally:
            changed = not torch.equal(model.classifier.weight, before)
            assert changed == (cooling.last_fit is not None)
        return cooling.last_fit is not None

    for held_out, training in ((first, first), (second, data), (data[:9], data)):
        with pytest.raises(ValueError, match=REFUSED):
            cooled(held_out, training)
    assert cooled(second, first)


def test_callbacks_start_without_loaders() -> None:
    lightning: Any = lightning_callback(Cooling(nn.Linear(4, 2)), LOADER)
    lightning.on_train_start(SimpleNamespace(), None)
    trainer: Any = trainer_callback(Cooling(nn.Linear(4, 2)), LOADER)
    trainer.on_train_begin(None, None, None)
    with pytest.raises(ValueError, match=REFUSED):
        trainer.on_train_begin(None, None, None, train_dataloader=LOADER)


@pytest.mark.parametrize("processes", [1, 2])
def test_rows_are_found_in_loaders_that_accelerate_has_prepared(processes: int) -> None:
    from accelerate.data_loader import prepare_data_loader

    loader = prepare_data_loader(
        DataLoader(TRAIN, 10, shuffle=True),
        num_processes=processes,
        process_index=0,
        use_seedable_sampler=True,
    )
    with pytest.raises(ValueError, match="40 of the 40 rows"):
        check_untrained(DataLoader(TRAIN), loader)
