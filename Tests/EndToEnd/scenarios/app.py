"""The app's own library against the real worker: sign-in, a refused token answered by one refresh, also for twenty
calls at once, log-out."""

import subprocess

from accounts import Accounts
from harness import BINARIES


def scenario(fixture):
    accounts = Accounts(fixture)
    grant = fixture.sandbox.create(email="ada@gmail.com")[0]
    result = subprocess.run(
        [BINARIES / "AccountExample", f"http://127.0.0.1:{accounts.port}"],
        input=grant["access_token"] + "\n", capture_output=True, text=True, timeout=120,
    )
    assert result.returncode == 0, f"the app exits with 0; it wrote: {result.stdout}{result.stderr}"
    assert grant["access_token"] not in result.stdout + result.stderr, "the app prints no token"
    requests = accounts.internal.get("/metrics").expect(200).body.decode()
    refreshes = [line for line in requests.splitlines() if '"/api/auth/refresh"' in line]
    assert len(refreshes) == 1 and refreshes[0].split()[-1] == "2", "one refresh serves both of the refused tokens"
    assert fixture.rows("SELECT count(*) AS n FROM sessions")[0]["n"] == 0, "the log-out ends the session"
    accounts.close()
    return result.stdout.strip().splitlines()[-1]
