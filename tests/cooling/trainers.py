"""Trainers that write nothing but what a test asks for."""

from pathlib import Path
from typing import Any


def lightning_trainer(folder: Path, callback: Any, *, epochs: int) -> Any:
    """Return a Lightning trainer on the CPU, without logs, checkpoints or bars."""
    from lightning.pytorch import Trainer

    return Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback],
    )
