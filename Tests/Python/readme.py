"""The lines of README.md that a newcomer runs."""

import re

from expectations import ROOT

INSTALLS_PACKAGES = re.compile(r"^    (sudo apt-get update && sudo apt-get install .*)$", re.MULTILINE)


def packages_of_readme():
    """README's line for the packages that Swift needs, as root runs it."""
    line = INSTALLS_PACKAGES.search((ROOT / "README.md").read_text())
    assert line, "README.md has a line that installs the packages"
    return as_root(line[1])


def as_root(line):
    return line.replace("sudo ", "").replace("apt-get install", "apt-get install --yes --no-install-recommends")
