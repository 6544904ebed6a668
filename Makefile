# VoicePool. Only Python 3.11 or newer and make are needed to begin with; `make help` says what there is.

PYTHON ?= python3
DATA ?= .data
HOST ?= 127.0.0.1
PORT ?= 8000
NAME ?=
ARGS ?=
WORKERS ?= 2
JOBS ?= 1000
SECONDS ?= 60
SEED ?=

BIN := .venv/bin
REQUIREMENTS := requirements.txt deploy/requirements-web.txt
TABLES := $(wildcard */migrations/*.py */*/migrations/*.py) portal/settings/base.py portal/embedded/postgres.py portal/embedded/template.py
COMPILED := $(patsubst %.po,%.mo,$(wildcard portal/locale/*/LC_MESSAGES/*.po))

# Kept between runs: without, every process would compile our own modules anew, which is a second of a processor.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo install install-tests speech-server test check format openapi bench chaos clean-data \
	check-types check-format check-lint check-imports check-migrations check-templates check-catalogues

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r target text; do \
		printf '  make %-12s %s\n' "$$target" "$$text"; done

run: install ## install what is missing and run everything on this machine (DATA=.data HOST=127.0.0.1 PORT=8000)
	@exec $(BIN)/python -m portal.embedded --data "$(DATA)" --host "$(HOST)" --port "$(PORT)" $(ARGS)

demo: install ## speak the demonstration once more on the stack that runs on DATA
	@$(BIN)/python -m portal.embedded.demonstration --data "$(DATA)"

install: .venv/installed $(COMPILED) .venv/database-template/tried ## make .venv and install the pinned packages, where they changed
	@:

install-tests: .venv/installed-tests $(COMPILED)
	@:

# Looked at by their times here, which costs nothing; the script then compares what is in them.
.venv/installed: $(REQUIREMENTS)
	@$(PYTHON) -I portal/embedded/install.py

.venv/installed-tests: $(REQUIREMENTS) tests/requirements.txt
	@$(PYTHON) -I portal/embedded/install.py --tests

.venv/database-template/tried: .venv/installed $(TABLES)
	@$(BIN)/python -m portal.embedded.template

%.mo: %.po | .venv/installed
	@$(BIN)/python -m portal.lib.catalogues compile

# Most of the time is spent waiting for processes and pages: two at once take little more than half of it.
test: install-tests .venv/database-template/tried ## run all tests (ARGS="tests/billing -k hold" for some; WORKERS=0 in one process)
	@$(BIN)/python -m pytest -rs --numprocesses "$(WORKERS)" --dist loadfile --no-loadscope-reorder $(ARGS)

speech-server: .venv/speech-server/installed ## install a real speech server, for the tests of the remote engine
	@:

.venv/speech-server/installed: tests/speech_server/requirements.txt | .venv/installed
	@$(BIN)/python -m venv .venv/speech-server
	@.venv/speech-server/bin/pip install --quiet -r tests/speech_server/requirements.txt
	@.venv/speech-server/bin/pip install --quiet --no-deps fastkokoro==0.7.0
	@touch $@

# The types take as long as all the rest: `make -j2 -O check` does them beside it.
check: $(addprefix check-,types format lint imports migrations templates catalogues) ## formatting, lint, types, import rules, migrations, templates, message catalogues
	@:

check-types: install-tests
	$(BIN)/python -m mypy --strict

check-format: install-tests
	$(BIN)/python -m ruff format --check .

check-lint: install-tests
	$(BIN)/python -m ruff check .

check-imports: install-tests
	$(BIN)/lint-imports

check-migrations: install-tests
	DJANGO_SETTINGS_MODULE=portal.settings.test $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

check-templates: install-tests
	$(BIN)/python -m djlint --lint --quiet templates

check-catalogues: install-tests
	$(BIN)/python -m portal.lib.catalogues check

format: install-tests ## put Python files into the one format
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

openapi: install-tests ## write openapi.yaml anew from the code
	DJANGO_SETTINGS_MODULE=portal.settings.test $(BIN)/python manage.py spectacular --file openapi.yaml --validate --fail-on-warn --lang en

bench: install install-tests ## run one benchmark: NAME=start
	@$(if $(filter intelligible,$(NAME)),$(BIN)/python -m pip install --quiet --requirement tests/requirements-bench.txt)
	@$(BIN)/python -m tests.bench "$(NAME)"

chaos: install install-tests ## kill and lose everything again and again under load, then check the books (JOBS=1000, SECONDS=60 at least, SEED=…)
	@$(BIN)/python -m tests.chaos --jobs "$(JOBS)" --seconds "$(SECONDS)" $(if $(SEED),--seed "$(SEED)")

clean-data: install ## delete the data folder (DATA=.data) of a stack that does not run, after a question (YES=1: without)
	@$(BIN)/python -m portal.embedded.clean --data "$(DATA)" $(if $(YES),--yes)
