"""Free loopback ports for servers that tests start and start again.

A port from the kernel's ephemeral range may be taken by any outgoing connection while its server is down, and a server
that is restarted must come back under its old address. So ports are looked for below that range.
"""

from __future__ import annotations

import os
import socket

LOWEST, HIGHEST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """`count` different ports nobody listens on. Raises RuntimeError when the range holds fewer.

    The search starts at a place given by the process id, so that parallel test workers rarely meet; whoever starts a
    server must still be ready to find its port taken since.
    """
    size = HIGHEST - LOWEST
    start = os.getpid() * 67 % size
    held: list[socket.socket] = []
    try:
        for offset in range(size):
            if len(held) == count:
                break
            listener = _listener(LOWEST + (start + offset) % size)
            if listener is not None:
                held.append(listener)
        if len(held) < count:
            raise RuntimeError(f"fewer than {count} free loopback ports between {LOWEST} and {HIGHEST}")
        return [int(listener.getsockname()[1]) for listener in held]
    finally:
        for listener in held:
            listener.close()


def _listener(port: int) -> socket.socket | None:
    """A socket that holds the port, or None when somebody has it. All are held until the search ends."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(1)
    except OSError:
        listener.close()
        return None
    return listener
