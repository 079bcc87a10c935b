"""A headless Chromium that opens pages, and records everything that a page does wrong."""

import contextlib
import shutil
import subprocess

from harness import Skipped

PROGRAM = shutil.which("chromium")
# Reports violations of the page's policy, which the console may show only as a warning.
REPORT_VIOLATIONS = """
    document.addEventListener("securitypolicyviolation", event =>
        complain(`policy: ${event.violatedDirective} ${event.blockedURI}`));
"""
WIDE, NARROW = (1280, 800), (390, 844)


@contextlib.contextmanager
def chromium():
    if PROGRAM is None:
        raise Skipped("chromium is not installed")
    from playwright.sync_api import sync_playwright

    # Debian's Chromium: the tool would otherwise download its own.
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=PROGRAM)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def tab(browser, scheme="light", size=WIDE, may_complain=False, **options):
    """A page in a session of its own; at the end it must not have complained about anything."""
    width, height = size
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: page.complaints.append(f"{error}"))
    page.on("dialog", lambda dialog: page.complaints.append(f"dialog: {dialog.message}"))
    page.expose_function("complain", lambda text: page.complaints.append(text))
    page.add_init_script(REPORT_VIOLATIONS)
    try:
        yield page
        assert may_complain or page.complaints == [], "the console is empty"
    finally:
        context.close()


def take_picture(page, path, height=None):
    """Writes a picture of the page, or of its upper part. If pngquant is installed, it is a third as large."""
    whole = page.evaluate("document.documentElement.scrollHeight")
    shown = min(height or whole, whole)
    page.screenshot(path=path, full_page=True, clip={**page.viewport_size, "x": 0, "y": 0, "height": shown})
    if quantizer := shutil.which("pngquant"):
        # Text keeps its smooth edges with 64 colours.
        options = ["--force", "--strip", "--nofs", "--speed=1", "--output", path]
        subprocess.run([quantizer, *options, "64", path], check=True, timeout=60)


def expect_accessible(page):
    """Judges labels, contrast, headings, tables and landmarks by the rules of axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    results = Axe().run(page)
    assert results.violations_count == 0, f"the page is accessible: {results.generate_report()}"
    # Axe leaves out what it cannot decide; contrast can be decided on plain backgrounds.
    undecided = {rule["id"]: rule["nodes"] for rule in results.response["incomplete"]}
    assert "color-contrast" not in undecided, "the contrast of all texts can be judged"


def expect_no_overflow(page):
    """Compares the widths of the document and of the window: a page that is too wide must be scrolled sideways."""
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"], "the page is not wider than the window"
