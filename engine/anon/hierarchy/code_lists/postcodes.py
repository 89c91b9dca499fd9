"""Postcodes by the prefixes that mean an area in their country: 02139, 021*, 0* CT MA ME NH NJ PR RI VT VI."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anon.errors import ConfigError
from anon.hierarchy.label_levels import Row

US_AREAS = {
    "0": "CT MA ME NH NJ PR RI VT VI",
    "1": "DE NY PA",
    "2": "DC MD NC SC VA WV",
    "3": "AL FL GA MS TN",
    "4": "IN KY MI OH",
    "5": "IA MN MT ND SD WI",
    "6": "IL KS MO NE",
    "7": "AR LA OK TX",
    "8": "AZ CO ID NM NV UT WY",
    "9": "AK CA GU HI OR WA",
}
AT_AREAS = {
    "1": "Wien",
    "2": "Niederösterreich, east",
    "3": "Niederösterreich, west",
    "4": "Oberösterreich",
    "5": "Salzburg",
    "6": "Tirol, Vorarlberg",
    "7": "Burgenland",
    "8": "Steiermark",
    "9": "Kärnten, Osttirol",
}


@dataclass(frozen=True)
class PostcodeForm:
    """How the postcodes of a country are written, the lengths of the prefixes that mean an area from long to short,
    and the names of areas by prefix. A length below 0 counts from the end of the code, 0 stands for the first group of
    the pattern."""

    pattern: str
    prefixes: tuple[int, ...]
    names: tuple[tuple[str, str], ...] = ()


FIVE, FOUR = PostcodeForm("[0-9]{5}", (3, 2, 1)), PostcodeForm("[0-9]{4}", (2, 1))
FORMS = {
    "US": PostcodeForm("[0-9]{5}(?:-?[0-9]{4})?", (5, 3, 1), tuple(US_AREAS.items())),
    "AT": PostcodeForm("[1-9][0-9]{3}", (2, 1), tuple(AT_AREAS.items())),
    "GB": PostcodeForm(r"([A-Z]{1,2})[0-9][0-9A-Z]? ?[0-9][A-Z]{2}", (-3, 0)),
    "NL": PostcodeForm("[1-9][0-9]{3} ?[A-Z]{2}", (4, 2, 1)),
    "CA": PostcodeForm("[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]", (3, 1)),
    "PL": PostcodeForm("[0-9]{2}-?[0-9]{3}", (2, 1)),
    "CZ": PostcodeForm("[0-9]{3} ?[0-9]{2}", (3, 2, 1)),
    "SE": PostcodeForm("[0-9]{3} ?[0-9]{2}", (3, 2, 1)),
    "PT": PostcodeForm("[0-9]{4}(?:-?[0-9]{3})?", (4, 2, 1)),
    **dict.fromkeys(("DE", "FR", "ES", "IT", "FI"), FIVE),
    **dict.fromkeys(("BE", "CH", "DK", "HU", "LU", "NO", "AU"), FOUR),
}


class Postcodes:
    """The prefixes of the postcodes of a country.

    >>> Postcodes("US").labels("02139")
    ('02139', '021*', '0* CT MA ME NH NJ PR RI VT VI')
    >>> Postcodes("GB").labels("SW1A 1AA"), Postcodes("DE").labels("1067")
    (('SW1A*', 'SW*'), None)
    """

    def __init__(self, country: str) -> None:
        form = FORMS.get(country.upper())
        if form is None:
            raise ConfigError.at("--country", country, f"one of {', '.join(sorted(FORMS))}")
        self.form, self.names, self.levels = form, dict(form.names), len(form.prefixes)

    def labels(self, code: str) -> Row | None:
        written = " ".join(code.upper().split())
        found = re.fullmatch(self.form.pattern, written)
        if not found:
            return None
        compact = written.replace(" ", "").replace("-", "")
        area = found[1] if found.groups() else ""
        prefixes = (compact[:length] if length else area for length in self.form.prefixes)
        return tuple(code if prefix == compact else self._area(prefix) for prefix in prefixes)

    def _area(self, prefix: str) -> str:
        return f"{prefix}* {self.names.get(prefix, '')}".rstrip()
