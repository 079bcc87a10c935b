"""The program is linked as distributions want it: its place is random, and its tables are read-only after the start."""

import struct

from harness import WORKER

SHARED_OBJECT = 3  # e_type of a program that the system can put anywhere
DYNAMIC, STACK, READ_ONLY_AFTER_START = 2, 0x6474E551, 0x6474E552
EXECUTABLE = 1
FLAGS, FLAGS_1, RPATH, RUNPATH = 30, 0x6FFFFFFB, 15, 29
BIND_NOW, NOW = 8, 1  # in FLAGS and FLAGS_1


def scenario(fixture):
    program = WORKER.read_bytes()
    assert program[:6] == b"\x7fELF\x02\x01", "the program is a 64-bit ELF file"
    kind, = struct.unpack_from("<H", program, 16)
    table, = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    # Of each segment: type, flags, offset, two addresses, and its size in the file.
    segments = [struct.unpack_from("<IIQQQQ", program, table + size * number) for number in range(count)]
    by_type = {segment[0]: segment for segment in segments}
    assert kind == SHARED_OBJECT, "the system can put the program anywhere"
    assert READ_ONLY_AFTER_START in by_type, "the tables of addresses are read-only after the start"
    assert not by_type[STACK][1] & EXECUTABLE, "the stack is not executable"
    _, _, offset, _, _, length = by_type[DYNAMIC]
    entries = dict(struct.iter_unpack("<QQ", program[offset:offset + length]))
    is_bound = entries.get(FLAGS, 0) & BIND_NOW or entries.get(FLAGS_1, 0) & NOW
    assert is_bound, "all addresses are found at the start"
    return ""
