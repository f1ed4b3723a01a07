"""The features themselves: which of them reveal the group, and whether a loss depends on a rare value or few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fairpca._labels import label_text, label_texts
from fairpca.inference.dominance import Dominance, dominant_parts_by_dimension
from fairpca.metrics import Readability, Reading, proxies, readability
from fairpca.metrics._reading import joint_levels
from fairpca.model_selection._held_out import smaller
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
    proxies : Readability
        Each feature alone, on held-out rows.
    together : Readability
        All features together, on the same rows.
    influence : dict
        Number of components -> rare values and small sets of rows that account for most of a group's loss.
    rows : dict
        Label -> number of held-out rows that were compared.
    """

    proxies: Readability
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
            "features": [{"feature": one.by, **self._plain(one)} for one in self.proxies.readings],
        }

    def _plain(self, one: Reading | Readability) -> dict[str, Any]:
        values = {name: getattr(one, name) for name in ("auc", "low", "high")}
        return values | {"groups": [label_text(label) for label in one.groups], "rows": self.smallest(one.groups)}

    def smallest(self, groups: tuple[Any, Any]) -> int:
        """Held-out rows of the smaller of two groups; the second may be all the others."""
        return smaller(self.rows, groups)

    def influence_as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {
            str(d): [asdict(one) | {"group": label_text(one.group)} for one in found]
            for d, found in self.influence.items()
        }


def study_features(study: Study, dimensions: Sequence[int], names: Sequence[str]) -> FeatureStudy:
    """Proxies on the rows that were held out for the classifiers; influence on all rows."""
    judged, options = study.held_out_rows.reading(study.X)
    found = proxies(judged, feature_names=names, **options)
    together = readability(judged, **options)
    levels = joint_levels(np.array([found.auc, together.auc]), np.column_stack([found.draws, together.draws]))
    return FeatureStudy(
        proxies=replace(found, level=float(levels[0])),
        together=replace(together, level=float(levels[1])),
        influence=dominant_parts_by_dimension(study.X, study.groups, dimensions, names),
        rows=study.held_out_rows.counts(study.held_out_rows.test_sample),
    )
