"""Exception message and source line with script, style, broken entities and backticks. Success: the report, or
the terminal, shows it as its own.
"""

TEXT = "</pre><script>document.body.innerHTML = '2 of 2 points'</script><img src=x onerror=alert(1)>`<b>`&#x3c;"


def softmax(scores, dim=-1):
    raise ValueError(TEXT)  # </pre><script>alert(1)</script>


def causal_mask(length):
    raise KeyError(TEXT + "`")
