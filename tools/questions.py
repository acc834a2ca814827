"""Self-check questions of a page, which need no kernel: every choice opens its explanation.

    ```{question} Which axis does the softmax run over?
    - The queries.
      Then the weights of a key sum to one, and …
    + The keys.
      Each query shares one unit of weight among them.
    ```

`+` marks the right choice, `-` a wrong one; the indented lines below a choice explain it. In book and notebook a choice
is a `<details>` element, so that it works without scripts, by keyboard and by touch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.myst import Block, blocks, replaced

__all__ = ["Choice", "Question", "expand_questions", "questions"]


@dataclass(frozen=True)
class Choice:
    """An answer that a reader may choose, and what to say to it."""

    text: str
    right: bool
    explanation: str


@dataclass(frozen=True)
class Question:
    """A question with its choices, of which one is right."""

    text: str
    choices: tuple[Choice, ...]

    def myst(self) -> str:
        """The question as directives that the book knows and notebooks can show."""
        lines = ["::::{admonition} Check yourself", ":class: question", "", self.text, ""]
        for choice in self.choices:
            lines += [
                f":::{{dropdown}} {choice.text}",
                f":class-container: choice {'right' if choice.right else 'wrong'}",
                f"**{'Right.' if choice.right else 'No.'}** {choice.explanation}",
                ":::",
                "",
            ]
        return "\n".join([*lines[:-1], "::::"])


def questions(text: str) -> list[Question]:
    """The questions of a page's source.

    Raises:
        ValueError: a question has no text, fewer than three choices, not exactly one right choice, two choices with the
            same words, a choice with a link, or one without explanation.
    """
    return [_parsed(block) for block in blocks(text) if block.is_directive("question")]


def expand_questions(text: str) -> str:
    """The page with its questions as dropdowns."""
    return replaced(text, "question", lambda block: _parsed(block).myst())


def _parsed(block: Block) -> Question:
    text, choices = block.argument, []
    where = f"question {text!r}"
    for line in block.body.split("\n"):
        if head := re.match(r"([+-]) +(.+)$", line):
            choices.append((head[2].strip(), head[1] == "+", []))
        elif line.startswith("  ") and line.strip():
            if not choices:
                raise ValueError(f"{where}: an explanation stands before the first choice: {line.strip()!r}")
            choices[-1][2].append(line.strip())
        elif line.strip():
            raise ValueError(f"{where}: expected '+ choice', '- choice' or an indented explanation, got {line!r}")
    question = Question(text, tuple(Choice(said, right, "\n".join(why)) for said, right, why in choices))
    if not text:
        raise ValueError("a question has no text: write it behind ```{question}")
    if len(choices) < 3:
        raise ValueError(f"{where}: expected three choices or more, got {len(choices)}")
    if sum(choice.right for choice in question.choices) != 1:
        raise ValueError(f"{where}: expected one right choice, marked +, got {sum(c.right for c in question.choices)}")
    if len({choice.text for choice in question.choices}) < len(choices):
        raise ValueError(f"{where}: two choices say the same")
    for choice in question.choices:
        if re.search(r"\{\w+\}`|\]\(", choice.text):
            raise ValueError(
                f"{where}: the choice {choice.text!r} holds a link. A click on it would open two things: put it into "
                f"the explanation"
            )
        if not choice.explanation:
            raise ValueError(f"{where}: the choice {choice.text!r} has no explanation")
    return question
