"""Encode the source as a cube: every row becomes a record of small integers, and every column has a domain that maps
codes to values."""

from anon.cube.building import Combinations, Combined, Cube, Encoder, RecordStore, Tuples, WidenCounts, build
from anon.cube.domain import Domain

__all__ = ["Combinations", "Combined", "Cube", "Domain", "Encoder", "RecordStore", "Tuples", "WidenCounts", "build"]
