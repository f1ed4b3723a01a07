"""The audit of one data set, and its report as a single HTML file."""

from fairpca.audit.report.audit import Audit, audit
from fairpca.audit.report.schema import schema

__all__ = ["Audit", "audit", "schema"]
