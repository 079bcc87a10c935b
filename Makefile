# All targets: make help

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
export SWIFT

# The release build has its own folder: it links the Swift runtime statically, so its objects differ.
RELEASE_FOLDER := .build/static
BINARY := $(RELEASE_FOLDER)/release/refresh-worker
RELEASE_BUILD = $(SWIFT) build --configuration release --static-swift-stdlib --scratch-path $(RELEASE_FOLDER) $(BUILD_FLAGS)
SOURCES := $(shell find Sources -type f) Package.swift
# An import of a target that Package.swift does not declare is an error.
BUILD_FLAGS := --explicit-target-dependency-import-check error

.DEFAULT_GOAL := help
.PHONY: run build test sanitize fuzz check format lint scenarios faults faults-short openapi check-units check-docs release release-programs tested install \
	uninstall clean bench bench-check help toolchain packages

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

run: toolchain ## start the worker: with Google if GOOGLE_CLIENT_ID is set, otherwise a demo against a fake Google server
	@scripts/ensure-packages run
	@$(SWIFT) build $(BUILD_FLAGS)
	@scripts/run-demo

build: toolchain packages ## build everything for development
	@$(SWIFT) build $(BUILD_FLAGS)

test: build ## build and run all tests
	@scripts/ensure-packages test
	@$(SWIFT) build --build-tests $(BUILD_FLAGS)
	@scripts/test

sanitize: toolchain packages ## run all tests under AddressSanitizer, and the C code under UBSan too
	@scripts/ensure-packages test
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
	@Tests/EndToEnd/run

faults: tested ## run the real program under thousands of faults and check the tokens (about 40 minutes; Tests/Faults/run --help)
	@scripts/ensure-packages check
	@Tests/Faults/run

faults-short: tested ## run a short part of the faults with a fixed seed (about a minute)
	@scripts/ensure-packages check
	@Tests/Faults/run --short

openapi: tested ## compare the running worker with docs/openapi.yaml (about two minutes)
	@scripts/ensure-python-tools
	@Tests/OpenAPI/run

bench: toolchain ## measure everything and write Benchmarks/RESULTS.md (about an hour; needs a quiet machine)
	@scripts/ensure-packages bench
	@Benchmarks/run

bench-check: toolchain ## check that the benchmarks run and give correct results (about two minutes)
	@scripts/ensure-packages bench
	@Benchmarks/run --short

CHECK = $(MAKE) --no-print-directory SEED=1 RELEASE=1
check: toolchain ## run everything that a change must pass
	@scripts/ensure-packages check
	@scripts/ensure-python-tools
	@$(CHECK) lint sanitize fuzz faults-short
# Both mostly wait, and only the start of the scenarios runs beside openapi: those that need a quiet machine run last.
	@$(CHECK) --jobs=2 scenarios openapi
	@$(CHECK) release check-units check-docs bench-check

format: toolchain ## format the Swift code
	@$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests Benchmarks

lint: toolchain ## check the format of the code, the Python programs and the scripts
	@scripts/lint

check-units: ## check the systemd units
	@scripts/check-units

check-docs: ## check the links of the documents
	@scripts/check-docs

release: $(BINARY) ## build the program for machines without Swift
	@echo "release: $(BINARY) is ready"

release-programs: toolchain packages
	@$(RELEASE_BUILD)

$(BINARY): $(SOURCES)
	@scripts/ensure-toolchain
	@scripts/ensure-packages build
	@$(RELEASE_BUILD) --product refresh-worker
	@touch $@

install: $(BINARY) ## install the program, its units and an example configuration (PREFIX, DESTDIR)
	@BINARY=$(BINARY) PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install install

uninstall: ## remove the installed files; grants, keys and configuration stay
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install uninstall

clean: ## remove all build products
	@rm -rf .build

toolchain:
	@scripts/ensure-toolchain

packages:
	@scripts/ensure-packages build
