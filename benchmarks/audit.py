"""The audit of 30000 rows of default credit with all methods and ten numbers of components, step by step.

Needs the papers' data (`$FAIRPCA_DATA` or `../shared/data`). Times are of this machine; what matters is the total
against a minute on two cores, and the share of each step.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from fairpca.audit import audit, prepare
from fairpca.model_selection import METHODS, compare

FOLDER = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).parents[2] / "shared" / "data"))
FILE = FOLDER / "uci" / "UCI_Credit_Card.csv"


def main() -> int:
    if not FILE.is_file():
        print(f"skipped: {FILE} is absent")
        return 0
    start = time.perf_counter()
    data = prepare(FILE, "SEX", "default.payment.next.month")
    read = time.perf_counter() - start
    found = audit(data.X, sensitive_features=data.groups, y=data.label, n_components=range(1, 11), n_jobs=-1)
    page = found.html()
    total = time.perf_counter() - start
    print(f"{'reading the file':<24} {read:6.1f} s")
    print(f"{'audit, all methods':<24} {total - read:6.1f} s   report of {len(page) / 1e6:.2f} MB")
    for name in METHODS:
        begin = time.perf_counter()
        compare(data.X, sensitive_features=data.groups, y=data.label, n_components=5, methods=[name])
        print(f"  {name + ', d = 5, one core':<34} {time.perf_counter() - begin:6.1f} s")
    print(f"{'total':<24} {total:6.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
