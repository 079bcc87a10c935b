"""Tokens of another client among a thousand good ones: the others keep refreshing."""

import time

from expectations import wait_for
from harness import CLIENT

GRANTS = 1000
FOREIGN = 5


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=60, clients=[CLIENT, "999-other.apps.googleusercontent.com"])
    good = sandbox.create(GRANTS)
    foreign = [
        sandbox.create_expired(f"foreign{n}@example.com", client_id="999-other.apps.googleusercontent.com")
        for n in range(FOREIGN)
    ]
    fixture.generate_keys()
    fixture.import_grants(good)
    fixture.import_grants(foreign, client_id=CLIENT)
    worker = fixture.start().wait_started()
    names = {grant["email"] for grant in foreign}
    wait_for(
        lambda: all(fixture.grants()[name]["state"] == "reauth_required" for name in names),
        120,
        "the foreign tokens are recognised",
    )
    assert all(fixture.grants()[name]["reason"] == "client_mismatch" for name in names), (
        "each foreign grant has the reason client_mismatch"
    )
    wait_for(lambda: sum(row["is_proven"] for row in fixture.rows()) == GRANTS, 60, "every good grant was refreshed")
    moment = time.time() * 1000
    assert all(row["access_expires_at"] > moment for user, row in fixture.grants().items() if user not in names), (
        "every good grant has a valid token"
    )
    assert not worker.events("breaker", change="opened"), "the breaker stays closed"
    worker.stop()
    assert fixture.states() == {"active": GRANTS, "reauth_required": FOREIGN}, "only the foreign grants are ended"
    return ""
