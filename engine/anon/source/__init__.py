"""Read the config's source as one view of the rows under neutral names, in streams through DuckDB and never whole.
`files` and `tables` register files and frames, `csv_files` those of text; `types` gives every column its canonical type
(NaN is null, -0.0 is 0.0, categories are text), `requirements` says what is asked of the rows, `checks` compares the
table with the config, `rows` puts them together, and `grouped` does the same with a table that is already grouped."""

from anon.source.checks import check_present, individual_sql, named_columns
from anon.source.files import register_files
from anon.source.grouped_table import GroupedTable, open_grouped
from anon.source.rows import Column, Source, open_source
from anon.source.tables import as_arrow, count_distinct, describe, register_frame, resolve
from anon.source.types import Unusable, as_read, canonical

__all__ = [
    "Column",
    "GroupedTable",
    "Source",
    "Unusable",
    "as_arrow",
    "as_read",
    "canonical",
    "check_present",
    "count_distinct",
    "describe",
    "individual_sql",
    "named_columns",
    "open_grouped",
    "open_source",
    "register_files",
    "register_frame",
    "resolve",
]
