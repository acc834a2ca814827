"""The table on the page for instructors."""

import pytest

from tools.exercise_figures import PAGE, table


@pytest.mark.thorough
def test_the_table_is_as_measured():
    assert table() in PAGE.read_text(encoding="utf-8"), "the table is old: make figures"
