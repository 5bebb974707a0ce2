"""A tool that converts units of length, mass and temperature."""

from __future__ import annotations

from harness_unit_converter.plugin import UnitConverter

__all__ = ["UnitConverter"]
