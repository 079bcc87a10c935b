"""Checks that run in the order of their file, each with a line of output."""

import subprocess
import time

import expectations


def adding_to(checks):
    """Returns the decorator `@check("what holds")` of a file; a check that is needed ends the run when it fails."""

    def check(title, needed=False):
        def add(function):
            checks.append((title, function, needed))
            return function

        return add

    return check


def run_checks(checks, it, recover=None):
    """Runs the checks and returns their results; after a failure, `recover` prepares for the next check."""
    results = []
    for title, function, needed in checks:
        results.append(attempt(title, function, it))
        if needed and not results[-1]:
            print("the remaining checks need this one and were skipped", flush=True)
            break
        if not results[-1] and recover:
            recover()
    return results


def attempt(title, function, it):
    """Runs one check and prints its line."""
    began = time.monotonic()
    try:
        note, passed = function(it) or "", True
    except (AssertionError, subprocess.SubprocessError, LookupError, ValueError) as error:
        note, passed = expectations.explained(error), False
    print(f"{'passed' if passed else 'FAILED'}  {title} ({time.monotonic() - began:.0f} s)  {note}", flush=True)
    return passed
