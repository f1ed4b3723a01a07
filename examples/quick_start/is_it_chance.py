"""Is the difference between the groups chance?

The loss of a group compares the shared components with the group's own best ones. These overfit the group's own rows,
so that *random* groups show losses too, and small groups larger ones. `loss_test` permutes the labels: an exact test
of whether a random division into groups of these sizes would show such losses.
"""

# %%
# Three numbers of components are tested together; the p-values are adjusted for that.
import matplotlib.pyplot as plt
import numpy as np

from fairpca.datasets import load_german_credit
from fairpca.inference import loss_test

X, sex = load_german_credit(return_X_s=True)
test = loss_test(X, sensitive_features=sex, n_components=[2, 5, 10], random_state=0)
print(test)

# %%
# The same rows, with labels drawn at random: here the losses of both groups are what chance gives.
random = np.random.default_rng(0).permutation(sex)
print(loss_test(X, sensitive_features=random, n_components=[2, 5, 10], random_state=0))

# %%
# The statistic of each of the 999 random divisions, and that of the division into women and men.
figure, ax = plt.subplots(layout="constrained")
ax.hist(test.null, bins=30, color="#56b4e9", label="999 random divisions")
ax.axvline(test.statistic, color="#d55e00", label="women and men")
ax.set(xlabel="largest loss of a group, relative to random divisions", ylabel="number of divisions")
ax.legend()
