"""Python over HTTP/2: httpx, 64 requests at a time, no library for OAuth.

    httpx_tasks.py URL CA-FILE COUNT
"""

import asyncio
import ssl
import sys

import httpx

url, ca_file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


async def main():
    numbers = iter(range(count))
    context = ssl.create_default_context(cafile=ca_file)
    async with httpx.AsyncClient(http2=True, http1=False, verify=context, timeout=60) as client:

        async def work():
            for number in numbers:
                form = {"client_id": "bench", "grant_type": "refresh_token",
                        "refresh_token": f"1//0{number:010d}-{'x' * 88}"}
                answer = await client.post(url, data=form)
                assert answer.status_code == 200
                assert answer.json()["access_token"].startswith("ya29.a0")

        await asyncio.gather(*(work() for _ in range(64)))


asyncio.run(main())
