"""Runs one example: ``python docs/hooks/run_example.py EXAMPLE OUT``.

Every block of code is executed in turn, with warnings as errors. OUT receives ``outputs.json``, with what each block
printed, and the one picture, in dark lines for light pages and in light lines for dark ones.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import re
import sys
import types
import warnings
from pathlib import Path

#: Stands for the colour of lines and text until the picture is written.
_LINES = "#0a0b0c"
_COLOURS = {"light": "#24292f", "dark": "#d7dae0"}


def blocks_of(source: str) -> list[tuple[str, str, int]]:
    """Cut the source after its docstring at the lines ``# %%``: text of each block, its code, and the code's line."""
    found, line = [], 1
    for number, part in enumerate(re.split(r"(?m)^# %%.*\n", source)):
        text = re.match(r"(?:#.*\n)*", part)[0] if number else ""
        words = "".join(re.sub(r"^# ?", "", one) + "\n" for one in text.splitlines())
        found.append((words.strip(), part[len(text) :], line + text.count("\n")))
        line += part.count("\n") + 1
    return found


def run(path: Path) -> list[str]:
    """Execute the blocks as one module, as if it were the main program; return what each printed."""
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    outputs = []
    for _, code, line in blocks_of(path.read_text(encoding="utf-8")):
        printed = io.StringIO()
        linecache.checkcache(str(path))
        compiled = compile("\n" * (line - 1) + code, str(path), "exec")
        with contextlib.redirect_stdout(printed):
            exec(compiled, vars(module))
        outputs.append(printed.getvalue().rstrip())
    return outputs


def save_picture(out: Path) -> None:
    """Write the figure that the example leaves open; there must be exactly one."""
    import matplotlib.pyplot as plt

    numbers = plt.get_fignums()
    if len(numbers) != 1:
        raise SystemExit(f"an example draws one picture, this one {len(numbers)}")
    buffer = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    plt.figure(numbers[0]).savefig(buffer, format="svg", transparent=True, metadata=metadata)
    for scheme, colour in _COLOURS.items():
        (out / f"picture-{scheme}.svg").write_text(buffer.getvalue().replace(_LINES, colour), encoding="utf-8")


def main(example: str, out: str) -> None:
    """Run, and write the results only if everything went well."""
    import matplotlib as mpl

    mpl.use("svg")
    lines = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    mpl.rcParams.update(dict.fromkeys(lines, _LINES))
    mpl.rcParams.update({"svg.hashsalt": Path(example).stem, "figure.figsize": (7.0, 4.2), "legend.framealpha": 0.0})
    warnings.simplefilter("error")
    outputs = run(Path(example).resolve())
    save_picture(Path(out))
    Path(out, "outputs.json").write_text(json.dumps(outputs), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
