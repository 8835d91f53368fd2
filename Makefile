# Every target makes what it needs, the virtual environment included. `make help` lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT := pyproject.toml setup.py $(wildcard csrc/*.c csrc/*.h sdk/*.py harness/*.py harness/lightfr_harness/bench/floor.c)

.PHONY: help test demo bench lint format test-arm test-sanitize size wheel clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

# One sentence instead of a page of compiler errors.
define require_tools
@command -v $(PYTHON) >/dev/null || { echo "lightfr needs Python 3.11 or later: '$(PYTHON)' was not found. Install it or set PYTHON." >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lightfr needs Python 3.11 or later: '$(PYTHON)' is older. Set PYTHON to a newer one." >&2; exit 1; }
@command -v "$${CC:-cc}" >/dev/null || { echo "lightfr needs a C compiler: '$${CC:-cc}' was not found. Install one (Debian: apt-get install gcc libc6-dev) or set CC." >&2; exit 1; }
endef

$(VENV)/installed: $(BUILT)
	$(require_tools)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing lightfr and what it needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[harness,test]'
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(VENV)/installed-lint: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint]'
	@touch $@

test: $(VENV)/installed ## Run all tests (under 5 minutes)
	$(BIN)/python -m pytest
	@$(MAKE) --no-print-directory -C csrc check

demo: $(VENV)/installed ## See it work: train on a generated catalogue and recommend
	@$(BIN)/lightfr-harness demo

bench: $(VENV)/installed-bench ## Time the kernel against faiss, float64 and a plain read; draw Figure 1
	$(BIN)/lightfr-harness bench report
	$(BIN)/lightfr-harness bench fit

lint: $(VENV)/installed-lint ## Check style, types and C formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror csrc/*.[ch] harness/lightfr_harness/bench/*.c examples/c/*.c tests/csrc/*.[ch]

format: $(VENV)/installed-lint ## Put everything into the project's style
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	$(BIN)/clang-format -i csrc/*.[ch] harness/lightfr_harness/bench/*.c examples/c/*.c tests/csrc/*.[ch]

test-arm: ## Run the C tests for 64-bit ARM (NEON) and 32-bit ARM under qemu
	@$(MAKE) --no-print-directory -C csrc test-arm

test-sanitize: ## Run the C tests under ASan and UBSan
	@$(MAKE) --no-print-directory -C csrc test-sanitize

size: ## Check the size of the C library
	@$(MAKE) --no-print-directory -C csrc size

wheel: $(VENV)/installed ## Build the one wheel that serves every Python from 3.11 on
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/lightfr-*-cp311-abi3-*.whl

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist out *.egg-info csrc/build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find sdk harness -name '*.so' -delete
