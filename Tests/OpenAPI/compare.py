"""Checks answers against a description with closed responses: `compare.py DESCRIPTION ANSWERS`.

The Python that has schemathesis runs it.
"""

import json
import sys

import requests
import schemathesis
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from schemathesis.specs.openapi import checks

CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


def response(answer):
    return Response(
        status_code=answer["status"],
        headers={name: [value] for name, value in answer["headers"].items()},
        content=answer["body"].encode(),
        request=requests.Request(answer["method"], "http://127.0.0.1" + answer["path"]).prepare(),
        elapsed=0,
        verify=False,
    )


def main(description, answers):
    schema = schemathesis.openapi.from_path(description)
    failed = 0
    with open(answers) as file:
        seen = json.load(file)
    for answer in seen:
        case = schema[answer["path"]][answer["method"]].Case(
            path_parameters={"user_id": "some-user", "id": "default"}
        )
        try:
            case.validate_response(response(answer), checks=CHECKS)
        except FailureGroup as error:
            failed += 1
            for failure in error.exceptions:
                print(f"{answer['status']} of {answer['method']} {answer['path']}: {failure.title}: {failure.message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
