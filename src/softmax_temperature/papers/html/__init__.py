"""The report: HTML pages for a reader, made from what results/ holds and from nothing else.

`results/<profile>/index.html` shows a profile: the scorecard, then each paper's tables, figures and deviations. Beside
it `pages/` holds the executed notebooks and the records that the numbers link to. `results/index.html` is the scorecard
over all profiles. Every page carries its style, script and figures in itself: nothing is loaded from anywhere.
"""

from softmax_temperature.papers.html.pages import write_report

__all__ = ["write_report"]
