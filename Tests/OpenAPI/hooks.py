"""Hooks for schemathesis: the credentials of the caller, and values that the worker or Google must know."""

import base64
import itertools
import json
import os
import pathlib
import re
import sys

import schemathesis

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "EndToEnd"), str(HERE.parent / "Python")]
sys.dont_write_bytecode = True

import accounts  # noqa: E402
import rare_answers  # noqa: E402
import setup  # noqa: E402

SETUP = setup.Setup.from_fields(json.loads(os.environ["OPENAPI_SETUP"]))
KEPT = (SETUP.user, SETUP.vended_user, SETUP.retried_user)
# What labels must not contain: characters that break, hide or reorder the text on a terminal.
DISTURBING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
LABEL_BYTES = 64
FRAMING = {"connection", "content-length", "expect", "host", "transfer-encoding", "upgrade"}
numbers = itertools.count()


def name_of(operation):
    return operation.definition.raw["operationId"]


@schemathesis.auth(refresh_interval=None)
class Callers:
    """A user for the public routes, a service or an operator for the internal ones."""

    def get(self, case, context):
        if name_of(context.operation) in ("lookUpUser", "sendStatusPageForm", "showGrantList"):
            return "Basic " + base64.b64encode(f"jane:{rare_answers.OPERATOR_KEY}".encode()).decode()
        if "administration" in context.operation.tags:
            return f"Bearer {rare_answers.MANAGER_KEY}"
        if "oauth" in context.operation.tags:
            return "Basic " + base64.b64encode(f"mailer:{accounts.SERVICE_KEY}".encode()).decode()
        if "internal" in context.operation.tags:
            return f"Bearer {accounts.SERVICE_KEY}"
        if name_of(context.operation) in ("deleteUser", "deleteUserByFormerName"):
            # A deleted user cannot make further calls.
            return f"Bearer {accounts.user_token(f'leaver-{next(numbers)}')}"
        return f"Bearer {accounts.user_token(SETUP.user)}"

    def set(self, case, token, context):
        case.headers["Authorization"] = token


@schemathesis.serializer("application/secevent+jwt")
def security_event_token(context, value):
    """Sends a compact token unchanged."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Puts a known value into each request that should succeed: generated values are unknown."""
    # The framing of a message is below the level of a description; the tests of the server break it.
    for name in [name for name in case.headers if name.lower() in FRAMING]:
        del case.headers[name]
    if case.meta is None or case.meta.generation.mode.is_negative:
        # An answer can have named a user whose grant must stay.
        if "administration" in case.operation.tags and (case.path_parameters or {}).get("user_id") in KEPT:
            case.path_parameters = {"user_id": SETUP.ended_user}
        return
    change = CHANGES.get(name_of(case.operation))
    if change:
        change(case)


@schemathesis.hook
def after_call(context, case, response):
    """Records the outcome of each request, for the check that every route was answered with success."""
    with open(SETUP.seen, "a") as seen:
        seen.write(f"{name_of(case.operation)} {response.status_code}\n")


def with_google_token(case):
    case.body = {**case.body, "access_token": SETUP.access_token()}
    if case.body.get("server_auth_code"):
        # A code stands in place of the refresh token.
        case.body = {**case.body, "server_auth_code": SETUP.code(), "refresh_token": ""}


def with_account(case):
    """Connects the user's account: as `default`, or as one more, which finds the connection that has it."""
    with_google_token(case)
    case.body = {name: value for name, value in case.body.items() if name != "connection"}
    if next(numbers) % 2:
        case.body["connection"] = "new"


def with_connection(case):
    # Every third request names an unknown connection.
    if next(numbers) % 3:
        case.path_parameters = {**case.path_parameters, "id": "default"}


def with_sign_in(case):
    if case.body.get("id_token"):
        case.body = {**case.body, "id_token": SETUP.id_token(next(numbers), case.body.get("nonce"))}
    else:
        with_google_token(case)


def with_refresh_token(case):
    if isinstance(case.body, dict) and case.body.get("refresh_token"):
        case.body = {**case.body, "refresh_token": SETUP.sign_in()["refresh_token"]}


