"""The doctor judges the token endpoint's answer, and refuses what the daemon refuses."""

import os
import pwd

from harness import CLIENT

STORE = "sqlite"


def scenario(fixture):
    fixture.sandbox.settings(clients=[CLIENT])
    fixture.generate_keys()
    fixture.import_grants(fixture.sandbox.create(3))
    found = fixture.run("doctor").stdout
    assert "invalid_grant to a made-up token, as it should, and knows the client id" in found, "the client id is known"

    # A typing mistake in the address, and in the client id.
    wrong = fixture.run("doctor", "--token-endpoint", fixture.sandbox.url + "/tokne", expect=None)
    assert wrong.returncode == 69 and "answers 404: the path is wrong" in wrong.stdout, "404 is a fault"
    wrong = fixture.run("doctor", "--client-id", "1-nobody.apps.googleusercontent.com", expect=None)
    assert wrong.returncode == 69 and "refuses the client id '1-nobody" in wrong.stdout, "so is an unknown client id"

    # Both refuse the same settings; the internal listener needs no services.
    notices = ["--notice-url", "http://127.0.0.1:9/"]
    assert "--notice-url needs --notice-secret-file" in fixture.run("doctor", *notices, expect=78).stdout
    assert "--notice-url: needs --notice-secret-file" in fixture.run(*notices, expect=78).stderr
    fixture.run("doctor", "--listen-internal", "127.0.0.1:0")
    if os.geteuid() == 0:
        as_root(fixture)


def as_root(fixture):
    """The files belong to another user, as those of an installed service do."""
    nobody = pwd.getpwnam("nobody")
    fixture.folder.chmod(0o755)
    for path in fixture.folder.iterdir():
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    for words in (["keys", "list"], ["doctor"], ["keys", "list", "--no-switch"]):
        refused = fixture.run(*words, expect=78).stderr
        assert "runuser -u nobody -- refresh-worker …" in refused and "chown" not in refused, (
            f"root is advised to run the command as the owner, not to take over the file: {refused}"
        )
    found = fixture.run("doctor", "--no-switch", expect=78).stdout
    assert "runuser -u nobody --" in found, f"the doctor gives the same advice: {found}"
