"""Services that get tokens through unmodified OAuth libraries: first token, cached, refreshed, outage, worker away,
401, and a user who is gone."""

import oauth_libraries
from accounts import SERVICE_KEY, Accounts, user_token
from expectations import wait_for
from oauth_libraries import Gmail, Service
from ports import free_port
from tls import Authority, TLSListener

# The errors that each library raises: for a user who is gone, and while Google cannot be reached.
ERRORS = {
    "google-auth": ("RefreshError", "RefreshError"),
    "requests-oauthlib": ("InvalidGrantError", "TemporarilyUnavailableError"),
    "Authlib": ("OAuthError", "HTTPError"),
    "x/oauth2": ("RetrieveError", "RetrieveError"),
}


def scenario(fixture):
    oauth_libraries.require_libraries()
    authority = Authority(fixture.folder)
    certificate, key = authority.issue("worker")
    port = free_port()
    accounts = Accounts(
        fixture, "--listen-internal", f"127.0.0.1:{port}", "--internal-certificate", certificate, "--internal-key",
        key, start=False,
    )
    accounts.internal = TLSListener(port, authority)
    accounts.start()
    gmail = Gmail(fixture.sandbox, certificate, key)
    services = begin(fixture, accounts, authority, gmail, port)
    try:
        first_and_cached(accounts, services, gmail)
        refreshed(accounts, services, gmail)
        refused_once(services, gmail)
        outage(accounts, services)
        worker_away(accounts, services)
        gone(accounts, services)
    finally:
        for service in services.values():
            service.stop()
        gmail.shutdown()
    accounts.close()
    return f"{len(services)} libraries"


def begin(fixture, accounts, authority, gmail, port):
    """Starts a service with each library, each for a user of its own."""
    services = {}
    for index, library in enumerate(ERRORS):
        user = f"user-{index}"
        grant = fixture.sandbox.create(email=f"{user}@gmail.com")[0]
        accounts.connect(grant, user_token(user)).expect(201)
        # Two libraries get handles in place of the user's id.
        named = user if index % 2 else handle(fixture, accounts, user)
        environment = {
            "TOKEN_URL": f"https://localhost:{port}/oauth2/token", "SERVICE": "mailer", "CREDENTIAL": SERVICE_KEY,
            "USER": named, "GMAIL": gmail.url, "REQUESTS_CA_BUNDLE": authority.file, "SSL_CERT_FILE": authority.file,
        }
        if library == "x/oauth2":
            services[library] = Service.in_go(f"Go: {library}", user, environment, fixture.folder)
        else:
            services[library] = Service.in_python(f"Python: {library}", user, environment)
    return services


def handle(fixture, accounts, user):
    flags = ["--services-file", fixture.folder / "services.json"]
    text = fixture.run("services", "handle", "mailer", user, *flags).stdout.strip()
    assert text.startswith("rwh_") and user not in text, "a handle does not show the user"
    assert fixture.run("services", "handle", "mailer", user, *flags).stdout.strip() == text, "a user has one handle"
    fixture.run("services", "handle", "nobody", user, *flags, expect=65)
    return text


def expect_mail(service):
    answer = service.get()
    assert answer.get("messages") == [f"message-of-{service.user}@gmail.com"], f"the service reads mail: {answer}"


def expire(accounts, services):
    accounts.expire(*(service.user for service in services.values()))
    for service in services.values():
        service.expire()


def first_and_cached(accounts, services, gmail):
    """The first call gets a token, and the next ones use it without the worker."""
    for library, service in services.items():
        before = len(vends(accounts))
        for _ in range(3):
            expect_mail(service)
        expect_vends(accounts, before + 1, f"{library} asks once and caches the token")
        assert len(set(gmail.tokens[-3:])) == 1, f"{library} uses one token"


def refreshed(accounts, services, gmail):
    """After the expiry of the token the worker refreshes the grant, once for each library."""
    former = set(gmail.tokens)
    expire(accounts, services)
    before = len(vends(accounts, outcome="refreshed"))
    for library, service in services.items():
        expect_mail(service)
        assert gmail.tokens[-1] not in former, f"{library} uses a new token"
    expect_vends(accounts, before + len(services), "each grant is refreshed once", outcome="refreshed")


def refused_once(services, gmail):
    """google-auth repeats a call that Gmail answered with 401; the others leave that to the service."""
    for library, service in services.items():
        gmail.refusals = 1
        if library != "google-auth":
            assert service.get()["status"] == 401, f"{library} returns the 401"
        expect_mail(service)


def outage(accounts, services):
    """While Google cannot be reached, a library learns that it may try again, and not that the user is gone."""
    expire(accounts, services)
    accounts.sandbox.settings(outage="reset")
    for library, service in services.items():
        answer = service.get()
        assert answer["error"] == ERRORS[library][1], f"{library} raises its error for an outage: {answer}"
        assert "invalid_grant" not in answer["text"], f"{library} does not learn that the user is gone"
        if library == "google-auth":
            assert answer["retryable"], "google-auth calls the error retryable"
    accounts.sandbox.settings(outage="none")
    for service in services.values():
        # A grant is tried again ten seconds after a failure.
        wait_for(lambda service=service: service.get().get("status") == 200, 60, "the service reads mail again")


def worker_away(accounts, services):
    """Without the worker a cached token still works; an expired one raises an error that is not about the user."""
    accounts.worker.stop()
    for service in services.values():
        expect_mail(service)
        service.expire()
        answer = service.get()
        assert answer.get("error") and "invalid_grant" not in answer["text"], "the worker is away, not the user"
    accounts.start()
    for service in services.values():
        expect_mail(service)


def gone(accounts, services):
    """A user who disconnected, here or at Google, raises the library's own error."""
    first, *others = services.values()
    accounts.sandbox.change({"email": f"{first.user}@gmail.com"}, revoked=True)
    for service in others:
        accounts.disconnect(user_token(service.user))
    accounts.expire(first.user)
    for library, service in services.items():
        service.expire()
        answer = service.get()
        assert answer["error"] == ERRORS[library][0], f"{library} raises its own refresh error: {answer}"
        assert "invalid_grant" in answer["text"] or library == "requests-oauthlib", f"the error says why: {answer}"


def vends(accounts, **fields):
    return accounts.worker.events("vend", **fields)


def expect_vends(accounts, count, expectation, **fields):
    """Waits for the lines, which are written up to 5 ms after the answer, and checks that there are no more."""
    wait_for(lambda: len(vends(accounts, **fields)) >= count, 60, expectation)
    assert len(vends(accounts, **fields)) == count, expectation
