"""The little SVG that the pictures of the documentation need."""

from typing import Final
from xml.sax.saxutils import escape

MONO: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
"""Fonts of the reader's machine: a picture loads nothing."""


def rect(x: float, y: float, width: float, height: float, style: str, radius: float = 8) -> str:
    """Return a rectangle with round corners; `style` is its class."""
    return f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"/>'


def text(x: float, y: float, words: str, style: str) -> str:
    """Return a line of text with its base line at y."""
    return f'<text class="{style}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    """Return a straight line."""
    return f'<path class="{style}" d="M{start[0]:g} {start[1]:g}L{end[0]:g} {end[1]:g}"/>'


def dot(x: float, y: float, style: str, radius: float) -> str:
    """Return a circle."""
    return f'<circle class="{style}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'


def document(width: float, height: float, title: str, css: str, parts: list[str]) -> str:
    """Return a whole picture; the title is what a screen reader says of it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>\n{css}</style>", *parts, "</svg>"]) + "\n"
