"""What a learner's progress file keeps from one check to the next."""

import json

from course_kit.checker.progress_file import Progress


def test_a_pass_keeps_its_date_and_the_best_score_at_later_checks(tmp_path):
    path = tmp_path / "progress.json"
    entry = {"status": "passed", "best": 1.0, "checks": 2, "passed": "2001-02-03"}
    path.write_text(json.dumps({"version": 1, "exercises": {"softmax": entry}}))
    progress = Progress(path)
    progress.record("softmax", "passed", 1.0)
    progress.record("softmax", "failed", 0.5)
    assert progress.read() == {"softmax": entry | {"checks": 4}}


def test_the_first_pass_is_dated(tmp_path):
    progress = Progress(tmp_path / "progress.json")
    progress.record("softmax", "failed", 0.25)
    assert progress.read() == {"softmax": {"status": "failed", "best": 0.25, "checks": 1}}
    progress.record("softmax", "passed", 1.0)
    assert progress.read()["softmax"].keys() == {"status", "best", "checks", "passed"}
