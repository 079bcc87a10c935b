"""Writes docs/openapi.yaml with closed responses: `close.py DESCRIPTION COPY`; run by the Python that has schemathesis.
Fails if an example does not match its schema.

Clients must accept members that later versions add, so the description itself leaves its objects open. The check does
not: a member that an answer has and its schema lacks is missing from the description.
"""

import json
import sys

import jsonschema
import yaml

OPEN = ("additionalProperties", "unevaluatedProperties")
SCHEMA_PREFIX = "#/components/schemas/"


class Responses:
    """Follows the schemas of all responses, and closes their objects."""

    def __init__(self, description):
        self.schemas = description["components"]["schemas"]
        self.names = set()

    def close_content(self, response):
        for media in response.get("content", {}).values():
            self.close(media.get("schema"))

    def close(self, schema, is_part=False):
        """Closes an object, unless it is a part of an `allOf`: then the whole is closed, which sees all parts."""
        if not isinstance(schema, dict):
            return
        reference = schema.get("$ref")
        if reference:
            self.close_named(reference.removeprefix(SCHEMA_PREFIX), is_part)
        for part in schema.get("allOf", []):
            self.close(part, is_part=True)
        for choice in (*schema.get("anyOf", []), *schema.get("oneOf", [])):
            self.close(choice, is_part)
        for child in (*schema.get("properties", {}).values(), schema.get("items")):
            self.close(child)
        if not is_part and describes_object(schema) and not any(word in schema for word in OPEN):
            schema["unevaluatedProperties" if "allOf" in schema else "additionalProperties"] = False

    def close_named(self, name, is_part):
        if (name, is_part) in self.names:
            return
        if (name, not is_part) in self.names:
            sys.exit(f"schema {name} is used as a whole response and as a part of one: split it")
        self.names.add((name, is_part))
        self.close(self.schemas[name], is_part)


def describes_object(schema):
    kinds = schema.get("type", [])
    return kinds == "object" or "object" in kinds or "properties" in schema or "allOf" in schema


def names_in(node):
    """Yields the names of all schemas that a part of the description refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(SCHEMA_PREFIX)
        for child in node.values():
            yield from names_in(child)
    elif isinstance(node, list):
        for child in node:
            yield from names_in(child)


def operations(description):
    for path in description["paths"].values():
        members = [member for member in path.values() if isinstance(member, dict)]
        yield from (member for member in members if "responses" in member)


def closed(description):
    """Returns the description with closed responses; requests stay open, because undescribed members are ignored."""
    # Through JSON, so that nodes that YAML's anchors share become separate copies.
    description = json.loads(json.dumps(description, default=str))
    responses = Responses(description)
    for response in description["components"]["responses"].values():
        responses.close_content(response)
    for operation in operations(description):
        for response in operation["responses"].values():
            responses.close_content(response)
    requests = {name for operation in operations(description) for name in names_in(operation.get("requestBody"))}
    both = requests & {name for name, _ in responses.names}
    if both:
        sys.exit(f"schemas of both requests and responses cannot be closed: {', '.join(sorted(both))}")
    return description


def wrong_examples(node, description, place=""):
    """Yields what is wrong with each example that does not match its schema, by its place."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    if "schema" in node:
        # The root of the schema's references.
        schema = jsonschema.Draft202012Validator({**node["schema"], "components": description["components"]})
        for name, example in node.get("examples", {}).items():
            yield from (f"{place}/examples/{name}: {error.message}" for error in schema.iter_errors(example["value"]))
    for name, child in node.items():
        yield from wrong_examples(child, description, f"{place}/{name}")


def main(source, copy):
    with open(source) as file:
        description = closed(yaml.safe_load(file))
    if wrong := list(wrong_examples(description, description)):
        sys.exit("\n".join(wrong))
    with open(copy, "w") as file:
        json.dump(description, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
