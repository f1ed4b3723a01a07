"""The built site, and files like those that the pages speak of."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.audit.report.conftest import browser  # noqa: F401

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    given = os.environ.get("FAIRPCA_SITE")
    if not given:
        pytest.skip("FAIRPCA_SITE does not name a built site; make docs-check builds it and runs these tests")
    folder = (ROOT / given).resolve()
    assert (folder / "index.html").is_file(), f"no site in {folder}"
    return folder


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small files of the names that the pages use."""
    pandas, pq = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    import pyarrow

    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    people = pandas.DataFrame(rng.normal(size=(300, 7)), columns=[f"x{i}" for i in range(7)])
    people["income"] = rng.integers(0, 2, 300)
    people["sex"] = np.where(rng.random(300) < 0.4, "female", "male")
    (folder / "people").mkdir()
    people.to_csv(folder / "people.csv", index=False)
    people = people.drop(columns="income")
    people.to_parquet(folder / "people.parquet", index=False)
    for part in range(2):
        people[part * 150 :][:150].to_parquet(folder / "people" / f"{part}.parquet", index=False)
    credit = people.assign(default=rng.integers(0, 2, 300))
    credit.to_csv(folder / "credit.csv", index=False)
    pq.write_table(
        pyarrow.Table.from_pandas(credit.assign(id=np.arange(300)), preserve_index=False), folder / "big.parquet"
    )
    return folder
