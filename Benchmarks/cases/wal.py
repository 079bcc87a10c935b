"""The write-ahead log of PostgreSQL: what one refresh writes, by table and index, and what settings change."""

import dataclasses

from harness import daemon, endpoint, measuring, postgres, report, write_ahead_log

from . import growth

TITLE = "The write-ahead log of PostgreSQL"
# Grants that are due. The store has `PERIOD / minutes` times as many.
DUE = 10_000
# The time in which every grant is refreshed once, in minutes.
PERIOD = growth.PERIOD // 60
# No checkpoint and no vacuum begins during a measurement.
SETTINGS = ["autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=8GB"]
WITHOUT_IMAGES = "full_page_writes=off"
# The tables whose updates should leave their indexes alone.
HOT_TABLES = ["grants", "grant_schedule"]
# A kind of record with less than this is shown with the others.
FEW_BYTES = 10
OTHERS = ("others", "")


@dataclasses.dataclass(frozen=True)
class State:
    """A database before its grants are refreshed, and the server's settings."""
    name: str
    # The time between two checkpoints. PostgreSQL's default is five minutes.
    minutes: int = 5
    # So many rows at a time were added in the order of their ids, which is that of their due times. `None` stands for
    # all rows, as `store copy` writes them.
    batch: int | None = 1
    # The first refresh of a day also changes the indexed column used_on.
    is_first_of_day: bool = False
    settings: tuple[str, ...] = ()


PLAIN = "pages changed before"
AFTER_CHECKPOINT = "after a checkpoint"
STATES = [
    State(PLAIN, settings=(WITHOUT_IMAGES,)),
    State(AFTER_CHECKPOINT),
    State("after a checkpoint, `wal_compression = lz4`", settings=("wal_compression=lz4",)),
    State("after a checkpoint, `wal_compression = pglz`", settings=("wal_compression=pglz",)),
    State("30 minutes between checkpoints", minutes=30),
    State("30 minutes between checkpoints, `wal_compression = lz4`", minutes=30, settings=("wal_compression=lz4",)),
    State("imported, pages changed before", batch=1000, settings=(WITHOUT_IMAGES,)),
    State("imported, after a checkpoint", batch=1000),
    State("copied, pages changed before", batch=None, settings=(WITHOUT_IMAGES,)),
    State("copied, after a checkpoint", batch=None),
    State("copied, after a checkpoint, `wal_compression = lz4`", batch=None, settings=("wal_compression=lz4",)),
    State("first of the day, pages changed before", is_first_of_day=True, settings=(WITHOUT_IMAGES,)),
    State("first of the day, after a checkpoint", is_first_of_day=True),
]


def measure(scale, folder):
    with endpoint.Endpoint(folder / "endpoint") as site:
        return {"states": [drain(scale, site, folder / str(number), state) for number, state in enumerate(STATES)]}


