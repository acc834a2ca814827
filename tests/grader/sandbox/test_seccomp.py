"""The seccomp filter: seen from inside, and its program call by call."""

import itertools
import os
import re
import struct
from pathlib import Path

import pytest
from sandboxes import found_in, problem_in

from course_grade.sandbox import seccomp
from course_grade.sandbox.seccomp import seccomp_program

FORBIDDEN = [
    *("os.fork()", "os.forkpty()", "subprocess.run(['true'])", "os.posix_spawn('/bin/true', ['true'], {})"),
    *("os.execv('/bin/true', ['true'])", "os.system('true') and os.fork()"),
    "multiprocessing.get_context('fork').Process(target=print).start()",
    "multiprocessing.get_context('spawn').Process(target=print).start()",
    *("os.kill(os.getppid(), 0)", "os.kill(os.getpid(), 9)", "signal.raise_signal(9)", "os.setsid()"),
    *("socket.socket()", "socket.socketpair()", "socket.create_connection(('127.0.0.1', 9))", "os.memfd_create('x')"),
    *("os.chmod('.', 0)", "os.chown('.', 0, 0)", "os.utime('.')", "os.fchmod(os.open('.', os.O_RDONLY), 0)"),
    *("os.setxattr('.', 'user.x', b'x')", "os.chroot('.')", "os.setpriority(os.PRIO_PROCESS, 0, 1)"),
    *("os.open('note', os.O_CREAT | os.O_WRONLY)", "open('note', 'w')", "open('/dev/null', 'r+b', buffering=0)"),
    *("os.truncate('/dev/null', 0)", "os.mkdir('folder')", "os.rename('a', 'b')", "os.remove('a')"),
    *("os.symlink('a', 'b')", "fcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())", "fcntl.fcntl(3, 10, 9)"),
    *("fcntl.fcntl(3, fcntl.F_SETFL, os.O_ASYNC)", "fcntl.ioctl(3, 0x5452, struct.pack('i', 1))"),
    *("fcntl.ioctl(3, 0x8901, struct.pack('i', os.getppid()))", "os.sched_setaffinity(os.getppid(), {0})"),
    "os.setpgid(0, 0)",
]


def test_what_a_solution_has_no_use_for_is_not_permitted(seccomp_only):
    imports = "import fcntl, multiprocessing, os, signal, socket, struct, subprocess"
    for code in FORBIDDEN:
        problem = problem_in(seccomp_only, f"{imports}\n{code}")
        assert problem, code
        assert problem.type == "PermissionError" or "not permitted" in problem.message, (code, problem)


def test_threads_are_permitted(full):
    threads = "import threading\nt = threading.Thread(target=lambda: done.append(1))\nt.start()\nt.join()"
    assert found_in(full, "done", f"done = []\n{threads}") == [1]


def test_reading_is_permitted_where_only_seccomp_stands(seccomp_only, neighbour):
    assert problem_in(seccomp_only, f"assert open({str(neighbour)!r}).read() == 'secret'") is None


class Call:
    """A system call as seccomp sees it."""

    def __init__(self, number, *arguments, architecture=0xC000003E):
        self.words = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))


def answer(program: bytes, call: Call) -> int:
    """Run a packet filter, as the kernel would: <linux/bpf_common.h>."""
    steps = list(struct.iter_unpack("HBBI", program))
    at, accumulator = 0, 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", call.words, value)
        elif code == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += then if holds else otherwise


MACHINES = [("x86_64", 0, 0xC000003E), ("aarch64", 1, 0xC00000B7), ("arm64", 1, 0xC00000B7)]
ALLOWED, REFUSED, NO_SUCH_CALL = 0x7FFF0000, 0x00050001, 0x00050026
HARMLESS = {"read": (0, 63), "write": (1, 64), "mmap": (9, 222), "futex": (202, 98), "exit_group": (231, 94)}


machines = pytest.mark.parametrize(("machine", "column", "architecture"), MACHINES)


@pytest.mark.parametrize("no_writing", [False, True])
@machines
def test_the_filter_answers_every_call_as_the_table_says(machine, column, architecture, no_writing):
    program = seccomp_program(machine, no_writing=no_writing)

    def asked(number, *arguments, architecture=architecture):
        return answer(program, Call(number, *arguments, architecture=architecture))

    allowed, refused = {**HARMLESS, **seccomp._CHANGES}, seccomp._CALLS
    if no_writing:
        allowed, refused = HARMLESS, {**refused, **seccomp._CHANGES}
    for expected, calls in ((REFUSED, refused), (ALLOWED, allowed)):
        for name, numbers in calls.items():
            assert numbers[column] is None or asked(numbers[column]) == expected, name
    clone, clone3 = seccomp._CLONE[column], seccomp._CLONE3[column]
    assert asked(clone, 0x11) == REFUSED  # SIGCHLD: a process
    assert asked(clone, 0x3D0F00) == ALLOWED  # what pthread_create asks for: a thread
    assert asked(clone3) == NO_SUCH_CALL
    assert asked(HARMLESS["read"][column], architecture=0x40000003) == REFUSED  # i386's numbers on this machine


