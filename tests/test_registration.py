"""The answer of registering: verdicts, words, and what a user can do."""

import pytest
from bank_parts import THING, RecordingRuntime, picture

from tenet.bank import ClassBank
from tenet.banks.registration import judge
from tenet.looks.sizes import SeenSize

SEEN = SeenSize((60, 60), (160, 120))


@pytest.mark.parametrize(
    ("ranks", "verdict"),
    [
        ([1, 1, 1, 1, 1], "good"),
        ([1, 2, 4, 4, 0], "good"),  # four of five seen, mean reciprocal rank .4
        ([5, 5, 5, 5, 5], "doubtful"),  # all seen, but late: .2
        ([1, 1, 1, 0, 0], "doubtful"),  # early, but only three of five
        ([1, 1, 0, 0, 0], "poor"),  # less than half
        ([10, 9, 10, 9, 10], "poor"),  # .11 or less
        ([101, 101, 101, 101, 200], "poor"),  # beyond the best hundred is not seen
        ([0], "poor"),
        ([100], "poor"),
        ([-1, -1, 1], "good"),  # bare crops do not count
        ([-1, -1], "unknown"),
        (None, "unknown"),
    ],
)
def test_verdicts(ranks: list[int] | None, verdict: str) -> None:
    answer = judge("red", ranks, [SEEN] * (5 if ranks is None else len(ranks)))
    assert answer.verdict == verdict
    assert verdict in str(answer) or verdict == "unknown"


def test_more_seen_is_never_worse() -> None:
    order = ["poor", "doubtful", "good"]
    for rank in (1, 3, 8, 50):
        found = [judge("x", [rank] * seen + [0] * (6 - seen), [SEEN] * 6).verdict for seen in range(7)]
        assert [order.index(one) for one in found] == sorted(order.index(one) for one in found)


def test_share_and_rank() -> None:
    answer = judge("red", [1, 4, 0, -1, 150], [SEEN] * 5)
    assert (answer.shots, answer.in_pictures, answer.covered) == (5, 4, 0.5)
    assert answer.mean_reciprocal_rank == pytest.approx((1 + 0.25) / 4)


def test_words_say_what_to_do() -> None:
    def said(ranks: list[int]) -> str:
        bank = ClassBank(RecordingRuntime(ranks=ranks))
        return str(bank.register("red", [(picture(seed=seed), THING) for seed in range(len(ranks))]))

    good, poor, doubtful = said([1, 2]), said([0, 90]), said([5, 5])
    assert (
        good
        == "red: 2 shots, good. The detector sees 2 of 2 in their own pictures (mean reciprocal rank 0.75)."
    )
    for text in (poor, doubtful):
        assert "larger pictures" in text.lower()
        assert "tighter boxes" in text
        assert "`tenet finetune`" in text
    assert "sees 1 of 2" in poor
    bare = str(ClassBank(RecordingRuntime()).register("red", picture()))
    assert bare.startswith("red: 1 shot, crops only, so whether the detector sees it cannot be checked.")
    assert bare.endswith("Whole pictures with a box work much better.")
    assert "work much better" not in good


def test_a_model_that_does_not_measure_it_says_so() -> None:
    """Pictures with boxes are no bare crops, whatever the model tells of them."""
    answer = judge("red", None, [SeenSize((60, 60), (640, 480)), SeenSize((60, 60))])
    assert (answer.in_pictures, answer.verdict, answer.covered) == (1, "unknown", None)
    assert "This model does not measure" in str(answer)


def test_small_things_are_noted() -> None:
    bank = ClassBank(RecordingRuntime())
    answer = bank.register("red", [(picture(width=4000, height=3000), (50, 40, 80, 70))])
    assert answer.notes == (
        "shot 0 is very small in its picture (7 px where it is looked for); "
        "cut out a part of the picture around it",
    )
    answer = bank.register("tiny", [picture()[:20, :60]])
    assert answer.notes == ("shot 0 has only 60 × 20 px; a sharper or larger one is better",)
    assert bank.register("fine", [(picture(), THING)]).notes == ()


def test_the_same_answer_later() -> None:
    bank = ClassBank(RecordingRuntime(ranks=[3, 0]))
    told = bank.register("red", [(picture(seed=seed), THING) for seed in range(2)])
    later = bank.registration("red")
    assert told.sentence() == later.sentence()
    assert (told.added, later.added) == (2, 0)
    assert later.to_json()["covered"] == 0.5
