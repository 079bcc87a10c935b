"""Certificates of a temporary authority, and a listener over TLS."""

import http.client
import ssl
import subprocess

from accounts import Listener

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Issues certificates into a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "authority.pem"
        self.key = folder / "authority.key"
        openssl(
            "req", "-x509", *NEW_KEY, "-days", "2", "-subj", "/CN=Authority", "-keyout", self.key, "-out", self.file
        )

    def issue(self, name, days=2, to=None, host="localhost"):
        """Puts a certificate for `host`, and its key, into `to`.pem and `to`.key; with negative days it has expired."""
        to = to or name
        request, names = self.folder / f"{to}.csr", self.folder / f"{to}.ext"
        names.write_text(f"subjectAltName=DNS:{host},IP:127.0.0.1\n")
        key, new = self.folder / f"{to}.key", self.folder / f"{to}.pem"
        openssl("req", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        openssl(
            "x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-days", days,
            "-extfile", names, "-out", new,
        )
        key.chmod(0o600)
        return new, key

    def context(self):
        return ssl.create_default_context(cafile=self.file)


class TLSListener(Listener):
    """A listener on a port of this machine, whose certificate the authority must have signed."""

    def __init__(self, port, authority):
        super().__init__(port)
        self.context = authority.context()

    def connection(self):
        return http.client.HTTPSConnection("localhost", self.address, timeout=60, context=self.context)

    def certificate_name(self):
        """The name in the certificate of a new connection."""
        return self.name_shown(self.opened())

    def opened(self):
        connection = self.connection()
        connection.connect()
        return connection

    @staticmethod
    def name_shown(connection):
        return dict(entry[0] for entry in connection.sock.getpeercert()["subject"])["commonName"]
