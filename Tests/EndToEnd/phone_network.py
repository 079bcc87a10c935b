"""A phone's network: a proxy in front of the worker that delays, reorders, drops and holds messages."""

import asyncio
import random
import threading


class PhoneNetwork(threading.Thread):
    """Forwards each request to a port, and its answer back, each after a random delay of up to `jitter` seconds.

    Each request has its own connection, so requests and answers overtake each other. A fraction `cut` of the answers
    never arrives. Between `hold` and `release` all answers wait.
    """

    def __init__(self, target, seed):
        super().__init__(daemon=True)
        self.target = target
        self.random = random.Random(seed)
        self.jitter = 0.0
        self.cut = 0.0
        self.holds = False
        self.held = 0
        self.wanted = 0
        self.cuts = 0
        self.loop = asyncio.new_event_loop()
        self.are_held = threading.Event()
        self.released = asyncio.Event()
        self.listening = threading.Event()
        self.start()
        self.listening.wait(10)

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1000))
        self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        self.loop.run_forever()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join(10)

    def hold(self, count):
        """Holds answers back; `wait_held` waits until there are `count` of them."""
        self.released.clear()
        self.are_held.clear()
        self.wanted = self.held + count
        self.holds = True

    async def wait_held(self):
        if not await asyncio.to_thread(self.are_held.wait, 60):
            raise TimeoutError(f"{self.held} answers are held back, not {self.wanted}")

    def release(self):
        """Delivers the answers that were held back, and holds none from now on."""
        self.holds = False
        self.loop.call_soon_threadsafe(self.released.set)

    async def serve(self, client, answers):
        try:
            request = await read_message(client)
            await self.delay()
            server, requests = await asyncio.open_connection("127.0.0.1", self.target)
            requests.write(request)
            answer = await read_message(server)
            requests.close()
            if self.random.random() < self.cut:
                self.cuts += 1
                answers.transport.abort()
                return
            if self.holds:
                self.held += 1
                if self.held == self.wanted:
                    self.are_held.set()
                await self.released.wait()
            await self.delay()
            answers.write(answer)
            await answers.drain()
            answers.close()
        except (OSError, asyncio.IncompleteReadError):
            answers.transport.abort()

    async def delay(self):
        # A seeded schedule: the delays are the network that the scenario is about.
        await asyncio.sleep(self.random.random() * self.jitter)


async def read_message(stream):
    """One HTTP message with a Content-Length."""
    head = await stream.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return head + await stream.readexactly(int(value))
    return head


async def post(port, path, body):
    """Sends JSON and returns the status and the body; `None` if the answer is lost."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: worker\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        message = await read_message(reader)
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        return None
    head, _, content = message.partition(b"\r\n\r\n")
    return int(head.split()[1]), content
