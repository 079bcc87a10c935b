"""SIGKILL of a trial ends its worker. Otherwise it would ask the token server of a later trial on the same port."""

import os
import pathlib
import signal

from expectations import wait_for
from trial import Template, Trial, pause

GRANTS = 20


def template(base):
    return Template(base, GRANTS)


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template) as one:
        reader, writer = os.pipe()
        outer = os.getpid()
        interrupted = os.fork()
        if interrupted == 0:
            worker = one.start()
            os.write(writer, f"{worker.process.pid}\n".encode())
            while os.getppid() == outer:
                pause(1)
            os._exit(1)
        try:
            worker = int(os.read(reader, 100))
            wait_for(lambda: one.google.requests > 0, 30, "the worker refreshes grants")
        finally:
            os.kill(interrupted, signal.SIGKILL)
            os.waitpid(interrupted, 0)
        wait_for(lambda: not is_running(worker), 10, "the worker ends with the trial that started it")
    return {"ended": 1}, []


def is_running(process):
    """Whether the process runs: one that has ended stays in the list until its new parent asks for its exit code."""
    try:
        return ") Z " not in pathlib.Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
