"""The outcome of a reproduction: published values next to ours, tables and figures, and how they are written."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairpca._files import replace_file, write_text

__all__ = ["Claim", "Drawing", "Outcome", "Progress", "Table"]

#: Called with the number of completed steps, the total number of steps and the next step.
Progress = Callable[[int, int, str], Any]

_VERDICTS = ("matched", "better", "explained", "differs", "not judged")
#: Up to this many claims the terminal shows all of them; if there are more, only those that differ.
_SHOWN_CLAIMS = 60
_REPORT = "report.md"
#: Characters that start a link, an image, emphasis or code inside a line of Markdown.
_MARKUP = re.compile(r"[\\\\`*\[\]]")


@dataclass(frozen=True)
class Claim:
    """A published value and ours.

    ``relation`` says which side is the better one: ``"equal"`` (both directions count), ``"at most"`` (ours should not
    exceed theirs) or ``"at least"``. ``tolerance`` is relative to the published value unless ``absolute``.
    ``explanation`` says why ours is expected to differ, where a reason is known; it is shown only if it does differ.

    >>> Claim("Table 1", "German, error", ours=1.02, theirs=1.0, tolerance=0.03).verdict
    'matched'
    >>> Claim("Table 1", "German, error", ours=0.5, theirs=1.0, tolerance=0.03, relation="at most").verdict
    'better'
    >>> Claim("Table 1", "German, error", ours=1.5, theirs=1.0, tolerance=0.03, relation="at most").verdict
    'differs'
    """

    source: str
    what: str
    ours: float
    theirs: float
    tolerance: float
    relation: Literal["equal", "at most", "at least"] = "equal"
    absolute: bool = False
    explanation: str = ""

    @property
    def difference(self) -> float:
        return self.ours - self.theirs

    @property
    def verdict(self) -> str:
        allowed = self.tolerance * (1.0 if self.absolute else abs(self.theirs))
        if abs(self.difference) <= allowed:
            return "matched"
        if (self.relation == "at most" and self.difference < 0) or (
            self.relation == "at least" and self.difference > 0
        ):
            return "better"
        return "explained" if self.explanation else "differs"

    @property
    def allowed(self) -> str:
        """The tolerance in words."""
        size = f"{self.tolerance:.2g}" if self.absolute else f"{100 * self.tolerance:.2g} %"
        sign = {"equal": "±", "at most": "+", "at least": "-"}[self.relation]
        return sign + size


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under a title; written as ``<name>.csv`` and into the report."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure: ``draw`` fills an empty matplotlib figure of the given size in inches; written as ``<name>.png``."""

    name: str
    title: str
    draw: Callable[[Any], Any]
    size: tuple[float, float] = (9.0, 4.5)


