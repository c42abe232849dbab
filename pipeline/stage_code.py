"""Write down which code every stage rests on."""

import sys
from pathlib import Path

from softmax_temperature.runner.stage_code import write_stage_code

from softmax_temperature.stages.programs import exit_code, parser

OUTPUT = Path("data/code")


def main() -> int:
    parser(__doc__).parse_args()
    return exit_code(lambda: write_stage_code(Path(), OUTPUT))


if __name__ == "__main__":
    sys.exit(main())
