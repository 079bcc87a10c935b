"""The status page and `status` in five situations: all well, Google is down, Google refuses many grants, one user has
revoked, and the worker has stopped.

With `SITUATIONS=FOLDER` it writes a picture of each.
"""

import os
import pathlib

from accounts import Accounts, Listener
from browser import chromium, expect_accessible, expect_no_overflow, tab
from expectations import wait_for
from ports import free_port

GRANTS = 60


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

        def expect(name, verdict, code, kind=None):
            def is_shown():
                page.reload()
                return verdict in page.inner_text("h1") and (not kind or kind in page.inner_text("main"))

            wait_for(is_shown, 90, f"{name}: the page shows it", pause=1)
            assert fixture.run("status", expect=None).returncode == code, f"{name}: `status` says the same"
            picture(page, name)

        expect("well", "All is well", 0)
        sandbox.change(grants[0], revoked=True)
        wait_for(lambda: fixture.states().get("disconnected") == 1, 90, "a grant has ended")
        expect("revoked", "All is well", 0, "disconnected")
        sandbox.settings(outage="http503")
        expect("outage", "Users will soon be without tokens", 3, "breaker_open")
        sandbox.settings(outage="none")
        wait_for(lambda: accounts.worker.events("breaker", change="closed"), 120, "the breaker is closed")
        sandbox.settings(wave_rate=0.66)
        expect("wave", "Users will soon be without tokens", 3, "invalid_grant_wave")
        accounts.worker.stop()
        page.clock.fast_forward(15_000)
        status = page.get_by_role("status")
        wait_for(lambda: "the worker does not answer" in status.inner_text(), 60, "the page says that it is old")
        assert fixture.run("status", expect=None).returncode == 4, "without a worker nobody gets a token"
        picture(page, "stopped")
    accounts.backend.shutdown()


def picture(page, name):
    expect_accessible(page)
    expect_no_overflow(page)
    if folder := os.environ.get("SITUATIONS"):
        page.screenshot(path=pathlib.Path(folder, f"{name}.png"), full_page=True)
