#!/bin/sh
# A release of a table that dbt makes: anon reads what `dbt build` left, in the same job. With dbt-duckdb the config says
#     source: {duckdb: {file: house.duckdb, query: SELECT * FROM main.visits}}
# and with dbt-postgres
#     source: {postgres: {dsn: "${HOUSE_DSN}", query: SELECT * FROM marts.visits}}
set -eu
dbt build --select +visits
anon run /etc/anon/nightly.yaml --overwrite --log-json
