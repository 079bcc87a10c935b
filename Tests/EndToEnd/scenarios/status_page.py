"""The status page in a real browser: in both colour schemes, on a wide screen and on a phone, with JavaScript and
without, the charts, the lists of grants, the lookup of a user and the buttons.

With `SCREENSHOTS=docs/images` it waits until the charts have some minutes, and writes the pictures of the documents.
"""

import base64
import datetime
import hashlib
import os
import pathlib
import re

from accounts import SERVICE_KEY, Accounts, Listener
from browser import NARROW, WIDE, chromium, expect_accessible, expect_no_overflow, tab, take_picture
from expectations import ROOT, wait_for
from harness import CLIENT
from ports import free_port

GRANTS = 240
LIFETIME = 60
OTHER = "999-other.apps.googleusercontent.com"
HOSTILE = "<script>alert(1)</script>"
OPERATOR_KEY = "operator-credential-of-32-bytes-or-more"
OPERATOR = {"username": "jane", "password": OPERATOR_KEY}
MANAGER_KEY = "manager-credential-of-32-bytes-or-more"
MANAGER = {"username": "boss", "password": MANAGER_KEY}
LARGEST = 75_000
MINUTES_OF_PICTURES = 5
# The part of the page that a picture shows.
LONGEST_PICTURE = 1600


def scenario(fixture):
    port = free_port()
    services = [
        {"name": "mailer", "credential_sha256": digest(SERVICE_KEY), "scopes": ["*"], "users": ["*"]},
        {"name": "jane", "credential_sha256": digest(OPERATOR_KEY), "users": ["*"], "operator": True},
        {
            "name": "boss", "credential_sha256": digest(MANAGER_KEY), "users": ["*"], "operator": True, "manage": True,
        },
    ]
    accounts = Accounts(
        fixture, "--listen-internal", f"127.0.0.1:{port}", "--client-id", OTHER, services=services, start=False
    )
    accounts.internal = Listener(port)
    with chromium() as browser:
        begin(fixture, accounts)
        url = f"http://127.0.0.1:{port}/"
        for scheme in ("light", "dark"):
            for name, size in (("wide", WIDE), ("narrow", NARROW)):
                looks_good(browser, url, scheme, name, size)
        works_without_script(browser, url)
        charts_have_values(browser, url)
        updates_itself(fixture, browser, url)
        says_that_it_is_old(browser, url)
        asks_for_an_operator(accounts)
        shows_a_user(fixture, browser, url)
        lists_lead_to_users(browser, url)
        buttons_change_a_grant(fixture, accounts, browser, url)
    charts_have_all_workers(accounts)
    tokens_are_absent(fixture, accounts)
    size = len(accounts.internal.get("/").body)
    accounts.close()
    return f"{size} bytes"


def digest(credential):
    return hashlib.sha256(credential.encode()).hexdigest()


def begin(fixture, accounts):
    """Starts a worker with active, retrying and ended grants, and a client id whose breaker is open."""
    sandbox = fixture.sandbox
    sandbox.settings(clients=[CLIENT, OTHER], lifetime=LIFETIME)
    fixture.import_grants(sandbox.create(GRANTS))
    failing = [sandbox.create_expired(f"failing-{number}@example.com") for number in range(3)]
    for grant in failing:
        sandbox.change(grant, answer={"preset": "http503"})
    fixture.import_grants(failing)
    ended = sandbox.create_expired("ended@example.com")
    sandbox.change(ended, revoked=True)
    fixture.import_grants([ended], user_id=HOSTILE)
    fixture.import_grants([sandbox.create_expired("other@example.com", client_id=OTHER)])
    sandbox.settings(clients=[CLIENT])
    accounts.start()
    wait_for(lambda: fixture.grants()[HOSTILE]["state"] == "disconnected", 60, "a grant has ended")
    wait_for(lambda: fixture.states().get("retrying") == 3, 60, "others are tried again")
    wait_for(lambda: accounts.worker.events("breaker", change="opened"), 60, "a breaker is open")
    accounts.internal.get("/v1/grants/user3%40example.com/token", SERVICE_KEY).expect(200)
    accounts.internal.get("/v1/grants/unknown/token", SERVICE_KEY).expect(404)
    wait_for(lambda: "invalid_client" in text(accounts), 60, "the page shows it")


