"""Everything at the most verbose level: no token and no key is in any output, log or unsealed in the database."""

import re

from expectations import wait_for


def scenario(fixture):
    sandbox = fixture.sandbox
    sandbox.settings(lifetime=8, rotation=True)
    fixture.generate_keys()
    grants = sandbox.create(20)
    secrets = {grant[name] for grant in grants for name in ("refresh_token", "access_token")}
    debug = ["--log-level", "debug"]
    fixture.import_grants(grants, *debug)
    worker = fixture.start(*debug, "--summary-interval", "1").wait_started()
    known = sandbox.call("/control/faults")
    faults = ["invalid_rapt", "html502", "unauthorized_client", "reset", "garbage200", "without_access_token"]
    for grant, fault in zip(grants[4:], faults, strict=False):
        assert fault in known, "the sandbox knows the fault"
        sandbox.change(grant, answer={"preset": fault, "times": 1})
    # A server that repeats the token in its error: the token must not appear in a log.
    echo = grants[3]
    sandbox.change(
        echo,
        answer={
            "status": 400,
            "body": '{{"error":"strange","error_description":"token {} is odd"}}'.format(echo["refresh_token"]),
            "times": 3,
        },
    )
    wait_for(lambda: worker.events("refresh", verdict="strange"), 60, "the odd answer came")
    wait_for(lambda: len(worker.events("refresh", outcome="refreshed")) > 40, 90, "many refreshes")
    secrets |= {grant["refresh_token"] for grant in sandbox.call("/control/grants")}
    token = fixture.run("token", grants[0]["email"], *debug)
    access = token.stdout.strip()
    assert access and access not in token.stderr, "the token is on standard output alone"
    secrets.add(access)
    outputs = [token.stderr]
    for command in (
        ["grants", "list", "--json"],
        ["grants", "list"],
        ["grants", "show", grants[0]["email"]],
        ["grants", "show", grants[0]["email"], "--json"],
        ["status"],
        ["status", "--json"],
        ["doctor"],
        ["keys", "list"],
        ["keys", "rotate"],
        ["--run-once"],
        ["grants", "export"],
        ["grants", "disconnect", grants[1]["email"]],
        ["token", grants[1]["email"]],
        ["token", grants[2]["refresh_token"]],
        ["grants", "add", "x", grants[2]["refresh_token"]],
        ["--nonsense", grants[2]["access_token"]],
    ):
        result = fixture.run(*command, *debug, expect=None)
        outputs += [result.stdout, result.stderr]
    worker.stop()
    key_material = [line.split()[1] for line in fixture.keys.read_text().splitlines() if line and line[0] not in "#"]
    assert len(key_material) == 2, "a rotation leaves two keys"
    outputs += [worker.metrics.read_text(), worker.errors.read_text()]
    for text in outputs:
        shown = [secret for secret in [*secrets, *key_material] if secret in text]
        assert not shown, f"no output holds a secret; this one begins {text[:80]!r}"
        assert not re.search(r"ya29\.[\w-]{8}", text), f"no output holds an access token; this one begins {text[:80]!r}"
    for path in fixture.folder.glob("grants.sqlite*"):
        content = path.read_bytes()
        assert not any(secret.encode() in content for secret in secrets), f"each token in {path.name} is sealed"
    return f"{len(secrets)} tokens and {len(key_material)} keys looked for in {len(outputs)} outputs"
