"""What Samadi et al. (2018) print, with the place in the paper.

The curves of Figures 1, 3 and 4 are printed as drawings only, without numbers. What the text says about them is kept
here as numbers; the theorems and the remarks on the algorithm hold for any data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "ACCURACY",
    "ERROR_GAP_TOLERANCE",
    "MOST_CALLS",
    "PUBLISHED",
    "ROUNDING",
    "SDP_ACCURACY",
    "SECONDS",
    "STEPS",
    "Published",
]

#: Section 1: the running time of multiplicative weights is that of at most 10-15 ordinary PCAs.
MOST_CALLS = 15
#: Section 5: accuracy of multiplicative weights after tuning its rate, "within tens of iterations" ...
ACCURACY = 1e-5
#: Section 5: a fit of "up to a thousand" dimensions takes less than this.
SECONDS = 60.0
#: ... and Appendix A: "at most 10-20 iterations".
STEPS = 20

#: Equalities that theory promises exactly: the default solver stops at 1e-11 of the total variance.
ROUNDING = 1e-10
#: The first-order conic solver of Algorithm 1 is accurate to 1e-5 of the total variance at best.
SDP_ACCURACY = 1e-5
#: "At the scale of up to 10 %" has one digit, so 5 to 15 % are the same statement.
ERROR_GAP_TOLERANCE = 5.0


@dataclass(frozen=True)
class Published:
    """About one data set. ``worse`` is the group that the paper finds PCA to represent worse.

    Other data may have the same name (``images``), so the number of rows must agree too.

    ``script`` maps d to the largest loss at which the authors' script ends (their mw.m, rate 1, ten steps), the
    groups being centred as its comment says; with the precision to which it was noted.

    ``repeats`` says why rows are not independent, where that cannot be allowed for.
    """

    title: str
    rows: int
    worse: str
    features: int
    error_gap_percent: float | None = None
    script: dict[int, tuple[float, float]] = field(default_factory=dict)
    repeats: str = ""


_FACES = Published(
    "LFW faces", 13232, "women", 1764, error_gap_percent=10.0,
    repeats="pictures repeat persons, and the data do not say whose they are",
)  # fmt: skip
_CREDIT = Published("Default credit", 30000, "lower education", 21, script={5: (0.0545, 5e-5), 12: (0.01125, 5e-6)})

#: From the name of a file (or folder of images), without its suffix.
PUBLISHED = {
    "lfw_42x42": _FACES,
    "lfw": _FACES,
    "images": _FACES,
    "default_degree": _CREDIT,
    "UCI_Credit_Card": _CREDIT,
    "default of credit card clients": _CREDIT,
}
