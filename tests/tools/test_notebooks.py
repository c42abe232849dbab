"""Notebooks run to the end or raise one clear error; their sources are short."""

import gc
import json
import os
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.views import View
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import notebooks

KERNEL = {
    "kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}
}
SET = new_code_cell("name = 1", metadata={"tags": ["parameters"]})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("notebooks").mkdir()
    return tmp_path


def test_the_executed_copy_has_the_parameters_and_links_to_the_same_files() -> None:
    cells = [new_markdown_cell("[words](../docs/words.md)"), SET, new_code_cell("name")]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), "notebooks/good.ipynb")
    target = Path("results/mini/good/notebook.ipynb")
    notebooks.execute(Path("notebooks/good.ipynb"), target, {"name": 7})
    executed = nbformat.read(target, as_version=4)
    assert executed.cells[-1].outputs[0].data["text/plain"] == "7"
    assert [cell.source.splitlines()[-1] for cell in executed.cells[1:]] == [
        "name = 7",
        "name",
    ], "the parameter must be set once"
    assert executed.cells[0].source == "[words](../../../docs/words.md)"
    assert os.path.normpath(target.parent / "../../../docs/words.md") == "docs/words.md"


@pytest.mark.parametrize(
    ("code", "seconds", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 60, "Kernel died"),
        ("import time; time.sleep(300)", 1, "A cell timed out .* 1 seconds"),
        ("1 / 0", 60, "ZeroDivisionError: division by zero"),
    ],
    ids=["killed", "hangs", "fails"],
)
# The sockets of a killed kernel are closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_that_does_not_reach_its_end_is_named_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, seconds: int, says: str
) -> None:
    monkeypatch.setattr(notebooks, "TIMEOUT_SECONDS", seconds)
    nbformat.write(new_notebook(cells=[new_code_cell(code, id="only")]), "bad.ipynb")
    with pytest.raises(InputError, match=rf"^bad\.ipynb: did not finish \({says}"):
        notebooks.execute(Path("bad.ipynb"), Path("executed.ipynb"), {})
    # Collect the sockets now: this test ignores the warning about unclosed sockets, but
    # a later test would not.
    gc.collect()
    assert sorted(path.name for path in folder.iterdir()) == ["bad.ipynb", "notebooks"]


def test_a_section_is_dropped_if_its_code_shows_nothing_and_words_with_their_code() -> (
    None
):
    full = [nbformat.v4.new_output("stream", text="1")]
    setup = {"tags": ["setup"]}
    cells = [
        new_markdown_cell("# Title"),
        new_markdown_cell("## Read"),
        new_code_cell("import json", metadata=setup),
        new_markdown_cell("## Words alone"),
        new_markdown_cell("## Gone"),
        new_code_cell("None"),
        new_markdown_cell("about it"),
        new_code_cell("None"),
        new_markdown_cell("## Stays"),
        new_code_cell("None"),
        new_markdown_cell("of the second"),
        new_code_cell("2", outputs=full),
        new_markdown_cell("of the third"),
        new_code_cell("None"),
    ]
    kept = [cell.source for cell in notebooks.without_empty_sections(cells)]
    assert kept == [
        "# Title",
        "## Read",
        "import json",
        "## Words alone",
        "## Stays",
        "of the second",
        "2",
    ]


@pytest.mark.parametrize(
    ("of_main", "order"),
    [
        ([], ["# Title", "## Theory", "3"]),
        (["1"], ["# Title", "## Main", "1", "## Theory", "3"]),
    ],
    ids=["main is empty", "main shows something"],
)
def test_a_section_replaces_an_empty_main_one(
    of_main: list[str], order: list[str]
) -> None:
    outputs = [nbformat.v4.new_output("stream", text=text) for text in of_main]
    full = [nbformat.v4.new_output("stream", text="1")]
    cells = [
        new_markdown_cell("# Title"),
        new_markdown_cell("## Main", metadata={"tags": ["main"]}),
        new_code_cell("1", outputs=outputs),
        new_markdown_cell("## Theory"),
        new_code_cell("3", outputs=full),
        new_markdown_cell("## Other", metadata={"tags": ["instead"]}),
        new_code_cell("4", outputs=full),
    ]
    kept = [cell.source for cell in notebooks.without_empty_sections(cells)]
    other = ["## Other", "4"]
    assert kept == ([*order, *other] if of_main else [order[0], *other, *order[1:]])


@pytest.mark.parametrize("paper", PAPERS)
def test_the_notebook_has_the_parameters_that_a_view_passes(
    project_root: Path, paper: str
) -> None:
    names = papermill.inspect_notebook(project_root / "notebooks" / f"{paper}.ipynb")
    assert set(names) == set(View("mini").parameters())


@pytest.mark.parametrize("paper", PAPERS)
def test_sources_are_stripped_define_nothing_and_link_the_page_with_the_words(
    project_root: Path, paper: str
) -> None:
    cells = nbformat.read(
        project_root / "notebooks" / f"{paper}.ipynb", as_version=4
    ).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    lines = [line for cell in code for line in cell.source.splitlines() if line.strip()]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert len(lines) <= 120
    assert not any(line.lstrip().startswith(("def ", "class ")) for line in lines)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert f"](../docs/{paper}.md)" in cells[2].source
    assert (project_root / "docs" / f"{paper}.md").is_file()


def test_the_kernel_is_this_python_whatever_kernels_the_user_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    content = {"argv": ["/bin/false"], "display_name": "other", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(content))
    monkeypatch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
    cells = [new_code_cell("import sys; sys.executable")]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), "notebooks/a.ipynb")
    notebooks.execute(Path("notebooks/a.ipynb"), Path("a.ipynb"), {})
    executed = nbformat.read("a.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].data["text/plain"] == repr(sys.executable)
