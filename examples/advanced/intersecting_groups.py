"""Do intersections of groups hide in the average?
===============================================

A projection may serve women and men alike, and young and old alike, and still serve young women worse. Several columns
of ``sensitive_features`` mean their intersections. Small intersections have large losses by chance alone, so the chance
level stands beside each loss.
"""

# %%
# Sex and age (under 30 or not) give four groups.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.inference import loss_test
from fairpca.metrics import reconstruction_loss

credit = load_german_credit(scaled=False)
age = credit.data[:, credit.feature_names.index("age")]
groups = np.column_stack([credit.sensitive_features, np.where(age < 30, "under 30", "30 and over")])
X, _ = load_german_credit(return_X_s=True)

test = loss_test(X, sensitive_features=groups, n_components=5, random_state=0)
print(test)

# %%
# FairPCA takes the same groups. Its largest loss in the sample is proven to be the smallest possible up to
# ``duality_gap_``.
ordinary = reconstruction_loss(X, PCA(5).fit(X), sensitive_features=groups)
balanced = FairPCA(5).fit(X, sensitive_features=groups)
print(f"largest loss: PCA {ordinary.max:.3f}, FairPCA {max(balanced.group_losses_):.3f}")
print(f"duality gap: {balanced.duality_gap_:.1e}")

# %%
figure, ax = plt.subplots(layout="constrained")
labels = list(test.by_group)
height = np.arange(len(labels))
names = [f"{', '.join(label)} ({test.by_group[label].rows:.0f} rows)" for label in labels]
ax.barh(height + 0.2, [test.by_group[label].loss for label in labels], 0.36, color="#0072b2", label="PCA")
ax.barh(height - 0.2, balanced.group_losses_, 0.36, color="#d55e00", label="FairPCA")
expected = [test.by_group[label].expected for label in labels]
ax.plot(expected, height + 0.2, "D", color="#e69f00", label="random groups of this size, PCA")
ax.set_yticks(height, names)
ax.set(xlabel="loss in the sample, 5 components")
figure.legend(loc="outside upper center", ncols=3, fontsize="small")
