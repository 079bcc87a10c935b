"""PostgreSQL: cuts of the network between a worker and its database, in one direction, in both, or with a reset."""

from postgres import JOBS_FACTOR, cut, run_trial, template  # noqa: F401


def trial(part, seed, index, base, template):  # noqa: F811
    return run_trial(part, seed, index, base, template, cut)
