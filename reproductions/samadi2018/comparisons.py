"""The paper's differences between groups, tested against chance and on new rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reproductions._differences import Difference, Rows, count_steps, judge
from reproductions._steps import Steps
from reproductions.samadi2018.protocol import Data, equal_rows
from reproductions.samadi2018.study import published_of

__all__ = ["Comparison", "comparisons_of"]

#: Dimensions of the paper's Figure 4. Of the faces only few, and few divisions, since each takes a second: 39 are
#: enough for the level of 5 %, and no p-value is printed for rows that repeat persons.
_OF_IMAGES, _OF_TABLES = (5, 20), (2, 5, 8, 12, 20)
_DIVISIONS_OF_IMAGES, _DIVISIONS_OF_TABLES = 39, 999


@dataclass(frozen=True)
class Comparison:
    """Rows that the paper compares, and at which numbers of components."""

    rows: Rows
    published: str
    dimensions: tuple[int, ...]
    n_permutations: int

    @property
    def steps(self) -> int:
        return count_steps()

    def judge(self, steps: Steps) -> list[Difference]:
        return judge(self.rows, "Figure 4", self.published, self.dimensions, self.n_permutations, steps)


def comparisons_of(data: Data) -> list[Comparison]:
    """All rows; of images also as many of each group as the smallest has, since losses depend on sizes."""
    published, _ = published_of(data)
    title, said, repeats = data.name, "", ""
    if published is not None:
        title, repeats = published.title, published.repeats
        said = f"PCA's loss is larger for {published.worse}"
    wanted, divisions = (_OF_IMAGES, _DIVISIONS_OF_IMAGES) if data.images else (_OF_TABLES, _DIVISIONS_OF_TABLES)
    # With all components kept there is no loss, and with fewer rows than components no own optimum.
    smallest = int(np.unique(data.groups, return_counts=True)[1].min())
    dimensions = tuple(d for d in wanted if d < min(data.X.shape[1], smallest)) or (1,)
    found = [Rows(title, data.X, data.groups, repeats=repeats)]
    if data.images:
        chosen = equal_rows(data, smallest, 0)
        found.append(Rows(title, data.X[chosen], data.groups[chosen], f"{smallest} of each group", repeats))
    return [Comparison(rows, said, dimensions, divisions) for rows in found]
