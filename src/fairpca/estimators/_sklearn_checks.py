"""scikit-learn's estimator checks, which call ``fit`` without groups."""

from __future__ import annotations

from typing import Any

_REASON = "fit requires sensitive_features, which scikit-learn's check does not pass"
#: The checks that do not need a fit to succeed.
_WITHOUT_FIT = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_transformers_unfitted",
    "check_valid_tag_types",
}


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks of scikit-learn that cannot pass because they fit without groups, and why.

    No tag of scikit-learn says that ``fit`` has a required argument, so this is passed to its
    :func:`~sklearn.utils.estimator_checks.check_estimator`. All checks pass on a subclass that supplies groups.

    Parameters
    ----------
    estimator : estimator
        An instance, unfitted.

    Returns
    -------
    dict of str to str
        Name of each check, and the reason.

    See Also
    --------
    sklearn.utils.estimator_checks.check_estimator : Takes it as ``expected_failed_checks``.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.utils.estimator_checks import check_estimator
    >>> from fairpca import FairPCA
    >>> from fairpca.estimators import expected_failed_checks
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # scikit-learn warns about checks that it skips
    ...     found = check_estimator(FairPCA(), expected_failed_checks=expected_failed_checks(FairPCA()))
    >>> sorted({check["status"] for check in found} - {"skipped"})
    ['passed', 'xfail']
    """
    from sklearn.utils.estimator_checks import estimator_checks_generator

    names = {getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(estimator)}
    return dict.fromkeys(sorted(names - _WITHOUT_FIT), _REASON)
