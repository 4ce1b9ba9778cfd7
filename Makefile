# A thin front over the CMake presets. `make demo` and `make test` do all of their own set-up.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)

.PHONY: demo test bench install docs format clean setup

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

# Compares with the peers that are installed (oneDNN, OpenBLAS). Options: make bench ARGS=...
bench: setup
	@scripts/setup --bench
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)
	@scripts/bench build/release $(ARGS)

install: setup
	@cmake --preset release -DBNNS_BENCH=OFF -DBNNS_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --build --preset release -j $(JOBS)
	@cmake --install build/release

docs:
	@scripts/symbols-table

format:
	@git ls-files '*.cc' '*.h' '*.c' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build
