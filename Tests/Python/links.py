"""The links between installed documents."""

import re


def check_links(folder):
    """Checks that every link in a folder of Markdown leads to a file, and returns their number."""
    count = 0
    for document in folder.glob("*.md"):
        for target in re.findall(r"\]\(([^)\s#]+)", document.read_text()):
            if "://" not in target and not target.startswith("mailto:"):
                count += 1
                assert (folder / target).exists(), f"{document.name} links to {target}, which is not installed"
    return count
