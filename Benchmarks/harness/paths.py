"""Where things are."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "Benchmarks"
RESULTS = BENCHMARKS / "results"
PICTURES = BENCHMARKS / "pictures"
# Databases, logs and the peers' programs: many gigabytes in a full run, nothing that is worth keeping.
SCRATCH = ROOT / ".build" / "bench"
# As `make release` builds them.
PROGRAMS = ROOT / ".build" / "static" / "release"
WORKER = PROGRAMS / "refresh-worker"
SEED = PROGRAMS / "BenchmarkSeed"
