"""A calibration report as one page that needs no other file."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from softmax_temperature.tools.calibration_summary import heading, metric_rows, notes, origin, temperatures, title


def page(report: dict[str, Any], diagram: bytes) -> str:
    """The page, as HTML.

    Args:
        report: what `calibrate` returns.
        diagram: the reliability diagram as SVG.
    """
    loader = PackageLoader("softmax_temperature.tools")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("calibration.html").render(
        title=title(report),
        origin=origin(report),
        temperatures=temperatures(report),
        headings=[heading(report, arm) for arm in report["metrics"]],
        rows=metric_rows(report),
        notes=notes(report),
        diagram=b64encode(diagram).decode(),
        description=_description(report),
        report=report,
    )


def _description(report: dict[str, Any]) -> str:
    """The diagram in words, for those who do not see it."""
    errors = [
        f"{heading(report, arm)}: accuracy {100 * values['accuracy']:.1f} %, calibration error "
        f"{100 * values['expected_calibration_error']:.2f} %"
        for arm, values in report["metrics"].items()
    ]
    return f"Reliability diagrams, with a histogram of the confidences below each. {'; '.join(errors)}."
