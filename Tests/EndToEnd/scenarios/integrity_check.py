"""The integrity check of the scenarios finds damaged pages, damaged indexes, and rows that contradict each other."""

import struct

from integrity import damage

STORE = "postgres"
# Each statement contradicts the rule; the rules that earlier statements have broken stay broken.
BREAKS = {
    "the number of grants in each state is right": "UPDATE grant_counts SET grants = grants + 1",
    "a stored token is sealed, with a nonce and a tag": "UPDATE grants SET access_token = 'ya29'",
    "only an active grant has no reason": "UPDATE grants SET reason = 'user_request'",
    "the latest event of a grant has its state": "UPDATE grants SET state = 'disconnected'",
    "a grant with calls to come has a due time":
        "UPDATE grants SET state = 'active'; UPDATE grant_schedule SET due_at = NULL",
    "a grant has a schedule": "DELETE FROM grant_schedule",
}
PAGE = 8192
LINE_POINTERS = 24  # the size of a page's header, which the pointers to its rows follow


def scenario(fixture):
    fixture.generate_keys()
    fixture.import_grants(fixture.sandbox.create(200))
    assert damage(fixture) == {}, "a new database is intact"

    # The second page of an index is its first leaf.
    overwrite_row(fixture, "grants_pkey", page=1, size=16)
    assert list(damage(fixture)) == ["each index matches its table"], "a damaged index is found"
    fixture.server.execute("REINDEX TABLE grants")
    broken = damage(fixture)
    assert broken == {}, "a new index is intact"

    for rule, statement in BREAKS.items():
        assert rule not in broken, "the rule holds before"
        fixture.write(statement)
        broken = damage(fixture)
        assert rule in broken, f"`{statement}` is found"

    overwrite_row(fixture, "users", page=0, size=16)
    assert "the pages of each table are intact" in damage(fixture), "a damaged table is found"
    return f"{len(BREAKS)} contradictions, an index and a table"


def overwrite_row(fixture, relation, page, size):
    """Overwrites the begin of a page's last row, as a faulty disk may."""
    path = fixture.server.execute(f"SELECT pg_relation_filepath('refresh_worker.{relation}')").strip()
    fixture.server.stop("fast")
    with open(fixture.server.folder / "data" / path, "r+b") as file:
        file.seek(PAGE * page)
        lower = struct.unpack_from("=H", header := file.read(PAGE), 12)[0]
        [pointer] = struct.unpack_from("=I", header, lower - 4)
        assert lower > LINE_POINTERS, "the page has rows"
        file.seek(PAGE * page + (pointer & 0x7FFF))
        file.write(b"\xfe" * size)
    fixture.server.start()
