"""A small faulty proxy in a process of its own: passes connections on, and drops all of them at a signal.

`python -m tests.chaos.proxy LISTENER PORT …`: pairs of an inherited listening socket's descriptor and the port that it
leads to. SIGUSR1 resets every open connection in the middle of whatever it carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import struct
import sys

READ_BYTES = 65536
# Closed with this, a socket is reset: what it had still to send is thrown away.
RESET = struct.pack("ii", 1, 0)


class Proxy:
    def __init__(self) -> None:
        self._open: set[asyncio.StreamWriter] = set()

    async def serve(self, descriptor: int, port: int) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                self._reset(writer)
                return
            self._open |= {writer, far_writer}
            await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))
            self._open -= {writer, far_writer}

        server = await asyncio.start_server(connected, sock=socket.socket(fileno=descriptor))
        async with server:
            await server.serve_forever()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(READ_BYTES):
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()

    def drop_all(self) -> None:
        for writer in list(self._open):
            self._reset(writer)

    def _reset(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()


async def _run(pairs: list[tuple[int, int]]) -> None:
    proxy = Proxy()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, proxy.drop_all)
    await asyncio.gather(*(proxy.serve(descriptor, port) for descriptor, port in pairs))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(_run(list(zip(numbers[::2], numbers[1::2], strict=True))))
