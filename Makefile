# Every target makes what it needs, the virtual environment included. `make help` lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
# Tests start some hundred programs: each would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
# What an editable install is made from: the rest of both packages is read where it lies.
BUILT := pyproject.toml harness/pyproject.toml setup.py $(wildcard csrc/*.c csrc/*.h sdk/*.py harness/*.py harness/lightfr_harness/*/*.c)
# Versions and hashes stand in requirements/. `make LOCKED=no ...` is for platforms for which a package has no wheel.
INSTALL = $(BIN)/python tools/install.py $(if $(filter no,$(LOCKED)),--by-range) $(VENV)
PIP_INSTALL = -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement

.PHONY: fuzz-c mutants wheels help test test-postgres postgres-there kill-replicas equal-replicas hostile demo bench bench-accuracy bench-load bench-ray test-ray fuzz lint format gen gen-check lock baseline test-arm test-sanitize size dist wheel test-protobuf coverage kill adversary agreement world soak bench-device test-conformance test-interop node-there web-kernel web-page web-check test-web bench-web clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

# One sentence instead of a page of compiler errors.
define require_tools
@command -v $(PYTHON) >/dev/null || { echo "lightfr needs Python 3.11 or later: '$(PYTHON)' was not found. Install it or set PYTHON." >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lightfr needs Python 3.11 or later: '$(PYTHON)' is older. Set PYTHON to a newer one." >&2; exit 1; }
@command -v "$${CC:-cc}" >/dev/null || { echo "lightfr needs a C compiler: '$${CC:-cc}' was not found. Install one (Debian: apt-get install gcc libc6-dev) or set CC." >&2; exit 1; }
endef

$(VENV)/installed: $(BUILT) requirements/test.txt
	$(require_tools)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) test
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed requirements/bench.txt
	@$(INSTALL) bench
	@touch $@

$(VENV)/installed-ray: $(VENV)/installed requirements/ray.txt
	@$(INSTALL) ray
	@touch $@

$(VENV)/installed-lint: $(VENV)/installed requirements/lint.txt
	@$(INSTALL) lint
	@touch $@

# Files are handed out in the order of tests/conftest.py, not by how many tests they have.
test: $(VENV)/installed ## Run all tests (under 5 minutes)
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder
	@$(MAKE) --silent --no-print-directory -C csrc check

coverage: $(VENV)/installed ## Check that tests walk every branch of the SDK
	$(BIN)/python -m pytest --numprocesses 3 --cov --cov-report=term tests/sdk

LONGEST_FIRST := tests/harness/conformance/test_secure_suite.py
test-conformance: $(VENV)/installed ## Try the coordinator as a crowd of devices would: what takes too long for `make test`
	$(BIN)/python -m pytest --numprocesses 4 --maxschedchunk 1 -m conformance $(LONGEST_FIRST) tests/harness/conformance

# npm writes this file last, when all is installed.
INTEROP := tests/interop/node
$(INTEROP)/node_modules/.package-lock.json: $(INTEROP)/package-lock.json
	@cd $(INTEROP) && npm ci --silent --ignore-scripts
	@touch $@

node-there:
	@{ command -v node && command -v npm; } >/dev/null || { echo "This target needs Node.js 18.19 or later and npm: install them (Debian: apt-get install nodejs npm)." >&2; exit 1; }

test-interop: node-there $(VENV)/installed ## Try lightfr with other programs: curl, nginx, Prometheus, a coordinator in Node.js (takes minutes)
	@$(MAKE) --no-print-directory $(INTEROP)/node_modules/.package-lock.json
	@cd $(INTEROP) && npm run --silent build && npm run --silent lint && npm test --silent
	$(BIN)/python -m pytest --numprocesses 3 --maxschedchunk 1 tests/interop

# Generated code, so that who installs the package needs no compiler.
ZIG := $(abspath .venv-zig)/bin/python -m ziglang

