"""Values printed in Lee et al. (2022), and what is known about their data sets.

Table 1: mean over the ten test parts, with the standard deviation (divisor 9). The caption gives the parameters of
FPCA as (mu, delta); the values and the authors' files show that they are (delta, mu), with mu = 0.01 throughout, also
in the line printed as (0, 0.1).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DIMENSIONS", "FEATURES", "MEASURES", "PUBLISHED", "ROUNDING", "SYNTHETIC_DIMENSION", "Printed"]


class Printed(NamedTuple):
    """A mean and its standard deviation over splits, as printed."""

    mean: float
    spread: float


#: Numbers of components of Table 1; of Figures 2 and 3 (from the authors' script, the paper does not say).
DIMENSIONS = (2, 10)
SYNTHETIC_DIMENSION = 5

#: Columns of Table 1, in its order.
MEASURES = ("%Var", "%Acc", "MMD^2", "Delta_DP")

#: Half a unit of the last printed digit.
ROUNDING = {"%Var": 0.005, "%Acc": 0.005, "MMD^2": 0.0005, "Delta_DP": 0.005}


def _rows(text: str) -> dict[tuple[int, str], dict[str, Printed]]:
    """From lines of ``d | method | mean spread, ...`` to values by (d, method)."""
    rows = {}
    for line in text.strip().splitlines():
        d, method, values = (part.strip() for part in line.split("|"))
        pairs = [Printed(*map(float, pair.split())) for pair in values.split(",")]
        rows[int(d), method] = dict(zip(MEASURES, pairs, strict=True))
    return rows


#: From the name of the folder to Table 1. Methods are named as in :mod:`reproductions.lee2022.protocol`.
PUBLISHED = {
    "COMPAS": _rows("""
         2 | PCA              | 39.28 5.17, 64.53 1.45, 0.092 0.010, 0.29 0.09
         2 | FPCA (0.1)       | 35.06 5.16, 61.65 1.17, 0.012 0.007, 0.10 0.07
         2 | FPCA (0)         | 34.43 5.02, 60.86 1.09, 0.011 0.006, 0.10 0.06
         2 | MbF-PCA (0.001)  | 33.95 5.01, 65.37 1.11, 0.005 0.002, 0.12 0.07
         2 | MbF-PCA (1e-06)  | 11.83 3.59, 57.73 1.50, 0.002 0.002, 0.06 0.08
        10 | PCA              | 100.00 0.00, 73.14 1.22, 0.241 0.005, 0.21 0.07
        10 | FPCA (0.1)       | 87.79 1.27, 72.25 0.93, 0.015 0.003, 0.16 0.06
        10 | FPCA (0)         | 87.44 1.35, 72.32 0.93, 0.015 0.002, 0.16 0.07
        10 | MbF-PCA (0.001)  | 87.75 1.36, 72.16 0.90, 0.014 0.002, 0.16 0.07
        10 | MbF-PCA (1e-06)  | 87.75 1.36, 72.16 0.90, 0.014 0.002, 0.16 0.07
    """),
    "German": _rows("""
         2 | PCA              | 11.42 0.47, 76.87 1.39, 0.147 0.049, 0.12 0.06
         2 | FPCA (0.1)       | 7.43 0.59, 72.17 1.09, 0.017 0.010, 0.03 0.02
         2 | FPCA (0)         | 7.33 0.57, 71.77 1.60, 0.015 0.010, 0.03 0.03
         2 | MbF-PCA (0.001)  | 10.17 0.57, 74.53 1.92, 0.018 0.014, 0.05 0.04
         2 | MbF-PCA (1e-06)  | 9.36 0.33, 74.10 1.56, 0.016 0.010, 0.02 0.02
        10 | PCA              | 38.25 0.98, 99.93 0.14, 0.130 0.019, 0.12 0.08
        10 | FPCA (0.1)       | 29.85 0.87, 99.93 0.14, 0.020 0.005, 0.12 0.08
        10 | FPCA (0)         | 29.79 0.89, 99.93 0.14, 0.020 0.006, 0.12 0.08
        10 | MbF-PCA (0.001)  | 34.10 1.00, 99.93 0.14, 0.020 0.008, 0.12 0.08
        10 | MbF-PCA (1e-06)  | 16.95 1.52, 92.70 3.00, 0.013 0.007, 0.06 0.05
    """),
    "Adult": _rows("""
         2 | PCA              | 7.78 0.82, 82.03 1.15, 0.349 0.027, 0.20 0.05
         2 | FPCA (0.1)       | 4.05 0.98, 77.44 2.96, 0.016 0.011, 0.04 0.04
         2 | FPCA (0)         | 3.65 0.97, 77.05 3.18, 0.005 0.004, 0.01 0.01
         2 | MbF-PCA (0.001)  | 6.03 0.61, 79.50 1.22, 0.005 0.004, 0.03 0.02
         2 | MbF-PCA (1e-06)  | 5.83 0.57, 79.12 1.14, 0.005 0.004, 0.01 0.01
        10 | PCA              | 21.77 2.06, 93.64 0.92, 0.195 0.007, 0.16 0.01
        10 | FPCA (0.1)       | 15.75 1.20, 91.94 0.88, 0.006 0.003, 0.13 0.02
        10 | FPCA (0)         | 15.52 1.18, 91.66 0.97, 0.004 0.002, 0.13 0.02
        10 | MbF-PCA (0.001)  | 18.71 1.47, 92.81 0.84, 0.005 0.002, 0.14 0.01
        10 | MbF-PCA (1e-06)  | 15.49 6.44, 86.36 3.77, 0.003 0.002, 0.07 0.03
    """),
}


def _levels(**levels: str) -> list[str]:
    return [f"{name}={level}" for name, codes in levels.items() for level in codes.split()]


#: Names of the columns in the authors' files: those of the raw data, categories as name=level.
FEATURES = {
    "COMPAS": [
        "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "age 25-45", "age > 45",
        "age < 25", "felony", "misdemeanour",
    ],
    "German": [
        "month", "credit_amount", "investment_rate", "residence_since", "age", "number_of_credits", "people_liable",
        *_levels(
            status="A11 A12 A13 A14", credit_history="A30 A31 A32 A33 A34",
            purpose="A40 A41 A410 A42 A43 A44 A45 A46 A48 A49", savings="A61 A62 A63 A64 A65",
            employment="A71 A72 A73 A74 A75", other_debtors="A101 A102 A103", property="A121 A122 A123 A124",
            installment_plans="A141 A142 A143", housing="A151 A152 A153", skill_level="A171 A172 A173 A174",
            telephone="A191 A192", foreign_worker="A201 A202",
        ),
    ],
}  # fmt: skip
