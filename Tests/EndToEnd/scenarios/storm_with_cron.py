"""The storm, with the daemon and a `--run-once` every 5 s on the same file."""

from storm import storm


def scenario(place):
    return storm(place, cron_every=5)
