"""Execute one paper's notebook on its results; writes the executed notebook and the
figures beside them.
"""

import sys
from pathlib import Path

from softmax_temperature.papers.shared.results import PAPERS, SHOWN, paper_folder
from softmax_temperature.params import read_params
from softmax_temperature.tools.notebooks import execute, write_contents
from softmax_temperature.tools.programs import exit_code, parser


def main() -> int:
    reader = parser(__doc__)
    reader.add_argument("--paper", required=True, choices=PAPERS, help="a paper's slug")
    options = reader.parse_args()

    def work() -> None:
        folder = paper_folder(read_params(options.params).profile, options.paper)
        execute(
            Path("notebooks") / f"{options.paper}.ipynb",
            folder / "notebook.ipynb",
            {"results": folder.as_posix()},
        )
        write_contents(folder, folder.parent / SHOWN / options.paper)

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
