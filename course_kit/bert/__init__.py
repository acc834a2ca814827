"""Trained encoders of the BERT family in the course's own blocks: find the weights, load them, tokenise, look inside.

    encoder = load_encoder("all-MiniLM-L6-v2")
    batch = encoder.tokenize(["time flies like an arrow"])
    encoder(batch).hidden  # (num_layers + 1, B, L, d_model)
    encoder.attention(batch)  # (num_layers, B, H, L, L)

`finding` says where weights are looked for, `config` and `checkpoint` read a Hugging Face style folder, `model` is the
encoder, made of the course's `EncoderLayer`, and `tokens` turns sentences into its input.
"""

from course_kit.bert.config import BertConfig
from course_kit.bert.finding import EncoderUnavailable, HubModel, available, find_encoder
from course_kit.bert.loading import load_encoder
from course_kit.bert.model import BertEncoder, EncoderOutput
from course_kit.bert.tokens import SentenceTokenizer, TokenBatch

__all__ = [
    "BertConfig",
    "BertEncoder",
    "EncoderOutput",
    "EncoderUnavailable",
    "HubModel",
    "SentenceTokenizer",
    "TokenBatch",
    "available",
    "find_encoder",
    "load_encoder",
]
