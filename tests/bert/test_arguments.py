"""One wrong argument where an encoder is looked for and loaded: refused by name."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from wrong_arguments import Call, check_call

from course_kit.bert import available, find_encoder, load_encoder

from .conftest import MODELS, save_model

OUT = TemporaryDirectory()
with torch.random.fork_rng():
    FOLDER = str(save_model(MODELS["bert"](), Path(OUT.name)))

CALLS = {
    "find_encoder": Call(find_encoder, {"source": FOLDER}, called={"source": "source|encoder"}),
    "available": Call(available, {"source": FOLDER}, open={"source": "another text"}),
    "load_encoder": Call(load_encoder, {"source": FOLDER}, called={"source": "source|encoder"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_folder_is_found(name):
    assert CALLS[name].function(**CALLS[name].arguments)


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_refused_by_name(name, unchecked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_call(CALLS[name])
