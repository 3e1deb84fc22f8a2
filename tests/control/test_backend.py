"""What the control API asks of a proxy is what a proxy has."""

import inspect

from chaosproxy.control.backend import Backend
from chaosproxy.service import Service
from tests.control import asking


def asked():
    return [name for name in vars(Backend) if not name.startswith("_")]


def test_the_service_has_it_all():
    """Every method, taking what is given; what it takes besides need not be given."""
    assert len(asked()) >= 10
    for name in asked():
        if name in {"journal", "limits", "toxiproxy"}:
            continue  # attributes, made in __init__
        wanted = list(inspect.signature(getattr(Backend, name)).parameters)
        taken = list(inspect.signature(getattr(Service, name)).parameters.values())
        more = taken[len(wanted) :]
        assert [each.name for each in taken[: len(wanted)]] == wanted, name
        assert all(each.default is not inspect.Parameter.empty for each in more), name


def test_so_has_the_one_of_these_tests():
    """These tests ask what can be asked of the real one."""
    for name in asked():
        assert hasattr(asking.Backend(), name)
