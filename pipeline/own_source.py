"""Put this checkout's package first on the import path, for child processes too.

The garbage collector is off until the program's work begins (`run_program`): imports
leave no garbage, and it would scan all objects of torch again and again.

The environment may have another checkout's package installed, for example in a Git
worktree or in the folders of `dvc exp run --queue`.
"""

import gc
import os
import sys
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parent.parent / "src")

gc.disable()
sys.path.insert(0, SOURCE)
folders = [SOURCE, os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
