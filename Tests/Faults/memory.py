"""Refused memory: the n-th request of the whole process, or requests of one library by chance."""

import re
import signal

from trial import ORDERLY, WORKER, Template, Trial
from verification import check_integrity, verify

GRANTS = 40
# The ways in which a process without memory ends: with an abort; with a trap of Swift, whose runtime prints no message
# for it; or in code that uses the missing block, whose address is in the null page, which cannot be written. That code
# may be in the worker's own file: Swift's library allocates room for a value in a dictionary without a check, and calls
# the function that copies the value.
SENTENCE = re.compile("(Precondition failed|Fatal error): .+")
CRASH = re.compile("^faults: signal ([0-9]+) at address 0x([0-9a-f]+) in (.+)$", re.MULTILINE)
NULL_PAGE = 0x10000
LIBRARIES = ["libsqlite3", "libcurl", "libcrypto", "libssl"]


def template(base):
    return Template(base, GRANTS)


def ends_cleanly(code, text):
    if code == -signal.SIGABRT:
        return True
    if code == -signal.SIGTERM:
        # The trial's own signal: a worker that still waits for its database has nothing to finish.
        return "waiting for the database" in text
    crash = CRASH.search(text)
    if not crash or int(crash[1]) != -code:
        return False
    address, library = int(crash[2], 16), crash[3]
    if code in (-signal.SIGILL, -signal.SIGTRAP):
        return library.startswith("libswift") or bool(SENTENCE.search(text)) or holds_runtime()
    return code == -signal.SIGSEGV and address < NULL_PAGE


def holds_runtime():
    """`True` for a release build: Swift's runtime is in the worker's own file, so its traps look like the worker's."""
    return b"libswiftCore.so" not in WORKER.read_bytes()


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        one.control.set(one.control.ON, 1)
        library = one.chance.choice([None, *LIBRARIES])
        if library:
            rule = f"fail:malloc/*:p={one.chance.choice([0.0005, 0.005, 0.05])}"
            extra = {"FAULTS_CALLER": library}
        else:
            # Most requests are made at the start; after that there are a few thousand a second.
            rule = f"fail:malloc/*:n={int(10 ** one.chance.uniform(0, 5))}"
            extra = {}
        one.note(f"{rule} of {library or 'all'}")
        worker = one.start(rules=[rule], SWIFT_BACKTRACE="enable=no", FAULTS_REPORT_CRASHES="1", **extra)
        code = worker.wait(2.5)
        one.control.set(one.control.ON, 0)
        if code is None:
            code = worker.stop()
        one.note(f"ended with {code}")
        is_clean = code not in ORDERLY and ends_cleanly(code, worker.errors.read_text(errors="replace"))
        assert is_clean or code in ORDERLY, (
            f"the worker ends in order under {rule} of {library or 'all'}; it wrote: {worker.output()}"
        )
        verify(one)
        one.new_boot()
        one.run("--run-once", "--metrics-log", one.folder / "metrics-9.jsonl", expect=(0, 75), seconds=320)
        counts = verify(one)
        check_integrity(one.database)
        crash = CRASH.search(worker.errors.read_text(errors="replace"))
        crashes = {f"ended in {crash[3]} by signal {crash[1]}": 1} if crash else {}
        return {**counts, **crashes, "refused": one.control.hits(), "clean aborts": int(bool(is_clean))}, one.notes
