"""Erase, then compress: what do I gain over leaving out directions?
=================================================================

Search over embeddings often stores a few dimensions of each. Erasing first and compressing then keeps more of the
variance than an orthogonal projection with equal group means, and ``LeacePCA`` does both in one map.
"""

# %%
# Embeddings of 48 features whose leading directions differ between three sources.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fairpca import LeaceEraser, LeacePCA, ParityPCA

rng = np.random.default_rng(0)
source = rng.integers(0, 3, 3000)
spread = 3 / np.sqrt(np.arange(1, 49))
X = rng.normal(size=(3000, 48)) * spread + rng.normal(size=(3, 48))[source] * spread * 0.8
old, new = slice(0, 1500), slice(1500, 3000)

# %%
# PCA of erased rows is LeacePCA: the scores are the same.
erased = LeaceEraser().fit(X[old], sensitive_features=source[old])
compressed = PCA(8).fit(erased.transform(X[old]))
both = LeacePCA(8).fit(X[old], sensitive_features=source[old])
apart = compressed.transform(erased.transform(X[new]))
signs = np.sign((apart * both.transform(X[new])).sum(axis=0))
print("largest difference of the scores:", f"{np.abs(apart - signs * both.transform(X[new])).max():.1e}")

# %%
# Variance of new rows that the reconstruction keeps, by the number of stored dimensions.
dimensions = np.arange(1, 25)
total = ((X[new] - X[old].mean(axis=0)) ** 2).sum()
kept = {}
for method in (LeacePCA, ParityPCA):
    fits = [method(int(d)).fit(X[old], sensitive_features=source[old]) for d in dimensions]
    kept[method.__name__] = [1 - ((X[new] - f.inverse_transform(f.transform(X[new]))) ** 2).sum() / total for f in fits]
plain = [PCA(int(d)).fit(X[old]) for d in dimensions]
kept["PCA"] = [1 - ((X[new] - f.inverse_transform(f.transform(X[new]))) ** 2).sum() / total for f in plain]

# %%
figure, ax = plt.subplots(layout="constrained")
for name, values in kept.items():
    ax.plot(dimensions, values, marker=".", label=name)
ax.set(xlabel="stored dimensions", ylabel="share of variance kept, new rows")
ax.legend()
