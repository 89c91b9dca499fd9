"""Countries by the regions of the United Nations (M49): France, Western Europe, Europe. Codes and names of countries
come from the package pycountry."""

from __future__ import annotations

import gettext
from collections.abc import Iterator
from typing import Any

from anon.core.text import folded
from anon.hierarchy.code_lists import required
from anon.hierarchy.label_levels import Row

LANGUAGES = ("de", "fr", "es", "it", "nl", "pt", "pl")  # in which names of countries are known, beside English
# Region, part of the region, and its countries by ISO 3166-1. Kosovo (XK) and Taiwan (TW) are listed with their
# neighbours.
REGIONS = """
Africa; Northern Africa; DZ EG EH LY MA SD TN
Africa; Eastern Africa; BI DJ ER ET IO KE KM MG MU MW MZ RE RW SC SO SS TF TZ UG YT ZM ZW
Africa; Middle Africa; AO CD CF CG CM GA GQ ST TD
Africa; Southern Africa; BW LS NA SZ ZA
Africa; Western Africa; BF BJ CI CV GH GM GN GW LR ML MR NE NG SH SL SN TG
Americas; Caribbean; AG AI AW BB BL BQ BS CU CW DM DO GD GP HT JM KN KY LC MF MQ MS PR SX TC TT VC VG VI
Americas; Central America; BZ CR GT HN MX NI PA SV
Americas; South America; AR BO BR BV CL CO EC FK GF GS GY PE PY SR UY VE
Americas; Northern America; BM CA GL PM US
Asia; Central Asia; KG KZ TJ TM UZ
Asia; Eastern Asia; CN HK JP KP KR MN MO TW
Asia; South-eastern Asia; BN ID KH LA MM MY PH SG TH TL VN
Asia; Southern Asia; AF BD BT IN IR LK MV NP PK
Asia; Western Asia; AE AM AZ BH CY GE IL IQ JO KW LB OM PS QA SA SY TR YE
Europe; Eastern Europe; BG BY CZ HU MD PL RO RU SK UA
Europe; Northern Europe; AX DK EE FI FO GB GG IE IM IS JE LT LV NO SE SJ
Europe; Southern Europe; AD AL BA ES GI GR HR IT ME MK MT PT RS SI SM VA XK
Europe; Western Europe; AT BE CH DE FR LI LU MC NL
Oceania; Australia and New Zealand; AU CC CX HM NF NZ
Oceania; Melanesia; FJ NC PG SB VU
Oceania; Micronesia; FM GU KI MH MP NR PW UM
Oceania; Polynesia; AS CK NU PF PN TK TO TV WF WS
Antarctica; Antarctica; AQ
"""
ALSO = {  # names and codes in daily use that ISO 3166-1 does not have
    "uk": "GB",
    "england": "GB",
    "scotland": "GB",
    "wales": "GB",
    "northern ireland": "GB",
    "great britain": "GB",
    "el": "GR",
    "usa": "US",
    "united states of america": "US",
    "russia": "RU",
    "south korea": "KR",
    "north korea": "KP",
    "ivory coast": "CI",
    "turkey": "TR",
    "czech republic": "CZ",
    "holland": "NL",
    "kosovo": "XK",
    "xk": "XK",
    "xkx": "XK",
    "cape verde": "CV",
    "swaziland": "SZ",
    "macedonia": "MK",
    "burma": "MM",
    "vatican": "VA",
    "laos": "LA",
    "brunei": "BN",
}


def regions() -> dict[str, Row]:
    """Return the part of the region and the region of each country by its code of two letters."""
    lines = [line.split("; ") for line in REGIONS.strip().splitlines()]
    return {country: (part, region) for region, part, countries in lines for country in countries.split()}


class Countries:
    """The regions of countries, given as codes of ISO 3166-1 (two or three letters, or three digits) or by name in
    English and some other languages. A name that means several countries is not taken."""

    levels = 2

    def __init__(self) -> None:
        self.regions = regions()
        self.known: dict[str, str] = {}
        doubtful: set[str] = set()
        for word, country in _words(required("pycountry", "country")):
            if self.known.setdefault(word, country) != country:
                doubtful.add(word)
        self.known = {word: country for word, country in self.known.items() if word not in doubtful} | ALSO

    def labels(self, code: str) -> Row | None:
        country = self.known.get(folded(code))
        return None if country is None else self.regions.get(country)


def _words(package: Any) -> Iterator[tuple[str, str]]:
    """Yield every code and name of a country with its code of two letters."""
    translated = [gettext.translation("iso3166-1", package.LOCALES_DIR, [language]) for language in LANGUAGES]
    for country in package.countries:
        names = [getattr(country, each, "") for each in ("name", "official_name", "common_name")]
        names += [language.gettext(name) for language in translated for name in names if name]
        for word in (country.alpha_2, country.alpha_3, country.numeric, *names):
            if word:
                yield folded(word), country.alpha_2
