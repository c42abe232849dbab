"""Put the package beside these programs first, for this and child processes.

The environment may have another checkout installed, as in a Git worktree or in the
folders of `dvc exp run --queue`.
"""

import os
import sys
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parent.parent / "src")

sys.path.insert(0, SOURCE)
folders = [SOURCE, os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
