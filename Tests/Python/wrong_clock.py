"""The library that makes a process's clocks wrong (LD_PRELOAD)."""

import os
import pathlib
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().with_suffix(".c")


def build(folder):
    """Compiles the library, by the compiler of the Swift toolchain if there is no other; returns its path."""
    swift = shutil.which(os.environ.get("SWIFT", "swift")) or "/opt/swift/usr/bin/swift"
    compiler = shutil.which("clang") or pathlib.Path(os.path.realpath(swift)).with_name("clang")
    library = folder / "wrong_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O", "-o", library, SOURCE], check=True, timeout=60)
    return str(library)
