"""A slow, strict and hostile HTTP/2 server: it answers out of order and late, resets streams, says goodbye, changes its
settings, sends data that nobody asked for, and floods the worker with frames."""

import asyncio
import json
import logging
import struct
import time
import urllib.parse

import network
from trial import Trial, pause
from verification import check_integrity, verify

GRANTS = network.GRANTS
SPAN = 6
MAXIMUM_MEBIBYTES = 96
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INTERNAL_ERROR, REFUSED_STREAM, CANCEL = 2, 7, 8
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
# The indexes of `:status` 200 and 400 in HPACK's static table. The headers of requests are not read.
STATUS = {200: b"\x88", 400: b"\x8c"}

template = network.template
# Writing to a connection that the worker has just closed is expected.
logging.getLogger("asyncio").setLevel(logging.ERROR)


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def setting(name, value):
    return frame(SETTINGS, payload=struct.pack(">HI", name, value))


class Exchange(asyncio.Protocol):
    """One connection. `google.habits` has the faults, each with its chance at every request."""

    def __init__(self, google):
        self.google = google
        self.data = b""
        self.bodies = {}  # the requests that are not complete
        self.open = {}  # the streams without an answer, with their account
        self.last = 2**31 - 1  # the last stream that is processed
        self.requests = 0

    def connection_made(self, transport):
        self.transport = transport
        self.write(setting(MAX_CONCURRENT_STREAMS, 100))

    def write(self, data):
        if not self.transport.is_closing():
            self.transport.write(data)

    def data_received(self, data):
        self.data += data
        if self.data.startswith(PREFACE):
            self.data = self.data[len(PREFACE):]
        while len(self.data) >= 9:
            length, kind, flags = int.from_bytes(self.data[:3]), self.data[3], self.data[4]
            stream = int.from_bytes(self.data[5:9])
            if len(self.data) < 9 + length:
                return
            payload, self.data = self.data[9:9 + length], self.data[9 + length:]
            self.take(kind, flags, stream, payload)

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.write(frame(SETTINGS, ACK))
        elif kind == PING and not flags & ACK:
            self.write(frame(PING, ACK, payload=payload))
        elif kind == HEADERS:
            self.bodies[stream] = b""
        elif kind == RST_STREAM:
            # The server works on: only its answer is dropped.
            self.bodies.pop(stream, None)
            self.open.pop(stream, None)
        elif kind == DATA and stream in self.bodies:
            self.bodies[stream] += payload
            if payload:
                self.write(frame(WINDOW_UPDATE, payload=struct.pack(">I", len(payload))))
            if flags & END_STREAM and stream <= self.last:
                self.take_request(stream, self.bodies.pop(stream))

    def take_request(self, stream, body):
        google = self.google
        self.requests += 1
        habits = [name for name, rate in google.habits.items() if google.chance.random() < rate]
        if "refused streams" in habits:
            self.write(frame(RST_STREAM, stream=stream, payload=struct.pack(">I", REFUSED_STREAM)))
            return
        status, members, account = google.answer(urllib.parse.parse_qs(body.decode()))
        self.open[stream] = account
        if account:
            account.open += 1
        delay = google.chance.uniform(16, 28) if "late answers" in habits else google.latency * google.chance.random()
        google.loop.call_later(delay, self.reply, stream, status, members, account, habits)
        for name in habits:
            google.faults += 1
            FAULTS.get(name, lambda one, stream: None)(self, stream)

    def reply(self, stream, status, members, account, habits):
        if account:
            account.open -= 1
        if self.open.pop(stream, None) is None and account:
            return
        if "resets" in habits:
            code = self.google.chance.choice([INTERNAL_ERROR, CANCEL])
            self.write(frame(RST_STREAM, stream=stream, payload=struct.pack(">I", code)))
        else:
            self.write(frame(HEADERS, END_HEADERS, stream, STATUS[status])
                       + frame(DATA, END_STREAM, stream, json.dumps(members).encode()))
        if self.last < 2**31 - 1 and not self.open:
            self.transport.close()

    def say_goodbye(self, stream):
        if self.requests % 3 == 0:
            self.last = min(self.last, stream)
            self.write(frame(GOAWAY, payload=struct.pack(">II", self.last, 0)))

    def change_settings(self, stream):
        streams = self.google.chance.choice([1, 1, 100])
        self.write(setting(MAX_CONCURRENT_STREAMS, streams) + setting(INITIAL_WINDOW_SIZE, 65_535 * streams))

    def send_strangers_data(self, stream):
        """Data with another user's tokens: for an older stream, a future one, or one without headers."""
        other = self.google.chance.choice(list(self.google.accounts.values()))
        body = json.dumps({"access_token": f"ya29.{other.name}-stray", "expires_in": 3599, "token_type": "Bearer",
                           "refresh_token": other.token(other.issued)}).encode()
        target = self.google.chance.choice([1, max(1, stream - 2), stream, stream + 2, stream + 1001, 2])
        self.write(frame(DATA, self.google.chance.choice([0, END_STREAM]), target, body))

    def flood(self, stream):
        count = 2_000
        self.write(self.google.chance.choice([
            frame(PING, payload=bytes(8)) * count,
            setting(MAX_CONCURRENT_STREAMS, 100) * count,
            frame(WINDOW_UPDATE, payload=struct.pack(">I", 1)) * count,
            frame(RST_STREAM, stream=stream, payload=struct.pack(">I", CANCEL)) * count,
            frame(DATA, stream=stream) * count,
            frame(HEADERS, stream=stream, payload=STATUS[200]) + frame(CONTINUATION, stream=stream) * count,
            frame(HEADERS, stream=stream, payload=STATUS[200])
            + frame(CONTINUATION, stream=stream, payload=b"\x00\x01a\x7f\x80\x7f" + b"v" * 255 + bytes(16_000)) * 64,
        ]))


