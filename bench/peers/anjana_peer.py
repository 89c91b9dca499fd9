"""anjana: full-domain generalization, one column after the other, with suppression."""

import pandas as pd
from anjana.anonymity import k_anonymity
from shared import NAMES, SENSITIVE, SUPPRESSED, given, levels, write

table, k, out = given()
frame = pd.read_parquet(table, columns=[*NAMES, SENSITIVE])
hierarchies = {}
for name in NAMES:
    values = sorted(frame[name].unique().tolist())
    hierarchies[name] = dict(enumerate([values, *levels(name, values)]))
found = k_anonymity(frame, [], list(NAMES), k, SUPPRESSED, hierarchies)
write(out, ((tuple(map(str, labels)), size) for labels, size in found.groupby(list(NAMES)).size().items()))
