"""The status page and `status` in six situations: all well, one user has revoked, a refresh token ends, Google is down,
Google refuses many grants, and the worker has stopped.

With `SITUATIONS=FOLDER` it writes a picture of each: on a wide screen and on a phone, in light and in dark colours.
With `SCREENSHOTS=docs/images` it writes those of README.md.
"""

import os
import pathlib

from accounts import Accounts, Listener
from browser import NARROW, WIDE, chromium, expect_accessible, expect_no_overflow, tab, take_picture
from expectations import ROOT, wait_for
from ports import free_port

GRANTS = 60
TWO_DAYS = 2 * 86400
# The situation and the size of the pictures in README.md, and the part that they show.
IN_README, HEIGHT_IN_README = ("outage", "wide"), 760
# The third is just above the width at which tables become blocks.
SIZES = {"wide": WIDE, "tablet": (700, 900), "laptop": (1000, 800), "narrow": NARROW}


def scenario(fixture):
    port = free_port()
    accounts = Accounts(fixture, "--listen-internal", f"127.0.0.1:{port}", start=False)
    accounts.internal = Listener(port)
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=60)
    grants = sandbox.create(GRANTS)
    fixture.import_grants(grants)
    accounts.start()
    wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 90, "every grant was refreshed once")
    with chromium() as browser, tab(browser, may_complain=True) as page:
        page.clock.install()
        page.goto(f"http://127.0.0.1:{port}/")

        def shows(verdict, kind=None):
            page.reload()
            return verdict in page.inner_text("h1") and (not kind or kind in page.inner_text("main"))

        def expect(name, verdict, code, kind=None):
            wait_for(lambda: shows(verdict, kind), 90, f"{name}: the page shows it", pause=1)
            report = fixture.run("status", expect=None)
            assert report.returncode == code, f"{name}: `status` says the same"
            if folder := os.environ.get("SITUATIONS"):
                pathlib.Path(folder, f"{name}.txt").write_text(report.stdout)
            picture(page, name)

        expect("well", "All is well", 0)
        sandbox.change(grants[0], revoked=True)
        wait_for(lambda: fixture.states().get("disconnected") == 1, 90, "a grant has ended")
        expect("revoked", "All is well", 0, "disconnected")
        ending = sandbox.create(email="ending@example.com")[0]
        fixture.import_grants([ending], refresh_token_expires_in=TWO_DAYS)
        expect("ending", "Look within a day", 1, "can wait")
        fixture.run("grants", "disconnect", "ending@example.com", "--yes")
        sandbox.settings(outage="http503")
        expect("outage", "Users will soon be without tokens", 3, "breaker_open")
        sections = page.locator("h2").all_inner_texts()
        assert sections[:2] == ["Concerns", "Clients"], "the client that nothing is sent for follows the concerns"
        sandbox.settings(outage="none")
        wait_for(lambda: accounts.worker.events("breaker", change="closed"), 120, "the breaker is closed")
        # Otherwise tokens of the outage end in the wave, which is then urgent.
        wait_for(lambda: shows("All is well"), 90, "every grant is refreshed again", pause=1)
        sandbox.settings(wave_rate=0.66)
        expect("wave", "Users will soon be without tokens", 3, "invalid_grant_wave")
        changes_are_short(page)
        accounts.worker.stop()
        page.clock.fast_forward(15_000)
        status = page.get_by_role("status")
        wait_for(lambda: "the worker does not answer" in status.inner_text(), 60, "the page says that it is old")
        assert page.inner_text("h1") == "The worker does not answer", "an old verdict does not look like a new one"
        assert page.title() == "The worker does not answer", "nor does it in the tab"
        assert fixture.run("status", expect=None).returncode == 4, "without a worker nobody gets a token"
        picture(page, "stopped")
    accounts.backend.shutdown()


def changes_are_short(page):
    """On a phone a change has two lines, and five are shown before a click."""
    width, height = NARROW
    page.set_viewport_size({"width": width, "height": height})
    rows = page.get_by_role("region", name="State changes").locator("tbody tr")
    shown = [row for row in rows.all() if row.is_visible()]
    assert len(shown) == 5 < rows.count(), "five changes are shown first"
    heights = {row.bounding_box()["height"] for row in shown}
    line = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.changes td')).lineHeight)")
    assert max(heights) < 3.5 * line, f"a change has two lines: {heights}, {line}"
    page.get_by_text(" older").click()
    assert rows.last.is_visible(), "a click shows the others"
    page.reload()


def picture(page, name):
    """Judges the page in each width, and in both colours."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            expect_no_overflow(page)
            words_are_whole(page)
            if size in ("tablet", "laptop"):
                continue
            expect_accessible(page)
            if folder := os.environ.get("SITUATIONS"):
                take_picture(page, pathlib.Path(folder, f"{name}-{scheme}-{size}.png"))
            if (folder := os.environ.get("SCREENSHOTS")) and (name, size) == IN_README:
                take_picture(page, pathlib.Path(ROOT, folder, f"{name}-{scheme}.png"), HEIGHT_IN_README)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


def words_are_whole(page):
    """No word of the table of clients is broken: the pace stands in a narrow column."""
    broken = page.evaluate("""() => {
        const broken = [];
        const cells = document.querySelectorAll("#clients td:nth-of-type(2), #clients thead th");
        for (const cell of cells) {
            const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                for (const match of walker.currentNode.data.matchAll(/\\S+/g)) {
                    const range = document.createRange();
                    range.setStart(walker.currentNode, match.index);
                    range.setEnd(walker.currentNode, match.index + match[0].length);
                    if (range.getClientRects().length > 1) broken.push(match[0]);
                }
            }
        }
        return broken;
    }""")
    assert broken == [], "no word is broken"