def with_security_event(case):
    case.body = SETUP.security_event()


def mostly_without_connection(case):
    # Generated ids are of unknown connections.
    if next(numbers) % 5:
        case.query = without(case.query, "connection")


def without(query, name):
    return {member: value for member, value in (query or {}).items() if member != name}


def with_user(case):
    mostly_without_connection(case)
    # Every third request names an unknown user.
    if next(numbers) % 3:
        case.path_parameters = {**case.path_parameters, "user_id": SETUP.vended_user}


def with_granted_scopes(case):
    with_user(case)
    if case.query.get("scope"):
        case.query = {**case.query, "scope": SETUP.scopes[: len(case.query["scope"])]}


def with_rejected_token(case):
    with_user(case)
    if next(numbers) % 2:
        case.body = {**case.body, "access_token": SETUP.vended_token()}


def with_subject(case):
    """Names the user and no connection; the service authenticates itself by the header, so not in the form too."""
    dropped = ("client_id", "client_secret", "connection")
    body = {name: value for name, value in case.body.items() if name not in dropped}
    subject = "subject_token" if "subject_token" in body else "refresh_token"
    is_named = body.get("subject_token_type", "refresh_token").endswith("refresh_token")
    body[subject] = SETUP.vended_user if is_named else accounts.user_token(SETUP.vended_user)
    if body.get("scope"):
        body["scope"] = " ".join(SETUP.scopes)
    case.body = body


def with_record(case):
    grant = SETUP.grant()
    case.path_parameters = {"user_id": "stored-user"}
    # Members that responses have too, which the description leaves to `grants import --help`.
    others = ("connection", "expires_at", "google_email", "reason", "since", "state")
    case.body = {name: value for name, value in case.body.items() if name not in others}
    case.body = {**case.body, "refresh_token": grant["refresh_token"], "client_id": grant["client_id"]}
    case.query = without(case.query, "connection")
    labels = case.body.get("labels")
    if labels:
        # The description counts characters and the worker bytes.
        case.body["labels"] = {
            name: value for name, value in labels.items() if name == label_text(name) and value == label_text(value)
        }


def label_text(text):
    """The text as far as a label can have it."""
    return DISTURBING.sub("", text).encode()[:LABEL_BYTES].decode(errors="ignore")


def of(user):
    def change(case):
        mostly_without_connection(case)
        case.path_parameters = {"user_id": user if next(numbers) % 3 else "unknown"}

    return change


def with_leaver(case):
    case.path_parameters = {"user_id": SETUP.known_user(f"leaver-{next(numbers)}")}


def of_first_page(case):
    case.query = without(case.query, "after")
    if case.query.get("label"):
        name, _, value = case.query["label"].partition("=")
        case.query["label"] = f"{label_text(name) or 'tenant'}={label_text(value) or 'acme'}"


def with_looked_up_user(case):
    if "user" in case.query and next(numbers) % 3:
        case.query = {**case.query, "user": SETUP.vended_user}


def with_looked_up_name(case):
    if "user" in case.body and next(numbers) % 3:
        case.body = {**case.body, "user": SETUP.vended_user}


CHANGES = {
    "connectGoogleAccount": with_account,
    "showConnection": with_connection,
    "disconnectConnection": with_connection,
    "storePayPulseTokens": with_google_token,
    "storePayPulseTokensByOldName": with_google_token,
    "signInWithGoogle": with_sign_in,
    "refreshSession": with_refresh_token,
    "logOut": with_refresh_token,
    "receiveSecurityEvent": with_security_event,
    "vendToken": with_granted_scopes,
    "renewToken": with_rejected_token,
    "requestToken": with_subject,
    "listGrants": of_first_page,
    "showGrant": of(SETUP.vended_user),
    "putGrant": with_record,
    "disconnectGrant": of(SETUP.ended_user),
    "retryGrant": of(SETUP.retried_user),
    "deleteUserByService": with_leaver,
    "lookUpUser": with_looked_up_user,
    "sendStatusPageForm": with_looked_up_name,
    "showGrantList": of_first_page,
}