.venv-zig/installed: requirements/wheels.txt
	$(require_tools)
	@test -x .venv-zig/bin/python || $(PYTHON) -m venv .venv-zig
	@.venv-zig/bin/python $(PIP_INSTALL) $<
	@touch $@

web-kernel: .venv-zig/installed ## Build the kernel for web pages from csrc/
	@$(MAKE) --no-print-directory -C web/kernel BUILD=$(abspath build/web-kernel) ZIG="$(ZIG)"
	@install -m 644 build/web-kernel/kernel.*.wasm web/src/

web-check: .venv-zig/installed ## Check that the kernel for web pages is that of csrc/
	@$(MAKE) --no-print-directory -B -C web/kernel BUILD=$(abspath build/web-check) ZIG="$(ZIG)"
	@for kind in simd plain; do cmp build/web-check/kernel.$$kind.wasm web/src/kernel.$$kind.wasm || \
	  { echo "The kernel for web pages is stale: run 'make web-kernel'." >&2; exit 1; }; done

web/node_modules/.package-lock.json: web/package-lock.json
	@cd web && npm ci --silent --ignore-scripts
	@touch $@

# Generated code too: `make demo` needs neither Node.js nor npm.
PLAY := harness/lightfr_harness/demo/play.js
web-page: node-there web/node_modules/.package-lock.json ## Build the script of the demo's page from web/
	@cd web && npm run --silent page -- --log-level=warning --outfile=../$(PLAY)

test-web: node-there $(VENV)/installed ## Try lightfr-web in Node.js and in Chromium (Debian: nodejs npm chromium)
	@$(MAKE) --no-print-directory web-check web/node_modules/.package-lock.json
	@cd web && npm run --silent build && npm run --silent lint && npm test --silent
	@cd web && npm run --silent page -- --log-level=warning --outfile=../build/play.js && cmp ../build/play.js ../$(PLAY) || \
	  { echo "The script of the demo's page is stale: run 'make web-page'." >&2; exit 1; }
	$(BIN)/python -m pytest --numprocesses 2 tests/web

bench-web: node-there $(VENV)/installed ## Time the kernel in Chromium against plain JavaScript and floats
	@$(MAKE) --no-print-directory web/node_modules/.package-lock.json
	@cd web && npm run --silent build
	$(BIN)/python -m tests.web.bench

test-ray: $(VENV)/installed-ray ## Check that a fleet on Ray gives what a fleet in one process gives, bit for bit, and a real run what it measures
	$(BIN)/python -m pytest -m 'conformance or not conformance' tests/harness/simulation/test_ray_fleet.py tests/harness/simulation/test_scale_real.py

# 80,000 device rounds each; the ratio of the rates is that of the lines "device rounds a second by the clock".
bench-ray: $(VENV)/installed-ray ## Train 100,000 devices in actors of Ray: one worker, then two
	for workers in 1 2; do $(BIN)/lightfr-harness train --synthetic 100000x20000x2000000 --recency off --rounds 2 \
	  --fraction 0.4 --engine ray --workers $$workers; done

KILLS ?= 200
kill: $(VENV)/installed ## Kill the store, the device and the coordinator KILLS=200 times each, also while items change, and look for anything lost (takes minutes)
	$(BIN)/python -m tests.campaigns.kill_store --kills $(KILLS) --record build/kill-store.json
	$(BIN)/python -m tests.campaigns.kill_device --kills $(KILLS) --record build/kill-device.json
	$(BIN)/python -m tests.campaigns.kill_device --kills $(KILLS) --privacy secagg --record build/kill-device-secagg.json
	$(BIN)/python -m tests.campaigns.kill_coordinator --kills $(KILLS) --record build/kill-coordinator.json
	$(BIN)/python -m tests.campaigns.kill_coordinator --kills $(KILLS) --privacy secagg --record build/kill-coordinator-secagg.json
	$(BIN)/python -m tests.campaigns.living_catalogue --updates 10 --kills 6
	$(BIN)/python -m tests.campaigns.living_catalogue --updates 10 --kills 6 --privacy secagg

