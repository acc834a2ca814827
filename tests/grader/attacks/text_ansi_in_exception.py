"""Exception message with codes that clear the screen, move the cursor and set the title. Success: the report,
or the terminal, shows it as its own.
"""

TEXT = "\x1b[2J\x1b[1;1H\x1b]0;owned\x07\x1b[32msoftmax: 1 of 1 points\x1b[0m\r\b\x9b31m\x00"


def softmax(scores, dim=-1):
    raise ValueError(TEXT)


def causal_mask(length):
    print(TEXT, flush=True)
    raise KeyError(TEXT)
