# A thin front over the CMake presets. `make demo` and `make test` do all of their own set-up.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)

PYTHON ?= python3

.PHONY: demo test reliability bench python wheel swift swift-test install uninstall deb dist docs tables format clean setup

setup:
	@scripts/setup

# Trains a digit classifier and writes bnns-report.html. Options: make demo ARGS="--data DIR --epochs 5"
demo: setup
	@cmake --preset release -DBNNS_BENCH=OFF -DBNNS_TESTS=OFF > build/demo-configure.log || { cat build/demo-configure.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target bnns_tool
	@build/release/tools/bnns train $(ARGS)

# Builds everything and runs every test, then says what was proven.
test: setup
	@cmake --preset dev
	@cmake --build --preset dev -j $(JOBS)
	@scripts/test-summary build/dev

# What docs/promises.md promises, measured: one table, build/reliability.json. FULL=1 for all repetitions (hours).
reliability: setup
	@cmake --preset dev
	@cmake --build --preset dev -j $(JOBS)
	@scripts/reliability build/dev $(if $(FULL),--full)

# Ours beside oneDNN and PyTorch: one table, build/bench.json, build/plots. QUICK=1 ends within 5 minutes.
# Options of bench/bench.py: make bench ARGS="--filter conv --threads 1"
# SHAPES=random SEED=1: layers drawn by seed; CASE="...": one of the lines that it prints.
bench: setup
	@scripts/setup --bench
	@scripts/setup-peers
	@cmake --preset release -DBNNS_TESTS=OFF
	@cmake --build --preset release -j $(JOBS)
	@scripts/bench build/release $(if $(QUICK),--quick) $(if $(SHAPES),--shapes $(SHAPES)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case "$(CASE)") $(ARGS)

# The Python package, into the environment of $(PYTHON): make python PYTHON=venv/bin/python
python: setup
	@$(PYTHON) -m pip install .

# A wheel for other machines in build/wheel: Python 3.10 and later.
wheel: setup
	@scripts/python-wheel $(PYTHON)

# The Swift overlay (docs/swift.md): the module Accelerate, its library and the programs of examples/swift, in build/swift.
# Where the machine has no Swift, root builds them in a Debian 13 made for that.
swift: setup
	@scripts/swift build

swift-test: setup
	@scripts/swift test

install: setup
	@cmake --preset release -DBNNS_BENCH=OFF -DBNNS_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --build --preset release -j $(JOBS)
	@cmake --install build/release > build/install.log
	@echo "installed to $(DESTDIR)$(PREFIX) (build/install.log lists the files)"

# Removes what the last `make install` wrote.
uninstall:
	@cmake -DBUILD=build/release -P cmake/BnnsUninstall.cmake

# Debian packages in build/deb: libbnns0, libbnns-dev, bnns-tools, libbnns-doc. The site is in the last one where `make docs` ran.
deb: setup
	@scripts/package deb $(PACKAGE_BUILD)

# build/dist/openbnns-VERSION-linux-MACHINE.tar.gz: libraries, headers and the tool, to be unpacked anywhere.
dist: setup
	@scripts/package dist $(PACKAGE_BUILD)

# The documentation site, build/docs/html: scripts/docs. Opened with: xdg-open build/docs/html/index.html
docs:
	@scripts/docs $(ARGS)

# What is written from the code: docs/bnns.md, and the READMEs' tables of algorithms.
tables: setup
	@scripts/symbols-table
	@cmake --preset dev
	@cmake --build --preset dev -j $(JOBS)
	@BNNS_WRITE_TABLES=1 ctest --preset dev -R '_implementations_test$$'

format:
	@git ls-files '*.cc' '*.h' '*.c' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build
