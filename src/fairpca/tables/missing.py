"""Which texts mean that a value is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from fairpca.tables.labels import is_number, number_text

__all__ = ["KEPT_IN_LABELS", "MISSING_TOKENS", "NO_TOKENS", "USUAL_TOKENS", "MissingTokens"]

#: Texts of a CSV file that mean "missing", in upper or lower case; an empty cell always does.
MISSING_TOKENS = ("?", "NA", "N/A", "NaN", "null", "None")
#: Those of them that are often a group or class of their own, such as "None" of a column named disability.
KEPT_IN_LABELS = frozenset({"na", "n/a", "none"})


@dataclass(frozen=True)
class MissingTokens:
    """The usual tokens of CSV files, and those that the user adds, which count in every file and every column.

    Parameters
    ----------
    usual : tuple of str
        Compared in lower case; in columns of groups and classes, "NA", "N/A" and "None" do not count.
    added : tuple of str
        Compared as they are written; numbers also by their value.

    See Also
    --------
    read_table : Reads a file with these tokens.

    Examples
    --------
    >>> from fairpca.tables.missing import MissingTokens
    >>> tokens = MissingTokens(added=("-999",))
    >>> [tokens.known(text) for text in ("none", " 3 ", "-999")], tokens.known("None", label=True)
    (['', '3', ''], 'None')
    """

    usual: tuple[str, ...] = MISSING_TOKENS
    added: tuple[str, ...] = ()

    @classmethod
    def of(cls, added: Iterable[str] = (), *, usual: bool = True) -> MissingTokens:
        """The tokens that are added to the usual ones, or to none."""
        return cls(MISSING_TOKENS if usual else (), tuple(dict.fromkeys(token.strip() for token in added)))

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.usual, *self.added)

    @cached_property
    def _usual(self) -> frozenset[str]:
        return frozenset(token.lower() for token in self.usual)

    @cached_property
    def _added(self) -> frozenset[str]:
        numbers = {number_text(float(token)) for token in self.added if is_number(token)}
        return frozenset(self.added) | numbers

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """The added tokens that are numbers."""
        return tuple(float(token) for token in self.added if is_number(token))

    def is_added(self, text: str) -> bool:
        """Whether the text is a token that the user added."""
        return text in self._added

    def known(self, text: str, *, label: bool = False) -> str:
        """The text of a CSV file without surrounding whitespace; empty if it means a missing value."""
        text = text.strip()
        if self.is_added(text):
            return ""
        lower = text.lower()
        return "" if lower in self._usual and not (label and lower in KEPT_IN_LABELS) else text

    def kept_in_labels(self, texts: Iterable[str]) -> bool:
        """Whether some of the texts are missing values of a feature, but not of a group or class."""
        return any(not self.known(text) and self.known(text, label=True) for text in set(texts))


USUAL_TOKENS = MissingTokens()
NO_TOKENS = MissingTokens(())
