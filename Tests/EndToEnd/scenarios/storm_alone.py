"""The storm, with the daemon alone."""

from storm import storm


def scenario(place):
    return storm(place)
