"""The report: self-contained HTML pages made from what results/ holds, and from nothing else.

`results/index.html` has the picture and the best evidence for every claim; `results/<profile>/index.html` the claims of
a profile, beside it `pages/` each paper's tables and figures and the records that its numbers link to.
"""

from softmax_temperature.papers.html.pages import write_report

__all__ = ["write_report"]
