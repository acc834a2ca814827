"""These tests belong to nbval's run (`make test-notebooks`), whose plugin makes the environment that they look at."""


def pytest_ignore_collect(config):
    return None if config.pluginmanager.has_plugin("tests.notebooks.from_the_wheel") else True
