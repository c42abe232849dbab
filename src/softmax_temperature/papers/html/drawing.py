"""Figures as a page carries them: in itself, so that it can be moved, and as images, so that no names clash."""

from __future__ import annotations

import re
from urllib.parse import quote

_UNUSED = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_SAFE = " /:;,=()!$*+@'[]{}|^~`<>"


def data_address(svg: str) -> str:
    """An SVG as the address of an image, which may stand between double quotes.

    Its characters stay characters: base64 would make it a third longer.
    """
    text = re.sub(r"\s+", " ", _UNUSED.sub("", svg)).replace("> <", "><").strip()
    return "data:image/svg+xml," + quote(text, safe=_SAFE)
