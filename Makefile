# The two commands of the README, and the rest. CMake and Ninja do the work; see CMakePresets.json.
PREFIX ?= /usr/local
BUILD  ?= build

.PHONY: all setup build test test-cuda python options demo install check sanitize races fuzz format coverage abi reproducible dist deb docs clean

all: setup build

setup:
	@scripts/setup

$(BUILD)/build.ninja: CMakeLists.txt
	@cmake --preset release -B $(BUILD) --log-level=WARNING >/dev/null

build: setup $(BUILD)/build.ninja
	@cmake --build $(BUILD)

test: build
	@scripts/setup python || echo "test: the tests of the Python package are left out" >&2
	@ctest --test-dir $(BUILD) --output-on-failure --parallel 2

# On a machine with a CUDA card: the tests of what works on it, and docs/results/cuda.md from the figures of bench/cuda.c.
test-cuda: build
	@ctest --test-dir $(BUILD) -R '^cuda_' --verbose
	@cmake --build $(BUILD) --target bench-cuda
	@THIELE_CUDA_LIBRARY=$$(ls $(BUILD)/libthiele-cuda.so.*) $(BUILD)/bench-cuda > $(BUILD)/cuda.md
	@cp $(BUILD)/cuda.md docs/results/cuda.md

# The tests of the Python package alone: make python ARGS='-k frames'
python: setup $(BUILD)/build.ninja
	@scripts/setup python
	@cmake --build $(BUILD) --target thiele thiele_shared
	@scripts/python-test $(BUILD) $(ARGS)

# What repeats the table of a fit's options, src/model/options.def: the public struct, pages, types for Python.
options: setup $(BUILD)/build.ninja
	@scripts/options --struct
	@cmake --build $(BUILD) --target thiele
	@scripts/options $(BUILD)/thiele

# The demo runs the command alone: nothing else is built for it.
demo: setup $(BUILD)/build.ninja
	@cmake --build $(BUILD) --target thiele
	@scripts/demo $(BUILD)/thiele

install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

# Format, warnings as errors, static analysis, headers on their own.
check: setup
	@scripts/check

# All tests again with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: setup
	@cmake --preset sanitize --log-level=WARNING >/dev/null
	@cmake --build --preset sanitize
	@ctest --preset sanitize

# The pool of threads, contexts and caches that threads share, with ThreadSanitizer.
RACES = test_pool test_blas_threads test_local
races: setup
	@cmake --preset races --log-level=WARNING >/dev/null
	@cmake --build --preset races --target $(RACES)
	@for test in $(RACES); do build-races/tests/$$test || exit 1; done

# Longer fuzzing than the tests do: make fuzz SECONDS=600
SECONDS ?= 60
fuzz: setup
	@scripts/fuzz $(SECONDS)

format:
	@git ls-files '*.c' '*.h' 'src/cuda/*.cu' | xargs clang-format -i

# Which lines and branches the tests run, by folder: build-coverage/report.txt.
coverage:
	@scripts/coverage

# The interface of the shared library against the stored one, abi/libthiele.abi.
abi:
	@scripts/abi

# Two builds of one commit give the same bytes.
reproducible: setup
	@scripts/reproducible

# The archive of a release: build/thiele-VERSION.tar.gz, of what is committed.
dist:
	@scripts/dist $(BUILD)

# Debian packages, of what is committed: build-deb/*.deb.
deb:
	@scripts/deb

# The site: build-docs/html/index.html. Nothing is compiled for it.
docs:
	@scripts/site

clean:
	@rm -rf build build-debug build-sanitize build-races build-check build-fuzz build-coverage build-abi build-deb build-docs demo
