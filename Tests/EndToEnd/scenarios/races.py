"""The engine's races, seen from the routes: a reconnect and a deletion during a refresh, a vend while the key is
rotated."""

import threading

from accounts import Accounts, user_token
from expectations import wait_for


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox, public = fixture.sandbox, accounts.public
    sandbox.settings(lifetime=3600)

    # A reconnect while a refresh with the old token is in flight, which is then answered invalid_grant.
    bearer = user_token("u-1")
    old = sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(old, bearer).expect(201)
    sandbox.call("/control/grants/set", {"refresh_token": old["refresh_token"], "hold": True})
    accounts.expire("u-1")
    answers = []
    caller = threading.Thread(target=lambda: answers.append(accounts.vend("u-1")))
    caller.start()
    sandbox.call("/control/wait?holding=1")
    new = sandbox.create(email="ada@gmail.com", sub=old["sub"])[0]
    accounts.connect(new, bearer).expect(201)
    sandbox.call("/control/grants/set", {"refresh_token": old["refresh_token"], "revoked": True})
    sandbox.call("/control/release", {"refresh_token": old["refresh_token"]})
    caller.join(60)
    assert answers[0].expect(200).json["access_token"] == new["access_token"], "the caller gets the new token"
    assert accounts.is_connected(bearer), "the late response does not disconnect the new grant"
    assert accounts.backend.of("u-1") == [], "the backend is not notified of an event that did not happen"

    # The user is deleted while a refresh is in flight.
    bearer = user_token("u-2")
    grant = sandbox.create(email="bob@gmail.com")[0]
    accounts.connect(grant, bearer).expect(201)
    sandbox.call("/control/grants/set", {"refresh_token": grant["refresh_token"], "hold": True})
    accounts.expire("u-2")
    answers = []
    caller = threading.Thread(target=lambda: answers.append(accounts.vend("u-2")))
    caller.start()
    sandbox.call("/control/wait?holding=1")
    public.call("DELETE", "/v1/user/me", bearer=bearer).expect(200)
    sandbox.call("/control/release", {"refresh_token": grant["refresh_token"]})
    caller.join(60)
    assert answers[0].status == 404, "the caller gets 404 for a deleted user"

    def wiped():
        row = fixture.grants().get("u-2")
        return row is None or (row["refresh_token"] is None and row["access_token"] is None)

    wait_for(wiped, 60, "the deleted user's tokens are wiped")
    public.get("/v1/user/me", bearer).expect(404)

    # A token is vended continuously while its key is rotated.
    ended = threading.Event()
    failures = []

    def vend_all_the_while():
        while not ended.is_set():
            answer = accounts.vend("u-1", min_ttl=0)
            if answer.status != 200 or answer.json["access_token"] != new["access_token"]:
                failures.append(answer.status)

    callers = [threading.Thread(target=vend_all_the_while) for _ in range(4)]
    for caller in callers:
        caller.start()
    fixture.run("keys", "rotate")
    ended.set()
    for caller in callers:
        caller.join(60)
    assert not failures, "every vend succeeds during the rotation of the key"
    accounts.close()
    return ""
