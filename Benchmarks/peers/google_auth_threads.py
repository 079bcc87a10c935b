"""The usual Python client: google-auth over requests, in 32 threads.

    google_auth_threads.py URL CA-FILE COUNT
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import google.auth.transport.requests
import google.oauth2.credentials
import requests

url, ca_file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
THREADS = 32
# A value that is already set here would override the session's own setting.
os.environ["REQUESTS_CA_BUNDLE"] = ca_file
session = requests.Session()
session.mount("https://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=THREADS))
request = google.auth.transport.requests.Request(session)


def refresh(number):
    credentials = google.oauth2.credentials.Credentials(
        None, refresh_token=f"1//0{number:010d}-{'x' * 88}", token_uri=url, client_id="bench", client_secret="")
    credentials.refresh(request)
    assert credentials.token.startswith("ya29.a0")


with ThreadPoolExecutor(THREADS) as pool:
    for _ in pool.map(refresh, range(count)):
        pass
