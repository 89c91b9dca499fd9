"""Education by the levels of ISCED 2011: 344, 3 Upper secondary, Medium (3-4)."""

from __future__ import annotations

import re

from anon.hierarchy.label_levels import Row

LEVELS = {
    "0": ("Early childhood", "Low (0-2)"),
    "1": ("Primary", "Low (0-2)"),
    "2": ("Lower secondary", "Low (0-2)"),
    "3": ("Upper secondary", "Medium (3-4)"),
    "4": ("Post-secondary non-tertiary", "Medium (3-4)"),
    "5": ("Short-cycle tertiary", "High (5-8)"),
    "6": ("Bachelor's or equivalent", "High (5-8)"),
    "7": ("Master's or equivalent", "High (5-8)"),
    "8": ("Doctoral or equivalent", "High (5-8)"),
}
CODE = re.compile(r"(?:ISCED|ED|LEVEL|)[ _-]?([0-8])(?:[0-9]{2})?")


class Education:
    """The levels of ISCED 2011: of the level alone (`3`, `ED3`, `ISCED 3`) or of codes of three digits (`344`).

    >>> Education().labels("344"), Education().labels("ED7")
    (('3 Upper secondary', 'Medium (3-4)'), ("7 Master's or equivalent", 'High (5-8)'))
    """

    levels = 2

    def labels(self, code: str) -> Row | None:
        found = CODE.fullmatch(code.strip().upper())
        if not found:
            return None
        name, group = LEVELS[found[1]]
        return f"{found[1]} {name}", group
