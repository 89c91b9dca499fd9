"""From the config's source to one view of the rows under neutral names, read in streams through DuckDB and never loaded
whole (config -> source -> cube -> search -> release -> verify -> report). `tables` registers files and frames, `types`
gives every column its canonical type (NaN is null, -0.0 is 0.0, categories are text), `checks` holds the table against
the config, for a source and for a table that is already grouped alike, and `rows` puts them together."""

from anon.source.checks import check_present, named_columns
from anon.source.rows import Column, Source, open_grouped, open_source
from anon.source.tables import as_arrow, count_distinct, describe, register_files, register_frame, resolve
from anon.source.types import Unusable, canonical

__all__ = [
    "Column",
    "Source",
    "Unusable",
    "as_arrow",
    "canonical",
    "check_present",
    "count_distinct",
    "describe",
    "named_columns",
    "open_grouped",
    "open_source",
    "register_files",
    "register_frame",
    "resolve",
]
