"""Plots as inline SVG: histograms, bars and curves, in the colours of the page around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, isfinite, log10

import numpy as np

from sonant.reports.page import Block

_WIDTH, _HEIGHT = 480, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 16, 10, 34
_LONGEST_NAME, _REST = 34, "others"
_MAX_POINTS = 600  # more cannot be seen, and pages stay small


def histogram(values: Sequence[float] | np.ndarray, *, unit: str, num_bins: int = 30) -> Block:
    """How often values occur; the last bar holds what lies beyond the 99.5th percentile."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if not array.size:
        return '<p class="note">no values</p>'
    top = float(np.quantile(array, 0.995))
    low = float(array.min())
    edges = np.linspace(low, top if top > low else low + 1, num_bins + 1)
    counts = np.histogram(np.minimum(array, edges[-1]), edges)[0]
    scale = _ticks(0, float(counts.max()))
    parts = [_grid(scale, 0, scale[-1])]
    width = (_WIDTH - _LEFT - _RIGHT) / num_bins
    for index, count in enumerate(counts):
        height = _span() * count / scale[-1]
        beyond = " and beyond" if index == num_bins - 1 and array.max() > edges[-1] else ""
        label = f"{edges[index]:.4g} to {edges[index + 1]:.4g} {unit}{beyond}: {count:,}"
        parts.append(_bar(_LEFT + index * width, width - 1, height, label))
    parts += [_at_bottom(_along(tick, edges[0], edges[-1]), f"{tick:g}") for tick in _inside(edges[0], edges[-1])]
    return _svg(parts, unit)


def bars(counts: Mapping[str, float], *, most: int = 12, unit: str = "", is_ordered: bool = False) -> Block:
    """A bar a name, longest first unless they have an order; the names beyond `most` are summed up."""
    ordered = list(counts.items()) if is_ordered else sorted(counts.items(), key=lambda item: -item[1])
    if len(ordered) > most:
        rest = sum(value for _, value in ordered[most - 1 :])
        ordered = [*ordered[: most - 1], (f"{len(ordered) - most + 1} {_REST}", rest)]
    if not ordered:
        return '<p class="note">none</p>'
    longest = max(value for _, value in ordered) or 1
    row = 22
    left = 7 * min(max(len(name) for name, _ in ordered), _LONGEST_NAME)
    parts = [_lying_bar(*named, index * row, left, longest, unit) for index, named in enumerate(ordered)]
    return f'<svg viewBox="0 0 {_WIDTH} {len(ordered) * row}" role="img">{"".join(parts)}</svg>'


def _lying_bar(name: str, value: float, y: int, left: int, longest: float, unit: str) -> str:
    look = "bar rest" if name.endswith(f" {_REST}") else "bar"
    told = f"{_short(value)} {unit}".rstrip()
    width = max((_WIDTH - left - 20 - 7 * len(told)) * value / longest, 1)
    shown = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return (
        f'<text x="{left}" y="{y + 14}" text-anchor="end">{escape(shown)}<title>{escape(name)}</title></text>'
        f'<rect class="{look}" x="{left + 8}" y="{y + 3}" width="{width:.1f}" height="14" rx="2"/>'
        f'<text class="value" x="{left + 14 + width:.1f}" y="{y + 14}">{escape(told)}</text>'
    )


def curves(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, unit: str, is_log: bool = False) -> Block:
    """Lines over one axis; `series` maps a name to its x and y. Gaps stand where y is not finite."""
    arrays = {name: (np.asarray(x, float), np.asarray(y, float)) for name, (x, y) in series.items()}
    if is_log:
        with np.errstate(divide="ignore", invalid="ignore"):
            arrays = {name: (x, np.log10(y)) for name, (x, y) in arrays.items()}
    finite = [(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in arrays.values()]
    if not any(x.size for x, _ in finite):
        return '<p class="note">no values yet</p>'
    first, last = min(x.min() for x, _ in finite if x.size), max(x.max() for x, _ in finite if x.size)
    scale = _ticks(min(y.min() for _, y in finite if y.size), max(y.max() for _, y in finite if y.size))
    parts = [_grid(scale, scale[0], scale[-1], is_log=is_log)]
    for index, (name, (x, y)) in enumerate(arrays.items()):
        for points in _lines(x, y, (first, last), (scale[0], scale[-1])):
            style = f'fill="none" stroke="var(--s{index % 6})" stroke-width="1.8" stroke-linejoin="round"'
            parts.append(f'<polyline points="{points}" {style}><title>{escape(name)}</title></polyline>')
    parts += [_at_bottom(_along(tick, first, last), _short(tick)) for tick in _inside(first, last)]
    return _svg(parts, unit) + (_legend(list(arrays)) if len(arrays) > 1 else "")


def _lines(x: np.ndarray, y: np.ndarray, across: tuple[float, float], up: tuple[float, float]) -> list[str]:
    """The points of each stretch without a gap, thinned to what can be seen."""
    stride = max(1, ceil(len(x) / _MAX_POINTS))
    stretches: list[list[str]] = [[]]
    for one_x, one_y in zip(x[::stride], y[::stride], strict=True):
        if not isfinite(one_y):
            stretches.append([])
            continue
        height = _span() * (one_y - up[0]) / ((up[1] - up[0]) or 1)
        stretches[-1].append(f"{_along(one_x, *across):.1f},{_HEIGHT - _BOTTOM - height:.1f}")
    return [" ".join(points) for points in stretches if points]


def _legend(names: Sequence[str]) -> str:
    items = (f'<span><i style="background:var(--s{at % 6})"></i>{escape(name)}</span>' for at, name in enumerate(names))
    return f'<div class="legend">{"".join(items)}</div>'


def _span() -> float:
    return float(_HEIGHT - _TOP - _BOTTOM)


def _along(value: float, first: float, last: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - first) / ((last - first) or 1)


def _svg(parts: Sequence[str], unit: str) -> str:
    label = f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 4}" text-anchor="end">{escape(unit)}</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}{label}</svg>'


def _bar(x: float, width: float, height: float, label: str) -> str:
    y = _HEIGHT - _BOTTOM - height
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}"'
    return f'<rect class="bar" {shape}><title>{escape(label)}</title></rect>'


def _grid(ticks: Sequence[float], low: float, high: float, *, is_log: bool = False) -> str:
    parts = []
    for tick in ticks:
        y = _HEIGHT - _BOTTOM - _span() * (tick - low) / ((high - low) or 1)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shown = _short(10**tick) if is_log else _short(tick)
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>')
    return "".join(parts)


def _at_bottom(x: float, label: str) -> str:
    return f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{label}</text>'


def _ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers that enclose the values."""
    if high <= low:
        high = low + (abs(low) or 1)
    rough = (high - low) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def _inside(low: float, high: float) -> list[float]:
    """Round numbers between the two."""
    return [tick for tick in _ticks(low, high, 5) if low <= tick <= high]


def _short(value: float) -> str:
    """12,300,000 is 12.3M: an axis has little room."""
    for bound, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            return f"{value / (1e3 if letter == 'k' else bound):.3g}{letter}"
    return f"{value:.4g}"
