"""Write the report: HTML pages of every profile with results, and one over all of them."""

import sys

from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared.results import RESULTS
from softmax_temperature.tools.programs import exit_code, parser


def main() -> int:
    parser(__doc__).parse_args()

    def work() -> None:
        overall, *profiles = write_report(RESULTS)
        print("\n".join(["Report:", *(f"  {path}" for path in (overall, *profiles))]))

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
