# Everything runs in a virtual environment inside this checkout; see CONTRIBUTING.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-system check format controlplane lock docs clean

help: ## What there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Sickbay needs Python 3.11 or newer; name it with make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.python requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	@echo "$(CURDIR)" > "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/sickbay-checkout.pth"
	@printf '#!/bin/sh\nexec "%s/$(BIN)/python" -m sickbay "$$@"\n' "$(CURDIR)" > $(BIN)/sickbay && chmod +x $(BIN)/sickbay
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

demo: $(VENV)/.runtime ## Both loops on simulated machines, in less than a minute
	$(BIN)/python -m sickbay demo $(DEMO)

test: $(VENV)/.dev ## All tests, with the real control plane where Go is present
	$(BIN)/python tests/run.py all

test-fast: $(VENV)/.dev ## What each change runs: checks and everything on virtual time, under 3 minutes
	$(BIN)/python tests/run.py fast

test-system: ## Install the Debian packages that some tests need (as root)
	apt-get update && apt-get install --yes --no-install-recommends slurm-wlm munge chromium

check: $(VENV)/.dev ## Lint, types, import contracts
	$(BIN)/python tests/run.py check

format: $(VENV)/.dev ## Put the code into its form
	$(BIN)/ruff format sickbay tests benchmarks
	$(BIN)/ruff check --fix sickbay tests benchmarks

controlplane: $(VENV)/.python ## Build the real control plane (needs Go; minutes the first time)
	$(BIN)/python tests/controlplane/build.py
	$(BIN)/python tests/controlplane/jobset.py

docs: $(VENV)/.runtime ## Write what is generated: CRDs, docs/api.md, docs/defaults.md, docs/commands.md
	$(BIN)/python -m sickbay.cli.generate

lock: $(VENV)/.dev ## Resolve the dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements/runtime.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra dev pyproject.toml -o requirements/dev.txt

clean: ## Remove what was made in this checkout
	rm -rf $(VENV) .venv313 .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
