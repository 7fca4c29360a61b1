"""The checks of rooms.py on this repository."""
import pytest
import rooms

ROOT = rooms.repository()


@pytest.mark.parametrize(
    "check",
    [rooms.check_table, rooms.check_includes, rooms.check_sizes, rooms.check_banned,
     rooms.check_words, rooms.check_pages, rooms.check_rules_page],
    ids=lambda c: c.__name__,
)  # fmt: skip
def test_tree(check):
    wrong = check(ROOT)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "check",
    [rooms.check_places, rooms.check_links, rooms.check_format, rooms.check_tests],
    ids=lambda c: c.__name__,
)
def test_files(check):
    wrong = check(ROOT, rooms.tracked(ROOT))
    assert not wrong, "\n".join(wrong)
