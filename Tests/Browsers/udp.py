"""What the kernel says of UDP sockets on this machine: what waits in them, and what found no room."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class UDPSocket:
    port: int
    #: Bytes that came and were not read yet, with the kernel's own share.
    waiting: int
    #: Datagrams that found no room, since the socket is there.
    dropped: int
    inode: int


def sockets() -> list[UDPSocket]:
    found = []
    for table in ("udp", "udp6"):
        path = Path("/proc/net", table)
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            found.append(UDPSocket(
                port=int(fields[1].rpartition(":")[2], 16), waiting=int(fields[4].partition(":")[2], 16),
                dropped=int(fields[12]), inode=int(fields[9])))
    return found


def waiting(port: int) -> int:
    """Bytes that whoever listens on this port has not read yet."""
    return sum(socket.waiting for socket in sockets() if socket.port == port)


def dropped() -> dict[int, int]:
    """Datagrams that found no room, by socket: a program that gets no processor does not read."""
    return {socket.inode: socket.dropped for socket in sockets()}
