"""The same as `connections`, with a PostgreSQL database."""

from connections import scenario as on_any_store

STORE = "postgres"


def scenario(fixture):
    return on_any_store(fixture)
