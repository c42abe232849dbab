"""What a disk may do to a file: turn a bit, lose the end, lose everything."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[bytes, random.Random], bytes]


def flip(content: bytes, generator: random.Random) -> bytes:
    """One bit of one byte is the other one."""
    place = generator.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << generator.randrange(8)]) + content[place + 1 :]


def truncate(content: bytes, generator: random.Random) -> bytes:
    return content[: generator.randrange(len(content))]


def empty(_: bytes, __: random.Random) -> bytes:
    return b""


DAMAGES: dict[str, Damage] = {"flip": flip, "truncate": truncate, "empty": empty}


def damage(path: Path, how: str, seed: int, *, silently: bool = False) -> None:
    """Damage a file in its place, whatever its permissions, so that every name of it is damaged.

    Args:
        path: the file; not empty.
        how: a name of `DAMAGES`.
        seed: of where.
        silently: leave its time of change as it was, as a failing disk does.
    """
    before = path.stat()
    content = DAMAGES[how](path.read_bytes(), random.Random(f"{path.name} {how} {seed}"))  # noqa: S311  # no secret
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(content)
        file.truncate(len(content))
    path.chmod(before.st_mode)
    if silently:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
