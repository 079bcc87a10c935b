"""The cost of one process: its processor time and its memory."""

import dataclasses
import os
import pathlib
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")


def wait_for(condition, seconds, expectation, pause=0.25):
    """Polls until the condition is true; the expectation is a text, or a function that returns one at the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {seconds} s: {expectation() if callable(expectation) else expectation}")
        time.sleep(pause)


@dataclasses.dataclass
class Cost:
    """The cost of a process from its start to its end."""
    cpu_seconds: float
    peak_kilobytes: int
    exit_code: int
    output: str


def run(command, log=None, environment=None, timeout=900, output=None):
    """Runs a program to its end and measures only that process. Its errors go to the file `log`; its output is
    returned, or goes to the file `output`."""
    errors = open(log, "wb") if log else subprocess.DEVNULL
    process = subprocess.Popen([str(word) for word in command], stderr=errors,
                               stdout=open(output, "wb") if output else subprocess.PIPE,
                               env={**os.environ, **(environment or {})})
    timer = threading.Timer(timeout, process.kill)
    timer.start()
    peak = Peak(process.pid)
    text = process.stdout.read().decode() if process.stdout else ""
    # The program still exists as a zombie, or is about to end: only wait4 removes it and returns its usage.
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, peak.stop(), process.returncode, text)


class Peak:
    """Samples the peak of a process's memory: rusage would give the parent's peak if that was larger."""

    def __init__(self, pid):
        self.pid = pid
        self.kilobytes = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()

    def _sample(self):
        while True:
            self.kilobytes = max(self.kilobytes, status(self.pid, "VmHWM"))
            if self.ended.wait(0.02):
                return

    def stop(self):
        self.ended.set()
        self.thread.join()
        return self.kilobytes


def status(pid, field):
    """A field of /proc/PID/status in kilobytes; 0 if the process is gone."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def cpu_seconds(pid):
    """The processor time of a process so far, user and system, all its threads."""
    return sum(_times(pid)[:2])


def cpu_seconds_with_children(pid):
    """The same with its running and ended children, but without grandchildren."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(_times(pid)) + sum(cpu_seconds(child) for child in children)


def _times(pid):
    """The seconds of a process in user and system mode, and those of its children that have ended."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = text.rpartition(")")[2].split()
    return [int(field) / TICKS for field in fields[11:15]]