def drain(scale, site, folder, state):
    """Refreshes all due grants, and returns what one refresh has written."""
    folder.mkdir()
    with postgres.Server(folder / "server", [*SETTINGS, *state.settings]) as server:
        store = postgres.ServerGrants(folder / "grants", server, "wal")
        due = scale.pick(DUE, 500)
        store.fill(due * PERIOD // state.minutes, outage=60 * state.minutes)
        if state.batch:
            store.reorder(state.batch)
        if state.is_first_of_day:
            server.rows(store.name, "UPDATE refresh_worker.grants SET used_on = used_on - 1")
        for command in ["VACUUM ANALYZE", "SELECT pg_stat_reset()", "CHECKPOINT"]:
            server.rows(store.name, command)
        site.start_log()
        start = write_ahead_log.position(server, store.name)
        with daemon.Daemon(store, site, folder):
            measuring.wait_for(lambda: store.due() == 0, 300, "no grant is due")
        records = write_ahead_log.sums(server, store.name, start)
        store.verify_once_each(site.issued)
        refreshes, _ = endpoint.span(site.issued)
        row = {"state": state.name, "refreshes": refreshes, "heap_only": heap_only(server, store.name),
               "records": of_one(records, refreshes)}
    scale.say(f"{state.name}: {total(row, 'bytes'):,.0f} bytes and {total(row, 'image_bytes'):,.0f} of images, "
              f"heap-only {row['heap_only']}")
    return row


def of_one(records, refreshes):
    """The kinds of records of one refresh. Those of less than a byte are added up."""
    others = write_ahead_log.Sum()
    kinds = {}
    for kind, of in records.items():
        if of.bytes + of.image_bytes >= refreshes:
            kinds[kind] = of
        else:
            others.add(of)
    kinds[OTHERS] = others
    return [{"relation": relation, "kind": kind, "records": round(of.records / refreshes, 3),
             "bytes": round(of.bytes / refreshes, 1), "image_bytes": round(of.image_bytes / refreshes, 1)}
            for (relation, kind), of in kinds.items()]


def heap_only(server, database):
    """The fraction of the updates of each table that have left its indexes alone."""
    rows = server.rows(database, "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables")
    updates = {name: (int(all_updates), int(heap_only)) for name, all_updates, heap_only in rows}
    return {name: round(updates[name][1] / updates[name][0], 4) for name in HOT_TABLES}


def total(row, key):
    return sum(of[key] for of in row["records"])


def state_named(figures, name):
    return next(row for row in figures["states"] if row["state"] == name)


def by_kind(figures, name):
    return {(of["relation"], of["kind"]): of for of in state_named(figures, name)["records"]}


def tables(figures):
    states = [[row["state"], f"{total(row, 'records'):.1f}", f"{total(row, 'bytes'):,.0f}",
               f"{total(row, 'image_bytes'):,.0f}", f"{total(row, 'bytes') + total(row, 'image_bytes'):,.0f}",
               f"{row['heap_only']['grants']:.0%}"] for row in figures["states"]]
    plain, images = by_kind(figures, PLAIN), by_kind(figures, AFTER_CHECKPOINT)
    # The kinds with many bytes first.
    kinds = sorted(plain.keys() | images.keys(), key=lambda kind: -size(plain, kind) - size(images, kind))
    shown = [kind for kind in kinds if size(plain, kind) + size(images, kind) >= FEW_BYTES and kind != OTHERS]
    rows = [[relation, kind, *cells(plain, images, [(relation, kind)])] for relation, kind in shown]
    rows.append([*OTHERS, *cells(plain, images, [kind for kind in kinds if kind not in shown])])
    return (
        "What one refresh writes. Each state has as many due grants as fall due between two checkpoints: five minutes "
        "unless it says 30. After a checkpoint the first change of each page writes an image of it. *Pages changed "
        "before* is measured with `full_page_writes=off`. The rows of grants are in no order, as in a store that has "
        "grown, or in the order in which `grants import` or `store copy` has written them.\n\n"
        + report.table(["state", "records", "bytes", "bytes of images", "together", "heap-only updates of `grants`"],
                       states)
        + "\n\nThe records of the first two states:\n\n"
        + report.table(["table or index", "record", "records", "bytes", "after a checkpoint: bytes", "bytes of images"],
                       rows)
    )


def size(kinds, kind):
    return kinds[kind]["bytes"] + kinds[kind]["image_bytes"] if kind in kinds else 0


def cells(plain, images, kinds):
    def summed(found, key):
        return sum(found[kind][key] for kind in kinds if kind in found)

    return [f"{summed(plain, 'records'):.2f}", f"{summed(plain, 'bytes'):,.0f}",
            f"{summed(images, 'bytes'):,.0f}", f"{summed(images, 'image_bytes'):,.0f}"]


def charts(_figures):
    return {}


def goals(figures):
    plain = state_named(figures, PLAIN)
    images = state_named(figures, AFTER_CHECKPOINT)
    both = total(images, "bytes") + total(images, "image_bytes")
    return [
        report.at_most("bytes of log of one refresh, pages changed before", total(plain, "bytes"), 1_000,
                       shown="{:,.0f}"),
        report.at_most("bytes of log of one refresh, after a checkpoint", both, 3_000, shown="{:,.0f}"),
        ("at least 95 % of the updates of `grants` are heap-only", f"{plain['heap_only']['grants']:.1%}",
         plain["heap_only"]["grants"] >= 0.95),
    ]
