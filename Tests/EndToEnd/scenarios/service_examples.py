"""The examples of docs/services-examples.md on loopback without TLS: each reads mail, and raises the errors that
the document names while Google is away and for a user who is gone."""

import mail
from accounts import SERVICE_KEY, Accounts, user_token
from example_programs import documented_errors, programs, read_mail
from oauth_libraries import Service, require_libraries
from ports import free_port

# Words of the errors, which the document's table must name too: for a user who is gone, and while Google is away.
ERRORS = {
    "Java: google-auth-library": (["IOException", "invalid_grant"], ["IOException", "temporarily_unavailable"]),
    "Node: fetch": (["Error", "invalid_grant"], ["Error", "503"]),
    "googleauth": (
        ["Signet::AuthorizationError", "invalid_grant"], ["Signet::AuthorizationError", "RemoteServerError"],
    ),
    "Foundation": (["TokenError", "invalid_grant"], ["TokenError", "temporarily_unavailable"]),
    "curl": (["exit code 22", "invalid_grant"], ["exit code 22", "temporarily_unavailable"]),
}


def scenario(fixture):
    require_libraries()
    port = free_port()
    accounts = Accounts(fixture, "--listen-internal", f"127.0.0.1:{port}", start=False)
    accounts.internal = type(accounts.public)(port)
    accounts.start()
    gmail = mail.Gmail(fixture.sandbox)
    commands = programs(fixture.folder)
    for user in [*commands, "requests-oauthlib"]:
        accounts.connect(fixture.sandbox.create(email=f"{slug(user)}@gmail.com")[0], user_token(slug(user))).expect(201)

    def environment(user):
        return {
            "TOKEN_URL": f"http://127.0.0.1:{port}/oauth2/token", "SERVICE": "mailer", "CREDENTIAL": SERVICE_KEY,
            "USER": slug(user),
        }

    def output(name):
        address = f"{gmail.url}/gmail/v1/users/me/messages"
        return read_mail(commands[name], fixture.folder, {**environment(name), "GMAIL": address})

    for name in commands:
        assert f"message-of-{slug(name)}@gmail.com" in output(name), f"{name} reads mail"
    requests_oauthlib(environment("requests-oauthlib"), gmail)
    documented = documented_errors()
    accounts.expire(*map(slug, commands))
    accounts.sandbox.settings(outage="reset")
    for name, (_, words) in ERRORS.items():
        expect(name, words, output(name), documented[name][1])
    accounts.sandbox.settings(outage="none")
    for name, (words, _) in ERRORS.items():
        accounts.disconnect(user_token(slug(name)))
        expect(name, words, output(name), documented[name][0])
    gmail.shutdown()
    accounts.close()
    return f"{len(commands) + 1} examples"


def slug(name):
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def expect(name, words, output, cell):
    for word in words:
        assert word in output, f"{name} raises the documented error"
        assert word in cell, f"the document names the error of {name}"
    # The two errors must not be mistaken for each other.
    assert ("invalid_grant" in output) == ("invalid_grant" in words), f"{name} tells both errors apart"


def requests_oauthlib(environment, gmail):
    """With the variable that the document names, the library accepts an endpoint without TLS, and otherwise not."""
    heading = "Python: requests-oauthlib"
    for is_set in (True, False):
        extra = {"OAUTHLIB_INSECURE_TRANSPORT": "1"} if is_set else {}
        service = Service.in_python(heading, environment["USER"], {**environment, **extra, "GMAIL": gmail.url})
        answer = service.get()
        service.stop()
        if is_set:
            assert answer.get("messages"), "requests-oauthlib reads mail"
        else:
            assert answer["error"] == "InsecureTransportError", "the variable is needed"
