"""Errors describe the data; a program adds the names of its options."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from fairpca.audit import TableError, prepare
from fairpca.audit.errors import Remedy

OPTIONS = {"drop": "--drop", "max_levels": "--max-levels", "sensitive": "--sensitive", "label": "--label"}


def test_problem_and_remedies_form_one_sentence():
    assert str(TableError("people.csv is empty")) == "people.csv is empty."
    assert str(TableError("Too many", "drop some")) == "Too many: drop some."
    three = TableError("Too many", Remedy("leave it out", "drop"), "group them", Remedy("raise the limit", "limit"))
    assert str(three) == "Too many: leave it out, group them, or raise the limit."
    assert three.sentence({"drop": "-d"}) == "Too many: leave it out (-d), group them, or raise the limit."


def test_another_process_gets_the_same_error():
    error = TableError("Too many", Remedy("leave it out", "drop"))
    again = pickle.loads(pickle.dumps(error))
    assert (again.problem, again.remedies, str(again)) == (error.problem, error.remedies, str(error))


def table(**changes):
    columns = {"x": np.arange(60.0) ** 2, "sex": np.array(["f", "m"] * 30, dtype=object), "y": np.arange(60.0) % 2}
    return columns | changes


HALF = np.where(np.arange(60) % 2, np.arange(60.0), np.nan)  # missing in the other half of the rows
NAMES = np.array([f"p{i}" for i in range(60)], dtype=object)


@pytest.mark.parametrize(
    ("given", "options", "flag"),
    [
        (table(name=NAMES), {"max_levels": 20}, "(--max-levels 60)"),
        (table(name=NAMES), {"max_levels": 20}, "(--drop name)"),
        (table(x=np.arange(60.0) * 1e200), {}, "(--drop x)"),
        (table(sex=np.zeros(60)), {}, "(--sensitive)"),
        (table(sex=np.arange(60.0)), {}, "(--sensitive)"),
        (table(y=np.zeros(60)), {"label": "y"}, "(--label)"),
        (table(y=np.arange(60.0)), {"label": "y"}, "(--label)"),
        (table(), {"label": "sex"}, "(--label)"),
        (table(), {"drop": ["x", "y"]}, "(--drop)"),
        (table(x=HALF, y=HALF[::-1]), {}, "(--drop)"),
    ],
)
def test_only_programs_name_their_options(given, options, flag):
    with pytest.raises(TableError) as caught:
        prepare(given, ["sex"], **options)
    assert "--" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert flag in caught.value.sentence(OPTIONS)
