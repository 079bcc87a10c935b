"""Pictures of results: bars and lines as plain SVG, with their own background, so that they are readable on any
page."""

from html import escape

WIDTH = 760
INK, FAINT, GROUND = "#1f2328", "#8c959f", "#ffffff"
OURS, OTHERS = "#0969da", "#afb8c1"
SERIES = ["#0969da", "#bf3989", "#1a7f37", "#9a6700"]


def bars(title, unit, rows):
    """One bar for each (label, value); labels that begin with refresh-worker stand out."""
    left, height, top = 250, 26, 44
    most = max(value for _, value in rows)
    parts = []
    for place, (label, value) in enumerate(rows):
        y = top + place * height
        width = max(1, (WIDTH - left - 110) * value / most)
        colour = OURS if label.startswith("refresh-worker") else OTHERS
        parts.append(text(left - 8, y + 16, label, anchor="end"))
        parts.append(f'<rect x="{left}" y="{y + 3}" width="{width:.1f}" height="{height - 8}" fill="{colour}"/>')
        parts.append(text(left + width + 6, y + 16, number(value)))
    return frame(title, unit, top + len(rows) * height + 12, parts)


def lines(title, unit, labels, series):
    """One line for each named series over evenly spaced labels, from zero up."""
    left, right, top, bottom = 70, 20, 60, 300
    most = max(max(values) for values in series.values()) or 1

    def x(place):
        return left + (WIDTH - left - right) * place / max(1, len(labels) - 1)

    def y(value):
        return bottom - (bottom - top) * value / most

    parts = []
    for part in range(5):
        value = most * part / 4
        parts.append(f'<line x1="{left}" x2="{WIDTH - right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="{FAINT}" '
                     'stroke-width="0.5"/>')
        parts.append(text(left - 6, y(value) + 4, number(value), anchor="end"))
    # If there are many labels, only about eight are shown.
    step = max(1, len(labels) // 8)
    for place in range(0, len(labels), step):
        parts.append(text(x(place), bottom + 18, labels[place], anchor="middle"))
    for place, (name, values) in enumerate(series.items()):
        colour = SERIES[place % len(SERIES)]
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<rect x="{left + place * 170}" y="40" width="12" height="4" fill="{colour}"/>')
        parts.append(text(left + place * 170 + 18, 46, name))
    return frame(title, unit, bottom + 32, parts)


def frame(title, unit, height, parts):
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="{GROUND}"/>',
            text(16, 24, title, weight="600"), text(WIDTH - 16, 24, unit, anchor="end", colour=FAINT)]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start", weight="400", colour=INK):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">'
            f"{escape(str(words))}</text>")


def number(value):
    """A number with three significant digits and separated thousands."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
