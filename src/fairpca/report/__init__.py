"""The audit of one data set, and its report as a single HTML file."""

from fairpca.report._words import number, sample_sentence
from fairpca.report.audit import Audit, audit

__all__ = ["Audit", "audit", "number", "sample_sentence"]
