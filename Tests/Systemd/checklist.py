"""The order of checks: that of their files."""


def adding_to(checks):
    """Returns the decorator `@check("what holds")` of a file; a check that is needed ends the run when it fails."""

    def check(title, needed=False):
        def add(function):
            checks.append((title, function, needed))
            return function

        return add

    return check
