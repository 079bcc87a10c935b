"""The worker as a daemon: started, monitored through the endpoint's log, stopped."""

import os
import re
import subprocess
import time

from . import measuring, paths

LATENESS = re.compile(rb'"event":"refresh".*?"outcome":"([a-z_]+)".*?"lateness_ms":(\d+)')


class Daemon:
    """A running worker; `with Daemon(…) as daemon` stops it at the end and checks its exit code."""

    def __init__(self, store, site, folder, max_rate=100_000, more=()):
        self.site = site
        self.metrics = folder / "metrics.log"
        self.errors = folder / "worker.log"
        self.command = [paths.WORKER, *store.settings(site), "--max-rate", str(max_rate),
                        "--metrics-log", self.metrics, *more]
        self.read = 0
        self.answers = 0
        self.was_killed = False

    def __enter__(self):
        self.started = time.time()
        self.process = subprocess.Popen([str(word) for word in self.command], stderr=open(self.errors, "wb"))
        return self

    def __exit__(self, failure, *_):
        if self.process.poll() is not None and self.was_killed:
            return
        if failure is not None:
            self.process.kill()
            self.process.wait()
            return
        self.cpu_seconds = measuring.cpu_seconds(self.process.pid)
        self.peak_megabytes = measuring.status(self.process.pid, "VmHWM") / 1024
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.site.flush_log()
        if code != 0:
            raise SystemExit(f"the worker ended with {code}: {self.errors.read_text()}")

    def kill(self):
        """Kills it, like a power cut; returns the function that undoes the fault, which does nothing."""
        self.was_killed = True
        self.process.kill()
        self.process.wait()
        return lambda: None

    def resident_megabytes(self):
        return measuring.status(self.process.pid, "VmRSS") / 1024

    def count(self):
        """The number of answers in the endpoint's log."""
        with open(self.site.issued, "rb") as log:
            log.seek(self.read)
            while chunk := log.read(1 << 20):
                self.read += len(chunk)
                self.answers += chunk.count(b"\n")
        return self.answers

    def wait_for(self, answers, timeout):
        """Waits until the endpoint has given that many answers."""
        measuring.wait_for(
            lambda: self.count() >= answers or self.process.poll() is not None, timeout,
            lambda: f"{answers} grants are refreshed, not only {self.answers}",
        )
        if self.answers < answers:
            raise SystemExit(f"the worker ended early: {self.errors.read_text()}")

    def lateness(self):
        """The lateness of every refresh, in milliseconds and in order; a refresh that failed ends the benchmark."""
        milliseconds = []
        with open(self.metrics, "rb") as log:
            for line in log:
                match = LATENESS.search(line)
                if not match:
                    continue
                if match.group(1) != b"refreshed":
                    raise SystemExit(f"a refresh failed: {line.decode()}")
                milliseconds.append(int(match.group(2)))
        return sorted(milliseconds)


def quantile(ordered, fraction):
    """The value that a `fraction` of all values does not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]


def drop_file_cache(path):
    """Drops a file from the kernel's cache, so that the next reader reads it from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_megabytes(path):
    """The size of a file's part in the kernel's cache."""
    answer = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", path],
                            capture_output=True, text=True, check=True)
    return int(answer.stdout) / 2**20
