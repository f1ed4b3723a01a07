"""Figures printed in Vu et al. (2022), for the tables in the authors' public folder.

Each entry: (ABDiff, ARE) out of sample (Table 1) and in sample (Table 3), and the linear SVM's separation out
of sample (Table 4), for RFPCA and FairPCA.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PUBLISHED", "Published"]


class Published(NamedTuple):
    title: str
    robust_test: tuple[float, float]
    robust_train: tuple[float, float]
    robust_svm: float
    fair_test: tuple[float, float]
    fair_train: tuple[float, float]
    fair_svm: float


#: From the name of the file to what the paper prints.
PUBLISHED = {
    "default_credit": Published(
        "Default Credit",
        (0.9483, 10.3995),
        (0.9457, 9.9072),
        0.1596,
        (1.4401, 10.4439),
        (1.5821, 9.9049),
        0.2236,
    ),
    "Biodeg_Data": Published(
        "Biodeg",
        (23.0066, 33.8571),
        (9.4093, 23.1555),
        0.4892,
        (27.5159, 34.6184),
        (14.2587, 23.8227),
        0.4759,
    ),
    "Ecoli_Data": Published(
        "E. Coli", (1.1500, 1.7210), (0.5678, 1.4804), 0.8556, (1.5280, 2.4799), (0.9191, 2.0840), 0.7444
    ),
    "Energy_Data": Published(
        "Energy", (0.0125, 0.2238), (0.0094, 0.2295), 0.0580, (0.0138, 0.2225), (0.0153, 0.2273), 0.0554
    ),
    "German_Credit_Data": Published(
        "German Credit",
        (2.0588, 43.9032),
        (1.6265, 40.1512),
        0.1997,
        (1.3670, 44.0064),
        (2.9824, 40.3393),
        0.1737,
    ),
    "Steel_Data": Published(
        "Steel", (1.1472, 12.5944), (0.6943, 11.0396), 0.2288, (1.2208, 12.3096), (1.8015, 10.7653), 0.2240
    ),
    "Taiwanese_Credit_Data": Published(
        "Taiwan Credit",
        (0.5523, 10.9845),
        (1.1516, 10.5136),
        0.0604,
        (0.5710, 10.9415),
        (1.3362, 10.4478),
        0.0535,
    ),
    "Wine_Quality_Data": Published(
        "Wine Quality", (0.6359, 4.2801), (0.1125, 4.1491), 0.9699, (0.3046, 6.0936), (0.1705, 5.8999), 0.4639
    ),
}
