"""How do I remove the scanner from slide embeddings?
==================================================

Embeddings of the same tissue differ between scanners, so that neighbours share a scanner rather than a diagnosis. The
scanner is erased; what links the embeddings to the diagnosis is kept. These embeddings are simulated.
"""

# %%
# Four scanners shift the embeddings, and one of them also stretches a few dimensions. Tumours are more frequent on two
# scanners, as where hospitals differ.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from fairpca import LeaceEraser
from fairpca.metrics import readability

rng = np.random.default_rng(0)
scanner = rng.integers(0, 4, 4000)
tumour = (rng.random(4000) < np.where(scanner < 2, 0.6, 0.3)).astype(int)
X = rng.normal(size=(4000, 64)) + 0.6 * rng.normal(size=(4, 64))[scanner] + 0.4 * tumour[:, None] * rng.normal(size=64)
X[scanner == 3, :4] *= 1.7
old, new = slice(0, 2000), slice(2000, 4000)

# %%
# Both maps are fitted to the first half. ``preserve="label"`` changes a little more, and keeps the covariance with the
# diagnosis exactly.
maps = {"as they are": lambda rows: rows}
for name, eraser in (("erased", LeaceEraser()), ("erased, diagnosis kept", LeaceEraser(preserve="label"))):
    maps[name] = eraser.fit(X[old], tumour[old], sensitive_features=scanner[old]).transform
    print(f"{name}: {eraser.distortion_:.1%} of the variance changed, norm of the map {eraser.map_norm_:.2f}")

# %%
# On the second half: what linear and strong readers still see of the scanner, whether neighbours share it, and what a
# classifier that was trained on embeddings as they were makes of the new ones.
head = LogisticRegression(max_iter=1000).fit(X[old], tumour[old])
found = {}
for name, change in maps.items():
    before, after = change(X[old]), change(X[new])
    auc = {
        family: readability(after, sensitive_features=scanner[new], train=(before, scanner[old]), family=family).auc
        for family in ("linear", "boosting")
    }
    near = NearestNeighbors(n_neighbors=6).fit(after).kneighbors(return_distance=False)
    auc["neighbours"] = np.mean(scanner[new][near] == scanner[new][:, None])
    auc["diagnosis"] = head.score(after, tumour[new])
    found[name] = auc
    print(name, {what: round(float(value), 3) for what, value in auc.items()})

# %%
figure, ax = plt.subplots(layout="constrained")
for place, (name, values) in enumerate(found.items()):
    ax.bar(np.arange(4) + 0.27 * (place - 1), list(values.values()), 0.25, label=name)
ax.set_xticks(
    range(4), ["AUC, linear", "AUC, boosting", "neighbours of\nthe same scanner", "accuracy of\nthe diagnosis"]
)
ax.legend()
