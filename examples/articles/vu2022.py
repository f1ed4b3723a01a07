"""Vu et al. (2022): which direction does the penalty choose?
==========================================================

Figure 1 of *Distributionally Robust Fair Principal Components via Geodesic Descents* shows one component in the plane.
The example is synthetic, so that it can be redrawn exactly. The figure's text says that a heavy penalty recovers
FairPCA. ``python -m reproductions vu2022 --data FOLDER``, in a checkout, repeats the paper's tables;
:doc:`what was found there </papers/vu2022>`.
"""

# %%
# The population itself: two groups with shares 2/3 and 1/3, without sampling error.
import matplotlib.pyplot as plt
import numpy as np

from fairpca.datasets import make_toy
from reproductions.vu2022.toy import directions

found = directions()
for one in found:
    print(f"{one.method:28s} {one.angle:6.2f} degrees, errors {one.errors.round(3)}, losses {one.losses.round(3)}")

# %%
# A heavy penalty makes the *errors* equal, FairPCA the *losses*. The two directions are neighbours, half a degree
# apart, not the same.
heavy, fair = found[-2], found[-1]
print(f"angle between them: {abs(heavy.angle - fair.angle):.2f} degrees")

# %%
X, groups = make_toy(random_state=1)
figure, ax = plt.subplots(figsize=(6.5, 5.5), layout="constrained")
for label, colour in ((0, "#56b4e9"), (1, "#e69f00")):
    ax.plot(*X[groups == label].T, ".", color=colour, markersize=4, label=f"group {label}, a sample")
styles = {"PCA": "#0072b2", heavy.method: "#d55e00", "FairPCA": "#009e73"}
for one in found:
    end = 5 * np.array([np.cos(np.radians(one.angle)), np.sin(np.radians(one.angle))])
    named = one.method in styles
    style = {"color": styles.get(one.method, "0.6"), "linewidth": 2 if named else 0.8}
    style["linestyle"] = "--" if one.method == "FairPCA" else "-"
    ax.plot(*np.array([-end, end]).T, label=one.method if named else None, **style)
ax.set(xlim=(-6, 6), ylim=(-6, 6), aspect="equal", xlabel="first feature", ylabel="second feature")
ax.legend(fontsize="small", loc="lower left")
