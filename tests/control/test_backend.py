"""What the control API asks of a proxy is what a proxy has."""

import inspect

from chaosproxy.control.backend import Backend
from chaosproxy.service import Service
from tests.control import asking


def asked():
    return [name for name in vars(Backend) if not name.startswith("_")]


def test_the_service_has_it_all():
    """Every method, taking what is given."""
    assert len(asked()) >= 10
    for name in asked():
        if name in {"journal", "limits", "toxiproxy"}:
            continue  # attributes, made in __init__
        wanted = inspect.signature(getattr(Backend, name)).parameters
        assert list(inspect.signature(getattr(Service, name)).parameters) == list(wanted), name


def test_so_has_the_one_of_these_tests():
    """These tests ask what can be asked of the real one."""
    for name in asked():
        assert hasattr(asking.Backend(), name)
