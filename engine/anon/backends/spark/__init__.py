"""A run on a Spark cluster. Spark reads, shuffles and starts again what is lost; on its executors the code of the local
engine encodes rows, counts, searches blocks, writes and verifies. The driver decides, and sees counts, never rows.

`session` starts Spark, `failures` translates what can go wrong there, `executors` sends work to the executors, and
`rows` evaluates what is asked of the rows. The stages are in `source` (rows in canonical types), `counting` (domains
and records), `passes` and `partition`, `release` and `verify`; `backend` puts them together. A lattice is searched by
`lattice` with `frequency_sets` in place of `passes` and `partition`; `check` begins with `grouped` (rows of a table
that is already grouped)."""
