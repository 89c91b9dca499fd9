"""Hierarchies of one column: a builder of the config, or a hierarchy file in the form that ARX reads, assigns every
value of the column its labels level by level (`paths`), and `HierarchyTree` turns these into nodes over ordered integer
codes, each node one contiguous range of codes. New hierarchy files are also made here."""

from anon.hierarchy.builders import paths
from anon.hierarchy.files import HierarchyGap, Inspection, inspect, read, shape
from anon.hierarchy.generating import as_csv, interval_rows, parent_rows, prefix_rows, write_rows
from anon.hierarchy.label_levels import Paths, Row
from anon.hierarchy.tree import HierarchyTree

__all__ = [
    "HierarchyGap",
    "HierarchyTree",
    "Inspection",
    "Paths",
    "Row",
    "as_csv",
    "inspect",
    "interval_rows",
    "parent_rows",
    "paths",
    "prefix_rows",
    "read",
    "shape",
    "write_rows",
]
