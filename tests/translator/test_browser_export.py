"""The translator's export: what is in the files, how large they are, and that stale ones are replaced."""

from exported_translator import files, weights
from safetensors.torch import load_file

from course_kit.translator import PRETRAINED
from tools.export_translator import STEPS, write
from tools.publisher import ROOT


def test_every_weight_is_within_half_a_step_of_its_own():
    source = load_file(PRETRAINED / "multi30k-de-en/weights.safetensors")
    assert source.keys() == weights().keys()
    for name, weight in source.items():
        half = weight.float().std(correction=0).item() / STEPS / 2
        assert (weights()[name] - weight.float()).abs().max() <= 1.001 * half, name


def test_weights_vocabulary_and_scripts_are_3_5_mb_at_most():
    scripts = sum(path.stat().st_size for path in (ROOT / "book/_static/translator").iterdir())
    assert sum(map(len, files().values())) + scripts < 3_500_000


def test_files_that_differ_from_the_weights_are_replaced(tmp_path):
    write(tmp_path)
    new = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert new == files()
    (tmp_path / "weights.bin").write_bytes(new["weights.bin"][:-1] + b"!")
    (tmp_path / "model.json").unlink()
    write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == new
