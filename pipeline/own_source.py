"""Put this checkout's package first on the import path, for child processes too.

The environment may have another checkout's package installed, for example in a Git
worktree or in the folders of `dvc exp run --queue`.
"""

import os
import sys
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parent.parent / "src")

sys.path.insert(0, SOURCE)
folders = [SOURCE, os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
