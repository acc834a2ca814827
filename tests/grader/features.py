"""Features of PyTorch, NumPy and Python that a right solution may use, each in the first lines of a process.

`features.md` holds them: below a heading with a feature's name comes the code that uses it.
"""

import re
from pathlib import Path

PREAMBLE = """\
import math, torch
from torch import nn
import torch.nn.functional as F
x = torch.arange(12.).reshape(3, 4) / 7
"""
_SECTION = re.compile(r"^## (.+)\n```python\n((?:.*\n)*?)```$", re.MULTILINE)
FEATURES = dict(_SECTION.findall(Path(__file__).with_name("features.md").read_text(encoding="utf-8")))