FAULTS = {
    "goodbyes": Exchange.say_goodbye,
    "changed settings": Exchange.change_settings,
    "strangers' data": Exchange.send_strangers_data,
    "floods": Exchange.flood,
}


# The faults that lose no answer.
HARMLESS = {"refused streams", "goodbyes", "changed settings"}


def plan(chance, index):
    rates = {
        "refused streams": 0.05, "resets": 0.05, "goodbyes": 1, "changed settings": 0.1, "strangers' data": 0.02,
        "floods": 0.01,
    }
    habits = dict(chance.sample(list(rates.items()), chance.randrange(2, 5)))
    if index % 2:
        habits["late answers"] = 0.1
    return habits


def peak_mebibytes(worker):
    with open(f"/proc/{worker.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024


def trial(part, seed, index, base, template):
    with Trial(part, seed, index, base, template, lifetime=2, latency=0.3, certificate=base / "server.pem",
               http2=Exchange) as one:
        google = one.google
        habits = plan(one.chance, index)
        # If answers get lost, the server accepts the token before the newest one, so that no grant is lost.
        google.grace = not habits.keys() <= HARMLESS
        one.note(f"{', '.join(habits)}; {'with' if google.grace else 'without'} grace")
        worker = one.start()
        worker.wait_for(lambda: '"started"' in worker.text(), 30, "the worker starts")
        google.habits = habits
        pause(SPAN)
        google.habits = {}
        since = time.time()

        def fresh():
            return [name for name, account in google.accounts.items()
                    if any(granted and at > since for at, _, granted in list(account.uses))]

        # A request with an unknown outcome is repeated after half a minute or more.
        worker.wait_for(lambda: len(fresh()) == GRANTS, 150, "every grant is refreshed after the faults")
        peak = peak_mebibytes(worker)
        assert worker.stop() == 0, f"the worker stops in order; it wrote: {worker.output()}"
        counts = verify(one)
        assert google.refusals == 0, "the server refuses no token"
        assert peak <= MAXIMUM_MEBIBYTES, f"the worker needs at most {MAXIMUM_MEBIBYTES} MiB"
        check_integrity(one.database)
        return {**counts, "faults": google.faults}, [*one.notes, f"{peak} MiB"]
