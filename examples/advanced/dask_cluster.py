"""How does a fit run on a Dask cluster?
=====================================

A Dask array is fitted where it lies: each chunk sends one summary, and a tree of merges adds them up. The result does
not depend on the chunks, and a lost worker's chunks are computed again elsewhere.
"""

# %%
# A small cluster on this machine. With your own, pass the address of its scheduler to ``Client``.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from fairpca import FairPCA

client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
groups = da.where(da.arange(80_000, chunks=10_000) < 60_000, "north", "south")
rng = da.random.default_rng(0)
north = rng.normal(size=(60_000, 20), chunks=(10_000, 20)) * np.linspace(3, 1, 20)
south = rng.normal(size=(20_000, 20), chunks=(10_000, 20)) * np.linspace(1, 2, 20)
X = da.concatenate([north, south])  # made by the workers, chunk by chunk, when it is needed

# %%
# ``fit`` computes the moments on the cluster; ``transform`` stays lazy until the scores are needed.
pca = FairPCA(5).fit(X, sensitive_features=groups)
in_memory = FairPCA(5).fit(X.compute(), sensitive_features=groups)
print("largest difference to the fit in memory:", f"{abs(pca.components_ - in_memory.components_).max():.0e}")
scores = pca.transform(X)
print("scores:", type(scores).__name__, scores.shape, "in", scores.numblocks[0], "chunks")

# %%
# Errors of the groups on the cluster, chunk by chunk: only two numbers per chunk travel.
errors = ((X - pca.inverse_transform(scores)) ** 2).sum(axis=1)
means = {group: errors[groups == group].mean().compute() for group in pca.groups_}
client.close()
figure, ax = plt.subplots(layout="constrained")
ax.bar(
    list(means), list(means.values()), width=0.5, color=["#0072b2", "#d55e00"], label="mean error, computed by chunks"
)
ax.plot(pca.groups_, pca.group_errors_, "D", color="#e69f00", label="group_errors_ of the fit")
ax.set(ylabel="reconstruction error, 5 components")
ax.legend()
