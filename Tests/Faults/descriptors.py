"""No free descriptor, first while the worker starts, with SIGHUP at the same time, then while it refreshes.

In half of the trials the limit of the worker is lowered to the descriptors that it has open. In the others the files
that Dispatch reads of its threads cannot be opened, as on a system whose table of files is full.
"""

import errno
import pathlib
import resource
import signal

from trial import Template, Trial
from verification import check_integrity, verify

GRANTS = 2000  # enough that Dispatch has work queued when it looks at its threads, once a second
SPAN = 4  # seconds under the lower limit


def template(base):
    return Template(base, GRANTS)


def lowest_free(process):
    """The number that the next descriptor of the process would get."""
    used = {int(path.name) for path in pathlib.Path(f"/proc/{process}/fd").iterdir()}
    return next(number for number in range(len(used) + 1) if number not in used)


def start(one, rule):
    """Starts a worker that cannot open its database at first, and gets SIGHUP meanwhile."""
    one.control.set(one.control.ON, 1)
    worker = one.start(rules=[f"fail:open/db:p=1:{errno.EMFILE}", rule], FAULTS_REPORT_CRASHES="1")
    worker.wait_for(lambda: "waiting for the database" in worker.output(), 30, "the worker waits for its database")
    for _ in range(one.chance.randrange(1, 100)):
        worker.process.send_signal(signal.SIGHUP)
    code = worker.wait(one.chance.random())
    assert code is None, f"neither SIGHUP nor the lack of a file ends a worker that waits; it wrote: {worker.output()}"
    one.control.set(one.control.ON, 0)
    worker.wait_for(lambda: "notice started" in worker.errors.read_text(), 30, "the worker starts")
    return worker


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        worker = start(one, f"fail:open/proc:p=1:{one.chance.choice([errno.EMFILE, errno.ENFILE])}")
        enough = one.chance.randrange(GRANTS)
        worker.wait_for(lambda: worker.text().count('"refreshed"') > enough, 60, "grants are refreshed")
        if index % 2:
            lower_limit(worker)
        else:
            one.control.set(one.control.ON, 1)
            worker.wait_for(lambda: one.control.hits(1) > 0, 120, "Dispatch looks at its threads")
            code = worker.wait(1)
            assert code is None, f"the worker runs without a free file; it wrote: {worker.output()}"
            one.control.set(one.control.ON, 0)
        target = one.google.requests + GRANTS // 2
        worker.wait_for(lambda: one.google.requests >= target, 60, "the worker refreshes as before")
        assert worker.stop() == 0, f"the worker stops in order; it wrote: {worker.output()}"
        counts = verify(one, complete=True)
        check_integrity(one.database)
        return {**counts, "files refused": one.control.hits()}, one.notes


def lower_limit(worker):
    process = worker.process.pid
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (lowest_free(process), before[1]))
    code = worker.wait(SPAN)
    assert code is None, f"the worker runs without a free descriptor; it wrote: {worker.output()}"
    resource.prlimit(process, resource.RLIMIT_NOFILE, before)
