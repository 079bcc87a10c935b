"""A worker is stopped beyond its lease with unread answers; cron refreshes with the tokens that these answers have
spent."""

import signal

from expectations import wait_for

GRANTS = 4


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600, rotation=True, strict_rotation=True)
    fixture.generate_keys()
    grants = [sandbox.create_expired(f"user{number}@example.com") for number in range(GRANTS)]
    for grant in grants:
        sandbox.change(grant, hold=True)
    fixture.import_grants(grants)
    worker = fixture.start().wait_started()
    sandbox.call(f"/control/wait?holding={GRANTS}")
    fixture.suspend_between_transactions(worker)
    for grant in grants:
        sandbox.call("/control/release", {"refresh_token": grant["refresh_token"]})
    # Everything else has to wait until the leases have expired.

    def cron_took_over():
        fixture.run("--run-once", expect=None)
        return not any(row["lease_owner"] for row in fixture.rows())

    wait_for(cron_took_over, 90, "cron asks too", pause=2)
    refused = sandbox.stats()["by_answer"].get("invalid_grant", 0)
    assert refused > 0, "Google refuses the spent tokens to cron"
    worker.signal(signal.SIGCONT)
    wait_for(lambda: fixture.states() == {"active": GRANTS}, 60, "the late answers count")
    for grant in grants:
        # Strict rotation: only the rotated token still works.
        fixture.run("token", grant["email"], "--min-ttl", "7200")
    assert sandbox.stats()["by_answer"]["invalid_grant"] == refused, "the rotated tokens are not sent again"
    worker.stop()
    return f"{refused} refusals, and {GRANTS} grants live on"
