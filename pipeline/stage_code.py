"""Write down which code every stage rests on."""

import sys
from pathlib import Path

from softmax_temperature.programs import exit_code, parser
from softmax_temperature.stage_code import write_stage_code

OUTPUT = Path("data/code")


def main() -> int:
    parser(__doc__).parse_args()
    return exit_code(lambda: write_stage_code(Path(), OUTPUT))


if __name__ == "__main__":
    sys.exit(main())
