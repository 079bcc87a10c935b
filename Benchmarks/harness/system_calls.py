"""Counts the system calls of a program, in all its threads: with perf if the machine allows it, otherwise with strace,
which slows the program down and so lets it do more with each call."""

import functools
import shutil
import subprocess

EVENT = "raw_syscalls:sys_enter"


@functools.cache
def method():
    """The name of the program that counts."""
    if shutil.which("perf"):
        words = ["perf", "stat", "--event", EVENT, "--field-separator", ",", "true"]
        answer = subprocess.run(words, capture_output=True, text=True)
        if answer.returncode == 0 and answer.stderr.split(",")[0].strip().isdigit():
            return "perf"
    return "strace"


def counted(command, file):
    """The command that runs another one and writes the count to a file."""
    if method() == "perf":
        counter = ["perf", "stat", "--event", EVENT, "--field-separator", ",", "--output", file, "--"]
    else:
        counter = ["strace", "--follow-forks", "--summary-only", "--output", file, "--"]
    return [*counter, *command]


def total(file):
    """The count in a file that such a command wrote."""
    for line in file.read_text().splitlines():
        if method() == "perf" and EVENT in line:
            return int(line.split(",")[0])
        # The columns are: % time, seconds, usecs/call, calls, errors (if there are any), syscall.
        if method() == "strace" and line.endswith(" total"):
            return int(line.split()[3])
    raise SystemExit(f"{method()} did not count the system calls: {file.read_text()}")
