"""Holds answers to docs/openapi.yaml: `compare.py DESCRIPTION ANSWERS`; run by the Python that has schemathesis."""

import datetime
import json
import sys

import requests
import schemathesis
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


def response(answer):
    made = requests.Response()
    made.status_code = answer["status"]
    made.headers.update(answer["headers"])
    made._content = answer["body"].encode()
    made.elapsed = datetime.timedelta()
    made.request = requests.Request(answer["method"], "http://127.0.0.1" + answer["path"]).prepare()
    made.url = made.request.url
    return made


def main(description, answers):
    schema = schemathesis.openapi.from_path(description)
    failed = 0
    with open(answers) as file:
        seen = json.load(file)
    for answer in seen:
        case = schema[answer["path"]][answer["method"]].Case(path_parameters={"user_id": "some-user"})
        try:
            case.validate_response(response(answer), checks=CHECKS)
        except FailureGroup as error:
            failed += 1
            for failure in error.exceptions:
                print(f"{answer['status']} of {answer['method']} {answer['path']}: {failure.title}: {failure.message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
