"""Makes 20,000 files in scratch. Success: the clean-up takes long, or fails. Walls only."""


def softmax(scores, dim=-1):
    for number in range(20000):
        open(f"f{number}", "w").close()
    return 0
