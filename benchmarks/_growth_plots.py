"""The plots of `benchmarks/growth.py`: processor times, and the line of linear growth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from benchmarks._growth_figures import Axis, Figure, by_work

# Nothing in a picture but the data changes from run to run.
mpl.use("svg")
STYLE = {"svg.hashsalt": "fluss", "svg.fonttype": "path", "font.size": 10}
METADATA = {"Date": None, "Creator": None}


def draw(axis: Axis, figures: Sequence[Figure], path: Path) -> None:
    """Draw the processor time of each work at each size; other programs disturb it least."""
    with mpl.rc_context(STYLE):
        picture, plot = plt.subplots(figsize=(7.2, 4.2))
        plot.set(xscale="log", yscale="log", xlabel=axis.name, ylabel="processor seconds")
        for work, found in by_work(figures).items():
            # What the axis counts is shown as a total, so that one slope means linear everywhere.
            totals = [each.cpu * (each.size if work.is_counted else 1) for each in found]
            unit = "all" if work.is_counted else f"one {work.unit}"
            label = f"{work.name}, {unit}"
            plot.plot([each.size for each in found], totals, marker="o", label=label)
        _draw_linear(plot, [each.size for each in figures])
        plot.grid(visible=True, which="major", alpha=0.3)
        plot.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
        picture.savefig(path, format="svg", metadata=METADATA, bbox_inches="tight")
        plt.close(picture)
    # Matplotlib ends lines with spaces.
    lines = [line.rstrip() for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")


def _draw_linear(plot: plt.Axes, sizes: Sequence[int]) -> None:
    """Draw the slope of linear growth through the middle of the plot."""
    low, high = min(sizes), max(sizes)
    bottom, top = plot.get_ylim()
    middle = math.sqrt(bottom * top)
    ends = [middle * math.sqrt(low / high), middle * math.sqrt(high / low)]
    plot.plot([low, high], ends, "--", color="grey", label="linear growth")
    plot.set_ylim(bottom, top)
