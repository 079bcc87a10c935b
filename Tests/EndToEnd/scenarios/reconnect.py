"""A user signs in again while a refresh with the old token is in flight."""

from expectations import wait_for


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600)
    fixture.generate_keys()

    # The refresh of the old token is held, and answers invalid_grant after the user has signed in again.
    old = sandbox.create_expired("ada@example.com")
    sandbox.call("/control/grants/set", {"refresh_token": old["refresh_token"], "hold": True})
    fixture.import_grants([old])
    worker = fixture.start().wait_started()
    sandbox.call("/control/wait?holding=1")
    new = sandbox.create(email="ada@example.com", sub=old["sub"])[0]
    fixture.import_grants([new], "--replace")
    sandbox.call("/control/grants/set", {"refresh_token": old["refresh_token"], "revoked": True})
    sandbox.call("/control/release", {"refresh_token": old["refresh_token"]})
    wait_for(lambda: worker.events("refresh", outcome="void"), 60, "the late answer is void")
    row = fixture.grants()["ada@example.com"]
    assert row["state"] == "active", "the reconnected grant is active"
    assert row["generation"] == 2, "the reconnected grant has a new generation"
    assert fixture.run("token", "ada@example.com").stdout.strip() == new["access_token"], "the new token is vended"

    # A rotating refresh is held while the app brings only an access token: the rotated token is stored.
    sandbox.settings(rotation=True, strict_rotation=True)
    grant = sandbox.create_expired("bob@example.com")
    sandbox.call("/control/grants/set", {"refresh_token": grant["refresh_token"], "hold": True})
    fixture.import_grants([grant])
    sandbox.call("/control/wait?holding=1")
    fixture.import_grants([{**grant, "expires_at": grant["expires_at"] + 1800}], "--replace", refresh_token=False)
    sandbox.call("/control/release", {"refresh_token": grant["refresh_token"]})
    wait_for(lambda: worker.events("refresh", rotated=True), 60, "the rotated token is stored")
    row = fixture.grants()["bob@example.com"]
    assert (row["state"], row["generation"]) == ("active", 2), "the reconnected grant is active in its new generation"
    # Strict rotation: only the rotated token still works.
    fixture.run("token", "bob@example.com", "--min-ttl", "7200")
    assert sandbox.stats()["by_answer"].get("invalid_grant", 0) == 1, "Google refuses only the old grant's token"
    worker.stop()
    return ""
