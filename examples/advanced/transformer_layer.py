"""How do I erase a group inside a transformer layer?
==================================================

Hidden states have the shape [batch, tokens, features]. An eraser learns from batches of them, one group per text, and
its map is applied wherever the states pass. The layer here is a small one in numpy, with states in half precision.
"""

# %%
# Texts of 12 to 30 tokens in two languages. The language shifts every token; the first token also depends on a topic.
import matplotlib.pyplot as plt
import numpy as np

from fairpca import LeaceEraser
from fairpca.metrics import readability

rng = np.random.default_rng(0)
weights = rng.normal(size=(3, 32, 32)) / 6


def texts(n):
    language, topic = rng.integers(0, 2, n), rng.integers(0, 3, n)
    mask = np.arange(30) < rng.integers(12, 31, n)[:, None]
    states = rng.normal(size=(n, 30, 32)) + 0.5 * np.outer(language, np.ones(32) / 2)[:, None, :]
    states[:, 0, :3] += 2 * np.eye(3)[topic]
    return states.astype(np.float16), mask, language, topic


def attention(states, mask):
    query, key, value = (states.astype(np.float32) @ one for one in weights)
    scores = np.where(mask[:, None, :], query @ key.transpose(0, 2, 1), -np.inf)
    shares = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (states + shares / shares.sum(axis=2, keepdims=True) @ value).astype(np.float16)


# %%
# One pass over the training texts, batch by batch. The language of a text counts for all of its tokens; a weight of 0
# leaves out padding. With torch, pass tensors, and use ``eraser.to_torch()`` as a module of the model.
eraser = LeaceEraser()
for _ in range(20):
    states, mask, language, _ = texts(50)
    eraser.partial_fit(attention(states, mask), sensitive_features=language, sample_weight=mask.astype(float))
print(f"{eraser.n_samples_seen_} tokens, {eraser.distortion_:.2%} of their variance changed")

# %%
# New texts: what readers see of the language in single tokens, before and after. The type and the shape stay.
states, mask, language, _ = texts(300)
before = attention(states, mask)
after = eraser.transform(before)
every = np.repeat(language[:, None], 30, axis=1)[mask]
found = [readability(one[mask].astype(float), sensitive_features=every, family="linear") for one in (before, after)]
print(after.dtype, after.shape, *found, sep="\n")

# %%
figure, ax = plt.subplots(layout="constrained")
for place, one in enumerate(found):
    ax.errorbar(place, one.auc, [[one.auc - one.low], [one.high - one.auc]], marker="o", color="#0072b2", capsize=4)
    ax.plot(place, one.level, "_", color="#d55e00", markersize=40, markeredgewidth=2)
ax.set_xticks([0, 1], ["hidden states", "after the eraser"])
ax.set(ylabel="AUC of the language, linear reader", xlim=(-0.5, 1.5))
