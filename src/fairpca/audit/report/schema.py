"""The schema of the JSON output, as data."""

from __future__ import annotations

import json
from typing import Any

from fairpca.audit.report._page import asset

__all__ = ["schema"]


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) that ``Audit.figures``, ``Comparison.figures`` and ``--json`` follow.

    Returns
    -------
    dict
        Its ``$defs`` describe every part. ``schema_version`` in the output is ``major.minor``: a larger minor number
        adds entries, a larger major number changes or removes some.

    See Also
    --------
    audit : Its result has the values that this describes.

    Examples
    --------
    >>> from fairpca.audit import schema
    >>> schema()["properties"]["schema_version"]["pattern"]
    '^1\\\\.[0-9]+$'
    """
    return json.loads(asset("audit.schema.json"))
