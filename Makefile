# Commands for users; `make` without a target lists them.
#
# The first target that needs the environment sets it up, once. This needs Python 3.11 to
# 3.13 (choose one with `make PYTHON=python3.12 ...`) and a package index. Nothing is
# compiled. `repro`, `report`, `profile` and `data` install fewer packages than the
# other targets. Packages that only some parameters need, such as Ray, are installed
# once params.yaml uses them; no other package is downloaded later.

PYTHON ?= python3
SHELL := bash

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
FULL := $(VENV)/.installed-all

# Stages call `python`, which must be the environment's. The checkout's path may contain
# spaces, so make's word lists must not contain it. Bytecode is written even if the machine's settings
# disable it: otherwise every process would compile torch's sources again.
ENTER := PYTHONDONTWRITEBYTECODE= PATH="$(CURDIR)/$(BIN):$$PATH"

.DEFAULT_GOAL := help
.PHONY: help repro report test soak lint docs bench gpu-check profile data lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

repro: $(READY) ## Rebuild the tables and figures of params.yaml's profile; run only what changed
	@extras=$$($(BIN)/python -m softmax_temperature.tools.extras) || exit; \
	  [ -z "$$extras" ] || { $(call install,$$extras); }
	@test -e .git || $(BIN)/python -m dvc config --local core.no_scm true
	@# Hide DVC's advice to push, which needs a remote; keep DVC's exit code.
	@set -o pipefail; PYTHONUNBUFFERED=1 $(ENTER) $(BIN)/dvc repro | awk '!/^Use `dvc push`/ { print; fflush() }'
	@$(BIN)/python -c 'from pathlib import Path; from softmax_temperature.params import read_params; \
	  print("\nThe report: results/" + read_params(Path("params.yaml")).profile + "/index.html")'
	@test ! -e .git || $(ENTER) $(BIN)/softmax-temperature compare --after-repro || true

report: $(READY) ## Redraw the README's picture and rebuild the HTML report from results/
	$(ENTER) $(BIN)/python pipeline/picture.py
	$(ENTER) $(BIN)/python pipeline/report.py

# Each test uses one thread, so one process per core runs tests, but at most four, because
# each needs up to 3 GiB. Tests of one file share fixtures, so they run in one process.
test: $(FULL) ## Run the tests (ARGS="-k name" to choose)
	$(ENTER) $(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile $(ARGS)

soak: $(FULL) ## Run the tests that take long (ARGS="-k name" to choose)
	$(ENTER) $(BIN)/python -m pytest -m slow $(ARGS)

lint: $(FULL) ## Check formatting, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(ENTER) $(BIN)/mypy

docs: $(FULL) ## Write the docs and the API as pages that read offline: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

bench: $(FULL) ## Measure the promised speeds (ARGS="--only NAME" or "--quick")
	$(ENTER) $(BIN)/python -m benchmarks $(ARGS)

gpu-check: $(FULL) ## Check this machine's GPU in five minutes: tests, speed and memory
	$(ENTER) $(BIN)/python -m benchmarks.gpu_check

profile: $(READY) ## Write params.yaml from a profile: make profile PROFILE=mini
	@test -n "$(PROFILE)" || { echo "Which profile? make profile PROFILE=NAME, one of:" $$(cd profiles && ls *.yaml | sed 's/\.yaml//; /^defaults$$/d'); exit 2; }
	@$(BIN)/softmax-temperature profile "$(PROFILE)"

data: $(READY) ## List and check a profile's data (PROFILE=text; DOWNLOAD=1 to fetch it)
	@test -n "$(PROFILE)" || { echo "Which profile? make data PROFILE=NAME"; exit 2; }
	@$(BIN)/python -m softmax_temperature.tools.needed_data "$(PROFILE)" $(if $(DOWNLOAD),--download)

lock: $(READY) ## Pin what pyproject.toml asks for, keeping pins that still fit
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 --all-extras \
	  pyproject.toml --output-file requirements.lock

clean: ## Remove the environment and the tools' caches; data and results stay
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
	find src tests pipeline benchmarks -name __pycache__ -prune -exec rm -rf {} +

# We install only the locked requirements that the chosen extras need, all with hashes.
# setuptools is installed first, from the lock: one dependency of DVC is a pure Python
# source distribution, and without build isolation neither it nor this package downloads
# anything unpinned. uv, also from the lock, installs the rest in a third of pip's time.
# uv does not read pip's settings, so pip is used if only pip's settings name the index.
EXTRAS := pipeline notebooks weights
OPTIONS := --quiet --no-deps --require-hashes --no-build-isolation \
  --requirement $(VENV)/wanted.lock

# Shell commands that install extras.
define install
$(BIN)/python src/softmax_temperature/tools/locked.py $(1) > $(VENV)/wanted.lock && \
{ $(BIN)/uv pip install --python $(BIN)/python $(OPTIONS) || \
  $(BIN)/python -m pip install --no-compile $(OPTIONS); }
endef

# On Linux the pinned torch includes CUDA. Without an NVIDIA GPU, we install the CPU build
# of the same version if pip's indexes or uv's have it. The lock has no hash of that build;
# `make TORCH=pinned ...` installs the pinned build instead.
TORCH ?= auto
HAS_GPU := command -v nvidia-smi > /dev/null || test -e /dev/nvidiactl || test -e /dev/dxg
PINS := $(shell awk '/^(torch|torchvision)==/ { print $$1 }' requirements.lock)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "Needs Python 3.11 to 3.13; this is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..."; exit 2; }
	@echo "Setting up $(VENV) from requirements.lock: a few minutes, once."
	$(PYTHON) -m venv $(VENV)
	@awk '/^[^ ]/ { wanted = /^(setuptools|uv)==/ } wanted' requirements.lock > $(VENV)/first.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement $(VENV)/first.lock
	@[ "$(TORCH)" != auto ] || [ "$$(uname -s)" != Linux ] || { $(HAS_GPU); } || \
	  $(BIN)/python -m pip install --quiet --no-deps $(PINS:=+cpu) 2> /dev/null || \
	  UV_HTTP_RETRIES=0 $(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend cpu \
	    --no-deps $(PINS) 2> /dev/null || \
	  echo "No index offers a CPU build of $(firstword $(PINS)): taking the one with CUDA, 4.5 GB more on disk."
	@$(call install,$(EXTRAS))
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(FULL): $(READY)
	@$(call install,$(EXTRAS) dev translation ray)
	@touch $@
