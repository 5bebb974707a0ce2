"""Units and how they convert. Knows nothing of agents."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

__all__ = ["UNITS", "converted"]

UNITS: Mapping[str, tuple[str, Fraction, Fraction]] = MappingProxyType(
    {
        "m": ("length", Fraction(1), Fraction(0)),
        "km": ("length", Fraction(1000), Fraction(0)),
        "cm": ("length", Fraction(1, 100), Fraction(0)),
        "in": ("length", Fraction(254, 10_000), Fraction(0)),
        "ft": ("length", Fraction(3048, 10_000), Fraction(0)),
        "mi": ("length", Fraction(1_609_344, 1000), Fraction(0)),
        "g": ("mass", Fraction(1, 1000), Fraction(0)),
        "kg": ("mass", Fraction(1), Fraction(0)),
        "oz": ("mass", Fraction(28_349_523_125, 10**12), Fraction(0)),
        "lb": ("mass", Fraction(45_359_237, 10**8), Fraction(0)),
        "K": ("temperature", Fraction(1), Fraction(0)),
        "C": ("temperature", Fraction(1), Fraction(27_315, 100)),
        "F": ("temperature", Fraction(5, 9), Fraction(45_967, 180)),
    }
)
"""Unit to kind, factor and offset: a value in it, times the factor, plus the offset, is one in the kind's base unit."""


def converted(value: float, source: str, target: str) -> Fraction:
    """The value in another unit, exactly.

    Raises:
        ValueError: the two measure different things.
    """
    kind, factor, offset = UNITS[source]
    other, target_factor, target_offset = UNITS[target]
    if kind != other:
        raise ValueError(f"{source} measures {kind}, and {target} measures {other}")
    return (Fraction(str(value)) * factor + offset - target_offset) / target_factor
