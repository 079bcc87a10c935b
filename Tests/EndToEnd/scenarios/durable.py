"""A trace of system calls: each success is durable (`fdatasync`) before it is reported."""

import re
import shutil

from expectations import wait_for

REFRESHES = 5


def scenario(fixture):
    assert shutil.which("strace"), "strace is installed"
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=4, rotation=True, strict_rotation=True)
    fixture.generate_keys()
    fixture.import_grants(sandbox.create(1))
    trace = fixture.folder / "trace"
    tracer = ["strace", "-f", "-qq", "-s", "600", "-e", "trace=recvfrom,read,fdatasync,fsync,write", "-o", str(trace)]
    worker = fixture.start(prefix=tracer)
    wait_for(lambda: len(worker.events("refresh", outcome="refreshed")) >= REFRESHES, 90, f"{REFRESHES} refreshes")
    # strace ends with the worker, its only child.
    pid = int(trace.read_text().split()[0])
    fixture.run("status")
    import os
    import signal
    os.kill(pid, signal.SIGTERM)
    worker.process.wait(timeout=60)

    answered = durable = False
    reported = 0
    for line in trace.read_text(errors="replace").splitlines():
        if "access_token" in line and re.search(r"\b(recvfrom|read)\b", line):
            answered, durable = True, False
        elif re.search(r"fdatasync.*= 0$|fsync.*= 0$", line):
            durable = answered
        elif "write(" in line and '\\"outcome\\":\\"refreshed\\"' in line:
            assert answered and durable, f"a success is reported only once it is durable: {line[:200]}"
            answered = False
            reported += 1
    assert reported >= REFRESHES, "the trace shows every report"
    return f"{reported} reports, each after its fdatasync"
