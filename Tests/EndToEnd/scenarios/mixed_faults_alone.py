"""Revoked grants, errors and an outage at once, with the daemon alone."""

from mixed_faults import mixed_faults


def scenario(fixture):
    return mixed_faults(fixture)
