"""Ports for the programs under test, which get them as a setting."""

import contextlib
import random
import socket

# Below those that the kernel gives to connections and to whoever asks for any (ip_local_port_range): between the choice
# of one of these and its use, another program of the same machine would often get it.
RANGE = range(10_000, 32_000)


def free_port(address="127.0.0.1"):
    while True:
        port = random.choice(RANGE)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return port
