"""The app's library against the real worker: a deleted account, and an app that signs its users in elsewhere."""

import subprocess

from accounts import Accounts, user_token
from harness import BINARIES


def scenario(fixture):
    accounts = Accounts(fixture)

    def run(*arguments, lines=(), expect=0):
        app = subprocess.run(
            [BINARIES / "AccountExample", f"http://127.0.0.1:{accounts.port}", *arguments],
            input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, timeout=120,
        )
        output = app.stdout + app.stderr
        assert app.returncode == expect, f"{arguments} exits with {expect}; it wrote: {output}"
        assert not any(line in output for line in lines), "the app prints no token"
        return output

    def sessions():
        return fixture.rows("SELECT count(*) AS n FROM sessions")[0]["n"]

    google = fixture.sandbox.create(email="ada@gmail.com")[0]["access_token"]
    folder = fixture.folder / "app"
    run(folder, "sign-in", lines=[google])
    assert sessions() == 1, "the sign-in begins a session"
    run(folder, "delete-account")
    assert sessions() == 0, "the deletion ends the session"
    assert not list(folder.glob("ce.*")), "the deletion removes the tokens"
    assert "No user is signed in" in run(folder, "call", expect=1), "the app stays signed out"

    expired = user_token("bob", exp=1)
    google = fixture.sandbox.create(email="bob@gmail.com")[0]
    answer = accounts.connect(google, user_token("bob"))
    answer.expect(201)
    output = run("own-session", lines=[expired, user_token("bob"), google["access_token"]])
    assert "the token was refused and renewed" in output, "a refused token is renewed"
    assert "connected: true" in output, "the profile shows the connection"
    accounts.public.get("/v1/user/me", user_token("bob")).expect(404)
    accounts.close()
    return output.strip().splitlines()[-1]
