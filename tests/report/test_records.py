"""A number links to the cells that it comes from."""

from __future__ import annotations

from pathlib import Path

from softmax_temperature.report.records import Records, read_records


def found(results: Path) -> Records:
    return read_records(results / "toy" / "focal")


def test_cells_that_differ_in_their_seed_stand_together(results: Path) -> None:
    groups = [(group.stage, group.name, len(group.cells)) for group in found(results).groups]
    assert groups == [("prepared/toy", ".", 1), ("focal/training", "toy/CE", 2), ("focal/evaluation", "toy/CE", 2)]


def test_a_number_links_to_the_last_stage_that_is_named_like_it(results: Path) -> None:
    assert found(results).anchor(("toy", "digits", "small", "CE", "ece")) == "cells-focal-evaluation-toy-CE"


def test_names_count_in_their_order(results: Path) -> None:
    assert found(results).anchor(("CE", "small")) == ""


def test_the_nearest_cells_are_taken_where_none_fits_wholly(results: Path) -> None:
    assert found(results).anchor(("toy", "small", "Brier")) == "cells-focal-evaluation-toy-CE"


def test_without_the_file_there_are_none(tmp_path: Path) -> None:
    assert read_records(tmp_path).groups == []
