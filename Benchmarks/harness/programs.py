"""Builds the measured programs: this project's and the peers'."""

import os
import subprocess

from . import paths


def call(*words, **settings):
    answer = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=paths.ROOT, **settings)
    if answer.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{answer.stdout}{answer.stderr}")
    return answer.stdout


def build_swift():
    """Builds the worker as `make release` does, with its settings and in its folder, and the other programs of the
    benchmarks."""
    swift = os.environ.get("SWIFT", "swift")
    # Only for the compiler: the worker refuses a variable that is not a setting.
    environment = {**os.environ, "REFRESH_WORKER_COMMIT": os.environ.get("RELEASE_COMMIT", "")}
    for product in ["refresh-worker", "google-sandbox", "BenchmarkSeed"]:
        call(swift, "build", "--configuration", "release", "--static-swift-stdlib", "--product", product,
             "--scratch-path", paths.PROGRAMS.parent, "--explicit-target-dependency-import-check", "error",
             env=environment)


def build_go(name):
    """Compiles a peer in Go against Debian's packages, and returns the path of the program."""
    program = paths.SCRATCH / name
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
                   "GOCACHE": str(paths.SCRATCH / "go-cache")}
    call("go", "build", "-o", program, paths.BENCHMARKS / "peers" / f"{name}.go", env=environment)
    return program


def build_c(name):
    """Compiles a peer in C against the libraries that the worker uses, and returns the path of the program."""
    program = paths.SCRATCH / name
    libraries = call("pkg-config", "--cflags", "--libs", "libnghttp2", "libssl", "libcrypto", "sqlite3").split()
    call("cc", "-O2", "-Wall", "-Wextra", "-o", program, paths.BENCHMARKS / "peers" / f"{name}.c", *libraries)
    return program


def python():
    """The Python interpreter with the peers' packages."""
    call("scripts/ensure-python-tools", "bench")
    return paths.ROOT / ".build" / "python-bench" / "bin" / "python"
