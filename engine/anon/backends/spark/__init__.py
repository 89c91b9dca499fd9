"""A run on a Spark cluster. Spark reads, shuffles and starts again what is lost; on its executors the code of the local
engine encodes rows, counts, searches blocks, writes and verifies. The driver decides, and sees counts, never rows.

`session` starts Spark, `failures` tells what can go wrong there, `spread` sends work to the executors. Then the way of
the data: `source` (rows in canonical types), `counting` (domains and records), `passes` and `search`, `release`,
`verify`, and `job`, which puts them together. A lattice is searched by `lattice` with `entries` (frequency sets) in
place of `passes` and `search`; `check` begins with `grouped` (rows of a table that is already grouped)."""