@dataclass(frozen=True)
class Outcome:
    """Everything a reproduction found; its text is the summary for the terminal.

    ``unexamined`` counts the published values that a quick run leaves out. ``differences`` are sentences on which of
    the published differences between groups hold, separate from whether our values match the published ones; the
    first sentence summarises the others.
    """

    paper: str
    title: str
    claims: Sequence[Claim]
    tables: Sequence[Table] = ()
    drawings: Sequence[Drawing] = ()
    remarks: Sequence[str] = ()
    quick: bool = False
    unexamined: int = 0
    differences: Sequence[str] = ()

    @property
    def succeeded(self) -> bool:
        """Whether every published value is matched, improved on, or its deviation explained; False for a quick run."""
        return not self.quick and all(claim.verdict != "differs" for claim in self.claims)

    @property
    def counts(self) -> dict[str, int]:
        """Number of claims by verdict."""
        found = Counter(self.verdict(claim) for claim in self.claims)
        return {verdict: found[verdict] for verdict in _VERDICTS if found[verdict]}

    def verdict(self, claim: Claim) -> str:
        """The claim's verdict; a quick run, a different experiment, can neither confirm nor contradict the paper."""
        return "not judged" if self.quick else claim.verdict

    def __str__(self) -> str:
        lines = [_one_line(self.title), self._summary()]
        shown = list(self.claims)
        if len(shown) > _SHOWN_CLAIMS:
            shown = [claim for claim in shown if self.verdict(claim) in ("explained", "differs")]
            lines.append("All are in claims.csv." if self.quick else "Explained or different (all are in claims.csv):")
        lines += [_claim_line(claim, self.verdict(claim)) for claim in shown]
        return "\n".join([*lines, *(f"- {_one_line(text)}" for text in (*self.differences, *self.remarks))])

    def _summary(self) -> str:
        if self.quick:
            return (
                f"quick run, which judges nothing: {len(self.claims)} published values stand next to ours from fewer "
                f"splits, rows or dimensions, {self.unexamined} were not examined, and no difference between groups "
                "was tested; the run without --quick gives verdicts"
            )
        counted = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"{len(self.claims)} published values: {counted or 'none in these data'}"

    def write(self, out: Any) -> Path:
        """Write the report, the claims, the tables and the drawings into the folder ``out``; return the report."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "claims.csv", _csv(_CLAIM_COLUMNS, self._claim_rows()))
        for table in self.tables:
            write_text(folder / f"{table.name}.csv", _csv(table.columns, table.rows))
        drawn = [drawing for drawing in self.drawings if _draw(drawing, folder)]
        # The report is written last: if it exists, so does everything that it refers to.
        return write_text(folder / _REPORT, self._markdown(drawn))

    def _markdown(self, drawn: Sequence[Drawing]) -> str:
        parts = [
            f"# {_inline(self.title)}",
            self._summary() + ". Files: [claims.csv](claims.csv)" + self._table_links() + ".",
        ]
        # The first sentence summarises what a table below lists line by line.
        parts += [f"- {_inline(text)}" for text in (*self.differences[:1], *self.remarks)]
        if len(drawn) < len(self.drawings):
            parts.append("The figures need matplotlib, which is not installed: `pip install fairpca[plot]`.")
        parts += ["## Published values and ours", _markdown_table(_CLAIM_COLUMNS, self._claim_rows())]
        for table in self.tables:
            parts += [f"## {_inline(table.title)}", _markdown_table(table.columns, table.rows)]
            parts += [table.note] if table.note else []
        for drawing in drawn:
            title = _inline(drawing.title)
            parts += [f"## {title}", f"![{title}]({drawing.name}.png)"]
        return "\n\n".join(parts) + "\n"

    def _table_links(self) -> str:
        return "".join(f", [{table.name}.csv]({table.name}.csv)" for table in self.tables)

    def _claim_rows(self) -> list[list[Any]]:
        return [_claim_cells(claim, self.verdict(claim)) for claim in self.claims]


_CLAIM_COLUMNS = ("source", "value", "ours", "published", "difference", "tolerance", "verdict", "explanation")


def _claim_cells(claim: Claim, verdict: str) -> list[Any]:
    explanation = claim.explanation if verdict in ("explained", "better") else ""
    return [
        claim.source, claim.what, claim.ours, claim.theirs, claim.difference, claim.allowed, verdict, explanation,
    ]  # fmt: skip


def _claim_line(claim: Claim, verdict: str) -> str:
    return (
        f"  {verdict:10} {claim.source}: {_one_line(claim.what)}: ours {_cell(claim.ours)}, "
        f"published {_cell(claim.theirs)} ({claim.difference:+.3g})"
    )


def _csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_no_formula(value) for value in row] for row in rows)
    return text.getvalue()


def _no_formula(value: Any) -> Any:
    """Escape text that a spreadsheet would execute as a formula; names come from files."""
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(("=", "@")) else value


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    """Escape names, which come from files: none may break out of its cell or become markup."""
    return _inline(text).replace("|", "\\|")


def _one_line(text: str) -> str:
    """Remove line breaks, and control characters that a terminal would interpret."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


def _inline(text: str) -> str:
    """One line of plain text, with tags, links, images, emphasis and code escaped."""
    text = _one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKUP.sub(r"\\\g<0>", text)


def _draw(drawing: Drawing, folder: Path) -> bool:
    """Draw into a file; return False if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=drawing.size, layout="constrained")
    FigureCanvasAgg(figure)
    drawing.draw(figure)
    replace_file(folder / f"{drawing.name}.png", lambda stream: figure.savefig(stream, dpi=150, format="png"))
    return True
