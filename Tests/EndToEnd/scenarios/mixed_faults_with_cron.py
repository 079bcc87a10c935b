"""Revoked grants, errors and an outage at once, with the daemon and a `--run-once` every 5 s on the same file."""

from mixed_faults import mixed_faults


def scenario(fixture):
    return mixed_faults(fixture, cron_every=5)
