"""A table with the shape of the Lands End database, which was never published.

4,591,581 sales with the domain sizes of Figure 8 of the l-diversity paper. Everything else is ours: zip codes, styles
and days are skewed, the price follows from the style, and the cost in steps of 100 from the price, with some noise.
Every row is a function of its number, by DuckDB's hash.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

ROWS = 4_591_581
DOMAINS = {
    "zipcode": 31_953, "order_date": 320, "gender": 2, "style": 1_509, "price": 346, "quantity": 1, "shipment": 2,
    "cost": 147,
}  # fmt: skip
BUILDERS: dict[str, dict[str, Any]] = {
    "zipcode": {"digits": 5},
    "order_date": {"calendar": ["day", "month", "quarter"]},
    "gender": {"suppress": True},
    "style": {"suppress": True},
    "price": {"digits": 4},
    "quantity": {"suppress": True},
    "shipment": {"suppress": True},
}
LEVELS = {  # the levels of the builders as SQL
    "zipcode": [f"left(zipcode, {kept})" for kept in range(5, -1, -1)],
    "order_date": ["order_date", "date_trunc('month', order_date)", "date_trunc('quarter', order_date)", "0"],
    "gender": ["gender", "0"],
    "style": ["style", "0"],
    "price": [f"left(price, {kept})" for kept in range(4, -1, -1)],
}
DATA = (
    f"synthetic: {ROWS:,} sales with the domain sizes of the paper's Figure 8 (zip code 31,953, day 320, gender 2, "
    "style 1,509, price 346, quantity 1, shipment 2, cost 147); skewed zip codes, styles and days; the price "
    "follows from the style, the cost from the price with some noise"
)


def uniform(salt: str) -> str:
    """Return SQL for a number in [0, 1) that depends on the row number and a salt only."""
    return f"(hash('{salt}' || i) >> 11) / 9007199254740992.0"


def skewed(salt: str, size: int, power: float) -> str:
    """Return SQL for a number below `size`, small ones being frequent; the first rows have every number once."""
    return f"CASE WHEN i < {size} THEN i ELSE CAST(floor(pow({uniform(salt)}, {power}) * {size}) AS BIGINT) END"


def write(path: Path, rows: int = ROWS) -> None:
    """Write the table to a Parquet file."""
    con = duckdb.connect()
    drawn = f"""
        SELECT i, {skewed("zip", DOMAINS["zipcode"], 1.6)} AS zip, {skewed("day", DOMAINS["order_date"], 1.2)} AS day,
               {skewed("style", DOMAINS["style"], 2.5)} AS style, {uniform("gender")} AS gender,
               {uniform("shipment")} AS shipment, {uniform("noise")} AS noise
        FROM range({rows}) r(i)"""
    priced = f"SELECT *, (style * 7919) % {DOMAINS['price']} AS p FROM ({drawn})"
    steps = DOMAINS["cost"]
    usual = f"p * {steps} // {DOMAINS['price']}"
    noisy = f"CAST(floor(CASE WHEN noise < 0.05 THEN noise * 20 * {steps} ELSE {usual} END) AS BIGINT)"
    con.execute(f"""
        COPY (SELECT lpad(CAST(501 + zip * 3 AS VARCHAR), 5, '0') AS zipcode,
                     DATE '2004-01-01' + CAST(day AS INTEGER) AS order_date,
                     CASE WHEN gender < 0.7 THEN 'F' ELSE 'M' END AS gender,
                     'S' || lpad(CAST(style AS VARCHAR), 4, '0') AS style,
                     lpad(CAST(5 + p * 28 AS VARCHAR), 4, '0') AS price,
                     '1' AS quantity, CASE WHEN shipment < 0.9 THEN 'ground' ELSE 'air' END AS shipment,
                     100 * ({noisy}) AS cost
              FROM ({priced}) ORDER BY i) TO '{path}' (FORMAT parquet)""").fetchall()