# Replicas of the coordinator: Debian's PostgreSQL and HAProxy, in temporary folders.
$(VENV)/installed-postgres: $(VENV)/installed requirements/postgres.txt
	@$(INSTALL) postgres
	@touch $@

postgres-there:
	@{ ls /usr/lib/postgresql/*/bin/postgres && command -v haproxy; } >/dev/null 2>&1 || { echo "This target needs PostgreSQL and HAProxy: install them (Debian: apt-get install postgresql haproxy)." >&2; exit 1; }

test-postgres: postgres-there $(VENV)/installed-postgres ## Try the storage of the coordinator and of the authority, and replicas, on PostgreSQL (under 3 minutes)
	LIGHTFR_POSTGRES=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile tests/harness/server/authority/test_authority.py tests/harness/server/authority/test_enrollment.py tests/harness/server/authority/test_postgres.py tests/harness/server/coordinator/test_storage.py tests/harness/server/coordinator/test_shelf.py tests/harness/server/coordinator/test_replicas.py tests/harness/server/coordinator/test_replicas_files.py tests/harness/server/coordinator/test_replicas_commands.py tests/harness/server/coordinator/test_replicas_killed.py

kill-replicas: postgres-there $(VENV)/installed-postgres ## Kill replicas 200 times and PostgreSQL 20 times, and look for anything lost (takes half an hour)
	$(BIN)/python -m tests.campaigns.kill_replicas --kills 200 --postgres-kills 20 --record build/kill-replicas.json

equal-replicas: postgres-there $(VENV)/installed-postgres ## Hold 2 and 3 replicas to one coordinator on SQLite, bit for bit, with 1,200 devices in 4 cohorts, and kill 200 times (takes an hour)
	$(BIN)/python -m tests.campaigns.equal_replicas --replicas 2
	$(BIN)/python -m tests.campaigns.equal_replicas --replicas 3
	$(BIN)/python -m tests.campaigns.equal_replicas --replicas 3 --rounds 8 --deadline 90 --kills 200 --postgres-kills 20

# WORLDS=20000 for a long night. Stopped with Ctrl-C or done, the next run goes on behind the last seed of the record and adds up.
world: $(VENV)/installed ## Simulate 1,000 more worlds of devices, coordinators and hostile weather, each from one seed (takes minutes)
	$(BIN)/python -m tests.world --worlds $(or $(WORLDS),1000) --first $(or $(FIRST),0) --processes $(or $(PROCESSES),2) --record build/worlds.json

soak: $(VENV)/installed ## Let 500 kept devices take part in secure rounds for two hours, and look for anything that grows
	$(BIN)/python -m tests.campaigns.soak --minutes $(or $(MINUTES),120) --record build/soak.json

adversary: $(VENV)/installed ## Attack 512 devices with a server that lies, let devices drop out of 1,000 rounds, and let one lie in a round of many cohorts (takes an hour)
	$(BIN)/python -m tests.campaigns.lying_server
	$(BIN)/python -m tests.campaigns.dropout
	$(BIN)/python -m tests.campaigns.lying_cohorts --cohorts 8

agreement: $(VENV)/installed ## Enumerate every strategy of a lying server against 4 to 6 devices (under a minute)
	$(BIN)/python -m tests.campaigns.every_strategy

bench-device: $(VENV)/installed ## Measure one real device from outside: memory, CPU, bytes at the TLS socket
	$(BIN)/lightfr-harness bench device

demo: $(VENV)/installed ## See it work: train in private on a generated catalogue, and play with a page (three minutes)
	@$(BIN)/lightfr-harness demo

bench: $(VENV)/installed-bench ## Time the kernel against faiss, float64 and a plain read; draw Figure 1
	$(BIN)/lightfr-harness bench report
	$(BIN)/lightfr-harness bench fit
	$(BIN)/lightfr-harness bench rounds

bench-accuracy: $(VENV)/installed ## Train the accuracy table on MovieLens-100K (fetched; takes minutes)
	$(BIN)/lightfr-harness bench accuracy --data "$$($(BIN)/lightfr-harness data fetch ml-100k)"

bench-load: $(VENV)/installed ## Load a coordinator: 150 new mutual-TLS check-ins and uploads a second, 2,000 kept connections
	$(BIN)/lightfr-harness bench load

# Messages that the record has are not tried again: MESSAGES=10000000 goes on where the last run ended.
fuzz: $(VENV)/installed ## Spoil MESSAGES=1000000 messages of each kind, and 20,000 requests to a live coordinator (an hour or so)
	$(BIN)/python -m tests.campaigns.fuzz_coordinator --record build/fuzz-coordinator.json
	$(BIN)/python -m tests.campaigns.fuzz_messages --messages $(or $(MESSAGES),1000000) --processes $(or $(PROCESSES),2) --record build/fuzz.json

fuzz-c: ## Fuzz every public function of the C library with libFuzzer, ASan and UBSan, RUNS=100000 of each target (needs clang)
	@$(MAKE) --no-print-directory -C csrc fuzz

MODULE ?= sdk/lightfr/secagg
SAMPLE ?= 20
mutants: $(VENV)/installed ## Break MODULE in SAMPLE=20 places a file, one at a time, and list what its tests do not see
	$(BIN)/python -m tests.campaigns.mutation $(MODULE) --sample $(SAMPLE)

hostile: $(VENV)/installed ## Give both programs 500 lines of hostile values, each in a process of its own (takes minutes)
	$(BIN)/python -m tests.campaigns.hostile_commands

lint: $(VENV)/installed-lint ## Check style, types and C formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/buf lint proto
	$(BIN)/buf breaking proto --against proto/baseline.binpb
	$(BIN)/clang-format --dry-run --Werror csrc/*.[ch] harness/lightfr_harness/*/*.c examples/c/*.[ch] tests/csrc/*.[ch] tests/csrc/fuzz/*.[ch] web/kernel/*.c

PROTOC := .venv-gen/bin/python -m grpc_tools.protoc --proto_path=proto
# Messages of other methods, which the simulation alone speaks.
BASELINES := harness/lightfr_harness/simulation/baselines
PROTOC_BASELINES := .venv-gen/bin/python -m grpc_tools.protoc --proto_path=$(BASELINES)

.venv-gen/installed: requirements/gen.txt
	$(require_tools)
	@test -x .venv-gen/bin/python || $(PYTHON) -m venv .venv-gen
	@.venv-gen/bin/python $(PIP_INSTALL) $<
	@touch $@

gen: .venv-gen/installed $(VENV)/installed ## Generate the message classes, and the C examples' field numbers, from proto/
	$(PROTOC) --python_out=sdk --pyi_out=sdk proto/lightfr/v1/*.proto
	$(PROTOC_BASELINES) --python_out=$(BASELINES) --pyi_out=$(BASELINES) $(BASELINES)/*.proto
	@mkdir -p build
	$(BIN)/python examples/c/make_fields.py >build/lightfr_v1.h && mv build/lightfr_v1.h examples/c/lightfr_v1.h

gen-check: .venv-gen/installed ## Check that the message classes are those of proto/
	@rm -rf build/gen && mkdir -p build/gen
	@$(PROTOC) --python_out=build/gen --pyi_out=build/gen proto/lightfr/v1/*.proto
	@diff -r build/gen/lightfr/v1 sdk/lightfr/v1 --exclude=__pycache__ --exclude=__init__.py || { echo "generated code is stale: run 'make gen'" >&2; exit 1; }
	@$(PROTOC_BASELINES) --python_out=build/gen --pyi_out=build/gen $(BASELINES)/*.proto
	@for file in build/gen/*_pb2.py*; do diff $$file $(BASELINES)/ || { echo "generated code is stale: run 'make gen'" >&2; exit 1; }; done

lock: ## Choose the newest versions that both pyproject.toml admit, and write them with their hashes into requirements/
	$(require_tools)
	@test -x .venv-lock/bin/python || $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python $(PIP_INSTALL) requirements/lock.txt
	@.venv-lock/bin/python tools/lock.py

# What strangers may already have built on. Made anew with each release: until then additions are compared with the last one.
baseline: $(VENV)/installed-lint ## Take the contract of proto/ as the one that later changes must not break
	$(BIN)/buf build proto --output proto/baseline.binpb

format: $(VENV)/installed-lint ## Put everything into the project's style
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	$(BIN)/clang-format -i csrc/*.[ch] harness/lightfr_harness/*/*.c examples/c/*.[ch] tests/csrc/*.[ch] tests/csrc/fuzz/*.[ch] web/kernel/*.c

test-arm: ## Run the C tests and examples for 64-bit ARM (NEON) and 32-bit ARM under qemu
	@$(MAKE) --no-print-directory -C csrc test-arm

test-sanitize: ## Run the C tests under ASan and UBSan
	@$(MAKE) --no-print-directory -C csrc test-sanitize

size: ## Check the size of the C library
	@$(MAKE) --no-print-directory -C csrc size

# An editable install can hide a file that a wheel lacks. Each wheel is built from its source distribution, so both are tried.
# Not isolated: what builds them is what requirements/test.txt holds.
dist: $(VENV)/installed ## Build both distributions, as source and as wheel, with a bill of materials for each
	@rm -rf dist && mkdir dist
	@set -e; for folder in . harness; do \
	  $(BIN)/python -m build --no-isolation --outdir dist $$folder >dist/build.log 2>&1 || { tail -15 dist/build.log >&2; exit 1; }; \
	done
	@$(BIN)/python tools/sbom.py dist/*.whl

wheel: dist ## Try both distributions outside the checkout, up to a run of the conformance suite; list what the SDK's wheel holds
	@$(BIN)/python tests/wheels.py dist

# All platforms unless ONLY names one. Built twice, since the same source must give the same bytes.
wheels: .venv-zig/installed ## Build the SDK's wheels for Linux (glibc, musl) and macOS with zig, and run those that run here
	@rm -rf dist/wheels build/wheels-again
	@.venv-zig/bin/python tools/wheels.py dist/wheels $(ONLY:%=--only %)
	@.venv-zig/bin/python tools/wheels.py build/wheels-again $(ONLY:%=--only %) >/dev/null
	@diff -r dist/wheels build/wheels-again && echo "two builds: equal bytes"
	@.venv-zig/bin/python -m twine check --strict dist/wheels/*.whl
	@set -e; for wheel in dist/wheels/*manylinux*.whl; do tag=$${wheel##*abi3-}; \
	  .venv-zig/bin/auditwheel show $$wheel | grep -q "\"$${tag%.whl}\"" || { echo "auditwheel finds another tag for $$wheel" >&2; exit 1; }; done
	@$(PYTHON) tests/wheels_run.py dist/wheels
	@.venv-zig/bin/python tools/sbom.py dist/wheels/*.whl

# The environment gets the newest, then the oldest.
test-protobuf: dist ## Try the SDK's wheel on the newest and the oldest protobuf runtime that it admits
	@rm -rf build/wheel-venv && $(PYTHON) -m venv build/wheel-venv
	@set -e; for wanted in 'protobuf<8' protobuf==5.29.6; do \
	  build/wheel-venv/bin/python -m pip install --quiet --disable-pip-version-check dist/lightfr-*.whl "$$wanted"; \
	  for kind in upb python; do \
	    PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=$$kind build/wheel-venv/bin/python -W error tests/protobuf_runtime.py; \
	  done; \
	done

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist out *.egg-info sdk/*.egg-info harness/*.egg-info harness/build csrc/build examples/c/build web/dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find sdk harness -name '*.so' -delete
