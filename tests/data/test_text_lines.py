"""Lines of a file, one at a time, none longer than allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from softmax_temperature.data.text_lines import text_lines
from softmax_temperature.runner.errors import InputError


def lines(path: Path, longest: int = 100) -> list[tuple[int, bytes]]:
    return list(text_lines(path, longest=longest, remedy="Mend it.", unit="row"))


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    content = "a\u2028b\r\nc\x0bd\n\ne".encode()
    (tmp_path / "a").write_bytes(content)
    found = lines(tmp_path / "a")
    assert [number for number, _ in found] == [1, 2, 3, 4]
    assert b"".join(line for _, line in found) == content


def test_a_longer_line_is_refused_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345\n123456\n")
    assert len(lines(tmp_path / "a", longest=7)) == 2
    with pytest.raises(InputError, match=r"a, row 2: is longer than 6 bytes\. Mend it\."):
        lines(tmp_path / "a", longest=6)


def test_a_folder_is_no_file_of_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        lines(tmp_path)
