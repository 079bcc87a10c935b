"""The worker's own refresh finds that the grant is dead, without any caller; the profile shows it and the backend is
notified."""


from accounts import Accounts, user_token
from expectations import wait_for


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=20)
    grant = sandbox.create(email="bob@gmail.com")[0]
    bearer = user_token("u-7")
    accounts.connect(grant, bearer).expect(201)
    assert accounts.is_connected(bearer), "the user is connected"
    sandbox.call("/control/grants/set", {"email": "bob@gmail.com", "revoked": True})
    notice = accounts.backend.wait_for("u-7", 1, seconds=60)[0]
    assert notice["data"]["reason"] == "invalid_grant", "the notice names Google's refusal"
    assert not accounts.is_connected(bearer), "the connection is shown as ended"

    # The backend is away for a while and the worker is killed during that time: the notice still arrives, once.
    accounts.backend.refusals = 3
    accounts.connect(sandbox.create(email="bob@gmail.com", sub=grant["sub"])[0], bearer).expect(201)
    wait_for(lambda: accounts.worker.events("notice", outcome="postponed"), 60, "the notice was refused")
    accounts.worker.kill()
    accounts.start()
    notices = accounts.backend.wait_for("u-7", 2, seconds=90)
    assert [notice["data"]["connected"] for notice in notices] == [False, True], "the late notices come in order"

    # Sent again on request, with the same ids.
    fixture.run("notices", "replay", "--user", "u-7")
    notices = accounts.backend.wait_for("u-7", 4)
    assert [n["id"] for n in notices[:2]] == [n["id"] for n in notices[2:4]], (
        "repeated notices have the same ids in the same order"
    )

    # A cron job alone also notifies the backend.
    accounts.worker.stop()
    sandbox.call("/control/grants/set", {"email": "bob@gmail.com", "revoked": True})
    fixture.set_due(0)
    fixture.run("--run-once", *accounts.extra)
    assert len(accounts.backend.of("u-7")) == 5, "the backend gets the cron job's notice"
    assert accounts.backend.of("u-7")[-1]["data"]["connected"] is False, (
        "the cron job's notice reports the disconnection"
    )
    accounts.close()
    return ""
