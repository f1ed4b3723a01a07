"""The audit of one data set, and its report as a single HTML file."""

from fairpca._display import number
from fairpca._labels import label_text
from fairpca.audit.report._words import outvoted_sentence, sample_sentence
from fairpca.audit.report.audit import Audit, audit
from fairpca.audit.report.schema import schema

__all__ = ["Audit", "audit", "label_text", "number", "outvoted_sentence", "sample_sentence", "schema"]
