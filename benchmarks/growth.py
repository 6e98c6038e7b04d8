"""How the cost of a call grows with rows, keys, columns, buckets, partitions, connections, values.

For each axis the same works (append, plan, first row, whole read, ...) are measured at growing
sizes: the time of a row or of a call, and its processor time, of client and server together. The
growth of a work is the exponent of its total processor time between the two largest sizes: 0 where
it does not depend on the size, 1 where it is linear. "WORSE THAN LINEAR" marks the others.

    ./dev bench growth [--only AXIS ...] [--full] [--server real] [--write]

The default run takes about three minutes, with `--full` and 10^8 rows about three more. `--write`
puts tables and plots into `docs/performance`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime

import fluss
from benchmarks._growth_axes import AXES, Ground, GrowthAxis
from benchmarks._growth_figures import Figure, markdown_table, table_rows, with_block
from benchmarks._measure import machine, print_table
from fluss_server import LocalCluster
from tools.dev import ROOT

FOLDER = ROOT / "docs" / "performance"
PAGE = FOLDER / "growth.md"


def main(arguments: Sequence[str]) -> int:
    """Measure the axes and print a table for each; the exit code is 0 however they grow."""
    options = _options(arguments)
    for axis in AXES:
        if not options.only or axis.name in options.only:
            figures = _measured(axis, options)
            heads, *rows = table_rows(axis, figures)
            print_table(f"Growth with {axis.name} ({options.server} server)", heads, rows)
            if options.write:
                _write(axis, figures, options)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench growth", description=(__doc__ or "").splitlines()[0]
    )
    names = [axis.name for axis in AXES]
    parser.add_argument("--only", nargs="*", default=[], choices=names, help="these axes alone")
    parser.add_argument("--full", action="store_true", help="10^8 rows")
    parser.add_argument("--server", choices=["embedded", "real"], default="embedded")
    parser.add_argument("--write", action="store_true", help="write the page and its plots")
    return parser.parse_args(arguments)


def _measured(axis: GrowthAxis, options: argparse.Namespace) -> list[Figure]:
    """Measure an axis on a server of its own, so that no axis carries the tables of another."""
    with tempfile.TemporaryDirectory(prefix="fluss-bench-") as scratch:
        is_real = options.server == "real"
        cluster = LocalCluster(kind="real") if is_real else LocalCluster(scratch)
        with cluster, fluss.connect(cluster.url) as session:
            session.create_database("growth", ignore_if_exists=True)
            ground = Ground(session=session, url=cluster.url, pid=cluster.pid)
            figures = []
            for size in (*axis.sizes, *(axis.sizes_full if options.full else ())):
                found = axis.measure(ground, size)
                figures += found
                texts = "; ".join(f"{each.work.name} {each.text}" for each in found)
                print(f"  {axis.name} {size:,}: {texts}", file=sys.stderr, flush=True)
            return figures


def _write(axis: GrowthAxis, figures: Sequence[Figure], options: argparse.Namespace) -> None:
    from benchmarks._growth_plots import draw

    draw(axis, figures, FOLDER / f"growth-{axis.name}.svg")
    page = with_block(PAGE.read_text(), axis.name, markdown_table(table_rows(axis, figures)))
    command = " ".join(["./dev bench growth", *(["--full"] if options.full else [])])
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    about = f"{day}, `{command} --write`, {options.server} server: {machine()}."
    PAGE.write_text(with_block(page, "about", about))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
