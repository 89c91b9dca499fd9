#!/bin/sh
# Releases a table that dbt builds, in the same job. With dbt-duckdb the config has
#     source: {duckdb: {file: house.duckdb, query: SELECT * FROM main.visits}}
# and with dbt-postgres
#     source: {postgres: {dsn: "${HOUSE_DSN}", query: SELECT * FROM marts.visits}}
set -eu
dbt build --select +visits
anon run /etc/anon/nightly.yaml --log-json
