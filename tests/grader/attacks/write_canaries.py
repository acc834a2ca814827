"""Writes canary files beside the scratch folder, in /tmp, /dev/shm and /var/tmp. Success: one of them exists."""


def softmax(scores, dim=-1):
    done = []
    for folder in ("..", "/tmp", "/dev/shm", "/var/tmp"):
        try:
            open(f"{folder}/course-lib-canary-written", "w").close()
            done.append(folder)
        except OSError:
            pass
    raise ValueError(f"wrote to {done}")
