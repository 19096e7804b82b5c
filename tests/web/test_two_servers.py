"""Several servers on one store: what one learns the others know at once."""

from collections.abc import Iterator

import pytest
from served import Served
from web_parts import BOX, file

from tenet.client import Client


@pytest.fixture
def pair(where: str) -> Iterator[tuple[Client, Client]]:
    running = [Served(where), Served(where)]
    try:
        yield Client(running[0].address), Client(running[1].address)
    finally:
        for served in running:
            served.kill()


def test_each_knows_what_the_other_was_taught(pair: tuple[Client, Client]) -> None:
    one, other = pair
    told = one.register("red", [(file("red"), BOX)])
    assert [(state.name, state.shots) for state in other.classes()] == [("red", told.shots)]
    assert other.detect(file("red", 1)).names.tolist() == ["red"]
    other.register("blue", [(file("blue"), BOX)])
    assert one.detect(file("blue", 1)).names.tolist() == ["blue"]
    more = other.register("red", [(file("red", 2), BOX)])
    assert one.classes()[0].shots == more.shots
    one.remove("red")
    assert [state.name for state in other.classes()] == ["blue"]
    assert len(other.detect(file("red", 1))) == 0
