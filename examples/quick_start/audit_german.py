"""Does ordinary PCA represent women and men differently?
======================================================

The first thing to do with a table and a sensitive feature: compare methods group by group, and look at what holds on
*new rows*. The data are the bundled German credit data, 1000 applicants (a demonstration only: the code of the sex in
this file is not reliable, Grömping 2019).
"""

# %%
# ``compare`` fits each method to all rows, and again without each of ten folds. ``claims`` is everything that it states of
# the groups; claims of one kind hold together.
import matplotlib.pyplot as plt
import numpy as np

from fairpca.datasets import load_german_credit
from fairpca.model_selection import compare

X, sex = load_german_credit(return_X_s=True)
comparison = compare(X, sensitive_features=sex, n_components=[2, 5, 10], methods=["PCA", "FairPCA"], n_permutations=199)

for claim in comparison.claims:
    print(f"{claim.kind:9s}{claim.text}")

# %%
# The corrected loss is the part of a group's error on new rows that components of its own would save. Only
# differences between groups are interpreted. Joint intervals hold for all numbers of components and both methods.
for result in comparison.results:
    gap = result.corrected_loss.gap
    name = f"{result.method}, {result.n_components} components"
    print(f"{name:22s} losses differ by {gap:.2f} ({gap.joint_low:.2f} to {gap.joint_high:.2f})")

# %%
# Corrected loss of each group, with 95 % intervals, each for itself: two that overlap may still differ, and two that do
# not may still be chance.
figure, ax = plt.subplots(layout="constrained")
styles = {"PCA": ("#0072b2", "o"), "FairPCA": ("#d55e00", "s")}
places = {}
for result in comparison.results:
    colour, marker = styles[result.method]
    for group, estimate in result.corrected_loss.by_group.items():
        place = places.setdefault((result.n_components, group), len(places))
        shift = -0.1 if result.method == "PCA" else 0.1
        error = np.array([[estimate.value - estimate.low], [estimate.high - estimate.value]])
        label = result.method if place == 0 else None
        ax.errorbar(place + shift, estimate.value, error, color=colour, marker=marker, label=label, capsize=3)
ax.set_xticks(list(places.values()), [f"{group}\nd = {d}" for d, group in places])
ax.set(ylabel="corrected loss on new rows", ylim=(0, None))
ax.legend()
