"""The features themselves: which of them reveal the group, and whether a loss depends on a rare value or few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fairpca._labels import label_text, label_texts
from fairpca.inference.dominance import Dominance, dominant_parts_by_dimension
from fairpca.metrics import Proxies, Readability, proxies, readability
from fairpca.metrics._auc import joint_levels
from fairpca.model_selection._study import Study

__all__ = ["FeatureStudy", "study_features"]

#: Features that are named where the list would be long.
NAMED = 10


@dataclass(frozen=True)
class FeatureStudy:
    """What the features reveal about the group, and what a loss rests on.

    The levels of random groups hold for the best single feature and for all features together at once.

    Attributes
    ----------
    proxies : Proxies
        Each feature alone, on held-out rows.
    together : Readability
        All features together, on the same rows.
    influence : dict
        Number of components -> rare values and small sets of rows that account for most of a group's loss.
    rows : dict
        Label -> number of held-out rows that were compared.
    """

    proxies: Proxies
    together: Readability
    influence: dict[int, tuple[Dominance, ...]]
    rows: dict[Any, int]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            "level": self.proxies.level,
            "n_rows": self.proxies.n_rows,
            "rows": dict(zip(label_texts(self.rows), self.rows.values(), strict=True)),
            "found": len(self.proxies.found),
            "together": self._plain(self.together) | {"level": self.together.level},
            "features": [{"feature": one.feature, **self._plain(one)} for one in self.proxies.features],
        }

    def _plain(self, one: Any) -> dict[str, Any]:
        return {
            "auc": one.auc,
            "low": one.low,
            "high": one.high,
            "groups": [label_text(label) for label in one.groups],
            "rows": self.smallest(one.groups),
        }

    def smallest(self, groups: tuple[Any, Any]) -> int:
        """Held-out rows of the smaller of two groups; the second may be all the others."""
        first, second = groups
        others = sum(self.rows.values()) - self.rows[first]
        return min(self.rows[first], others if second == "rest" else self.rows[second])

    def influence_as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            str(d): [asdict(one) | {"group": label_text(one.group)} for one in found]
            for d, found in self.influence.items()
        }


def study_features(study: Study, dimensions: Sequence[int], names: Sequence[str]) -> FeatureStudy:
    """Proxies on the rows that were held out for the classifiers; influence on all rows."""
    train, judged = study.split.train_sample, study.split.test_sample
    codes, labels = study.groups.codes, study.groups.labels
    options: dict[str, Any] = {
        "train": (study.X[train], codes[train]),
        "random_state": study.seed,
        "clusters": None if study.clusters is None else study.clusters[judged],
    }
    found = proxies(study.X[judged], sensitive_features=codes[judged], feature_names=names, **options)
    together = readability(study.X[judged], sensitive_features=codes[judged], **options)
    observed = np.array([found.features[0].auc, together.auc])
    levels = joint_levels(observed, np.column_stack([found.draws, together.draws]))
    return FeatureStudy(
        proxies=replace(found, features=tuple(_named(one, labels) for one in found.features), level=float(levels[0])),
        together=replace(_named(together, labels), level=float(levels[1])),
        influence=dominant_parts_by_dimension(study.X, study.groups, dimensions, names),
        rows=dict(zip(labels, np.bincount(codes[judged], minlength=len(labels)).tolist(), strict=True)),
    )


def _named(one: Any, labels: Sequence[Any]) -> Any:
    """The groups by label instead of by code."""
    first, second = one.groups
    return replace(one, groups=(labels[first], second if isinstance(second, str) else labels[second]))
