"""`python -m results build`: the page from the table. `python -m results collect runs/`: the table from journals."""

from __future__ import annotations

import argparse
from pathlib import Path

from badge.errors import BadgeError
from results import ABOUT_FROZEN, ABOUT_TIMES, FROZEN, TIMES

#: The grids whose cells are in the table.
GRIDS = [Path("grids/cpu.toml"), Path("grids/large.toml")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m results", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser(
        "build", help="docs/results.md, its figures and the README's part, from the table alone"
    )
    build.add_argument("--to", type=Path, default=Path(), help="the root that is written to (default: this folder)")
    collect = commands.add_parser("collect", help="add the finished runs of a folder of journals to the table")
    collect.add_argument("runs", type=Path)
    collect.add_argument("--grid", type=Path, nargs="+", default=GRIDS, help="the grids whose cells the table holds")
    collect.add_argument("--times", action="store_true", help="runs of grids/timing.toml, into the table of times")
    collect.add_argument(
        "--frozen", action="store_true", help="runs of grids/frozen.toml, into the table of frozen encoders"
    )
    commands.add_parser("frozen", help="print the tables of strategies on frozen encoders")
    commands.add_parser("variants", help="batches of several samplers on the same models; resumable, about ten minutes")
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            from results.page import write_page

            write_page(arguments.to)
        elif arguments.command == "frozen":
            from badge import stats
            from results.frozen import tables

            for name, lines in tables(stats.load(FROZEN)).items():
                print(f"\n## {name}\n", *lines, sep="\n")
        elif arguments.command == "variants":
            from results.variants import measure

            measure()
        else:
            from results.collect import collect_runs

            if arguments.times:
                print(collect_runs(arguments.runs, [Path("grids/timing.toml")], TIMES, ABOUT_TIMES))
            elif arguments.frozen:
                print(collect_runs(arguments.runs, [Path("grids/frozen.toml")], FROZEN, ABOUT_FROZEN))
            else:
                print(collect_runs(arguments.runs, arguments.grid))
    except BadgeError as error:
        parser.exit(1, f"Error: {error}\n")


if __name__ == "__main__":
    main()