def text(accounts):
    answer = accounts.internal.get("/").expect(200)
    assert len(answer.body) < LARGEST, "the page is small"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy, "its policy is strict"
    return answer.body.decode()


def looks_good(browser, url, scheme, name, size):
    with tab(browser, scheme, size) as page:
        page.goto(url)
        expect_accessible(page)
        expect_no_overflow(page)
        page.get_by_text("The figures as tables").click()
        expect_accessible(page)
        expect_no_overflow(page)
        title, verdict = page.evaluate("[document.title, document.querySelector('h1').textContent]")
        assert re.fullmatch(verdict + ": [0-9]+ concerns? – refresh-worker", title), "the title begins with the verdict"
        for heading in ("Concerns", "Grants", "Services", "Clients", "Workers", "State changes", "Waiting notices"):
            assert page.get_by_role("heading", name=heading, exact=True).count() == 1, f"{heading} is a section"
        rows = page.get_by_role("table").filter(has_text="retrying").first.get_by_role("row").all_inner_texts()
        assert len(rows) == 10, "a row for each state, and four others, are rows on each screen"
        cells = page.get_by_role("region", name="Services").get_by_role("cell").all_inner_texts()
        assert cells[:2] == ["1", "1"], "a service has its tokens and errors"
        page.get_by_role("link", name="Runbook: breaker_open").first.click()
        page.wait_for_load_state()
        target = page.evaluate("document.querySelector(':target').textContent")
        assert target == "breaker_open", "a concern leads to its section of the runbook"
        expect_accessible(page)
        expect_no_overflow(page)
        picture_for_documents(page, url, f"{scheme}-{name}")


def picture_for_documents(page, url, name):
    folder = os.environ.get("SCREENSHOTS")
    if not folder:
        return
    page.goto(url)

    def minutes():
        page.reload()
        return page.locator("svg.refreshed path").first.get_attribute("d").count("M") >= MINUTES_OF_PICTURES

    wait_for(minutes, MINUTES_OF_PICTURES * 60 + 120, "the charts have some minutes", pause=5)
    take_picture(page, pathlib.Path(ROOT, folder, f"status-page-{name}.png"), LONGEST_PICTURE)


def works_without_script(browser, url):
    with tab(browser, size=NARROW, java_script_enabled=False, http_credentials=OPERATOR) as page:
        page.goto(url)
        expect_no_overflow(page)
        page.get_by_role("link", name="Reload").click()
        assert page.get_by_role("heading", level=1).inner_text().startswith("Users "), "it is complete"
        look_up(page, HOSTILE)
        assert page.locator(".user").inner_text() == HOSTILE, "the form works"
        page.get_by_role("link", name="Back to the counts").click()
        assert page.url == url, "the link leads back"


def charts_have_values(browser, url):
    with tab(browser, timezone_id="Asia/Tokyo") as page:
        page.goto(url)
        figure = page.locator("figure").first
        before = figure.locator(".top").inner_text()
        figure.locator("svg").scroll_into_view_if_needed()
        box = figure.locator("svg").bounding_box()
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 5)
        row = page.locator("#minute tbody tr").last
        shown = figure.locator(".top").inner_text()
        begin = row.locator("time")
        assert shown == f"{begin.text_content()[:16]}: {row.locator('td').first.text_content()}", "a bar has its value"
        utc, here = begin.get_attribute("title"), begin.text_content()
        apart = datetime.datetime.fromisoformat(here + "Z") - datetime.datetime.fromisoformat(utc)
        assert apart == datetime.timedelta(hours=9), "times are those of the browser, with UTC on hover"
        assert "Asia/Tokyo" in page.inner_text("#zone"), "the page names the zone"
        page.mouse.move(1, 1)
        assert figure.locator(".top").inner_text() == before, "the value goes with the mouse"


