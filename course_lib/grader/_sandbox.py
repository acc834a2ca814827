"""What keeps a submission's process to itself. Probed on each machine, applied from the inside before its code is read.

None of this decides a verdict: that is computed in another process from the values that come back. The walls are
there so that a submission disturbs neither the grader, nor other submissions, nor the machine.

Linux system calls are made through ctypes, since Python has no names for them. Numbers: <linux/landlock.h>,
<linux/seccomp.h>, <linux/sched.h>, and the tables of system calls of x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["WALLS", "Limits", "Walls", "confine", "probe"]

# In the order in which they are put up. What each one does, for people.
WALLS = {
    "limits": "limits on memory, processor time, open files and file size",
    "user": "an unprivileged user (where the grader runs as root)",
    "namespaces": "its own processes and no network (Linux namespaces)",
    "landlock": "no files but Python's, to read, and a scratch folder (Landlock)",
    "seccomp": "no new processes, sockets or signals (seccomp)",
}
NOBODY = 65534


@dataclass(frozen=True)
class Limits:
    """What a submission may use up.

    Args:
        seconds: for one call.
        load_seconds: for reading its code, imports included.
        total_seconds: for the whole submission.
        memory_mb: on top of what PyTorch itself needs.
        output_mb: written to standard output or to one file.
    """

    seconds: float = 5.0
    load_seconds: float = 20.0
    total_seconds: float = 120.0
    memory_mb: int = 1024
    output_mb: int = 1


@dataclass(frozen=True)
class Walls:
    """The walls that stand on this machine."""

    up: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """One word: "full", "partial" or "process"; another user is one more wall where the others stand."""
        if {"limits", "namespaces", "landlock", "seccomp"} <= set(self.up):
            return "full"
        return "partial" if set(self.up) - {"limits"} else "process"

    def __str__(self) -> str:
        if self.level == "full":
            return f"full ({', '.join(self.up)})"
        lacking = "; ".join(f"{name}: {why}" for name, why in self.missing.items())
        rest = f"; not available: {lacking}" if lacking else ""
        return f"{self.level} ({', '.join(self.up) or 'a process of its own'}{rest})"


def probe(wanted: Iterable[str] = WALLS) -> Walls:
    """Try each wall in a process of its own and see which can be put up here.

    Args:
        wanted: names of walls; others are reported as switched off.
    """
    wanted = tuple(wanted)
    up, missing = [], {}
    scratch = tempfile.mkdtemp(prefix="course-lib-")
    os.chmod(scratch, 0o777)
    for name in WALLS:
        if name == "user" and (not hasattr(os, "geteuid") or os.geteuid() != 0):
            continue  # already unprivileged
        if name not in wanted:
            missing[name] = "switched off"
            continue
        # On top of those that stand already: one may take what the next one needs.
        why = _tried_in_child(lambda walls=(*up, name): confine(Walls(walls), Limits(), scratch))
        if why:
            missing[name] = why
        else:
            up.append(name)
    os.rmdir(scratch)
    return Walls(tuple(up), missing)


def confine(walls: Walls, limits: Limits, scratch: str | None, *, lenient: bool = False) -> None:
    """Put up all walls around the calling process, which becomes the first one of its own process namespace.

    With namespaces the caller forks: the outer process waits and ends as the inner one ends; only the inner one
    returns.

    Raises:
        OSError: a wall that could be put up when it was probed cannot be now; nothing must be run then.
    """
    lenient = lenient and "namespaces" in walls.up
    for name in walls.up:
        _put_up(name, limits, scratch, no_writing="landlock" not in walls.up, lenient=lenient)


def _put_up(name: str, limits: Limits, scratch: str | None, *, no_writing: bool, lenient: bool = False) -> None:
    {
        "limits": lambda: _limit(limits),
        "user": _become_nobody,
        "namespaces": lambda: _own_namespaces(scratch),
        "landlock": lambda: _landlock(scratch),
        "seccomp": lambda: _seccomp(no_writing=no_writing, lenient=lenient),
    }[name]()


def _tried_in_child(action: Callable[[], None]) -> str:
    """Why the action fails, or ""."""
    if not hasattr(os, "fork"):
        return "this system has no fork"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            action()
            for module in (sys.modules["torch"], os, sys.modules[__package__]):  # what is imported late stays readable
                with open(module.__file__, "rb") as file:
                    file.read(1)
            os.write(write, b"stands")
        except PermissionError as error:
            os.write(
                write,
                (error.strerror if error.filename is None else "that user could not read Python's own files").encode(),
            )
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode()[:300])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        why = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return "" if why == "stands" else why or "the trial process died of it"


# Limits


def _limit(limits: Limits) -> None:
    import resource

    def at_most(kind: int, value: int) -> None:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))

    at_most(resource.RLIMIT_CORE, 0)
    at_most(resource.RLIMIT_FSIZE, limits.output_mb * 2**20)
    at_most(resource.RLIMIT_NOFILE, 128)
    at_most(resource.RLIMIT_CPU, int(limits.total_seconds) + 5)
    if sys.platform.startswith("linux"):  # elsewhere address space is not counted this way
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        at_most(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.memory_mb * 2**20)
        at_most(resource.RLIMIT_NPROC, 4096)  # counts the whole user; forks are stopped by other walls


def _become_nobody() -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


# System calls

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _linux() -> ctypes.CDLL:
    if _LIBC is None:
        raise OSError(errno.ENOSYS, f"Linux only, not {sys.platform}")
    return _LIBC


def prctl(option: int, value: int) -> None:
    """Set a property of this process. Does nothing elsewhere than on Linux.

    Raises:
        OSError: the kernel refuses.
    """
    if _LIBC is not None:
        _checked(_LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def _own_namespaces(scratch: str | None) -> None:
    new_user, new_mounts, new_ipc, new_uts, new_net, new_pid = (
        0x10000000,
        0x20000,
        0x08000000,
        0x04000000,
        0x40000000,
        0x20000000,
    )
    libc, uid, gid = _linux(), os.geteuid(), os.getegid()
    prctl(PR_SET_DUMPABLE, 1)  # the maps below belong to root otherwise
    _checked(libc.unshare(new_user | new_mounts | new_ipc | new_uts | new_net | new_pid), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    if scratch:
        # A scratch folder of bounded size, seen by nobody else, gone with the process.
        flags = 2 | 4 | 8  # no set-user-id, no devices, no programs
        options = b"size=16m,nr_inodes=1000,mode=0777"
        _checked(libc.mount(b"tmpfs", scratch.encode(), b"tmpfs", ctypes.c_ulong(flags), options), "mount")
        os.chdir(scratch)
        if os.path.isdir("/dev/shm"):  # shared memory and locks of Python's and PyTorch's, for this process alone
            bound = libc.mount(scratch.encode(), b"/dev/shm", None, ctypes.c_ulong(0x1000), None)
            _checked(bound, "mount")
    inner = os.fork()
    if inner:
        _, status = os.waitpid(inner, 0)
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    prctl(PR_SET_PDEATHSIG, 9)  # the outer process ends: so does this one, and with it all of its namespace


# Landlock: a list of what may be touched in the file system; everything else is refused.

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_EXECUTE, _WRITE, _READ, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = 1, 2, 4, 8, 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_FILE, _TRUNCATE = 1 << 7, 1 << 8, 1 << 14
_SCRATCH = _WRITE | _READ | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _TRUNCATE


def _landlock(scratch: str | None) -> None:
    libc = _linux()
    version = _checked(libc.syscall(_CREATE_RULESET, None, 0, 1), "Landlock")
    handled = (1 << 13) - 1 if version == 1 else (1 << 14) - 1 if version == 2 else (1 << 15) - 1
    if version >= 5:
        handled |= 1 << 15  # ioctl on devices
    network = 3 if version >= 4 else 0  # bind and connect over TCP
    scoped = 3 if version >= 6 else 0  # abstract sockets and signals to processes outside
    attributes = struct.pack("QQQ", handled, network, scoped)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _checked(libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "landlock_create_ruleset")
    try:
        for path in _readable():
            _allow(rules, path, (_EXECUTE | _READ | _READ_DIR) & handled)
        _allow(rules, "/dev/null", (_READ | _WRITE) & handled)
        if scratch:
            # Plain files and folders only: no links out of it, no devices, no moves from folder to folder.
            _allow(rules, scratch, _SCRATCH & handled)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _checked(libc.syscall(_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def _readable() -> list[str]:
    own = [
        sys.prefix,
        sys.base_prefix,
        str(Path(__file__).parents[1]),
        *(p for p in sys.path if p.endswith("-packages")),
    ]
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero", "/sys/devices/system/cpu"]
    return [path for path in dict.fromkeys(own + system) if os.path.exists(path)]


def _allow(rules: int, path: str, access: int) -> None:
    if not os.path.isdir(path):
        access &= _EXECUTE | _READ | _WRITE
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", access, place)
        _checked(_linux().syscall(_ADD_RULE, rules, 1, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(place)


# Seccomp: system calls that a solution has no use for answer with "not permitted".

_CALLS = {  # name: number on x86-64, on arm64 (None where there is no such call)
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "io_uring_setup": (425, 425),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "mq_open": (240, 180),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    # Rights and times of files are outside of what Landlock looks after.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "setuid": (105, 146),
    "setresuid": (117, 147),
    "sched_setscheduler": (144, 119),
    "setpriority": (141, 140),
    "personality": (135, 92),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "open_by_handle_at": (304, 265),
    "prlimit64": (302, 261),
    "setrlimit": (160, 164),
}
# Permitted where code broke without them: they do not reach beyond a process in namespaces of its own.
_HARMLESS = {
    *("kill", "tkill", "tgkill", "socketpair", "memfd_create", "setpriority", "sched_setscheduler", "prlimit64"),
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "msgget", "msgsnd", "mq_open"),
}
# Where there is no Landlock, seccomp refuses everything that changes files, the scratch folder's too.
_CHANGES = {
    "creat": (85, None),
    "truncate": (76, 45),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
}
_OPENS = {
    "open": ((2, 24), (None, None)),
    "openat": ((257, 32), (56, 32)),
}  # number and place of the flags, each machine
_OPENAT2 = (437, 437)
_WRITING = 0x1 | 0x2 | 0x40 | 0x200  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_CLONE, _CLONE3 = (56, 220), (435, 435)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
_CLONE_THREAD = 0x10000
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS


def _seccomp(*, no_writing: bool, lenient: bool = False) -> None:
    program = seccomp_program(platform.machine(), no_writing=no_writing, lenient=lenient)
    libc = _linux()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    header = Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p).value)
    _checked(libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(header), 0, 0), "seccomp")


def seccomp_program(machine: str, *, no_writing: bool, lenient: bool = False) -> bytes:
    """The filter as instructions of the kernel's packet filter: compare the number of the call, jump to an answer.

    Args:
        machine: as `platform.machine()` names it.
        no_writing: refuse to open files for writing, too.
        lenient: leave out the calls that cannot reach beyond a process in namespaces of its own.

    Raises:
        OSError: the numbers of this machine's system calls are not in the table.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    column, architecture = _ARCHITECTURES[machine]
    load, equal, at_least, bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("HBBI", code, then, otherwise, value)

    program = [
        step(load, 4),  # the architecture
        step(equal, architecture, 1, 0),
        step(answer, _REFUSE),
        step(load, 0),  # the number of the call
    ]
    if column == 0:
        program += [step(at_least, 0x40000000, 0, 1), step(answer, _REFUSE)]  # the x32 way round the numbers
    program += [
        step(equal, _CLONE3[column], 0, 1),
        step(answer, _UNKNOWN),
    ]  # its flags lie in memory: use clone instead
    # clone makes threads, which are fine, or processes, which are not.
    program += [
        step(equal, _CLONE[column], 0, 4),
        step(load, 16),  # its first argument, the flags
        step(bit, _CLONE_THREAD, 1, 0),
        step(answer, _REFUSE),
        step(answer, _ALLOW),
    ]
    if no_writing:
        program += [step(equal, _OPENAT2[column], 0, 1), step(answer, _UNKNOWN)]
        for machines in _OPENS.values():
            number, place = machines[column]
            if number is not None:
                program += [step(equal, number, 0, 4), step(load, place), step(bit, _WRITING, 0, 1)]
                program += [step(answer, _REFUSE), step(answer, _ALLOW)]
    refused = {**_CALLS, **(_CHANGES if no_writing else {})}
    for name, numbers in refused.items():
        if lenient and name in _HARMLESS:
            continue
        if numbers[column] is not None:
            program += [step(equal, numbers[column], 0, 1), step(answer, _REFUSE)]
    program.append(step(answer, _ALLOW))
    return b"".join(program)