@machines
def test_without_landlock_files_are_opened_for_reading_only(machine, column, architecture):
    opened = {0: [(257, 2), (2, 1)], 1: [(56, 2)]}[column]  # number, place of the flags among the arguments
    for (number, place), flags in itertools.product(opened, (0, 0o2000000, 1, 2, 0o100, 0o1000)):
        asked = Call(number, *[0] * place, flags, architecture=architecture)
        expected = REFUSED if flags & 0o1103 else ALLOWED
        assert answer(seccomp_program(machine, no_writing=True), asked) == expected
        assert answer(seccomp_program(machine, no_writing=False), asked) == ALLOWED


def test_the_second_set_of_numbers_of_x86_is_closed():
    program = seccomp_program("x86_64", no_writing=False)
    assert answer(program, Call(0x40000000 | 57)) == answer(program, Call(0x40000000)) == REFUSED


ARGUMENTS = {  # call: numbers, arguments, whether it is permitted, whether at the second try
    "F_GETFD": ((72, 25), (3, 1, 0), True, True),
    "F_SETFL, O_NONBLOCK": ((72, 25), (3, 4, 0o4000), True, True),
    "F_SETFL, O_ASYNC": ((72, 25), (3, 4, 0o20000), False, False),
    "F_SETFL, O_ASYNC among others": ((72, 25), (3, 4, 0o24002), False, False),
    "F_SETOWN": ((72, 25), (3, 8, 1), False, False),
    "F_SETSIG": ((72, 25), (3, 10, 9), False, False),
    "F_SETSIG, high bits set": ((72, 25), (3, 10 | 1 << 40, 9), False, False),
    "F_SETOWN_EX": ((72, 25), (3, 15, 0), False, False),
    "F_SETLEASE": ((72, 25), (3, 1024, 0), False, False),
    "F_NOTIFY": ((72, 25), (3, 1026, 1), False, False),
    "TCGETS": ((16, 29), (1, 0x5401, 0), True, True),
    "FIONREAD": ((16, 29), (1, 0x541B, 0), True, True),
    "FIOASYNC": ((16, 29), (3, 0x5452, 0), False, False),
    "FIOSETOWN": ((16, 29), (3, 0x8901, 0), False, False),
    "SIOCSPGRP": ((16, 29), (3, 0x8902 | 1 << 33, 0), False, False),
    "TIOCSTI": ((16, 29), (0, 0x5412, 0), False, False),
    "PR_SET_NAME": ((157, 167), (15, 0), True, True),
    "PR_SET_PDEATHSIG": ((157, 167), (1, 0), False, False),
    "its own affinity": ((203, 122), (0, 8, 0), True, True),
    "another's affinity": ((203, 122), (4711, 8, 0), False, True),
    "inotify_init1": ((294, 26), (0,), False, False),
    "setsid": ((112, 157), (), False, True),
    "ioprio_set": ((251, 30), (1, 0, 0), False, False),
}


@machines
def test_calls_are_refused_by_what_they_ask_for(machine, column, architecture):
    for no_writing, lenient in itertools.product((False, True), (False, True)):
        program = seccomp_program(machine, no_writing=no_writing, lenient=lenient)
        for kind, (numbers, arguments, permitted, at_second_try) in ARGUMENTS.items():
            found = answer(program, Call(numbers[column], *arguments, architecture=architecture))
            assert found == (ALLOWED if (at_second_try if lenient else permitted) else REFUSED), kind


def test_a_machine_without_a_table_has_no_filter():
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        seccomp_program("riscv64", no_writing=False)


HEADERS = [
    ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+)\s+(\d+)\s*$", 0),
    ("/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", 1),
]


@pytest.mark.parametrize(("header", "pattern", "column"), HEADERS, ids=["x86-64", "arm64"])
def test_the_numbers_of_calls_are_those_of_the_kernels_headers(header, pattern, column):
    if not os.path.exists(header):
        pytest.skip(f"no {header} here")
    known = {name: int(number) for name, number in re.findall(pattern, Path(header).read_text(), re.MULTILINE)}
    table = {**seccomp._CALLS, **seccomp._CHANGES, "clone": seccomp._CLONE, "clone3": seccomp._CLONE3}
    table |= {name: numbers for name, (numbers, _, _) in seccomp._VALUES.items()}
    table |= {"sched_setaffinity": seccomp._SETAFFINITY}
    table |= {name: [numbers[0] for numbers in machines] for name, machines in seccomp._OPENS.items()}
    told = {name: numbers[column] for name, numbers in table.items() if name in known}
    assert told == {name: known[name] for name in told}
    assert len(told) > 60