def updates_itself(fixture, browser, url):
    with tab(browser) as page:
        page.clock.install()
        page.goto(url)
        page.get_by_text("The figures as tables").click()
        assert page.get_by_role("status").inner_text() == "Updated every 15 seconds.", "it says so"
        suspended = page.locator("tr", has_text="An administrator or a policy").locator("td").first
        assert suspended.inner_text() == "0", "no grant is suspended at first"
        page.get_by_role("textbox", name="User").fill("half a na")
        fixture.run("grants", "disconnect", "failing-0@example.com")
        disconnected = page.locator("tr", has_text="Ended by Google or by the user").locator("td").first

        def is_shown():
            page.clock.fast_forward(15_000)
            return disconnected.inner_text() == "2"

        wait_for(is_shown, 60, "the page shows the change without being loaded again")
        user = page.get_by_role("textbox", name="User")
        assert user.input_value() == "half a na", "it keeps what is typed"
        assert user.evaluate("input => input === document.activeElement"), "it keeps the focus"
        assert page.get_by_role("table", name="By hour").is_visible(), "it keeps the tables open"
        page.get_by_role("link", name="Runbook: breaker_open").first.focus()
        before = page.locator("main").get_attribute("data-at")

        def is_updated():
            page.clock.fast_forward(15_000)
            return page.locator("main").get_attribute("data-at") != before

        wait_for(is_updated, 60, "it updates again")
        assert page.evaluate("document.activeElement.hash") == "#breaker_open", "a link keeps the focus too"


def says_that_it_is_old(browser, url):
    with tab(browser, may_complain=True, timezone_id="UTC") as page:
        page.clock.install()
        page.goto(url)
        shown = page.locator("main").get_attribute("data-at").replace("T", " ").removesuffix("Z")
        status = page.get_by_role("status")
        page.route(url, lambda route: route.abort())
        page.clock.fast_forward(15_000)
        wait_for(
            lambda: status.inner_text() == f"Not updated since {shown}: the worker does not answer.", 60,
            "the page says that it is old",
        )
        expect_accessible(page)
        page.unroute(url)
        page.clock.fast_forward(15_000)
        wait_for(lambda: status.inner_text() == "Updated every 15 seconds.", 60, "it recovers")
        assert page.inner_text("h1").startswith("Users "), "it has a verdict again"


def asks_for_an_operator(accounts):
    internal = accounts.internal
    path = "/users?user=ended%40example.com"
    for headers in ({}, basic("jane", "wrong"), basic("mailer", OPERATOR_KEY)):
        answer = internal.get(path, headers=headers).expect(401)
        assert answer.headers["www-authenticate"].startswith("Basic "), "the browser asks for a credential"
        assert b"ended" not in answer.body, "a refusal says nothing about users"
    answer = internal.get(path, headers=basic("mailer", SERVICE_KEY)).expect(403)
    assert b"ended" not in answer.body, "a service that is not an operator learns nothing"
    too_long = "/users?user=" + HOSTILE.replace("<", "%3C") * 20
    answer = internal.get(too_long, headers=basic("jane", OPERATOR_KEY)).expect(400)
    assert b"<script>" not in answer.body, "a refusal does not repeat what it refuses"


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def shows_a_user(fixture, browser, url):
    for scheme, size in (("light", WIDE), ("dark", NARROW)):
        with tab(browser, scheme, size, may_complain=True, http_credentials=OPERATOR) as page:
            page.goto(url)
            look_up(page, HOSTILE)
            # Chromium reports the 401 that makes it ask for the credential.
            page.complaints.clear()
            assert page.locator(".user").inner_text() == HOSTILE, "the user's id is shown as it is"
            shown = page.get_by_role("region", name="User").inner_text()
            for word in ("disconnected", "invalid_grant", "connected", "nothing is planned"):
                assert word in shown, f"{word} is shown"
            expect_accessible(page)
            expect_no_overflow(page)
            assert page.complaints == [], "the console is empty"
            assert page.get_by_role("textbox", name="User").input_value() == HOSTILE, "the field keeps the text"
            assert re.search(r"/users\?grant=[0-9a-f]{16}$", page.url), "the address does not name the user"
            opens_for_a_colleague(browser, page.url)
            look_up(page, "unknown\u202e user")
            assert "No grant of the user unknown\\u{202e} user is stored." in page.inner_text("main"), "it says so"
            look_up(page, "user1@example.com")
            shown = page.content()
            grant = fixture.grants()["user1@example.com"]
            assert "stored, valid until" in shown and "active" in shown, "a user who is well is shown"
            assert grant["client_id"] in shown, "with the client id"


def opens_for_a_colleague(browser, address):
    with tab(browser, may_complain=True, http_credentials=MANAGER) as page:
        page.goto(address)
        assert page.locator(".user").inner_text() == HOSTILE, "a colleague sees the same user"
        page.reload()
        assert page.url == address, "the address stays"


