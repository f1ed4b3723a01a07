"""Everything that a comparison states of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairpca._display import fixed
from fairpca._labels import label_text
from fairpca.inference import Claim, LossTest
from fairpca.inference._claims import KINDS, claims_on_new_rows, components_text
from fairpca.model_selection._features import FeatureStudy
from fairpca.model_selection.comparison import MethodResult

__all__ = ["all_claims"]

_DECISIONS = {
    "demographic_parity": "positive decisions",
    "equal_opportunity": "positive decisions among rows of the positive class",
    "equalized_odds": "positive decisions among rows of one class",
}


def all_claims(
    results: Sequence[MethodResult], test: LossTest | None, features: FeatureStudy | None
) -> tuple[Claim, ...]:
    """Claims of one kind hold together, for all methods, numbers of components, groups and pairs."""
    found = [*test.claims] if test is not None else []
    found += claims_on_new_rows(result.new_rows for result in results)
    for result in results:
        found += [*_readable(result), *_decisions(result)]
    if features is not None:
        found += _features(features)
    return tuple(sorted(found, key=lambda claim: KINDS.index(claim.kind)))


def _auc_text(one: Any, level: float) -> str:
    interval = f"{fixed(one.low, 3)} to {fixed(one.high, 3)}"
    return f"AUC {fixed(one.auc, 3)}, {interval}; random groups stay under {fixed(level, 3)}"


def _readable(result: MethodResult) -> Iterator[Claim]:
    found = result.held_out
    if found.readable:
        text = (
            f"The scores of {result.method} with {components_text(result.n_components)} carry information about the "
            f"group: gradient boosting predicts it from those of new rows (AUC {fixed(found.auc, 3)}, "
            f"{fixed(found.auc_low, 3)} to {fixed(found.auc_high, 3)}; random groups stay under "
            f"{fixed(found.auc_random, 3)})."
        )
        about = ("readable", result.method, result.n_components, found.auc_between)
        yield Claim(*about, found.auc, found.auc_low, found.auc_high, text)


def _features(found: FeatureStudy) -> Iterator[Claim]:
    if found.together.readable:
        one = found.together
        text = f"All features together predict the group on new rows ({_auc_text(one, one.level)})."
        yield Claim("feature", "", None, one.groups, one.auc, one.low, one.high, text)
    for feature in found.proxies.found:
        text = f"“{feature.by}” alone predicts the group on new rows ({_auc_text(feature, found.proxies.level)})."
        yield Claim("feature", "", None, feature.groups, feature.auc, feature.low, feature.high, text)


def _decisions(result: MethodResult) -> Iterator[Claim]:
    decided = result.held_out.decisions
    for name, values in decided.rates.differences.items() if decided is not None else ():
        one = values.gap.joint
        if one.low > 0:
            high, low = map(label_text, values.between)
            text = (
                f"A classifier of the scores of {result.method} with {components_text(result.n_components)} makes more "
                f"{_DECISIONS[name]} about “{high}” than about “{low}”: the shares differ by {fixed(one, 3)} "
                f"({fixed(one.low, 3)} to {fixed(one.high, 3)})."
            )
            about = ("decisions", result.method, result.n_components, values.between)
            yield Claim(*about, one.value, one.low, one.high, text)
