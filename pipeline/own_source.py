"""Put this checkout's package first on the import path, for child processes too.

The environment may have another checkout's package installed, for example in a Git
worktree or in the folders of `dvc exp run --queue`.

It also keeps one slow and optional import out of these programs.
"""

import os
import sys
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parent.parent / "src")

sys.path.insert(0, SOURCE)
folders = [SOURCE, os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))

# nbformat imports jsonschema, which can check internationalised web addresses. For this
# check it would read a grammar, which takes most of nbformat's import time. The
# notebook schema contains no such address, and jsonschema omits the check if this
# module is missing.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
