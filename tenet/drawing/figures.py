"""Pictures of numbers, by matplotlib, which is loaded only here and only when a picture is asked for."""

import io
from pathlib import Path
from typing import Any

from tenet.data.files import write_bytes
from tenet.errors import MissingExtraError


def _figure(width: float, height: float) -> Any:
    try:
        # Figure without pyplot: no window system, no state shared between calls, and the Agg canvas.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a picture of numbers", "plots") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def two_panels() -> tuple[Any, Any, Any]:
    """(figure, left axes, right axes)."""
    figure = _figure(11, 4.2)
    left, right = figure.subplots(1, 2)
    return figure, left, right


def one_panel() -> tuple[Any, Any]:
    """(figure, axes)."""
    figure = _figure(8.5, 5.2)
    return figure, figure.subplots()


def twenty_colours() -> Any:
    """Colours that tell twenty lines apart."""
    from matplotlib import colormaps

    return [colormaps["tab20"](row) for row in range(20)]


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120)
    write_bytes(path, stream.getvalue())
