"""Refused memory: the n-th request of the whole process, or requests of one library by chance."""

import re
import signal

from judge import is_whole, judge
from trial import ORDERLY, Fault, Template, Trial

GRANTS = 40
# How Swift ends a process that gets no memory: an abort, or a trap with a sentence. Everything else would be a use of what
# was refused.
TRAPS = {-signal.SIGILL, -signal.SIGTRAP}
SENTENCE = re.compile("^.*(Precondition failed|Fatal error): .+", re.MULTILINE)
LIBRARIES = ["libsqlite3", "libcurl", "libcrypto", "libssl"]


def template(base):
    return Template(base, GRANTS)


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2) as one:
        one.control.set(one.control.ON, 1)
        library = one.chance.choice([None, *LIBRARIES])
        if library:
            rule = f"fail:malloc/*:p={one.chance.choice([0.0005, 0.005, 0.05])}"
            extra = {"FAULTS_CALLER": library}
        else:
            # Most requests come with the start; a few thousand a second after it.
            rule = f"fail:malloc/*:n={int(10 ** one.chance.uniform(0, 5))}"
            extra = {}
        one.say(f"{rule} of {library or 'all'}")
        worker = one.start(rules=[rule], SWIFT_BACKTRACE="enable=no", **extra)
        code = worker.wait(2.5)
        one.control.set(one.control.ON, 0)
        if code is None:
            code = worker.stop()
        one.say(f"ended with {code}")
        is_clean = code == -signal.SIGABRT or code in TRAPS and SENTENCE.search(worker.errors.read_text(errors="replace"))
        if not is_clean and code not in ORDERLY:
            raise Fault(f"the worker ended with {code}, {rule} of {library or 'all'}: {worker.said()}")
        judge(one)
        one.new_boot()
        one.run("--run-once", "--metrics-log", one.folder / "metrics-9.jsonl", expect=(0, 75), seconds=320)
        counts = judge(one)
        is_whole(one.database)
        return {**counts, "refused": one.control.hits(), "clean aborts": int(bool(is_clean))}, one.story
