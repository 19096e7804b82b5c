"""The public names are listed once, and each of them is there."""

import pytest

import tenet


@pytest.mark.parametrize("name", tenet.__all__)
def test_public_name(name: str) -> None:
    assert getattr(tenet, name) is not None
    assert name in dir(tenet)


def test_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="build_detector"):
        tenet.nothing  # noqa: B018
