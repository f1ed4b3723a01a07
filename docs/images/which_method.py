"""Draws docs/images/which_method-light.svg and -dark.svg: ``python docs/images/which_method.py``."""

from __future__ import annotations

from pathlib import Path

#: Text, boxes, lines, balanced quality, parity.
SCHEMES = {
    "light": ("#24292f", "#f3f4f6", "#6b7280", "#0072b2", "#b34a00"),
    "dark": ("#e3e5ea", "#2a2d3a", "#9aa0ac", "#56b4e9", "#f0935a"),
}
#: Left edge, top, width, lines of text, which colour its border has.
BOXES = [
    (270, 10, 260, ["What should not depend", "on the group?"], 2),
    (60, 115, 290, ["How well it is represented", "balanced quality"], 3),
    (450, 115, 290, ["What the scores look like", "parity"], 4),
    (10, 240, 185, ["FairPCA", "largest loss as small", "as possible"], 3),
    (215, 240, 185, ["RobustFairPCA", "total error against", "gap, under shifts"], 3),
    (420, 240, 165, ["ParityPCA", "equal means (and", "covariances)"], 4),
    (605, 240, 185, ["MMDFairPCA", "alike distributions", "of scores"], 4),
    (10, 365, 390, ["Check: loss_test, cross_validate_groups"], 2),
    (420, 365, 370, ["Check: readability on new rows"], 2),
]
ARROWS = [(330, 66, 230, 115), (470, 66, 570, 115), (160, 171, 105, 240), (250, 171, 305, 240)]
ARROWS += [(550, 171, 505, 240), (640, 171, 695, 240)]
ARROWS += [(105, 315, 140, 365), (305, 315, 270, 365), (505, 315, 540, 365), (695, 315, 660, 365)]


def drawing(scheme: str) -> str:
    """The picture in the colours of one scheme."""
    colours = SCHEMES[scheme]
    text, box, line = colours[:3]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 412" width="800" height="412" '
        'font-family="DejaVu Sans, Arial, sans-serif" text-anchor="middle">',
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{line}"/></marker></defs>',
    ]
    for x1, y1, x2, y2 in ARROWS:
        parts.append(f'<path d="M{x1} {y1} {x2} {y2}" stroke="{line}" stroke-width="1.5" marker-end="url(#tip)"/>')
    for left, top, width, lines, colour in BOXES:
        height = 16 + 20 * len(lines)
        border = f'fill="{box}" stroke="{colours[colour]}" stroke-width="2"'
        parts.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="8" {border}/>')
        for number, words in enumerate(lines):
            named = words[0].isupper() and " " not in words
            strong = ' font-weight="bold"' if named or words in ("balanced quality", "parity") else ""
            place = f'x="{left + width / 2:g}" y="{top + 23 + 20 * number}"'
            parts.append(f'<text {place} font-size="15" fill="{text}"{strong}>{words}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    for name in SCHEMES:
        Path(__file__).with_name(f"which_method-{name}.svg").write_text(drawing(name), encoding="utf-8")
