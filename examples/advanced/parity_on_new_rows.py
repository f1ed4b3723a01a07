"""How much does a classifier still learn about the group from the scores of new rows?
===================================================================================

Parity methods make the projected groups alike. Whether the group is hidden is a question about *new* rows and a strong
classifier: ``readability`` trains gradient boosting on the training scores and measures its AUC on held-out scores.
"""

# %%
# Every projection is fitted to 700 rows and judged on the other 300.
import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from fairpca import MMDFairPCA, ParityPCA
from fairpca.datasets import load_german_credit
from fairpca.metrics import explained_variance_ratio, readability

X, sex = load_german_credit(return_X_s=True)
X_train, X_new, s_train, s_new = train_test_split(X, sex, test_size=300, random_state=0, stratify=sex)
methods = {
    "PCA": PCA(3).fit(X_train),
    "ParityPCA (equal means)": ParityPCA(3).fit(X_train, sensitive_features=s_train),
    "MMDFairPCA (alike distributions)": MMDFairPCA(3, random_state=0).fit(X_train, sensitive_features=s_train),
}

# %%
# "level" is what random groups stay under in 19 of 20 draws. An AUC below it is consistent with a hidden group; it
# does not prove one.
found = {}
for name, method in methods.items():
    train = (method.transform(X_train), s_train)
    found[name] = readability(method.transform(X_new), sensitive_features=s_new, train=train, random_state=0)
    kept = explained_variance_ratio(X_new, method)
    print(f"{name}: AUC {found[name].auc:.3f}, level {found[name].level:.3f}, variance kept {kept:.1%}")

# %%
figure, ax = plt.subplots(layout="constrained")
for place, one in enumerate(found.values()):
    ax.errorbar(
        one.auc, place, xerr=[[one.auc - one.low], [one.high - one.auc]], marker="o", color="#0072b2", capsize=4
    )
    ax.plot(one.level, place, "|", color="#d55e00", markersize=22, markeredgewidth=2)
ax.plot([], [], "o", color="#0072b2", label="AUC with its 95 % interval")
ax.plot([], [], "|", color="#d55e00", markeredgewidth=2, label="level of random groups")
ax.set_yticks(range(len(found)), list(found))
ax.set(xlabel="AUC of predicting the group from held-out scores", ylim=(-0.6, 2.6))
ax.legend()
