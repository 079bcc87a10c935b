"""A thousand callers ask for one expired grant at once: one call to Google, and every caller is answered."""

import concurrent.futures
import threading
import time

from accounts import SERVICE_KEY, Accounts, user_token
from expectations import wait_for

CALLERS = 1000


def scenario(fixture):
    accounts = Accounts(fixture)
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=3600)
    grant = sandbox.create(email="ada@gmail.com")[0]
    accounts.connect(grant, user_token("u-1")).expect(201)
    accounts.expire("u-1")
    sandbox.call("/control/grants/set", {"email": "ada@gmail.com", "hold": True})
    gate = threading.Barrier(CALLERS)

    def ask(_):
        gate.wait()
        return accounts.vend("u-1")

    threading.stack_size(256 * 1024)
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        asked = [pool.submit(ask, number) for number in range(CALLERS)]
        sandbox.call("/control/wait?holding=1")
        sandbox.call("/control/release", {"email": "ada@gmail.com"})
        sandbox.call("/control/grants/set", {"email": "ada@gmail.com", "hold": False})
        answers = [call.result().expect(200).json for call in asked]
    assert len({answer["access_token"] for answer in answers}) == 1, "all callers get one token"
    stats = sandbox.stats()
    assert stats["by_route"]["token"] == 1, "the callers cause one call"
    wait_for(lambda: len(accounts.worker.events("vend")) == CALLERS, 60, "every vend is audited")

    # After a 401 from Google: a forced refresh is shared, and happens at most once in ten seconds. The last one is made
    # older.
    fixture.write("UPDATE grants SET last_attempt_at = last_attempt_at - 20000")
    named = {"access_token": answers[0]["access_token"]}
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        path = "/v1/grants/u-1/token/refresh"
        renewed = list(pool.map(lambda _: accounts.internal.post(path, named, SERVICE_KEY).expect(200).json, range(20)))
    assert len({answer["access_token"] for answer in renewed}) == 1, "all callers get one new token"
    assert renewed[0]["access_token"] != named["access_token"], "the new token replaces the rejected one"
    assert sandbox.stats()["by_route"]["token"] == 2, "the callers cause one more call"
    # On a busy machine ten seconds could have passed.
    fixture.write("UPDATE grants SET last_attempt_at = ?", int(time.time() * 1000))
    accounts.internal.post(path, {"access_token": renewed[0]["access_token"]}, SERVICE_KEY)
    assert sandbox.stats()["by_route"]["token"] == 2, "no call follows within ten seconds of the last"
    accounts.close()
    return f"{CALLERS} callers"
