"""Lee et al. (2022): can groups with equal means and covariances be merged?

Figure 1 of *Fast and Efficient MMD-Based Fair PCA via Optimization over Stiefel Manifold* projects two groups with the
same mean and covariance but different distributions. The data are synthetic, so that the figure can be redrawn.
`python -m reproductions lee2022 --data FOLDER`, in a checkout, repeats the tables on the authors' splits;
[what was found there](../../papers/lee2022.md).
"""

# %%
# Three samples of 300 rows; one sample says little, because the mean parity method removes the *chance* difference of
# two sample means, wherever it points.
import matplotlib.pyplot as plt

from reproductions.lee2022.synthetic1 import project_sample

samples = [project_sample(seed) for seed in (0, 1, 2)]
for name in samples[0].scores:
    ratios = ", ".join(f"{sample.mmd2[name] / sample.random_level[name]:.2f}" for sample in samples)
    print(f"{name}: MMD² relative to that of random groups in three samples: {ratios}")

# %%
# One line per sample. MbF-PCA (`MMDFairPCA`) merges the groups in each sample; what FPCA (`ParityPCA`) does depends on
# the sample. The paper shows one sample.
figure, lines = plt.subplots(3, 3, figsize=(9, 8), sharex=True, sharey=True, layout="constrained")
for line, sample in zip(lines, samples, strict=True):
    for ax, (name, scores) in zip(line, sample.scores.items(), strict=True):
        for label, colour, text in ((0, "#0072b2", "normal"), (1, "#d55e00", "mixture")):
            ax.plot(*scores[sample.groups == label].T, ".", color=colour, markersize=3, label=text)
        ax.set_title(f"{name}: MMD² {sample.mmd2[name]:.2g}", fontsize="medium")
lines[0, 0].legend(markerscale=3, fontsize="small")
