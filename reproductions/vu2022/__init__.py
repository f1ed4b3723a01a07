"""Vu, Tran, Yue and Nguyen (2022), Distributionally Robust Fair Principal Components via Geodesic Descents."""

