"""Exception message in markdown, rich's markup and a format string. Success: the report, or the terminal,
shows it as its own.
"""

TEXT = "[bold green]passed[/bold green] [link=file:///etc/passwd]x[/link] ![x](javascript:1) {0.__class__} %s %n [/]"


def softmax(scores, dim=-1):
    raise ValueError(TEXT)


def causal_mask(length):
    raise ValueError("]]>" + TEXT + "<![CDATA[")
