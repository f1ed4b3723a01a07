"""Lee et al. (2022): can groups with equal means and covariances be merged?
=========================================================================

Figure 1 of *Fast and Efficient MMD-Based Fair PCA via Optimization over Stiefel Manifold* projects two groups with the
same mean and covariance but different distributions. The data are synthetic, so that the figure can be redrawn.
``python -m reproductions lee2022 --data FOLDER``, in a checkout, repeats the tables on the authors' splits;
:doc:`what was found there </papers/lee2022>`.
"""

# %%
# Mean parity (FPCA, ``ParityPCA``) removes the *chance* difference of two sample means, wherever it points. So ten
# samples of 300 rows are drawn; those in which it leaves the least and the most of the difference are shown.
import matplotlib.pyplot as plt

from reproductions.lee2022.synthetic1 import METHODS, project_sample

pca, fpca, mbf = (method.name for method in METHODS)
ratios = {}
for seed in range(10):
    sample = project_sample(seed, METHODS[:2])
    ratios[seed] = {name: sample.mmd2[name] / sample.random_level[name] for name in (pca, fpca)}
for name in (pca, fpca):
    found = sorted(one[name] for one in ratios.values())
    print(f"{name}: MMD² relative to random groups, ten samples: {', '.join(f'{value:.2f}' for value in found)}")

# %%
# MbF-PCA (``MMDFairPCA``) merges the groups in both samples. The paper shows one sample, of the second kind.
least, most = sorted(ratios, key=lambda seed: ratios[seed][fpca])[:: len(ratios) - 1]
figure, lines = plt.subplots(2, 3, figsize=(9, 5.6), sharex=True, sharey=True, layout="constrained")
for line, seed in zip(lines, (least, most), strict=True):
    sample = project_sample(seed)
    print(f"sample {seed}: {mbf} leaves {sample.mmd2[mbf] / sample.random_level[mbf]:.2f} of the random level")
    for ax, (name, scores) in zip(line, sample.scores.items(), strict=True):
        for label, colour, text in ((0, "#0072b2", "normal"), (1, "#d55e00", "mixture")):
            ax.plot(*scores[sample.groups == label].T, ".", color=colour, markersize=3, label=text)
        ax.set_title(f"{name.split()[0]}, sample {seed}: MMD² {sample.mmd2[name]:.2g}", fontsize="medium")
lines[0, 0].legend(markerscale=3, fontsize="small")
