"""The best case of Python over HTTP/1.1: aiohttp on uvloop, 64 requests at a time, no library for OAuth.

    aiohttp_tasks.py URL CA-FILE COUNT
"""

import asyncio
import ssl
import sys

import aiohttp
import uvloop

url, ca_file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


async def main():
    numbers = iter(range(count))
    connector = aiohttp.TCPConnector(limit=64, ssl=ssl.create_default_context(cafile=ca_file))
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work():
            for number in numbers:
                form = {"client_id": "bench", "grant_type": "refresh_token",
                        "refresh_token": f"1//0{number:010d}-{'x' * 88}"}
                async with session.post(url, data=form) as answer:
                    assert answer.status == 200
                    assert (await answer.json())["access_token"].startswith("ya29.a0")

        await asyncio.gather(*(work() for _ in range(64)))


uvloop.run(main())
