"""The site: ``make docs`` builds it into build/site. Neither building nor reading it needs a network."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder

import fairpca

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # examples use the reproductions

project = "fairpca"
author = "The fairpca developers"
copyright = "The fairpca developers, BSD-3-Clause"
version = release = fairpca.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**/GALLERY_HEADER.rst"]
default_role = "py:obj"
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
#: Plain text, one line per name that docstrings link to (version 1 of the format).
intersphinx_mapping = {
    "sklearn": ("https://scikit-learn.org/stable/", str(ROOT / "docs" / "scikit-learn.txt")),
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": ".",
    "subsection_order": ExplicitOrder([f"../examples/{name}" for name in ("quick_start", "advanced", "articles")]),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "thumbnail_size": (400, 280),
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "fairpca"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # reads the pages again, which a browser refuses on a page opened from disk
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "fairpca", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navigation_depth": 2,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "get_started": []}


def mathml(translator: Any, node: Any) -> None:
    """Formulas as MathML, which browsers draw without a script."""
    block = node.tagname == "math_block"
    formula = latex2mathml.tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
