"""Formulas as MathML, which browsers draw without a script: converted when the site is built."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.+?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.+?)\\\]</div>', re.DOTALL)
_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_WITH_LIMITS = {"min", "max", "sup", "inf"}


def on_page_content(content: str, **_: Any) -> str:
    """Replace what the arithmatex extension has marked as TeX."""
    content = _INLINE.sub(lambda found: _mathml(found[1], "inline"), content)
    return _DISPLAY.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', content)


def _mathml(tex: str, display: str) -> str:
    root = ET.fromstring(convert(html.unescape(tex).strip(), display=display))
    if any("\\" in (element.text or "") for element in root.iter()):
        raise ValueError(f"a command in this formula is not known to latex2mathml: {tex.strip()!r}")
    if display == "block":
        _set_limits_below(root)
    ET.register_namespace("", _NAMESPACE)
    return ET.tostring(root, encoding="unicode")


def _set_limits_below(root: ET.Element) -> None:
    """What is minimised over stands below the operator, as in print; the converter leaves it at its side."""
    for element in root.iter(f"{{{_NAMESPACE}}}msub"):
        if element[0].text in _WITH_LIMITS:
            element.tag = f"{{{_NAMESPACE}}}munder"
