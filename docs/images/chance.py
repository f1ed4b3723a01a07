"""Draws docs/images/chance.svg: ``python docs/images/chance.py`` (about ten seconds)."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from fairpca.datasets import load_german_credit
from fairpca.inference import chance_losses, loss_test

SIZES = (60, 100, 150, 200, 310, 400, 500, 600, 690, 800, 900)


def losses_by_size() -> tuple[list[float], list[float], list[float]]:
    """Closed form, mean and level of random groups of each size."""
    X, _ = load_german_credit(return_X_s=True)
    closed, mean, level = [], [], []
    for size in SIZES:
        groups = np.repeat([0, 1], [size, len(X) - size])
        closed.append(chance_losses(X, sensitive_features=groups, n_components=5).by_group[0].expected)
        rng = np.random.default_rng(size)
        draws = [
            loss_test(X, sensitive_features=rng.permutation(groups), n_components=5, n_permutations=1).by_group[0].loss
            for _ in range(100)
        ]
        mean.append(float(np.mean(draws)))
        level.append(float(np.quantile(draws, 0.95)))
    return closed, mean, level


def main() -> None:
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "fairpca"
    import matplotlib.pyplot as plt

    closed, mean, level = losses_by_size()
    ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    ax.plot(SIZES, closed, color="#0072b2", label="random groups, closed form")
    ax.plot(SIZES, mean, "o", color="#0072b2", label="random groups, mean of 100 divisions")
    ax.plot(SIZES, level, "_", color="#5a6068", markersize=12, label="95 % of random groups stay under")
    X, sex = load_german_credit(return_X_s=True)
    found = chance_losses(X, sensitive_features=sex, n_components=5).by_group
    for label, colour, mark in (("female", "#d55e00", "s"), ("male", "#009e73", "^")):
        size, loss = found[label].rows, found[label].loss
        ax.plot([size], [loss], mark, color=colour, markersize=9, label=f"{label}: {size:.0f} rows, loss {loss:.2f}")
    ax.set(xlabel="rows in the group (of 1000)", ylabel="loss in the sample, 5 components", ylim=(0, None))
    ax.legend(frameon=False)
    ax.figure.savefig(Path(__file__).with_suffix(".svg"), metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))


if __name__ == "__main__":
    main()
