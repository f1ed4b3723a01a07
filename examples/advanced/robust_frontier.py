"""What does a smaller gap between the groups cost?
================================================

For two groups the whole trade-off is known: ``frontier`` traces, for each gap between the groups' errors, the least
total error that any projection has. ``RobustFairPCA`` moves along it with its ``penalty``.
"""

# %%
# The frontier is exact: every point is a weighted PCA. Ordinary PCA lies at its left end.
import matplotlib.pyplot as plt

from fairpca import RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.model_selection import frontier

X, sex = load_german_credit(return_X_s=True)
curve = frontier(X, sensitive_features=sex, n_components=3)
for name, point in curve.methods.items():
    print(f"{name:27s} total error {point.total_error:.3f}, gap {point.gap:.3f}")

# %%
# Each penalty has its point on the frontier (radius 0: no allowance for shifts), proven optimal by ``duality_gap_``.
penalties = [0.0, 0.2, 0.5, 1.0, 2.0]
fits = [RobustFairPCA(3, penalty=one, radius=0.0).fit(X, sensitive_features=sex) for one in penalties]
shares = fits[0].group_counts_ / fits[0].group_counts_.sum()
points = [(abs(fit.group_errors_[0] - fit.group_errors_[1]), shares @ fit.group_errors_) for fit in fits]
print("largest duality gap:", f"{max(fit.duality_gap_ for fit in fits):.1e}")

# %%
# A gap can also be closed by representing the better-off group worse: look at the errors themselves, too.
figure, ax = plt.subplots(layout="constrained")
ax.plot(curve.gap, curve.total_error, color="#56b4e9", label="least total error for each gap")
for penalty, (gap, total) in zip(penalties, points, strict=True):
    ax.plot(gap, total, "o", color="#d55e00")
    ax.annotate(f"{penalty:g}", (gap, total), textcoords="offset points", xytext=(6, 6))
ax.plot([], [], "o", color="#d55e00", label="RobustFairPCA, by penalty")
balanced = curve.methods["FairPCA(criterion='error')"]
ax.plot(balanced.gap, balanced.total_error, "s", color="#009e73", label="FairPCA(criterion='error')")
ax.set(xlabel="gap between the groups' errors", ylabel="error of all rows")
ax.legend()
