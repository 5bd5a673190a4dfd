# `make dataset` and `make test` need Python 3.11 or 3.12, pip, gcc and g++; they set up .venv by themselves.

GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)
ifeq ($(GPU),yes)
# The machine's own torch is built for its driver: keep it, and constrain everything else.
PYTHON ?= python3
VENV_OPTIONS := --system-site-packages
CONSTRAINTS := .venv/constraints-gpu.txt
else
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || echo python3)
CONSTRAINTS := constraints-cpu.txt
endif

PIP := .venv/bin/python -m pip --disable-pip-version-check install --quiet -c $(CONSTRAINTS)
OPWEAVER := .venv/bin/opweaver

.PHONY: dataset test test-full test-gpu lint clean

dataset: .venv/installed
	$(OPWEAVER) run --run-dir runs/quickstart --count 24 --device cpu

test: .venv/installed-dev
	.venv/bin/python -m pytest

test-full: .venv/installed-dev
	.venv/bin/python -m pytest -m "not gpu"

test-gpu: .venv/installed-dev
	.venv/bin/python -m pytest -m gpu

lint: .venv/installed-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy .

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache

.venv/bin/python:
	$(PYTHON) -m venv $(VENV_OPTIONS) .venv

.venv/constraints-gpu.txt: constraints-cpu.txt .venv/bin/python
	grep -v '^torch==' $< > $@

.venv/installed: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	@echo "Installing into .venv (some minutes the first time)"
	$(PIP) --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable '.[dev,ray]'
	@touch $@
