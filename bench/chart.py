"""Line charts of the benches as plain SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import ceil, log10

Series = dict[str, list[tuple[float, float]]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 70, 30, 50, 60
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # also for colour-blind readers


def step(most: float) -> float:
    """A round distance of lines, five to ten of them up to `most`."""
    size = 10.0 ** (ceil(log10(most)) - 1)
    return next(part * size for part in (0.1, 0.2, 0.5, 1.0) if most / (part * size) <= 10)


def line_chart(title: str, across: str, up: str, series: Series) -> str:
    """The series as lines with marks, from zero on both axes."""
    points = [point for line in series.values() for point in line]
    x_step, y_step = step(max(x for x, _ in points)), step(max(y for _, y in points))
    x_most, y_most = (ceil(max(p[i] for p in points) / s) * s for i, s in ((0, x_step), (1, y_step)))

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            round(LEFT + x / x_most * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - y / y_most * (HEIGHT - TOP - BOTTOM), 1),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><title>{escape(title)}</title><rect width="100%" height="100%" fill="white"/>',
        _text(WIDTH / 2, 22, title, size=15),
        _text(WIDTH / 2, HEIGHT - 14, across),
        f'<g transform="rotate(-90 16 {HEIGHT / 2})">{_text(16, HEIGHT / 2, up)}</g>',
    ]
    for i in range(round(y_most / y_step) + 1):
        (left, y), (right, _) = at(0, i * y_step), at(x_most, 0)
        parts += [_line(left, y, right, y), _text(left - 8, y + 4, f"{i * y_step:g}", "end")]
    for i in range(round(x_most / x_step) + 1):
        x, y = at(i * x_step, 0)
        parts += [_line(x, y, x, y + 5), _text(x, y + 20, f"{i * x_step:g}")]
    for number, (name, line) in enumerate(series.items()):
        parts += _series(name, [at(*point) for point in sorted(line)], COLOURS[number % len(COLOURS)], number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _series(name: str, line: list[tuple[float, float]], colour: str, number: int) -> Iterator[str]:
    path = " ".join(f"{x},{y}" for x, y in line)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in line:
        yield f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>'
    legend = TOP + 8 + 18 * number
    yield f'<circle cx="{LEFT + 18}" cy="{legend}" r="4" fill="{colour}"/>'
    yield _text(LEFT + 28, legend + 4, name, "start")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#ccc"/>'


def _text(x: float, y: float, words: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'
