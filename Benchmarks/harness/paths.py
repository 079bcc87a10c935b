"""The paths of files and folders."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "Benchmarks"
RESULTS = BENCHMARKS / "results"
CHARTS = BENCHMARKS / "charts"
# Databases, logs and the peers' programs: many gigabytes in a full run, which can be deleted.
SCRATCH = ROOT / ".build" / "bench"
# The output of `make release`.
PROGRAMS = ROOT / ".build" / "static" / "release"
WORKER = PROGRAMS / "refresh-worker"
SEED = PROGRAMS / "BenchmarkSeed"
