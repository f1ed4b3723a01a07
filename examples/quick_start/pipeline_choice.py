"""How many components should a pipeline use?
==========================================

FairPCA is a scikit-learn transformer. With metadata routing, ``GridSearchCV`` passes the groups on to it, so that the
number of components is chosen by cross-validation like any other parameter.
"""

# %%
# Routing has to be switched on once; then ``sensitive_features`` reaches every step that asks for it.
import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_german_credit

sklearn.set_config(enable_metadata_routing=True)
credit = load_german_credit(scaled=False)
pipeline = make_pipeline(StandardScaler(), FairPCA(), LogisticRegression(max_iter=1000))
choices = [2, 5, 10, 15, 20, 30, 40]
search = GridSearchCV(pipeline, {"fairpca__n_components": choices}, scoring="roc_auc", cv=5)
search.fit(credit.data, credit.target, sensitive_features=credit.sensitive_features)
print("chosen:", search.best_params_["fairpca__n_components"], "components")

# %%
# Standard errors are over the five folds. What the choice means for the groups is shown by the fitted step.
fitted = search.best_estimator_.named_steps["fairpca"]
for group, loss in zip(fitted.groups_, fitted.group_losses_, strict=True):
    print(f"loss in the sample, {group}: {loss:.3f}")

# %%
figure, ax = plt.subplots(layout="constrained")
mean, spread = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
ax.errorbar(choices, mean, spread / np.sqrt(5), color="#0072b2", marker="o", capsize=3)
ax.axvline(search.best_params_["fairpca__n_components"], color="#d55e00", linestyle="--", label="chosen")
ax.set(xlabel="number of components", ylabel="AUC of predicting repayment, held out")
ax.legend()
