"""Medicines by the Anatomical Therapeutic Chemical classification (ATC): A10BA02, A10BA*, A10B*, A10*, A Alimentary
tract and metabolism."""

from __future__ import annotations

import re

from anon.hierarchy.label_levels import Row

GROUPS = {
    "A": "Alimentary tract and metabolism",
    "B": "Blood and blood forming organs",
    "C": "Cardiovascular system",
    "D": "Dermatologicals",
    "G": "Genito-urinary system and sex hormones",
    "H": "Systemic hormonal preparations, excluding sex hormones and insulins",
    "J": "Antiinfectives for systemic use",
    "L": "Antineoplastic and immunomodulating agents",
    "M": "Musculo-skeletal system",
    "N": "Nervous system",
    "P": "Antiparasitic products, insecticides and repellents",
    "R": "Respiratory system",
    "S": "Sensory organs",
    "V": "Various",
}
CODE = re.compile(r"[A-Z](?:[0-9]{2}(?:[A-Z](?:[A-Z](?:[0-9]{2})?)?)?)?")
LENGTHS = (5, 4, 3)  # of the prefixes above a substance and below the group


class Medicines:
    """The levels of ATC. A code that is itself of a higher level stays as it is below that level.

    >>> Medicines().labels("A10BA02")
    ('A10BA*', 'A10B*', 'A10*', 'A Alimentary tract and metabolism')
    >>> Medicines().labels("a10b")
    ('a10b', 'A10B*', 'A10*', 'A Alimentary tract and metabolism')
    """

    levels = len(LENGTHS) + 1

    def labels(self, code: str) -> Row | None:
        written = code.strip().upper()
        if not CODE.fullmatch(written) or written[0] not in GROUPS:
            return None
        below = (f"{written[:length]}*" if len(written) >= length else code for length in LENGTHS)
        return (*below, f"{written[0]} {GROUPS[written[0]]}")
