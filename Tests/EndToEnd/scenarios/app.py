"""The app's own library against the real worker: sign-in, a refused token answered by one refresh, also for twenty
calls at once, log-out."""

import subprocess

from accounts import Accounts
from harness import BINARIES, check


def scenario(place):
    accounts = Accounts(place)
    grant = place.sandbox.create(email="ada@gmail.com")[0]
    result = subprocess.run(
        [BINARIES / "AccountExample", f"http://127.0.0.1:{accounts.port}"],
        input=grant["access_token"] + "\n", capture_output=True, text=True, timeout=120,
    )
    check(result.returncode == 0, f"exit {result.returncode}: {result.stdout}{result.stderr}")
    check(grant["access_token"] not in result.stdout + result.stderr, "a token was printed")
    requests = accounts.internal.get("/metrics").expect(200).body.decode()
    refreshes = [line for line in requests.splitlines() if '"/api/auth/refresh"' in line]
    check(len(refreshes) == 1 and refreshes[0].split()[-1] == "2", f"not one refresh for each of two refused tokens: {refreshes}")
    check(place.rows("SELECT count(*) AS n FROM sessions")[0]["n"] == 0, "the session did not end with the log-out")
    accounts.close()
    return result.stdout.strip().splitlines()[-1]
