"""crowds: Optimal Lattice Anonymization (full-domain), with suppression."""

import pandas as pd
from crowds.kanonymity import ola
from crowds.kanonymity.generalizations import GenRule
from shared import NAMES, SENSITIVE, SUPPRESSED, given, levels, write

table, k, out = given()
frame = pd.read_parquet(table, columns=[*NAMES, SENSITIVE])
rules, whole = {}, {}
for name in NAMES:
    values = sorted(frame[name].unique().tolist())
    *steps, top = levels(name, values)
    whole[name] = top[0]  # a rule ends with None for everything by itself
    rules[name] = GenRule([dict(zip(values, step)).__getitem__ for step in steps])
found, _ = ola.anonymize(frame, rules, k=k, max_sup=SUPPRESSED)
for name in NAMES:
    found[name] = [whole[name] if value is None or value != value else str(value) for value in found[name]]
write(out, found.groupby(list(NAMES)).size().items())
