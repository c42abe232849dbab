"""The executed notebook as HTML.

nbconvert's own pages load MathJax and more from the net. Here it makes the cells alone, for a page of ours; formulas
stay as they are written.
"""

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING

from nbconvert import HTMLExporter

from softmax_temperature.papers.html.captions import captions
from softmax_temperature.runner.artifacts import digest_of_bytes

if TYPE_CHECKING:
    import nbformat


def cells_as_html(notebook: nbformat.NotebookNode) -> str:
    """The cells of a cleaned notebook: prose, code and output, each figure with its heading as description."""
    images, described = {}, copy.deepcopy(notebook)
    said = captions(notebook).figures
    outputs = (output for cell in described.cells for output in cell.get("outputs", []))
    for output in outputs:
        if "image/png" in output.get("data", {}):
            content = output.data["image/png"].strip()
            digest = digest_of_bytes(base64.b64decode(content))
            output.metadata.setdefault("image/png", {})["alt"] = said[digest].title
            # The image itself would pass through several parsers of HTML.
            output.data["image/png"] = digest
            images[digest] = content
    html: str = HTMLExporter(template_name="basic", exclude_anchor_links=True).from_notebook_node(described)[0]
    for digest, content in images.items():
        html = html.replace(digest, content)
    return html
