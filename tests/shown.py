"""Numbers as views show them, with a true minus sign: read back, and written by Python's own formatting."""


def number_in(text: str) -> float:
    return float(text.replace("−", "-"))


def as_shown(x: float, digits: int = 3) -> str:
    return f"{x:.{digits}f}".replace("-", "−")
