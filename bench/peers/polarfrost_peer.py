"""polarfrost: Mondrian on Polars."""

import sys
from types import ModuleType

# Its Spark half is imported with the rest but not used here.
functions = ModuleType("pyspark.sql.functions")
functions.pandas_udf = functions.PandasUDFType = None
sys.modules |= {"pyspark": ModuleType("pyspark"), "pyspark.sql": ModuleType("pyspark.sql")}
sys.modules["pyspark.sql.functions"] = functions

import polars as pl  # noqa: E402
from polarfrost import mondrian_k_anonymity_polars  # noqa: E402
from shared import CATEGORIES, NAMES, NUMBERS, SENSITIVE, given, write  # noqa: E402

table, k, out = given()
frame = pl.read_parquet(table, columns=[*NAMES, SENSITIVE])
found = mondrian_k_anonymity_polars(frame, list(NAMES), SENSITIVE, k, categorical=list(CATEGORIES))


def label(cell: str, name: str) -> str:
    return cell if name in NUMBERS else cell.replace(",", "|")


write(out, ((tuple(label(row[name], name) for name in NAMES), row["count"]) for row in found.iter_rows(named=True)))
