"""A double of a customer's server: a real HTTP(S) server on loopback. It notes what it gets and answers as told."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Answer:
    """`before` is called when the request was read and noted, and before anything is answered."""

    status: int = 204
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], object] = lambda: None


class CustomersServer:
    """`answers` is what the next requests get, the last of them for ever; `received` is what came."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.received: list[Received] = []
        self.answers: list[Answer] = [Answer()]
        self._changed = threading.Condition()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = server._note(Received(self.path, headers, body))
                answer.before()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True  # whoever asked has left

            def log_message(self, *_words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True)
        self._thread.start()

    def _note(self, received: Received) -> Answer:
        with self._changed:
            self.received.append(received)
            self._changed.notify_all()
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait_for(self, count: int, *, timeout_s: float = 60) -> list[Received]:
        """All that came, once it is `count`."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.received) >= count, timeout_s), self.received
            return list(self.received)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def make_certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """A certificate for these names and addresses that signs itself, as a file to trust, and a server's context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "double of a customer")])
    now = datetime.now(UTC)
    alternatives: list[x509.GeneralName] = []
    for text in names:
        is_address = text.replace(".", "").isdigit() or ":" in text
        alternatives.append(x509.IPAddress(ip_address(text)) if is_address else x509.DNSName(text))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "double.pem", folder / "double.key"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return public, context
