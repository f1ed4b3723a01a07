"""Draws docs/images/chance.svg from the first table of "How well this works": ``python docs/images/chance.py``."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

PAGE = Path(__file__).parents[1] / "chance.md"


def shares() -> dict[str, tuple[float, float]]:
    """Kind of claim -> per cent of comparisons with a false one, before and after."""
    text = PAGE.read_text(encoding="utf-8").partition("## How well this works")[2]
    rows = re.findall(r"(?m)^\| ([^|]+) \| ([\d.]+) % \| ([\d.]+) % \|$", text)
    return {re.sub("[`*]", "", kind): (float(before), float(after)) for kind, before, after in rows}


def main() -> None:
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "fairpca"
    import matplotlib.pyplot as plt

    found = shares()
    places = range(len(found))
    before, after = zip(*found.values(), strict=True)
    ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")[1]
    ax.hlines(places, after, before, color="#c5cad1", linewidth=2, zorder=1)
    ax.axvline(5, color="#5a6068", linestyle="--", linewidth=1, label="5 %")
    ax.plot(before, places, "s", color="#d55e00", markersize=8, label="each interval for itself")
    ax.plot(after, places, "o", color="#0072b2", markersize=8, label="fairpca")
    ax.set_yticks(places, found)
    ax.invert_yaxis()
    ax.set(xlabel="comparisons with a false claim (%)", xlim=(-1, None))
    ax.legend(frameon=False)
    ax.figure.savefig(Path(__file__).with_suffix(".svg"), metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))


if __name__ == "__main__":
    main()
