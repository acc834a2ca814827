"""Seccomp: system calls that a solution has no use for answer with "not permitted".

Numbers: <linux/seccomp.h>, and the tables of system calls of x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from course_grade.sandbox.linux import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, checked, linux, prctl

__all__ = ["seccomp", "seccomp_program"]

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
    # Calls that reach other processes of the same user, or use up what all of its processes share.
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "ioprio_set": (251, 30),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_mrelease": (448, 448),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
}
# Refused for some values of an argument: number on each machine, place of the argument, values. All are 32 bits wide
# for the kernel, which ignores the rest of the register; so does the filter.
_VALUES = {
    # Signals for a descriptor, sent by the kernel to a process of the caller's choice: F_SETOWN, F_SETSIG, F_SETOWN_EX,
    # F_SETLEASE, F_NOTIFY.
    "fcntl": ((72, 25), 1, (8, 10, 15, 1024, 1026)),
    # The same by ioctl: FIOASYNC, FIOSETOWN, SIOCSPGRP; typing into a terminal: TIOCSTI, TIOCLINUX.
    "ioctl": ((16, 29), 1, (0x5452, 0x8901, 0x8902, 0x5412, 0x541C)),
    "prctl": ((157, 167), 0, (1,)),  # PR_SET_PDEATHSIG: the process would outlive the fork server
}
_SETFL, _O_ASYNC = 4, 0x2000  # of fcntl: the last thing that is needed for such signals
_SETAFFINITY = (203, 122)  # of other processes than the caller
# Permitted where code broke without them: they do not reach beyond a process in namespaces of its own.
_HARMLESS = {
    *("kill", "tkill", "tgkill", "socketpair", "memfd_create", "setpriority", "sched_setscheduler", "prlimit64"),
    *("sched_setattr", "sched_setparam", "setsid", "setpgid"),
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


def seccomp(*, no_writing: bool, lenient: bool = False) -> None:
    """Put the filter around this process; see `seccomp_program` for the arguments.

    Raises:
        OSError: this kernel has no such filter, or it is not known for this machine.
    """
    program = seccomp_program(platform.machine(), no_writing=no_writing, lenient=lenient)
    libc = linux()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    header = Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p).value)
    checked(libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(header), 0, 0), "seccomp")


_LOAD, _EQUAL, _AT_LEAST, _BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


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
    step, load, equal, at_least, bit, answer = _step, _LOAD, _EQUAL, _AT_LEAST, _BIT, _ANSWER
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
    program += _for_arguments(column, lenient=lenient)
    refused = {**_CALLS, **(_CHANGES if no_writing else {})}
    for name, numbers in refused.items():
        if lenient and name in _HARMLESS:
            continue
        if numbers[column] is not None:
            program += [step(equal, numbers[column], 0, 1), step(answer, _REFUSE)]
    program.append(step(answer, _ALLOW))
    return b"".join(program)


def _for_arguments(column: int, *, lenient: bool) -> list[bytes]:
    """Steps that look at arguments; the number of the call is loaded before them, and after them where none fits."""
    program = []
    for name, (numbers, place, values) in _VALUES.items():
        steps = [_step(_LOAD, 16 + 8 * place)]
        for value in values:
            steps += [_step(_EQUAL, value, 0, 1), _step(_ANSWER, _REFUSE)]
        if name == "fcntl":
            steps += [_step(_EQUAL, _SETFL, 0, 3), _step(_LOAD, 16 + 8 * 2), _step(_BIT, _O_ASYNC, 0, 1)]
            steps += [_step(_ANSWER, _REFUSE)]
        steps += [_step(_ANSWER, _ALLOW)]
        program += [_step(_EQUAL, numbers[column], 0, len(steps)), *steps]
    if not lenient:
        steps = [_step(_LOAD, 16), _step(_EQUAL, 0, 1, 0), _step(_ANSWER, _REFUSE), _step(_ANSWER, _ALLOW)]
        program += [_step(_EQUAL, _SETAFFINITY[column], 0, len(steps)), *steps]
    return program
