"""Draw the picture in the README and on the docs' home page from the results."""

import sys
from pathlib import Path

import own_source  # noqa: F401 - before the package

from softmax_temperature.papers.shared.results import RESULTS
from softmax_temperature.tools.picture import draw
from softmax_temperature.tools.programs import run_program


def main() -> None:
    for path in draw(RESULTS, Path("docs/images")):
        print(path)


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
