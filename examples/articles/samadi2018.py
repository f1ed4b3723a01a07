"""Samadi et al. (2018): who pays for sharing the components?
==========================================================

Figures 3 and 4 of *The Price of Fair PCA: One Extra Dimension* show reconstruction error and loss of each group against
the number of components, for face images and default-credit data. Those data are not bundled, so the same figure is
drawn here for the **German credit data**. ``python -m reproductions samadi2018 --data FOLDER``, in a checkout, draws it
for the authors' data; :doc:`what was found there </papers/samadi2018>`.
"""

# %%
# The protocol of the authors' scripts: groups are measured about their own means.
import matplotlib.pyplot as plt
import numpy as np

from fairpca.datasets import load_german_credit
from fairpca.inference import loss_test
from fairpca.moments import group_moments
from reproductions.samadi2018.protocol import fair_curves, pca_curves

X, sex = load_german_credit(return_X_s=True)
moments = group_moments(X, sensitive_features=sex)
dimensions = list(range(1, 21))
pca, fair = pca_curves(moments, dimensions), fair_curves(moments, dimensions)

# %%
# Theorem 4.5: at the optimum both groups have the same loss. It is reached with the number of components that was asked
# for; the extra dimension in the title is not needed for two groups.
spread = np.ptp(fair.losses, axis=1).max() / X.shape[1]
print(f"largest difference between FairPCA's two losses: {spread:.0e} of the total variance")

# %%
# What the paper does not ask: what do random groups of these sizes show? The smaller group has the larger loss there,
# too. The p-values hold for all numbers of components together.
test = loss_test(X, sensitive_features=sex, n_components=[1, 5, 10, 15, 20], random_state=0)
print(f"share of random divisions that show such losses: at most {test.p_value:.3f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for g, (label, colour) in enumerate(zip(moments.labels, ("#d55e00", "#0072b2"), strict=True)):
    left.plot(dimensions, pca.errors[:, g], "--", color=colour, label=f"{label}, PCA")
    left.plot(dimensions, fair.errors[:, g], color=colour, label=f"{label}, FairPCA")
    right.plot(dimensions, pca.losses[:, g], "--", color=colour, label=f"{label}, PCA")
    expected = [test[d].by_group[label].expected for d in test.dimensions]
    right.plot(list(test.dimensions), expected, "D", color=colour, markersize=4, label=f"{label}, random groups")
right.plot(dimensions, fair.losses[:, 0], color="#009e73", label="both, FairPCA")
left.set(title="error", xlabel="number of components")
right.set(title="loss in the sample", xlabel="number of components", ylim=(0, 5.2))
left.legend()
right.legend(fontsize="small", loc="upper left", ncols=2)
