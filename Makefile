# On a fresh machine with Python 3.11 or later: `make run` and `make test` set everything up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_READY := $(VENV)/.run-ready
TEST_READY := $(VENV)/.test-ready

# what `make check` runs: the lower floors and the rules of the house, in about a minute
UNIT := $(filter-out tests/test_release.py tests/test_peers.py,$(wildcard tests/test_*.py)) \
	$(addprefix tests/,events catalog scenario workload silicon report)

.PHONY: run studio studio-build test check bench bench-peers conformance soak lock docs clean

run: $(RUN_READY)
	@$(BIN)/datahall plan
	@echo
	@echo "How far off such answers are:  $(BIN)/datahall validate inference"
	@echo "A training run:  $(BIN)/datahall plan train llama-3.1-70b --tokens 15T --deadline 60d --budget 20M --chip h200"
	@echo "The same in a browser:  $(BIN)/datahall studio"
	@echo "An endpoint:  $(BIN)/pip install -e '.[serve,llm]' && $(BIN)/datahall serve"
	@echo "Chips or an API:  $(BIN)/datahall show build-or-buy --tokens-per-month 2B --model llama-3.1-70b"

studio: $(RUN_READY)  # every question in a browser
	@$(BIN)/datahall studio

studio-build: $(TEST_READY)  # the page anew from its sources: the one target that needs Node
	cd studio-ui && npm ci --no-audit --no-fund && npm run build
	$(BIN)/python release/studio.py

test: $(TEST_READY)
	@sh release/test_tools.sh
	$(BIN)/ruff format --check src tests calibration benchmarks docs release
	$(BIN)/ruff check src tests calibration benchmarks docs release
	$(BIN)/mypy
	$(BIN)/pytest -q -n auto

check: $(TEST_READY)
	$(BIN)/ruff format src tests calibration benchmarks docs release
	$(BIN)/ruff check --fix src tests calibration benchmarks docs release
	$(BIN)/mypy
	$(BIN)/pytest -q -x -n auto $(UNIT)

bench: $(TEST_READY)
	@$(BIN)/python -m compileall -q src  # as after any first run, where one may write beside the sources
	$(BIN)/python benchmarks/run.py

SOAK_S ?= 600

soak: $(TEST_READY)  # a gateway under mixed load for SOAK_S seconds: what it holds, and its books
	$(BIN)/python benchmarks/soak.py $(SOAK_S)

bench-peers: $(BIN)/python  # servers of others, each in an environment of its own, and ours beside them
	$(BIN)/pip install -q uv  # pip tries versions of one of them for half an hour
	for one in mlserver litserve peers; do $(BIN)/python -m venv $(VENV)/$$one && \
		$(BIN)/uv pip install -q --python $(VENV)/$$one/bin/python -r benchmarks/peers/$$one.txt || exit 1; done
	$(BIN)/python benchmarks/beside_peers.py

conformance: $(TEST_READY)  # clients of others against `datahall serve`, in an environment of their own
	$(BIN)/python -m venv $(VENV)/conformance
	$(VENV)/conformance/bin/pip install -q -r benchmarks/conformance/requirements.txt
	$(VENV)/conformance/bin/python benchmarks/conformance/run.py $(BIN)/datahall $(SUITES)

docs: $(RUN_READY)  # of some pages alone: make docs PAGES="reference stub"
	$(BIN)/python docs/generate.py $(PAGES)

lock:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		-q pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		-q pyproject.toml --extra dev -o requirements-dev.lock

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Datahall needs Python 3.11 or later; $$($(PYTHON) --version) found. Set PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_READY): $(BIN)/python requirements.lock pyproject.toml
	@echo "setting up $(VENV) …"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(TEST_READY): $(BIN)/python requirements-dev.lock pyproject.toml
	@echo "setting up $(VENV) with the test tools …"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m compileall -q src
	@touch $@ $(RUN_READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
