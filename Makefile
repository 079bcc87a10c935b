# All targets: make help

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
export SWIFT
# Package.swift then has the worker, whether or not it finds the C libraries: a missing one is an error.
export PACKAGE_PARTS := worker

# The release build has its own folder: it links the Swift runtime statically, so its objects differ.
RELEASE_FOLDER := .build/static
BINARY := $(RELEASE_FOLDER)/release/refresh-worker
# The commit that --version prints. A checkout may belong to another user than root, who installs it.
COMMIT := $(shell git -c safe.directory='*' describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
COMMIT_FILE := $(RELEASE_FOLDER)/commit
RELEASE_BUILD = REFRESH_WORKER_COMMIT='$(COMMIT)' $(SWIFT) build --configuration release --static-swift-stdlib --scratch-path $(RELEASE_FOLDER) $(BUILD_FLAGS)
SOURCES := $(shell find -L Sources -type f) Package.swift
# An import of a target that Package.swift does not declare is an error.
BUILD_FLAGS := --explicit-target-dependency-import-check error

.DEFAULT_GOAL := help
.PHONY: run build pages test sanitize sanitized tests-and-packages programs-and-benchmarks fuzz check format lint scenarios faults faults-short openapi check-units check-alerts check-docs check-package check-documentation release release-check release-programs tested install \
	uninstall deb clean bench bench-check fleet help toolchain packages FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

# The Debian packages that a target needs, asked for once.
PURPOSE := build
run: PURPOSE := run
pages test sanitize fleet: PURPOSE := test
check scenarios faults faults-short openapi: PURPOSE := check
bench bench-check: PURPOSE := bench
# Another commit than that of `make release` would compile the program again.
bench bench-check: export RELEASE_COMMIT = $(COMMIT)

run: toolchain packages ## start the worker: with Google if GOOGLE_CLIENT_ID is set, otherwise a demo against a fake Google server
	@BUILD_FLAGS='$(BUILD_FLAGS)' scripts/run-demo

build: toolchain packages ## build everything for development
	@$(SWIFT) build $(BUILD_FLAGS)

pages: toolchain packages ## write the tables of docs/ that are made from the code: settings, metrics log, Prometheus
	@WRITE_PAGES=1 $(SWIFT) test $(BUILD_FLAGS) --filter PageTests

test: toolchain packages ## build and run all tests
	@$(SWIFT) build --build-tests $(BUILD_FLAGS)
	@scripts/test

sanitize: toolchain packages ## run all tests under AddressSanitizer, and the C code under UBSan too
	@scripts/build-sanitized
	@scripts/test --sanitized

TIME ?= 60
SEED ?= 0
fuzz: toolchain packages ## feed random input to every parser for TIME seconds (60); the same input for the same SEED
	@Tests/FuzzTests/run --seconds $(TIME) --seed $(SEED)

# The end-to-end tests run the debug build, which is quick to repeat, or with RELEASE=1 the program that is installed.
RELEASE ?=
ifeq ($(RELEASE),)
tested: build
else
tested: release-programs
export BINARIES := $(CURDIR)/$(RELEASE_FOLDER)/release
endif

scenarios: tested ## run the real program end to end (about seven minutes)
	@Tests/EndToEnd/run $(SCENARIOS)

faults: tested ## run the real program under thousands of faults and check the tokens (about 40 minutes; Tests/Faults/run --help)
	@Tests/Faults/run

faults-short: tested ## run a short part of the faults with a fixed seed (about a minute)
	@Tests/Faults/run --short

openapi: tested ## compare the running worker with docs/openapi.yaml (about two minutes)
	@scripts/ensure-python-tools
	@Tests/OpenAPI/run

bench: toolchain packages ## measure everything and write Benchmarks/RESULTS.md (about an hour; needs a quiet machine)
	@Benchmarks/run

bench-check: toolchain packages ## check that the benchmarks run and give correct results (a few minutes)
	@Benchmarks/run --short

fleet: toolchain packages ## simulate the schedule of up to 100 million grants, and print the table of docs/scaling.md (two minutes)
	@FLEET=1 $(SWIFT) test $(BUILD_FLAGS) --filter '^SchedulerTests\.FleetTests'

CHECK = $(MAKE) --no-print-directory SEED=1 RELEASE=1
check: toolchain packages ## run everything that a change must pass
	@$(CHECK) --jobs=2 lint release-programs
# The scenarios mostly wait. Beside them the tests are built, at the lowest priority, and openapi runs. Beside
# release-programs their build would take more time than it saves: the programs then took 11 minutes and not four.
	@NEXT_WORKER=none $(CHECK) --jobs=3 scenarios openapi sanitized
# Each of the two leaves one of two processors idle for half of the time, so they run side by side.
	@$(CHECK) --jobs=2 tests-and-packages programs-and-benchmarks

sanitized: toolchain packages
	@mkdir -p .build
	@nice -n 19 scripts/build-sanitized >.build/sanitized.log || { cat .build/sanitized.log; exit 1; }

# `+` because make does not see the $(MAKE) inside $(CHECK), and one goal after the other: two would share a build folder.
tests-and-packages: toolchain packages
	+@$(CHECK) --jobs=1 sanitize fuzz check-package check-documentation

# The upgrades need a debug build as the next version, and that of .build/debug can be of another commit.
programs-and-benchmarks: toolchain packages
	+@$(CHECK) --jobs=1 faults-short
	+@NEXT_WORKER=$(CURDIR)/.build/address/debug/refresh-worker ASAN_OPTIONS=detect_leaks=0 \
		$(CHECK) --jobs=1 scenarios SCENARIOS='rolling_upgrade upgrade_on_one_machine'
	+@$(CHECK) --jobs=1 release check-units check-alerts check-docs bench-check

format: toolchain ## format the Swift code
	@$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests Benchmarks Examples

lint: toolchain ## check the format of the code, the Python programs and the scripts
	@scripts/lint

check-units: ## check the systemd units
	@scripts/check-units

check-alerts: ## check the alerts for Prometheus and the dashboard for Grafana
	@scripts/check-alerts

check-docs: ## check the links of the documents
	@scripts/check-docs

check-package: toolchain ## check the package that an app or a server adds, and Examples (about two minutes)
	@scripts/check-package

check-documentation: toolchain ## build the documentation of the libraries (about a minute)
	@scripts/check-documentation

release: $(BINARY) ## build the program for machines without Swift
	@echo "release: $(BINARY) is ready"

release-programs: toolchain packages
	@$(RELEASE_BUILD)

# Written only if the commit changed, so that the program is built again.
$(COMMIT_FILE): FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@

FORCE:

$(BINARY): $(SOURCES) $(COMMIT_FILE)
	@scripts/ensure-toolchain
	@scripts/ensure-packages build
	@$(RELEASE_BUILD) --product refresh-worker
	@touch $@

install: $(BINARY) ## install the program, its units and an example configuration (PREFIX, DESTDIR)
	@BINARY=$(BINARY) PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install install

deb: $(BINARY) ## build the Debian package of the program, in .build
	@scripts/ensure-packages deb
	@BINARY='$(CURDIR)/$(BINARY)' scripts/build-deb

release-check: deb ## make what a release publishes, for this architecture, in .build/release: package, image, parts, checksums
	@BINARY='$(BINARY)' scripts/release-check deb
	@scripts/release-check image

uninstall: ## remove the installed files; grants, keys and configuration stay
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install uninstall

clean: ## remove all build products
	@rm -rf .build

toolchain:
	@scripts/ensure-toolchain

packages:
	@scripts/ensure-packages $(PURPOSE)
