"""What the study shows, in sentences made from its numbers, so that every profile's notebook speaks of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.selection import MAIN_ARMS, SCALED, finished, main_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from softmax_temperature.papers.focal.records import Records

_ECE = "expected_calibration_error"


def findings(records: Records) -> str:
    """Markdown: what ran, which losses calibrate, what scaling leaves of it, and what it costs."""
    parts = (_coverage, _diverged, _before, _after, _temperatures, _accuracy, _outliers, _ablation, _translation)
    texts = (part(records) for part in parts)
    return "\n".join(f"- {text}" for text in texts if text)


def _coverage(records: Records) -> str:
    tasks, trainings = main_tasks(records), records.trainings
    parts = [
        f"{row.dataset} with {row.network} ({row.train_images} {_samples(str(row.embeddings))}, {row.epochs} of "
        f"{row.planned_epochs} epochs)"
        for row in tasks.itertuples()
    ]
    return (
        f"**Coverage.** {len(trainings)} trainings: {trainings['arm'].nunique()} losses, {trainings['seed'].nunique()} "
        f"seeds, {len(tasks)} tasks and {len(records.tasks) - len(tasks)} variants of their recipes. The tasks: "
        f"{'; '.join(parts)}."
    )


def _samples(embeddings: str) -> str:
    return f"texts, embeddings: {embeddings}" if embeddings else "images"


def _diverged(records: Records) -> str:
    """Nothing, if nothing did."""
    lost = records.trainings[records.trainings["diverged"].astype(bool)]
    if lost.empty:
        return ""
    names = [f"{row.arm} on {row.task}, seed {row.seed}" for row in lost.itertuples()]
    return f"**Diverged**, and in no number here: {'; '.join(names)}."


def _before(records: Records) -> str:
    parts = [f"{task}: {_ranked(rows[_ECE])}" for task, rows in _by_task(records, "none")]
    return f"**Calibration as trained.** ECE in percent, mean over seeds, best first. {'; '.join(parts)}."


def _after(records: Records) -> str:
    parts = [
        f"{task}: {_ranked(rows[_ECE])}; a calibrated network would show about {100 * rows['noise_floor'].mean():.2f}"
        for task, rows in _by_task(records, SCALED)
    ]
    return f"**Calibration after scaling**, in the same way. {'; '.join(parts)}."


def _temperatures(records: Records) -> str:
    parts = []
    for task, rows in _by_task(records, SCALED):
        texts = [f"{arm} {temperature:.3g}" for arm, temperature in rows["temperature"].items()]
        parts.append(f"{task}: {', '.join(texts)}")
    return f"**Temperatures** of least validation ECE, mean over seeds. {'; '.join(parts)}."


def _accuracy(records: Records) -> str:
    parts = [f"{task}: {_ranked(1 - rows['accuracy'])}" for task, rows in _by_task(records, "none")]
    return f"**Test error** in percent, best first. {'; '.join(parts)}."


def _outliers(records: Records) -> str:
    """Nothing, if no task has an out-of-distribution set."""
    rows = finished(records, "ood")
    is_main = rows["task"].isin(main_tasks(records)["task"])
    rows = rows[is_main & rows["arm"].isin(MAIN_ARMS) & (rows["scaling"] == "none")]
    groups = rows.groupby(["task", "ood"], sort=False)
    parts = [
        f"{task} against {ood}: {_ranked(_means(group)['auroc'], ascending=False)}" for (task, ood), group in groups
    ]
    return f"**Out-of-distribution data.** AUROC in percent, not scaled. {'; '.join(parts)}." if parts else ""


def _ablation(records: Records) -> str:
    """Nothing, if no variant was measured."""
    table = tables.ablation(records)
    table = table[(table["metric"] == "ece") & (table["status"] == tables.MEASURED)]
    parts = []
    for (task, variant), rows in table.groupby(["task", "variant"], sort=False):
        changes = rows.set_index("method")["difference"]
        most = str(changes.abs().idxmax())
        parts.append(f"{variant} on {task} moves it most for {most}, by {100 * changes[most]:+.2f}")
    return f"**Variants of the recipe.** ECE in percent, not scaled. {'; '.join(parts)}." if parts else ""


def _translation(records: Records) -> str:
    """Nothing, if no model was trained, or all diverged."""
    runs = records.translation_runs
    means = _means(runs[~runs["diverged"].astype(bool)])
    parts = [
        f"{arm} ECE {100 * row['ece']:.1f} → {100 * row['ece_after_scaling']:.1f} with temperature "
        f"{row['temperature']:.3g}, BLEU {100 * row['bleu']:.1f} → {100 * row['bleu_after_scaling']:.1f}"
        for arm, row in means.to_dict("index").items()
    ]
    text = f"**Translation** ({', '.join(runs['dataset'].unique())}), before → after scaling, mean over seeds."
    return f"{text} {'; '.join(parts)}." if parts else ""


def _by_task(records: Records, scaling: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each main task with the means over seeds of its runs with the methods of Table 1, a row a method."""
    runs = finished(records, "runs")
    runs = runs[runs["arm"].isin(MAIN_ARMS) & (runs["scaling"] == scaling)]
    for task in main_tasks(records)["task"]:
        rows = runs[runs["task"] == task]
        if len(rows):
            yield str(task), _means(rows)


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby("arm", sort=False).mean(numeric_only=True)


def _ranked(shares: pd.Series[float], *, ascending: bool = True) -> str:
    ranked = shares.sort_values(ascending=ascending, kind="stable")
    return ", ".join(f"{arm} {100 * share:.2f}" for arm, share in ranked.items())