def lists_lead_to_users(browser, url):
    for scheme, size in (("dark", WIDE), ("light", NARROW)):
        with tab(browser, scheme, size, may_complain=True, http_credentials=OPERATOR) as page:
            page.goto(url)
            page.get_by_role("link", name="retrying", exact=True).first.click()
            page.wait_for_load_state()
            page.complaints.clear()
            rows = page.get_by_role("table").get_by_role("rowheader").all_inner_texts()
            assert rows and all(row.startswith("failing-") for row in rows), "the state leads to its grants"
            expect_accessible(page)
            expect_no_overflow(page)
            page.get_by_role("link", name=rows[0]).click()
            assert page.locator(".user").inner_text() == rows[0], "the list leads to the user"
            assert "failing" not in page.url, "the address does not name the user"
            page.goto(url)
            changes = page.get_by_role("region", name="State changes").get_by_role("row")
            changes.filter(has_text="invalid_grant").get_by_role("link").first.click()
            assert page.locator(".user").inner_text() == HOSTILE, "a change of state leads to its user"
            page.get_by_role("link", name="invalid_grant").first.click()
            page.get_by_label("State").select_option("active")
            page.get_by_role("button", name="Show").click()
            assert "No grant was found" in page.inner_text("main"), "the filters are combined"
            assert page.complaints == [], "the console is empty"


def buttons_change_a_grant(fixture, accounts, browser, url):
    forged = accounts.internal.call(
        "POST", "/users", b"change=disconnect",
        headers={**basic("boss", MANAGER_KEY), "Content-Type": "application/x-www-form-urlencoded"},
    )
    forged.expect(403)
    with tab(browser, "dark", NARROW, may_complain=True, http_credentials=MANAGER) as page:
        page.goto(url)
        look_up(page, "user2@example.com")
        page.get_by_text("Try again now…").click()
        page.get_by_text("Disconnect…").click()
        page.complaints.clear()
        expect_accessible(page)
        expect_no_overflow(page)
        page.get_by_role("button", name="Yes, try again").click()
        page.wait_for_load_state()
        assert page.locator(".user").inner_text() == "user2@example.com", "the page shows the user again"
        assert "user2" not in page.url, "the address does not name the user"
        page.get_by_text("Disconnect…").click()
        page.get_by_role("button", name="Yes, disconnect this user").click()
        page.wait_for_load_state()
        assert "disconnected" in page.get_by_role("region", name="User").inner_text(), "the page shows the end"
        assert page.get_by_text("Disconnect…").count() == 0, "there is nothing to disconnect any more"
        assert page.complaints == [], "the console is empty"
    assert fixture.grants()["user2@example.com"]["reason"] == "user_request", "the grant has ended"
    audit = [(line["operation"], line["outcome"]) for line in accounts.worker.events("manage", service="boss")]
    assert audit == [(change, outcome) for change in ("retry", "disconnect") for outcome in ("allowed", "done")]


def charts_have_all_workers(accounts):
    """The next worker shows the refreshes of the one before, which stored them each minute and at its end."""
    accounts.close()
    accounts.start()

    def refreshed():
        return int(re.search(r"Refreshed in the last hour: ([0-9,]+)", text(accounts))[1].replace(",", ""))

    wait_for(lambda: refreshed() >= GRANTS, 60, "the charts have the refreshes of another worker")


def look_up(page, user):
    page.get_by_role("textbox", name="User").fill(user)
    page.get_by_role("button", name="Look up").click()
    page.wait_for_load_state()


def tokens_are_absent(fixture, accounts):
    issued = fixture.sandbox.call("/control/grants")
    headers = basic("jane", OPERATOR_KEY)
    for path in ("/", "/grants", "/users?user=user1%40example.com", "/users?user=%3Cscript%3Ealert(1)%3C/script%3E"):
        body = accounts.internal.get(path, headers=headers).expect(200).body.decode()
        assert len(body) < LARGEST, "the page is small"
        assert not re.search(r"ya29|1//|rwh_", body), "it has nothing that looks like a token"
        for grant in issued:
            assert grant["refresh_token"] not in body, "it has no refresh token"
        assert OPERATOR_KEY not in body and SERVICE_KEY not in body, "it has no credential"
