"""Does ordinary PCA represent women and men differently?
======================================================

The first thing to do with a table and a sensitive feature: compare methods group by group, and look at what holds on
*new rows*. The data are the bundled census table Adult, 32,561 people.
"""

# %%
# ``compare`` fits five methods to all rows, and again without each of ten folds. ``claims`` is everything that it
# states of the groups; claims of one kind hold together. Those about FairPCA with ten components:
import matplotlib.pyplot as plt

from fairpca.datasets import load_adult
from fairpca.model_selection import compare

adult = load_adult()
found = compare(adult.data, adult.target, sensitive_features=adult.sensitive_features, progress=False)
for claim in found.claims:
    if claim.n_components == 10 and claim.method == "FairPCA":
        print("-", claim.text)

# %%
# The corrected loss is the part of a group's error on new rows that components of its own would save. Only
# differences between groups are interpreted. Joint intervals hold for all numbers of components and all methods.
for method in ("PCA", "FairPCA"):
    for d in (1, 5, 10):
        gap = found[method, d].corrected_loss.gap
        name = f"{method}, {d} component{'s' * (d > 1)}"
        print(f"{name:22s} losses differ by {gap:.2f} ({gap.joint_low:.2f} to {gap.joint_high:.2f})")

# %%
# Loss of each group on new rows, with 95 % intervals, each for itself. Under FairPCA the groups coincide.
figure, ax = plt.subplots(layout="constrained")
dimensions = [1, 2, 3, 5, 10]
for method, line in {"PCA": "-", "FairPCA": "--"}.items():
    for group, colour, marker in (("female", "#d55e00", "o"), ("male", "#0072b2", "s")):
        values = [found[method, d].corrected_loss.by_group[group] for d in dimensions]
        error = [[one - one.low for one in values], [one.high - one for one in values]]
        ax.errorbar(
            dimensions,
            values,
            error,
            linestyle=line,
            color=colour,
            marker=marker,
            capsize=3,
            label=f"{group}, {method}",
        )
ax.set(xlabel="number of components", ylabel="loss on new rows (lower is better)", ylim=(0, None))
ax.legend()
