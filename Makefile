# make demo and make test are all a fresh machine needs; both prepare .venv first.
SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin
# One more than two cores: tests of Spark often wait, for executors, batches and files.
WORKERS := 3

.PHONY: setup demo test test-long coverage lint wheel docs bench bench-traces chaos fuzz audit lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml scripts/setup.sh
	@bash scripts/setup.sh $(VENV)

demo: setup
	@$(RUN)/sluicegate demo

# Types take one core for half a minute: meanwhile the other one prepares what the tests start a hundred times.
test: setup
	@$(MAKE) --no-print-directory -j 2 lint browser compiled $(VENV)/spark.jsa
	@$(RUN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: browser compiled

browser:
	@bash scripts/browser.sh

# numba looks for changes in the file of a function alone: what it calls from another one would stay as it was.
compiled: setup
	@newest=$$(ls -t $$(find src -name '*.py') | head -1); find src -name '*.nb[ic]' ! -newer "$$newest" -delete
	@$(RUN)/sluicegate simulate examples/top_n.toml --rate 900 --policy sluicegate --slo mean=1s --seconds 60 >/dev/null

# Of no use with another jar: Java would ignore it.
$(VENV)/spark.jsa: $(VENV)/.ready src/sluicegate/spark/jvm/sluicegate.jar scripts/java_archive.py
	@$(RUN)/python scripts/java_archive.py $@ 2>/dev/null || echo "sluicegate: no archive of Java classes, so Spark starts more slowly"

# The same stories on other ground (YARN, Spark's other state store, Nexmark on plain Spark).
test-long: setup
	@$(RUN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m long tests

# The same with what is covered; measuring that takes some minutes more.
coverage: setup
	@$(RUN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --cov --cov-report=term

lint: setup
	@$(RUN)/ruff check src tests benchmarks scripts
	@$(RUN)/ruff format --check src tests benchmarks scripts
	@$(RUN)/mypy
	@$(RUN)/lint-imports

# What `pip install` takes, in dist/; hatchling, which builds it, is part of the developer set.
wheel: setup
	@$(RUN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

# The documentation as a site in out/docs; a warning (a link or an anchor that leads nowhere) fails it.
.PHONY: docs
docs: setup
	@$(RUN)/python scripts/reference.py
	@$(RUN)/python -m sphinx -q -W --keep-going docs out/docs
	@echo out/docs/index.html

# Every claim measured, and docs/benchmarks.md made of it: make bench, make bench ONLY=live (groups: see --list), with KEEP=1
# to add runs to those that are there. The rest of the machine should be idle. Replay's tables are of load traces of yours: make bench-traces TRACES="a.csv b.csv"
bench: setup
	@$(RUN)/python benchmarks/bench.py $(if $(ONLY),--only $(ONLY)) $(if $(KEEP),--keep)

bench-traces: setup
	@test -n "$(TRACES)" || { echo 'give TRACES="a.csv b.csv"'; exit 2; }
	@for name in forecast_calibration trace_frontier on_time_constants; do \
		echo "== $$name"; $(RUN)/python benchmarks/$$name.py $(TRACES) || exit 1; done

# Faults by the hundred, an hour of them; writes docs/reliability.md from benchmarks/results/chaos.jsonl.
chaos: setup
	@$(RUN)/python benchmarks/chaos.py --minutes $${MINUTES:-60} --seed $${SEED:-0} --at-once $${AT_ONCE:-2}

# A hundred thousand malformed inputs over every parser.
fuzz: setup
	@$(RUN)/python benchmarks/fuzz.py 100000

# Known vulnerabilities of what requirements.lock names; needs a network, so the tests do not ask it, and pip-audit, which
# only this needs, is not in the lock.
audit: setup
	@$(RUN)/python -m pip_audit --version > /dev/null 2>&1 || $(RUN)/python -m pip install --quiet pip-audit
	@$(RUN)/python scripts/audit.py

# Resolve the newest set that pyproject.toml allows, for every platform; needs uv, which the developer set holds.
lock: setup
	@$(RUN)/uv pip compile pyproject.toml --extra dev --extra apps --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --upgrade -o requirements.lock

clean:
	find src -name '*.nb[ic]' -delete
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .coverage out dist
