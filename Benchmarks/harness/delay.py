"""A proxy on loopback that delays every byte, in both directions, by a constant: a server on another machine.

It limits nothing else: what arrives while earlier bytes wait is delayed by the same time.
"""

import collections
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

from . import endpoint, measuring

CHUNK = 1 << 18


class Proxy:
    """A running proxy in a process of its own; `with Proxy(target, seconds) as proxy`."""

    def __init__(self, target, seconds):
        """`target` is the path of a Unix socket; `seconds` is the delay of each direction."""
        self.target, self.seconds = target, seconds
        self.port = endpoint.free_port()

    def __enter__(self):
        words = [sys.executable, "-m", "harness.delay", str(self.port), str(self.target), str(self.seconds)]
        self.process = subprocess.Popen(words, cwd=pathlib.Path(__file__).parent.parent, stdout=subprocess.PIPE)
        measuring.wait_for(self._answers, 10, "the proxy listens", pause=0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.round_trips = int(self.process.communicate()[0])

    def _answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Relay:
    """The loop of the proxy: one thread, and one queue, because all bytes wait for the same time."""

    def __init__(self, port, target, seconds):
        self.target, self.seconds = target, seconds
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.peers = {}
        self.waiting = collections.deque()
        self.unsent = {}
        self.clients = set()
        # The clients that have sent something since the server's last answer.
        self.asking = set()
        self.round_trips = 0

    def run(self):
        while True:
            pause = max(0, self.waiting[0][0] - time.monotonic()) if self.waiting else None
            # select takes a pause in microseconds, and not in whole milliseconds as epoll does.
            readable, writable, _ = select.select([self.listener, *self.peers], list(self.unsent), [], pause)
            for source in readable:
                if source is self.listener:
                    self.connect()
                elif source in self.peers:
                    self.read(source)
            for destination in writable:
                self.send(destination)
            now = time.monotonic()
            while self.waiting and self.waiting[0][0] <= now:
                _, destination, chunk = self.waiting.popleft()
                if destination.fileno() >= 0:
                    self.unsent.setdefault(destination, collections.deque()).append(chunk)
                    self.send(destination)

    def connect(self):
        client, _ = self.listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.target)
        except OSError:
            client.close()
            return
        for one, other in [(client, server), (server, client)]:
            one.setblocking(False)
            self.peers[one] = other
        self.clients.add(client)

    def read(self, source):
        try:
            chunk = source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self.count(source)
        self.waiting.append((time.monotonic() + self.seconds, self.peers[source], chunk))
        if not chunk:
            # The other direction may still deliver what the server has sent.
            del self.peers[source]

    def count(self, source):
        if source not in self.clients:
            self.asking.discard(self.peers[source])
        elif source not in self.asking:
            self.asking.add(source)
            self.round_trips += 1

    def send(self, destination):
        chunks = self.unsent[destination]
        try:
            while chunks:
                if not chunks[0]:
                    raise ConnectionError
                sent = destination.send(chunks[0])
                chunks[0] = chunks[0][sent:]
                if not chunks[0]:
                    chunks.popleft()
        except BlockingIOError:
            return
        except OSError:
            self.peers.pop(destination, None)
            destination.close()
        del self.unsent[destination]


def main():
    relay = Relay(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))

    def end(*_):
        print(relay.round_trips, flush=True)
        sys.exit()

    signal.signal(signal.SIGTERM, end)
    relay.run()


if __name__ == "__main__":
    main()
