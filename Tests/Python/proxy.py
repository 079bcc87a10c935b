"""The network between a worker and its database, and ways for it to fail."""

import select
import selectors
import socket
import struct
import threading

from ports import free_port


class Proxy(threading.Thread):
    """Forwards a TCP port to a unix socket or another port, and back, as long as `passes` allows.

    Blocked data is not read either: the sender gets no reaction, as behind an unplugged cable.
    """

    PIECE = 65_536

    def __init__(self, target, port=0):
        super().__init__(daemon=True)
        self.target = target if isinstance(target, int) else str(target)
        # A proxy that comes back needs its port again, which must not be a connection's by then.
        self.listener = socket.create_server(("127.0.0.1", port or free_port()))
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.others = {}  # each end of a connection and its other end
        self.clients = set()
        self.passes = {"requests", "answers"}
        self.lock = threading.Lock()
        self.ended = False
        self.failure = None
        self.start()

    def pass_only(self, *what):
        """From now on passes `requests`, `answers`, both, or nothing."""
        with self.lock:
            self.passes = set(what)

    def reset(self):
        """Ends every connection with a reset on both sides, also those that wait to be accepted."""
        with self.lock:
            for client in list(self.clients):
                self.end(client)
            while select.select([self.listener], [], [], 0)[0]:
                self.abort(self.listener.accept()[0])

    @staticmethod
    def abort(end):
        """If it is closed with a linger time of zero, a TCP socket sends a reset."""
        if end.family == socket.AF_INET:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()

    def close(self):
        self.ended = True
        self.join(10)
        assert not self.failure, "the proxy works"

    def run(self):
        try:
            while not self.ended:
                ready = self.selector.select(0.02)
                with self.lock:
                    blocked = False
                    for key, _ in ready:
                        blocked = self.serve(key.fileobj) or blocked
                if blocked:
                    # A blocked socket that is ready would be reported again at once.
                    threading.Event().wait(0.02)
            self.reset()
            self.listener.close()
        except Exception as error:  # reported by close()
            self.failure = error

    def serve(self, source):
        """Handles a ready socket; returns `True` if it has to wait."""
        if source is self.listener:
            if not self.passes:
                return True
            self.accept()
        elif source in self.others:
            if ("requests" if source in self.clients else "answers") not in self.passes:
                return True
            self.forward(source)
        return False

    def accept(self):
        client, _ = self.listener.accept()
        is_port = isinstance(self.target, int)
        server = socket.socket(socket.AF_INET if is_port else socket.AF_UNIX)
        try:
            server.connect(("127.0.0.1", self.target) if is_port else self.target)
        except OSError:
            server.close()
            client.close()
            return
        self.others[client], self.others[server] = server, client
        self.clients.add(client)
        for end in (client, server):
            self.selector.register(end, selectors.EVENT_READ)

    def forward(self, source):
        try:
            piece = source.recv(self.PIECE)
            if piece:
                self.others[source].sendall(piece)
                return
        except OSError:
            pass  # A reset end counts as closed.
        self.end(source)

    def end(self, one):
        for end in (one, self.others[one]):
            self.selector.unregister(end)
            del self.others[end]
            self.clients.discard(end)
            self.abort(end)
