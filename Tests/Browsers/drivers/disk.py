"""A disk that stops taking anything, or hangs, while a program runs: what the program asks of the kernel for files
below a folder is answered with an error, or not before its time.

A file system cannot be made read-only while files on it are open for writing, unless it fails by itself, and a container
may mount none. So the program runs under a filter of its system calls (seccomp, with notification of user space; Linux
5.5), which takes no rights: each call that would change a file waits for this process, which lets the kernel do it, or
has it fail as on a file system that is no longer what it was. The program is not changed, and sees nothing of it.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

#: Numbers of the calls, by machine.
X86_64 = {
    "write": 1, "pwrite64": 18, "writev": 20, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "rename": 82, "mkdir": 83,
    "rmdir": 84, "unlink": 87, "open": 2, "openat": 257, "mkdirat": 258, "unlinkat": 263, "renameat": 264,
    "fallocate": 285, "pwritev": 296, "renameat2": 316}
ARM64 = {
    "write": 64, "writev": 66, "pwrite64": 68, "pwritev": 70, "fsync": 82, "fdatasync": 83, "ftruncate": 46,
    "fallocate": 47, "openat": 56, "mkdirat": 34, "unlinkat": 35, "renameat": 38, "renameat2": 276}
#: What seccomp calls the machine (linux/audit.h), and its call `seccomp`.
MACHINES = {"x86_64": (0xC000003E, X86_64, 317), "aarch64": (0xC00000B7, ARM64, 277)}
AUDIT, CALLS, SECCOMP = MACHINES[platform.machine()]
NAMES = {number: name for name, number in CALLS.items()}

#: Calls that make or change what a file holds, and those after which it must be on the disk.
WRITES = {"write", "writev", "pwrite64", "pwritev", "ftruncate", "fallocate"}
SYNCS = {"fsync", "fdatasync"}
#: Which argument is a path, and which the folder that it counts from, if any.
PATHS = {
    "open": (0, None), "openat": (1, 0), "mkdir": (0, None), "mkdirat": (1, 0), "rmdir": (0, None), "unlink": (0, None),
    "unlinkat": (1, 0), "rename": (0, None), "renameat": (1, 0), "renameat2": (1, 0)}

#: linux/seccomp.h: a notice is 80 bytes, an answer 24.
NOTICE, ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
RECEIVE, SEND = 0xC0502100, 0xC0182101
CONTINUE = 1


def program() -> bytes:
    """What the kernel runs for each call (linux/bpf_common.h): only those that may concern a file come to us."""
    load, equal, any_of, greater, give = 0x20, 0x15, 0x45, 0x25, 0x06
    allow, notify = 0x7FFF0000, 0x7FC00000
    lines: list[tuple[int, int, int, int]] = [(load, 0, 0, 4), (equal, 1, 0, AUDIT), (give, 0, 0, allow), (load, 0, 0, 0)]

    def argument(number: int) -> int:
        """Where the lower half of an argument stands: these machines have it first."""
        return 16 + 8 * number

    for name, number in CALLS.items():
        body = [(give, 0, 0, notify)]
        if name == "write":
            # Not the log, nor what wakes a thread (eventfd takes eight bytes): they come all the time.
            body = [
                (load, 0, 0, argument(0)), (greater, 0, 3, 2), (load, 0, 0, argument(2)), (greater, 0, 1, 8), *body,
                (give, 0, 0, allow)]
        if name in ("open", "openat"):
            flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
            body = [(load, 0, 0, argument(2 if name == "openat" else 1)), (any_of, 0, 1, flags), *body, (give, 0, 0, allow)]
        lines += [(equal, 0, len(body), number), *body]
    lines.append((give, 0, 0, allow))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def listen() -> int:
    """Puts this process, and all that it becomes and starts, under the filter.

    - Returns: the descriptor by which the calls are told.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program())
    # struct sock_fprog: the length, in instructions, and where they are.
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(code.raw) // 8, ctypes.addressof(code)))
    set_no_new_privileges, install, new_listener = 38, 1, 8
    if libc.prctl(set_no_new_privileges, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    descriptor = libc.syscall(SECCOMP, install, new_listener, filter_)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(descriptor)


class Disk:
    """Where a program finds its files, as the test says; fine until then.

    The program is started by `command` with its own words after it; again after its end, as often as one likes.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = str(folder.resolve())
        self._meeting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A name without a file: paths may be longer than an address takes.
        self._meeting.bind(b"\0rostrum-disk-" + os.urandom(8).hex().encode())
        self._meeting.listen()
        self._lock = threading.Lock()
        #: What calls are answered with, by name; a call that is not here is the kernel's.
        self._errors: dict[str, int] = {}
        self._held: set[str] = set()
        #: How many seconds a sync takes longer than it would.
        self._delay = 0.0
        self._waiting: list[tuple[int, int]] = []
        #: How many calls failed, or were held, by name.
        self.refused: dict[str, int] = {}
        self._changed = threading.Condition(self._lock)
        threading.Thread(target=self._meet, daemon=True).start()

    @property
    def command(self) -> list[str]:
        return [sys.executable, __file__, self._meeting.getsockname()[1:].decode()]

    @contextmanager
    def failing(self, code: int, calls: set[str] | None = None) -> Iterator[None]:
        """These calls fail so meanwhile; all that would change anything, unless they are named."""
        with self._lock:
            self._errors = dict.fromkeys(calls or CALLS, code)
        try:
            yield
        finally:
            with self._lock:
                self._errors = {}

    def full(self) -> AbstractContextManager[None]:
        """No room is left meanwhile: files may go, and none may grow."""
        return self.failing(errno.ENOSPC, WRITES | {"mkdir", "mkdirat"})

    def read_only(self) -> AbstractContextManager[None]:
        """As after an error that has the kernel take nothing more (`errors=remount-ro`), also for files that are open."""
        return self.failing(errno.EROFS)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Nothing becomes durable meanwhile: whoever asks for it waits, and is answered afterwards."""
        with self._lock:
            self._held = set(SYNCS)
        try:
            yield
        finally:
            with self._lock:
                self._held = set()
                waiting, self._waiting = self._waiting, []
            for listener, number in waiting:
                self._answer(listener, number, 0)

    @contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """Each time that something is to become durable, that takes so much longer meanwhile."""
        with self._lock:
            self._delay = seconds
        try:
            yield
        finally:
            with self._lock:
                self._delay = 0.0

    def wait_for_refusal(self, seconds: float, *calls: str) -> None:
        """Until one of these failed, or was held, once more."""
        with self._changed:
            def count() -> int:
                return sum(self.refused.get(call, 0) for call in calls)
            before = count()
            assert self._changed.wait_for(lambda: count() > before, seconds), f"nothing asked for {calls}"

    def close(self) -> None:
        self._meeting.close()

    # What comes from the kernel.

    def _meet(self) -> None:
        while True:
            try:
                peer, _ = self._meeting.accept()
            except OSError:
                return
            with peer:
                _, ancillary, _, _ = peer.recvmsg(1, socket.CMSG_SPACE(4))
                listener = array.array("i", ancillary[0][2][:4])[0]
                threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
                peer.sendall(b"!")

    def _serve(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while True:
            events = poll.poll()
            if events and not events[0][1] & select.POLLIN:
                # All who were under the filter have ended.
                with self._lock:
                    self._waiting = [each for each in self._waiting if each[0] != listener]
                    os.close(listener)
                return
            notice = bytearray(NOTICE.size)
            try:
                fcntl.ioctl(listener, RECEIVE, notice)
            except OSError:
                # Its thread was killed meanwhile.
                continue
            number, thread, _, call, _, _, *arguments = NOTICE.unpack(notice)
            name = NAMES[call]
            with self._changed:
                code, is_held = self._errors.get(name, 0), name in self._held
                if (code or is_held) and self._concerns(thread, name, arguments):
                    self.refused[name] = self.refused.get(name, 0) + 1
                    self._changed.notify_all()
                    if is_held:
                        self._waiting.append((listener, number))
                        continue
                else:
                    code = 0
                delay = self._delay if name in SYNCS and self._delay and self._concerns(thread, name, arguments) else 0
            if delay:
                threading.Timer(delay, self._answer, (listener, number, code)).start()
            else:
                self._answer(listener, number, code)

    def _answer(self, listener: int, number: int, code: int) -> None:
        try:
            fcntl.ioctl(listener, SEND, ANSWER.pack(number, 0, -code, 0 if code else CONTINUE))
        except OSError:
            # It was killed meanwhile.
            pass

    def _concerns(self, thread: int, name: str, arguments: list[int]) -> bool:
        """Whether a call is about a file below the folder."""
        try:
            if name not in PATHS:
                path = os.readlink(f"/proc/{thread}/fd/{arguments[0]}")
            else:
                place, start = PATHS[name]
                path = self._text(thread, arguments[place])
                base = "cwd"
                if start is not None and (descriptor := ctypes.c_int(arguments[start] & 0xFFFFFFFF).value) >= 0:
                    base = f"fd/{descriptor}"
                if not path.startswith("/"):
                    path = os.path.join(os.readlink(f"/proc/{thread}/{base}"), path)
        except OSError:
            # It was killed meanwhile, or lets nobody look: the process that decodes, which has no files.
            return False
        return path == self.folder or path.startswith(self.folder + "/")

    @staticmethod
    def _text(thread: int, address: int) -> str:
        """What ends with a zero in somebody's memory."""
        with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
            text = b""
            while b"\0" not in text and len(text) < 4096:
                # Never over a page's end, beyond which there may be nothing.
                memory.seek(address + len(text))
                text += memory.read(4096 - (address + len(text)) % 4096)
        return os.fsdecode(text.split(b"\0", 1)[0])


def run(meeting: str, *command: str) -> None:
    """In the new process: goes under the filter, tells whoever decides, and becomes the program."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(b"\0" + meeting.encode())
        listener = listen()
        peer.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
        os.close(listener)
        # Not before somebody listens.
        peer.recv(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    run(*sys.argv[1:])
