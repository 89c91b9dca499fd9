"""Put messages of the engine, which name the flags of the command line, into the words of the Python API, where the
same choices are parameters."""

from __future__ import annotations

import re

TRUTHS = ("overwrite", "force", "resume", "strict", "show-values")  # flags without a value
NAMES = {  # parameters that are not named like their flags
    "on": "table",
    "with": "held_with",
    "value": "values",
    "confidence": "confidences",
    "identifier": "identifiers",
    "quasi-identifier": "quasi_identifiers",
}
ALIKE = (
    "out", "memory", "threads", "sample", "prior", "save-priors", "sensitive", "max-k", "threshold", "rho1", "rho2",
    "individual", "keep", "drop", "template",
)  # fmt: skip
NAMES |= {flag: flag.replace("-", "_") for flag in (*TRUTHS, *ALIKE)}
# Commands in backticks stay as they are; the word after some flags is their value.
FLAG = re.compile(
    r"`anon [^`]*`|(?<![\w-])--(?P<flag>[a-z][a-z0-9-]*)(?P<value> (?:[A-Z]+\b|(?<=--individual )row\b))?"
)


def in_parameters(text: str) -> str:
    """Return a message in the words of the Python API.

    >>> in_parameters("--memory"), in_parameters("or say --overwrite"), in_parameters("one of --rho1 and --rho2")
    ('memory', 'or say overwrite=True', 'one of rho1= and rho2=')
    >>> in_parameters("--individual row if every row is a person"), in_parameters("`anon plan c.yaml --sql` shows it")
    ('individual="row" if every row is a person', '`anon plan c.yaml --sql` shows it')
    """
    whole = NAMES.get(text.removeprefix("--")) if text.startswith("--") else None
    return whole or FLAG.sub(_parameter, text)


def _parameter(found: re.Match[str]) -> str:
    flag, value = found["flag"], (found["value"] or "").strip()
    if flag == "no-sensitive":
        return "sensitive=[]"
    if flag not in NAMES:
        return found[0]
    if flag in TRUTHS:
        return f"{NAMES[flag]}=True{found['value'] or ''}"
    return f"{NAMES[flag]}=" + (f'"{value}"' if value == "row" else value)
