"""The example of README, landing page and get started: ``python docs/story.py`` measures it, and writes the table into
README.md and the picture into docs/images. A test compares both with what the README's own lines of code find.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fairpca._display import number
from fairpca.datasets import load_adult
from fairpca.model_selection import Comparison, compare
from fairpca.plotting._style import COLOURS

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "adult-light.svg"
METHODS = ("PCA", "FairPCA")
WHO = {"female": "women", "male": "men"}
SCHEMES = {
    "light": {"lines": "#24292f", "women": COLOURS[0], "men": COLOURS[1]},
    "dark": {"lines": "#d7dae0", "women": "#58b4f0", "men": "#ff8a3d"},
}


def table(found: Comparison) -> str:
    """The table and the two sentences, in Markdown, from the comparison with ten components."""
    ordinary, balanced = (found[method, 10] for method in METHODS)

    def interval(one: Any) -> str:
        return f"{number(one)} ({number(one.joint_low)} to {number(one.joint_high)})"

    heads = "| on new rows | error: PCA | FairPCA | loss: PCA | FairPCA |"
    lines = [heads, "|---|---|---|---|---|"]
    for group, who in WHO.items():
        cells = [number(one.error.by_group[group]) for one in (ordinary, balanced)]
        cells += [number(one.corrected_loss.by_group[group]) for one in (ordinary, balanced)]
        lines.append(f"| {found.counts[found.groups.index(group)]:,.0f} {who} | {' | '.join(cells)} |")
    lines.append(f"| everybody | {number(ordinary.error.overall)} | {number(balanced.error.overall)} | | |")
    gap, balanced_gap = (one.corrected_loss.gap for one in (ordinary, balanced))
    worse, better = (WHO[group] for group in ordinary.corrected_loss.between)
    shown = "no difference is shown, though a small one may remain" if not balanced_gap.excludes_zero else "they differ"
    changes = {WHO[group]: balanced.change.by_group[group] for group in WHO}
    gained, paid = min(changes, key=changes.__getitem__), max(changes, key=changes.__getitem__)

    def moved(change: Any) -> str:
        size = -change if change < 0 else change
        return f"{'falls' if change < 0 else 'rises'} by {interval(size)}"

    return "\n".join([
        *lines,
        "",
        f"- **Found:** with ordinary PCA the loss of {worse} is larger than that of {better}, by {interval(gap)}. With "
        f"`FairPCA` {shown}: {interval(balanced_gap)}. The error of {gained} {moved(changes[gained])}.",
        f"- **Price:** the error of {paid} {moved(changes[paid])}, that of everybody together by "
        f"{number(balanced.change.overall)}. It balances losses, not errors.",
        f"- **What stays:** sex can still be read off the components (AUC {number(balanced.held_out.auc)}, under "
        f"ordinary PCA {number(ordinary.held_out.auc)}; 0.5 is guessing, 1 is certainty).",
    ])  # fmt: skip


def curves(found: Comparison) -> dict[str, list[Any]]:
    """Loss of each group on new rows, by number of components, for the picture."""
    dimensions = sorted({one.n_components for one in found.results})
    values = {
        f"{WHO[group]}, {method}": [
            [round(part, 3) for part in (one.value, one.low, one.high)]
            for one in (found[method, d].corrected_loss.by_group[group] for d in dimensions)
        ]
        for method in METHODS
        for group in WHO
    }
    return {"components": dimensions, **values}


def draw(curve: dict[str, list[Any]]) -> None:
    """Both pictures; the numbers are in their description."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "fairpca", "svg.fonttype": "path", "font.size": 11})
    lines = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    mpl.rcParams.update(dict.fromkeys(lines, SCHEMES["light"]["lines"]))
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.6, 3.7), layout="constrained")
    colours, x = SCHEMES["light"], curve["components"]
    for name, values in curve.items():
        if name == "components":
            continue
        who, method = name.split(", ")
        value, low, high = zip(*values, strict=True)
        style: Any = "-" if method == "PCA" else (0 if who == "women" else 2, (2, 2))
        ax.fill_between(x, low, high, color=colours[who], alpha=0.15, linewidth=0)
        ax.plot(x, value, linestyle=style, color=colours[who], linewidth=2.4)
        if name != "women, FairPCA":
            both = name == "men, FairPCA"
            ax.text(x[-1] + 0.3, value[-1], "both, FairPCA" if both else name, va="center",
                    color=colours["lines" if both else who])  # fmt: skip
    ax.axvline(10, color=colours["lines"], linewidth=0.8, linestyle=":")
    ax.set(xlabel="number of components", ylabel="loss on new rows (lower is better)", xlim=(1, x[-1]), ylim=(0, None))
    ax.set_xticks([1, 5, 10, 15, 20])
    ax.spines[["top", "right"]].set_visible(False)
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) | {"Description": json.dumps(curve)}
    figure.savefig(PICTURE, transparent=True, metadata=metadata)
    dark = PICTURE.read_text(encoding="utf-8")
    for part, colour in colours.items():
        dark = dark.replace(colour, SCHEMES["dark"][part])
    PICTURE.with_name("adult-dark.svg").write_text(dark, encoding="utf-8")


def written() -> tuple[str, dict[str, list[Any]]]:
    """The table in README.md and the numbers in the picture."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- measured -->\n(.*)\n<!-- /measured -->", readme, re.DOTALL)
    numbers = re.search(r"<dc:description>(.*)</dc:description>", PICTURE.read_text(encoding="utf-8"))
    assert block is not None
    assert numbers is not None
    return block[1], json.loads(numbers[1])


def main() -> None:
    adult = load_adult()
    given: dict[str, Any] = {"sensitive_features": adult.sensitive_features}
    block = table(compare(adult.data, adult.target, **given))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    start, rest = readme.split("<!-- measured -->\n")
    end = rest.partition("<!-- /measured -->")[2]
    (ROOT / "README.md").write_text(f"{start}<!-- measured -->\n{block}\n<!-- /measured -->{end}", encoding="utf-8")
    draw(curves(compare(adult.data, n_components=range(1, 21), methods=METHODS, n_permutations=19, **given)))


if __name__ == "__main__":
    main()
