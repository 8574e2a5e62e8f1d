# make demo and make test are all a fresh machine needs; both prepare .venv first.
SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin

.PHONY: setup demo test coverage lint wheel bench bench-spark lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml scripts/setup.sh
	@bash scripts/setup.sh $(VENV)

demo: setup
	@$(RUN)/sluicegate demo

test: setup lint
	@bash scripts/browser.sh
	@$(RUN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder

# The same with what is covered; measuring that takes some minutes more.
coverage: setup
	@$(RUN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --cov --cov-report=term

lint: setup
	@$(RUN)/ruff check src tests benchmarks
	@$(RUN)/ruff format --check src tests benchmarks
	@$(RUN)/mypy
	@$(RUN)/lint-imports

# What `pip install` takes, in dist/; hatchling, which builds it, is part of the developer set.
wheel: setup
	@$(RUN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

# Those of Spark take some minutes each; state what else the machine does while they run.
bench-spark: setup
	@for name in edge_throughput plain_query python_tasks many_hops sojourn_prediction stateful_rescale triple_load \
		who_runs_where soak; do \
		echo "== $$name"; $(RUN)/python benchmarks/$$name.py || exit 1; done

# Four of them measure on files of yours: make bench TASK_TABLE=tasks.csv TRACES="a.csv b.csv"
bench: setup
	@for name in drs_speed tick_speed pack_and_place arma_refit simulator_speed replay_speed dashboard_load; do \
		echo "== $$name"; $(RUN)/python benchmarks/$$name.py || exit 1; done
	@if [ -n "$(TASK_TABLE)" ]; then $(RUN)/python benchmarks/slots_of_the_micro_dataflows.py $(TASK_TABLE); \
		else echo "left out: slots_of_the_micro_dataflows, give TASK_TABLE=FILE.csv"; fi
	@for name in forecast_calibration trace_frontier on_time_constants; do \
		if [ -n "$(TRACES)" ]; then $(RUN)/python benchmarks/$$name.py $(TRACES) || exit 1; \
		else echo "left out: $$name, give TRACES=FILE.csv"; fi; done

# Resolve the newest set that pyproject.toml allows, for every platform; needs uv, which the developer set holds.
lock: setup
	@$(RUN)/uv pip compile pyproject.toml --extra dev --extra apps --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --upgrade -o requirements.lock

clean:
	find src -name '*.nb[ic]' -delete
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .coverage out dist
