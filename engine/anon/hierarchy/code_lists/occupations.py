"""Occupations by ISCO-08: 2212, 221*, 22 Health professionals, 2 Professionals."""

from __future__ import annotations

from anon.hierarchy.label_levels import Row

MAJOR = {
    "0": "Armed forces occupations",
    "1": "Managers",
    "2": "Professionals",
    "3": "Technicians and associate professionals",
    "4": "Clerical support workers",
    "5": "Service and sales workers",
    "6": "Skilled agricultural, forestry and fishery workers",
    "7": "Craft and related trades workers",
    "8": "Plant and machine operators, and assemblers",
    "9": "Elementary occupations",
}
SUB_MAJOR = {
    "01": "Commissioned armed forces officers",
    "02": "Non-commissioned armed forces officers",
    "03": "Armed forces occupations, other ranks",
    "11": "Chief executives, senior officials and legislators",
    "12": "Administrative and commercial managers",
    "13": "Production and specialized services managers",
    "14": "Hospitality, retail and other services managers",
    "21": "Science and engineering professionals",
    "22": "Health professionals",
    "23": "Teaching professionals",
    "24": "Business and administration professionals",
    "25": "Information and communications technology professionals",
    "26": "Legal, social and cultural professionals",
    "31": "Science and engineering associate professionals",
    "32": "Health associate professionals",
    "33": "Business and administration associate professionals",
    "34": "Legal, social, cultural and related associate professionals",
    "35": "Information and communications technicians",
    "41": "General and keyboard clerks",
    "42": "Customer services clerks",
    "43": "Numerical and material recording clerks",
    "44": "Other clerical support workers",
    "51": "Personal services workers",
    "52": "Sales workers",
    "53": "Personal care workers",
    "54": "Protective services workers",
    "61": "Market-oriented skilled agricultural workers",
    "62": "Market-oriented skilled forestry, fishery and hunting workers",
    "63": "Subsistence farmers, fishers, hunters and gatherers",
    "71": "Building and related trades workers, excluding electricians",
    "72": "Metal, machinery and related trades workers",
    "73": "Handicraft and printing workers",
    "74": "Electrical and electronic trades workers",
    "75": "Food processing, woodworking, garment and other craft and related trades workers",
    "81": "Stationary plant and machine operators",
    "82": "Assemblers",
    "83": "Drivers and mobile plant operators",
    "91": "Cleaners and helpers",
    "92": "Agricultural, forestry and fishery labourers",
    "93": "Labourers in mining, construction, manufacturing and transport",
    "94": "Food preparation assistants",
    "95": "Street and related sales and service workers",
    "96": "Refuse workers and other elementary workers",
}
LENGTH = 4


class Occupations:
    """The levels of ISCO-08 above codes of four digits. Shorter codes are not taken: they may be others that have lost
    a leading zero.

    >>> Occupations().labels("2212")
    ('221*', '22 Health professionals', '2 Professionals')
    >>> Occupations().labels("110") is None, Occupations().labels("0110")[1]
    (True, '01 Commissioned armed forces officers')
    """

    levels = 3

    def labels(self, code: str) -> Row | None:
        written = code.strip()
        if len(written) != LENGTH or not (written.isascii() and written.isdigit()) or written[:2] not in SUB_MAJOR:
            return None
        return f"{written[:3]}*", f"{written[:2]} {SUB_MAJOR[written[:2]]}", f"{written[0]} {MAJOR[written[0]]}"
