"""A hub on this machine with both interfaces, that cuts connections and damages files on demand."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class LocalHub:
    """`files` by path. `cut_after` and `damaged` say what goes wrong, `asked` what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        # So many bytes of an answer are sent, then the connection is cut; for as many answers as `cuts`.
        self.cut_after = 0
        self.cuts = 0
        self.damaged: dict[str, int] = {}
        self.ranges = True
        self.status = 0
        self.listing: Any = None
        self.asked: list[tuple[str, str]] = []
        hub = self

        class Handler(_Handler):
            local_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    local_hub: LocalHub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/"):
            return self._send(json.dumps(self._listing(path)).encode())
        if "/resolve/" in path:
            # As the hubs do: large files lie elsewhere.
            self.send_response(302)
            self.send_header("Location", "/elsewhere/" + path.partition("/resolve/")[2].partition("/")[2])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        return self._file(path.removeprefix("/elsewhere/"))

    def _listing(self, path: str) -> Any:
        hub = self.local_hub
        if hub.listing is not None:
            return hub.listing
        if path.startswith("/api/v1/"):
            files = [
                {"Path": name, "Type": "blob", "Size": len(data), "Sha256": hashlib.sha256(data).hexdigest()}
                for name, data in hub.files.items()
            ]
            return {"Code": 200, "Data": {"Files": [{"Path": "CosyVoice-BlankEN", "Type": "tree"}, *files]}}
        return [
            {"type": "directory", "path": "CosyVoice-BlankEN"},
            *map(self._hugging_face, hub.files.items()),
        ]

    def _hugging_face(self, item: tuple[str, bytes]) -> dict[str, Any]:
        name, data = item
        listed: dict[str, Any] = {"type": "file", "path": name, "size": len(data)}
        listed["oid"] = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if len(data) > 1000:
            listed["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}
        return listed

    def _file(self, name: str) -> None:
        hub = self.local_hub
        asked = self.headers.get("Range") or ""
        hub.asked.append((name, asked))
        if hub.status:
            return self.send_error(hub.status)
        data = hub.files[name]
        if hub.damaged.get(name, 0):
            hub.damaged[name] -= 1
            data = b"?" * len(data)
        first = int(re.findall(r"\d+", asked)[0]) if asked and hub.ranges else 0
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        rest = data[first:]
        if hub.cuts and len(rest) > hub.cut_after:
            hub.cuts -= 1
            rest = rest[: hub.cut_after]
            self.close_connection = True
        self.wfile.write(rest)
        return None

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
