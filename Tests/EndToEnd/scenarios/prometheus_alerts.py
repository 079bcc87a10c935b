"""An outage, a stopped worker and a revocation wave make exactly the right alerts fire in Prometheus, and resolve.

Prometheus scrapes once a second, and the durations of the rules are ninety times shorter.
"""

import subprocess
import time

from accounts import SERVICE_KEY, Accounts, user_token
from expectations import wait_for
from ports import free_port
from prometheus import Prometheus, dashboard_queries
from tls import Authority, TLSListener

GRANTS = 120
REVOKED = 18  # 15 %
SPEED = 90
LIFETIME = 20  # seconds


def scenario(fixture):
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("worker", days=30)
    port = free_port()
    tls = [
        "--listen-internal", f"127.0.0.1:{port}", "--internal-certificate", certificate, "--internal-key", key,
        "--internal-metrics",
    ]
    accounts = Accounts(fixture, *tls, start=False)
    accounts.internal = TLSListener(port, authority)
    fixture.sandbox.settings(lifetime=LIFETIME)
    grants = fixture.sandbox.create(GRANTS)
    fixture.import_grants(grants)
    accounts.start()
    with Prometheus(fixture.folder, port, authority, SPEED) as prometheus:
        wait_for(lambda: all(row["is_proven"] for row in fixture.rows()), 60, "every grant was refreshed once")
        use(accounts)
        metrics_are_in_order(accounts)
        # Prometheus finds its targets some seconds after its start, and until then the worker seems to be down.
        wait_for(lambda: prometheus.query("up == 1") and not prometheus.firing(), 60, "Prometheus scrapes the worker")
        phases = [
            phase(prometheus, "nothing is wrong", set(), lambda: healthy(prometheus), lambda: None),
            phase(
                prometheus, "an outage", {"RefreshWorkerUsersWithoutTokens", "RefreshWorkerUsersSoonWithoutTokens"},
                lambda: fixture.sandbox.settings(outage="http503"), lambda: fixture.sandbox.settings(outage="none"),
            ),
            phase(prometheus, "a stopped worker", {"RefreshWorkerDown"}, accounts.worker.stop, accounts.start),
            phase(
                prometheus, "a revocation wave", {"RefreshWorkerUsersSoonWithoutTokens", "RefreshWorkerGrantsEnding"},
                lambda: revoke(accounts, prometheus, grants[:REVOKED]),
                lambda: every_panel_has_data(accounts, prometheus),
                # The refusals count for ten minutes.
                lasting={"RefreshWorkerUsersSoonWithoutTokens"},
            ),
        ]
    accounts.close()
    return "; ".join(phases)


def phase(prometheus, name, expected, begin, end, lasting=frozenset()):
    """Waits until the expected alerts have fired, and until all but the lasting are resolved; no other may fire."""
    began = time.time()
    begin()
    wait_for(lambda: expected <= prometheus.fired(began), 120, f"{name}: the alerts fire")
    fired = time.time()
    end()
    wait_for(lambda: prometheus.firing() <= lasting, 90, f"{name}: the alerts are resolved")
    assert prometheus.fired(began) == expected, f"{name}: only the right alerts fire"
    return f"{name}: {fired - began:.0f} s to fire, {time.time() - fired:.0f} s to resolve"


def healthy(prometheus):
    """Lets the longest of the windows in which rules look for errors fill."""
    wait_for(
        lambda: prometheus.query("sum_over_time(up[1m]) >= 20"), 60, "Prometheus has scraped for twenty seconds"
    )


def use(accounts):
    """Uses what the dashboard shows: tokens for a service, a notice for the backend."""
    for user in ("user-1@example.com", "unknown"):
        accounts.vend(user)
    grant = accounts.sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(grant, user_token("ada")).expect(201)


def metrics_are_in_order(accounts):
    text = accounts.internal.get("/metrics").expect(200).body
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert checked.returncode == 0, f"promtool accepts the metrics; it says: {checked.stderr!r}"


def revoke(accounts, prometheus, grants):
    """Google refuses each refresh of these grants; after the first alert it also reports that they were revoked."""
    for grant in grants:
        accounts.sandbox.change(grant, revoked=True)
    wave = 'ALERTS{alertstate="firing",kind="invalid_grant_wave"}'
    wait_for(lambda: prometheus.query(wave), 60, "the wave is an alert")
    for grant in grants:
        event = {"type": "tokens-revoked", "email": grant["email"], "toe": int(time.time())}
        signed = accounts.sandbox.call("/control/security-events", event)["token"]
        accounts.public.call("POST", "/v1/google/security-events", signed).expect(202)


def every_panel_has_data(accounts, prometheus):
    accounts.vend("ada", bearer=SERVICE_KEY).expect(200)
    empty = {}

    def all_have_data():
        empty.clear()
        for title, expression in dashboard_queries():
            samples = prometheus.query(expression)
            if not any(sample["value"][1] != "NaN" for sample in samples):
                empty[title] = expression
        return not empty

    wait_for(all_have_data, 60, lambda: f"each query of the dashboard returns data; these do not: {empty}")
