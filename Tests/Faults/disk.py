"""The power-cut model: the content of a disk after the power fails, computed from the journal of the fault library.

The rules are those of Linux with a journaling file system:

- A write changes what later reads see. A successful sync makes the file durable as it is then.
- A failed sync marks the dirty pages as clean. Later reads see them, later syncs do not write them again, and a cut
  loses those that had not reached the disk. A page that is written again is dirty again as a whole.
- At a cut each 512-byte sector that is dirty holds what the last sync left, what was written, or something between.
- A file's name is durable after a sync of its folder. Of the changes since then, the first few survive. Names are in
  the file system's journal, not in pages: a failed sync leaves them as they were, or makes them durable, and the next
  sync that succeeds makes them durable. SQLite ignores the result when it syncs the folder of a new log.
- A cut of the length survives or not, like a sector.
"""

import random
import struct

PAGE = 4096
SECTOR = 512
HEAD = struct.Struct("=BBHIQ")


def records(path):
    """The journal's records up to the cut: type, path, offset, data."""
    data = path.read_bytes()
    position = 0
    while position + HEAD.size <= len(data):
        kind, _, name_length, length, offset = HEAD.unpack_from(data, position)
        position += HEAD.size
        name = data[position:position + name_length].decode()
        position += name_length
        if position + length > len(data):
            return
        if chr(kind) == "K":
            return
        yield chr(kind), name, offset, data[position:position + length]
        position += length


def fitted(content, size):
    return content[:size].ljust(size, b"\0")


class File:
    """One file: what reads see, what the disk holds for certain, and which pages differ by chance."""

    def __init__(self, content=b""):
        self.seen = bytearray(content)
        self.durable = bytearray(content)
        self.dirty = {}  # page number and a state of it that may have reached the disk already, or None
        self.shortest = len(content)  # since the last sync

    def page(self, content, number):
        return fitted(bytes(content[number * PAGE:(number + 1) * PAGE]), PAGE)

    def write(self, offset, data, chance):
        end = offset + len(data)
        for number in range(offset // PAGE, (end - 1) // PAGE + 1):
            # The kernel may write a dirty page at any time.
            kept = self.page(self.seen, number) if number in self.dirty and chance.random() < 0.3 else None
            self.dirty[number] = kept or self.dirty.get(number)
        if len(self.seen) < end:
            self.seen.extend(bytes(end - len(self.seen)))
        self.seen[offset:end] = data

    def truncate(self, size):
        self.seen = bytearray(fitted(bytes(self.seen), size))
        self.shortest = min(self.shortest, size)
        self.dirty = {number: kept for number, kept in self.dirty.items() if number * PAGE < size}
        if size % PAGE and size // PAGE not in self.dirty:
            self.dirty[size // PAGE] = None

    def make_durable(self, pages):
        """Makes the length and the given dirty pages durable."""
        # Content that a truncation removed does not come back with the length.
        del self.durable[self.shortest:]
        self.durable = bytearray(fitted(bytes(self.durable), len(self.seen)))
        for number in pages:
            content = self.page(self.seen, number)
            start = number * PAGE
            self.durable[start:start + PAGE] = content[:max(0, len(self.seen) - start)]
        self.shortest = len(self.seen)
        self.dirty = {}

    def sync(self):
        self.make_durable(list(self.dirty))

    def fail_sync(self, chance):
        lucky = chance.choice([0, 0.5, 0.9])
        self.make_durable([number for number in self.dirty if chance.random() < lucky])

    def after_cut(self, chance, fraction):
        """The content after a cut, where each dirty sector survives with the probability `fraction`."""
        whole = File()
        whole.durable, size = bytearray(self.durable), len(self.durable)
        if self.shortest < size and chance.random() < fraction:
            del whole.durable[self.shortest:]
            size = self.shortest
        if chance.random() < fraction:
            size = len(self.seen)
        content = bytearray(fitted(bytes(whole.durable), size))
        for number, kept in self.dirty.items():
            new = self.page(self.seen, number)
            for start in range(0, PAGE, SECTOR):
                position = number * PAGE + start
                if position >= size or chance.random() >= fraction:
                    continue
                source = kept if kept and chance.random() < 0.3 else new
                content[position:position + SECTOR] = source[start:start + min(SECTOR, size - position)]
        return bytes(content[:size])


class Disk:
    """A folder on that disk."""

    def __init__(self, folder, chance):
        self.folder = folder
        self.chance = chance
        files = [path for path in folder.iterdir() if path.is_file()] if folder.exists() else []
        self.names = {str(path): File(path.read_bytes()) for path in files}
        self.durable_names = dict(self.names)
        self.pending = []  # the states of the folder since its last sync
        self.counts = {}

    def replay(self, journal):
        for kind, name, offset, data in records(journal):
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.apply(kind, name, offset, data)

    def apply(self, kind, name, offset, data):
        if name.rstrip("/") == str(self.folder):
            self.sync_folder(failed=kind == "F")
            return
        if kind in "CULR":
            self.change_names(kind, name, data.decode())
            return
        file = self.names.get(name)
        if file is None:
            return  # Deleted while it was open: no name leads to it after the cut.
        if kind == "W":
            if data:
                file.write(offset, data, self.chance)
        elif kind == "T":
            file.truncate(offset)
        elif kind == "S":
            file.sync()
        elif kind == "F":
            file.fail_sync(self.chance)

    def change_names(self, kind, name, target):
        if kind == "C":
            self.names[name] = File()
        elif kind == "U":
            self.names.pop(name, None)
        elif name in self.names:
            self.names[target] = self.names[name]
            if kind == "R":
                del self.names[name]
        self.pending.append(dict(self.names))

    def sync_folder(self, failed):
        if failed and self.chance.random() < 0.5:
            return
        self.durable_names = dict(self.names)
        self.pending = []

    def cut(self, fraction=None):
        """Leaves in the folder what survives, and returns a description of it.

        `fraction` is the part of the dirty sectors that survives; without it, it is random.
        """
        if fraction is None:
            fraction = self.chance.choice([0, 0.05, 0.5, 0.95, 1])
        names = self.surviving_names()
        for path in list(self.folder.iterdir()):
            if path.is_file():
                path.unlink()
        contents = {}
        for name, file in sorted(names.items()):
            if name.endswith("-shm"):
                continue  # It only holds shared memory: SQLite creates it again.
            if id(file) not in contents:
                contents[id(file)] = file.after_cut(self.chance, fraction)
            path = self.folder / name.rsplit("/", 1)[1]
            path.write_bytes(contents[id(file)])
            path.chmod(0o600)
        return f"{fraction:.0%} of the dirty sectors survive, {len(self.pending)} changes of names were pending"

    def surviving_names(self):
        """The files by name after a cut: of the changes since the last sync of the folder, the first few survive."""
        states = [self.durable_names] + self.pending
        return states[self.chance.choice([0, len(states) - 1, self.chance.randrange(len(states))])]


def chance_for(*words):
    """Random numbers that depend only on these words."""
    return random.Random(":".join(map(str, words)))
