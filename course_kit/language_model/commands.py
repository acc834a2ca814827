"""The command `course-lib generate`: a language model continues a text or answers a question."""

from __future__ import annotations

import argparse
import math
import sys

from course_kit.translator.commands import count

__all__ = ["COMMANDS", "add_commands"]

COMMANDS = ("generate",)


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the command to those of `course-lib`."""
    generate = commands.add_parser(
        "generate",
        help="let a language model answer a question or continue a text",
        description="Write what a language model answers, as it is generated, to standard output.",
    )
    generate.add_argument("prompt", metavar="PROMPT", help="a question, or with --raw any text")
    generate.add_argument(
        "--model",
        metavar="PATH",
        help="folder with config.json, model.safetensors and tokenizer.json, .gguf file, or a name (default: "
        "SmolLM2-135M-Instruct)",
    )
    form = generate.add_mutually_exclusive_group()
    form.add_argument("--chat", action="store_true", help="answer the question (default for models with a chat format)")
    form.add_argument("--raw", action="store_true", help="continue the text as it is")
    generate.add_argument(
        "--temperature", type=_number(0.0, 100.0), default=0.0, metavar="T", help="0 is greedy (default: 0)"
    )
    generate.add_argument(
        "--top-p", type=_number(0.0, 1.0), default=1.0, metavar="P", help="draw from this much probability (default: 1)"
    )
    generate.add_argument("--max-tokens", type=count, default=200, metavar="N", help="at most N tokens (default: 200)")
    generate.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    generate.set_defaults(run=_generate)


def _number(low: float, high: float):
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a number between {low:g} and {high:g}, got {text!r}")
        return value

    return number


def _generate(options: argparse.Namespace) -> int:
    from course_kit._checks import check_seed
    from course_kit.language_model import load_language_model
    from course_kit.language_model.finding import DEFAULT

    check_seed(options.seed)
    if not options.prompt.strip():
        raise ValueError("expected a question or a text, got an empty one: put it in quotation marks")
    writer = load_language_model(options.model or DEFAULT)
    is_chat = options.chat or (writer.chat.is_known and not options.raw)
    prompt = writer.chat_prompt(options.prompt) if is_chat else options.prompt
    draws = {"temperature": options.temperature, "top_p": options.top_p, "seed": options.seed}
    if not is_chat:
        print(options.prompt, end="", flush=True)
    for piece in writer.generate(prompt, options.max_tokens, **draws):
        print(piece, end="", flush=True)
    sys.stdout.write("\n")
    return 0
