"""What a learner has done so far, in a file of the learner's own."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from course_kit._files import write_whole

__all__ = ["Progress", "progress_file"]

DRIVE = Path("/content/drive/MyDrive")  # where Colab mounts a learner's drive


def progress_file() -> tuple[Path, str]:
    """Where the progress is kept, and what the learner should know about that place ("" if nothing).

    `COURSE_LIB_PROGRESS` names another file.
    """
    if named := os.environ.get("COURSE_LIB_PROGRESS"):
        return Path(named).expanduser(), ""
    if "google.colab" in sys.modules:
        if DRIVE.is_dir():
            return DRIVE / "course_lib" / "progress.json", "Kept on your drive: it survives a restart of the runtime."
        note = (
            "Kept in this runtime only: Colab deletes it with the runtime. To keep it, mount your drive "
            "(`from google.colab import drive; drive.mount('/content/drive')`) before you check."
        )
        return Path.home() / ".course_lib" / "progress.json", note
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData/Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    return base / "course_lib" / "progress.json", ""


class Progress:
    """The progress file, read again before each change, so that two open notebooks do not overwrite each other's
    entries.

    A damaged file is set aside under another name, and one that cannot be written is reported once; neither stops a
    check.
    """

    def __init__(self, path: Path | None = None):
        self.path, self.note = (path, "") if path else progress_file()
        self.warning = ""

    def read(self) -> dict[str, dict[str, Any]]:
        """Name of each exercise that was touched: status, best score, number of checks, hints shown, date of the
        pass."""
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.warning = f"Your progress cannot be read ({error}); checks still work."
            return {}
        except ValueError:
            return self._set_aside()
        entries = stored.get("exercises") if isinstance(stored, dict) else None
        if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
            return self._set_aside()
        return entries

    def change(self, name: str, **changes: Any) -> None:
        """Update one exercise's entry and write the file, all of it or nothing."""
        entries = self.read()
        entries[name] = {**entries.get(name, {}), **changes}
        text = json.dumps({"version": 1, "exercises": entries}, indent=1, sort_keys=True) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, text)
        except OSError as error:
            self.warning = (
                f"Your progress cannot be written to {self.path} ({error.strerror or error}); checks still work."
            )

    def record(self, name: str, status: str, score: float) -> None:
        """Note a check: the best result counts, and a pass stays a pass."""
        old = self.read().get(name, {})
        before = _number(old.get("best"))
        changes: dict[str, Any] = {"checks": int(_number(old.get("checks"))) + 1, "best": max(before, round(score, 4))}
        changes["status"] = "passed" if "passed" in (status, old.get("status")) else status
        if status == "passed" and old.get("status") != "passed":
            changes["passed"] = datetime.now(timezone.utc).date().isoformat()
        self.change(name, **changes)

    def _set_aside(self) -> dict:
        number = 1
        while (aside := self.path.with_name(f"progress.damaged-{number}.json")).exists():
            number += 1
        try:
            os.replace(self.path, aside)
            self.warning = f"The progress file was damaged. It has been kept as {aside}; a new one is started."
        except OSError as error:
            self.warning = f"The progress file is damaged and cannot be moved ({error.strerror})."
        return {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
