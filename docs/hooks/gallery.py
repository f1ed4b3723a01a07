"""The gallery: runs the examples while the site is built and makes a page of each.

An example is a Python file in ``examples/SECTION/``. Its docstring begins with the question it answers, in one line;
comments after a line ``# %%`` become text. It leaves one matplotlib figure open. An error or a warning in an example
stops the build. Results are kept in ``.cache/gallery`` and reused while the example and fairpca stay the same.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from run_example import blocks_of

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SECTIONS = {
    "quick_start": "Quick start",
    "advanced": "Advanced",
    "articles": "Articles",
}
_CACHE = ROOT / ".cache" / "gallery"
_SECONDS = 60


def examples() -> Iterator[Path]:
    """The examples, section by section, in the order of their names."""
    for section in SECTIONS:
        yield from sorted((EXAMPLES / section).glob("*.py"))


def split_docstring(source: str) -> tuple[str, str, str]:
    """The question, the introduction and the code of an example."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    question, _, introduction = docstring.partition("\n")
    first = ast.parse(source).body[0].end_lineno or 0
    return question, introduction.strip(), "".join(source.splitlines(keepends=True)[first:]).strip("\n") + "\n"


def _fingerprint(example: Path) -> str:
    digest = hashlib.sha256(sys.version.encode())
    sources = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "reproductions").rglob("*.py"))]
    for path in (example, Path(__file__).with_name("run_example.py"), *sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def result_of(example: Path) -> Path:
    """Folder with the results of an example, which is run unless they are known."""
    folder = _CACHE / example.stem / _fingerprint(example)
    if not (folder / "outputs.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        runner = Path(__file__).with_name("run_example.py")
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = {**os.environ, **limits, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
        command = [sys.executable, str(runner), str(example), str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=5 * _SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            raise PluginError(f"{example.name} takes more than {5 * _SECONDS} seconds") from None
        if done.returncode:
            raise PluginError(f"{example.relative_to(ROOT)} failed:\n{done.stdout}{done.stderr}")
    return folder


def example_page(example: Path, folder: Path) -> str:
    """The page of one example in Markdown."""
    question, introduction, _ = split_docstring(example.read_text(encoding="utf-8"))
    lines = [f"# {question}", "", introduction, ""]
    outputs = json.loads((folder / "outputs.json").read_text(encoding="utf-8"))
    blocks = blocks_of(example.read_text(encoding="utf-8"))
    for (text, code, _), output in zip(blocks, outputs, strict=True):
        code = code if text or not code.lstrip().startswith('"""') else split_docstring(code)[2]
        lines += [text, "", "```python", code.strip("\n"), "```", ""] if code.strip() else [text, ""]
        lines += ["```text", output, "```", ""] if output else []
    lines += [_picture(example.stem, question), "", f"[Download this example]({example.stem}.py)", ""]
    return "\n".join(lines)


def _picture(stem: str, text: str, folder: str = "") -> str:
    return "\n".join(f"![{text}]({folder}{stem}-{scheme}.svg#only-{scheme})" for scheme in ("light", "dark"))


def index_page() -> str:
    """All examples with their pictures."""
    lines = ["# Gallery", "", "Each example answers one question with one picture. All of them ran for this page.", ""]
    for section, title in SECTIONS.items():
        lines += [f"## {title}", "", '<div class="grid cards" markdown>', ""]
        for example in (one for one in examples() if one.parent.name == section):
            question = split_docstring(example.read_text(encoding="utf-8"))[0]
            picture = _picture(example.stem, "", f"{section}/").replace("\n", "\n    ")
            lines += [f"-   **[{question}]({section}/{example.stem}.md)**", "", f"    {picture}", ""]
        lines += ["</div>", ""]
    return "\n".join(lines)


def on_files(files: Files, config: Any) -> Files:
    """Run everything, two examples at a time, and add the pages, pictures and sources."""
    found = list(examples())
    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(result_of, found))
    for example, folder in zip(found, folders, strict=True):
        place = f"gallery/{example.parent.name}/{example.stem}"
        files.append(File.generated(config, f"{place}.md", content=example_page(example, folder)))
        files.append(File.generated(config, f"{place}.py", abs_src_path=str(example)))
        for scheme in ("light", "dark"):
            picture = folder / f"picture-{scheme}.svg"
            files.append(File.generated(config, f"{place}-{scheme}.svg", abs_src_path=str(picture)))
    files.append(File.generated(config, "gallery/index.md", content=index_page()))
    return files
