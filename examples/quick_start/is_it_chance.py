"""Is the difference between the groups chance?
============================================

The loss of a group compares the shared components with the group's own best ones. These overfit the group's own rows,
so that *random* groups show losses too, and small groups larger ones. ``loss_test`` permutes the labels: an exact test
of whether a random division into groups of these sizes would show such losses.
"""

# %%
# Five numbers of components are tested together; the p-values are adjusted for that.
import matplotlib.pyplot as plt
import numpy as np

from fairpca.datasets import load_german_credit
from fairpca.inference import loss_test

X, sex = load_german_credit(return_X_s=True)
numbers = [1, 2, 3, 5, 10]
test = loss_test(X, sensitive_features=sex, n_components=numbers, random_state=0)
print(test)

# %%
# The same rows, with labels drawn at random: here the losses of both groups are what chance gives.
random = np.random.default_rng(0).permutation(sex)
print(loss_test(X, sensitive_features=random, n_components=numbers, random_state=0))

# %%
# The largest difference between the losses, and what random divisions show. It grows with the number of components for
# random groups as well.
figure, ax = plt.subplots(layout="constrained")
ax.plot(numbers, [test[d].gap for d in numbers], "s-", color="#d55e00", label="women and men")
ax.plot(numbers, [test[d].level for d in numbers], "_--", color="#5a6068", label="95 % of random divisions stay under")
ax.plot(numbers, [test[d].expected_gap for d in numbers], "o-", color="#0072b2", label="random divisions, on average")
ax.set(xlabel="number of components", ylabel="difference of the losses in the sample", ylim=(0, None))
ax.set_xticks(numbers)
ax.legend()
