"""The records of PostgreSQL's write-ahead log: what each changes, its bytes, and those of its images of pages."""

import collections
import dataclasses
import re
import subprocess

# One line of pg_waldump. Both lengths include the header. Only the second one includes images of pages.
RECORD = re.compile(r"rmgr: (\S+) +len \(rec/tot\): +(\d+)/ +(\d+),.* desc: (\S+)")
# The first block that a record changes. In the few records that change several, all are of the same table or index.
BLOCK = re.compile(r" rel \d+/\d+/(\d+)")
# Records of no table or index: commits, and what the server writes from time to time.
NO_RELATION = "(none)"


@dataclasses.dataclass
class Sum:
    """The records of one kind."""
    records: int = 0
    bytes: int = 0
    image_bytes: int = 0

    def add(self, other):
        self.records += other.records
        self.bytes += other.bytes
        self.image_bytes += other.image_bytes


def position(server, database):
    """The position of the next record."""
    return server.rows(database, "SELECT pg_current_wal_insert_lsn()")[0][0]


def sums(server, database, start):
    """The sums of all records since a position, by table or index and kind."""
    # It also writes what the server still has in memory.
    end = server.rows(database, "SELECT pg_switch_wal()")[0][0]
    programs = server.rows(database, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")[0][0]
    names = dict(server.rows(database, "SELECT pg_relation_filenode(oid), relname FROM pg_class "
                                       "WHERE pg_relation_filenode(oid) IS NOT NULL"))
    text = subprocess.run([f"{programs}/pg_waldump", "--path", server.folder / "data" / "pg_wal",
                           "--start", start, "--end", end], capture_output=True, text=True, check=True).stdout
    found = collections.defaultdict(Sum)
    for line in text.splitlines():
        manager, length, total, kind = RECORD.search(line).groups()
        block = BLOCK.search(line)
        relation = names.get(block[1], NO_RELATION) if block else NO_RELATION
        found[relation, f"{manager} {kind}"].add(Sum(1, int(length), int(total) - int(length)))
    return found
