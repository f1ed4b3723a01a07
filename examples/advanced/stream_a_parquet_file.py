"""Can a file that does not fit into memory be fitted?
===================================================

Rows are reduced to a count, a mean and a scatter matrix per group, which merge. So a Parquet file of any length is read
once, batch by batch, and the result is the same as with all rows in memory, to rounding.
"""

# %%
# A file of 400,000 rows, written in parts; two groups with different covariances.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairpca import FairPCA
from fairpca.moments.arrow import moments_from_parquet

rng = np.random.default_rng(0)
scales = {"a": np.linspace(3, 1, 12), "b": np.linspace(1, 2, 12)}
folder = tempfile.TemporaryDirectory()
file, writer = Path(folder.name, "people.parquet"), None
for _ in range(8):
    groups = rng.choice(["a", "b"], size=50_000, p=[0.7, 0.3])
    rows = rng.normal(size=(50_000, 12)) * np.where(groups[:, None] == "a", scales["a"], scales["b"])
    table = pa.table({f"x{i}": rows[:, i] for i in range(12)} | {"group": groups})
    writer = writer or pq.ParquetWriter(file, table.schema)
    writer.write_table(table)
writer.close()

# %%
# One pass. The progress function records how many rows have been read, and how large the summary is.
steps = []
moments = moments_from_parquet(file, "group", n_jobs=1, progress=lambda done, total, what: steps.append(done))
pca = FairPCA(4).fit_moments(moments)
print(f"{moments.counts.sum():,.0f} rows in {len(steps)} batches; the summary holds {moments.scatters.size} numbers")
for group, loss in zip(pca.groups_, pca.group_losses_, strict=True):
    print(f"loss of group {group}: {loss:.4f}")

# %%
figure, ax = plt.subplots(layout="constrained")
ax.plot(range(1, len(steps) + 1), np.array(steps) * 12, "o-", color="#0072b2", label="numbers read from the file")
ax.axhline(moments.scatters.size, color="#d55e00", linestyle="--", label="numbers kept of them")
ax.set(xlabel="batch", yscale="log", ylim=(100, None))
ax.legend()
folder.cleanup()
