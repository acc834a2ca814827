"""A fork that publishes gets its own links; without a publisher there are none."""

import subprocess

import pytest

from tools.publisher import find_publisher


@pytest.fixture
def checkout(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "_config.yml").write_text('repository:\n  url: ""\n')
    return tmp_path


def add_remote(checkout, url):
    subprocess.run(["git", "-C", str(checkout), "remote", "add", "origin", url], check=True)


def test_no_publisher_where_nobody_is_known(checkout):
    assert find_publisher(checkout, environ={}) is None


@pytest.mark.parametrize("url", ["/srv/mirror/course", "https://gitlab.com/ada/course", "https://notgithub.com/ada/x"])
def test_other_hosts_are_no_publisher(checkout, url):
    add_remote(checkout, url)
    assert find_publisher(checkout, environ={}) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/ada/the.course.git",
        "https://github.com/ada/the.course",
        "git@github.com:ada/the.course.git",
        "ssh://git@github.com/ada/the.course.git",
        "https://token@github.com/ada/the.course.git/",
    ],
)
def test_every_form_of_a_remote_is_understood(checkout, url):
    add_remote(checkout, url)
    publisher = find_publisher(checkout, environ={})
    assert publisher.repository_url == "https://github.com/ada/the.course"
    assert publisher.book_url == "https://ada.github.io/the.course/"


def test_environment_before_remote_before_config(checkout):
    (checkout / "_config.yml").write_text("repository:\n  url: https://github.com/from/config\n")
    assert find_publisher(checkout, environ={}).owner == "from"
    add_remote(checkout, "https://github.com/from-remote/course")
    assert find_publisher(checkout, environ={}).owner == "from-remote"
    environ = {"GITHUB_REPOSITORY": "from-environment/course", "GITHUB_SHA": "abc123"}
    publisher = find_publisher(checkout, environ=environ)
    assert publisher.owner == "from-environment"
    assert publisher.requirement() == "course_lib @ git+https://github.com/from-environment/course@abc123"


def test_addresses(checkout):
    publisher = find_publisher(checkout, environ={"GITHUB_REPOSITORY": "Ada/course", "GITHUB_SHA": "abc"})
    assert publisher.page_url("book/attention", "idea") == "https://ada.github.io/course/book/attention.html#idea"
    assert publisher.colab_url("book/attention") == (
        "https://colab.research.google.com/github/Ada/course/blob/notebooks/book/attention.ipynb"
    )


@pytest.mark.parametrize("repository", ["ada/ada.github.io", "Ada/ada.github.io", "ada/Ada.GitHub.io"])
def test_a_site_repository_is_published_at_its_root(checkout, repository):
    """Addresses do not distinguish capitals."""
    publisher = find_publisher(checkout, environ={"GITHUB_REPOSITORY": repository})
    assert publisher.book_url == "https://ada.github.io/"


def test_an_address_of_its_own_wins(checkout):
    (checkout / "_config.yml").write_text("html:\n  baseurl: https://attention.example.org\n")
    publisher = find_publisher(checkout, environ={"GITHUB_REPOSITORY": "ada/course"})
    assert publisher.book_url == "https://attention.example.org/"
