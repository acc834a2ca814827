"""Dates and times as learning platforms write them."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta, timezone, tzinfo

__all__ = ["day_first", "moment_of", "plain_text"]

_MONTHS = (
    "january januar janvier enero",
    "february februar fevrier febrero",
    "march marz maerz mars marzo",
    "april avril abril",
    "may mai mayo",
    "june juni juin junio",
    "july juli juillet julio",
    "august aout agosto",
    "september septembre septiembre setiembre sept",
    "october oktober octobre octubre",
    "november novembre noviembre",
    "december dezember decembre diciembre",
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
# Short forms that mean one month in all of these languages.
_SHORT = "jan ene|feb fev|mar mrz|apr abr|may|jun|jul|aug ago|sep|oct okt|nov|dec dez dic"
_MONTH |= {name: number for number, names in enumerate(_SHORT.split("|"), 1) for name in names.split()}
# Hours ahead of UTC, of names that mean one zone only.
_ZONES = {"utc": 0, "gmt": 0, "z": 0, "est": -5, "edt": -4, "cdt": -5, "mdt": -6, "pst": -8, "pdt": -7}
_ZONES |= {"cet": 1, "cest": 2}

_CLOCK = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,]\d+)?)?\s*(?P<half>[ap]\.?m\.?)?"
_ZONE = r"\s*(?P<zone>[+-]\d{2}:?\d{2}|[a-z]{1,4})?"
_DATES = (
    r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?:t|\s+|,\s*)",  # 2026-11-30 23:59
    r"(?:[a-z]+\.?,?\s+)?(?P<day>\d{1,2})\.?\s+(?:de\s+)?(?P<name>[a-z]+)\.?\s+(?:de\s+)?(?P<year>\d{4}),?\s+",
    r"(?:[a-z]+\.?,?\s+)?(?P<name>[a-z]+)\.?\s+(?P<day>\d{1,2}),?\s+(?P<year>\d{4}),?\s+",  # Monday, November 30, 2026,
    r"(?P<one>\d{1,2})(?P<sign>[./-])(?P<two>\d{1,2})[./-](?P<year>\d{4}),?\s+",  # 30.11.2026, 11/30/2026
)
_FORMS = [re.compile(date + r"(?:at\s+|um\s+|a\s+)?" + _CLOCK + r"(?:\s*uhr)?" + _ZONE) for date in _DATES]


def plain_text(text: str) -> str:
    """Lower case without accents, with single ordinary spaces."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).split())


def moment_of(text: str, zone: tzinfo, *, first: str | None) -> datetime | None:
    """The moment that a text names, or None where it names none, or more than one.

    Args:
        text: such as "Monday, 30 November 2026, 11:59 PM".
        zone: that of texts that name none.
        first: "day" or "month", what 03/04/2026 begins with; None if that is not known.
    """
    for form in _FORMS:
        if (match := form.fullmatch(plain_text(text))) is None:
            continue
        found = match.groupdict()
        day, month = found.get("day"), found.get("month") or _MONTH.get(found.get("name") or "")
        if found.get("sign"):
            order = "day" if found["sign"] == "." else first  # dots are for days first
            if order is None and found["one"] != found["two"]:
                return None
            day, month = (found["one"], found["two"]) if order == "day" else (found["two"], found["one"])
        hour, half = int(found["hour"]), (found["half"] or "")[:1]
        if month is None or (half and not 1 <= hour <= 12):
            return None
        hour = hour % 12 + 12 * (half == "p") if half else hour
        ahead = _zone(found["zone"], zone)
        if ahead is None:
            return None
        try:
            second = int(found["second"] or 0)
            return datetime(int(found["year"]), int(month), int(day), hour, int(found["minute"]), second, tzinfo=ahead)
        except ValueError:
            return None
    return None


def _zone(name: str | None, otherwise: tzinfo) -> tzinfo | None:
    if not name:
        return otherwise
    if name in _ZONES:
        return timezone(timedelta(hours=_ZONES[name]))
    if match := re.fullmatch(r"([+-])(\d{2}):?(\d{2})", name):
        ahead = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-ahead if match[1] == "-" else ahead) if ahead < timedelta(hours=24) else None
    return None


def day_first(texts: list[str]) -> str | None:
    """Whether dates such as 03/04/2026 begin with the day or the month, where one of them shows it."""
    parts = [match for text in texts if (match := re.match(r"\s*(\d{1,2})[/-](\d{1,2})[/-]\d{4}", text))]
    if any(int(part[1]) > 12 for part in parts):
        return "day"
    return "month" if any(int(part[2]) > 12 for part in parts) else None
