"""Write the report: HTML pages for every profile with results, and an overview page."""

import sys

import own_source  # noqa: F401 - before the package

from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared.results import RESULTS
from softmax_temperature.tools.programs import run_program


def main() -> None:
    pages = write_report(RESULTS)
    print("Report:")
    for page in pages:
        print(f"  {page}")


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
