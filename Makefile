# make demo and make test are all a fresh machine needs; both prepare .venv first.
SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin

.PHONY: setup demo test lint bench lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml scripts/setup.sh
	@bash scripts/setup.sh $(VENV)

demo: setup
	@$(RUN)/headgate demo

test: setup lint
	@$(RUN)/pytest -q --cov --cov-report=term

lint: setup
	@$(RUN)/ruff check src tests benchmarks
	@$(RUN)/ruff format --check src tests benchmarks
	@$(RUN)/mypy
	@$(RUN)/lint-imports

bench: setup
	@for script in benchmarks/*.py; do echo "== $$script"; $(RUN)/python $$script || exit 1; done

# Resolve the newest set that pyproject.toml allows, for every platform; needs uv, which the developer set holds.
lock: setup
	@$(RUN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --upgrade -o requirements.lock

clean:
	find src -name '*.nb[ic]' -delete
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .coverage out
