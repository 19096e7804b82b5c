"""Whatever a person hands to a public function, the answer is a TenetError of one line, not torch's."""

import numpy as np
import pytest
import torch

from tenet.errors import TenetError
from tenet.ops import dense_tso, hotd, maxexp, nms, roi_align, sigme, tso_superdiagonal

PHI, MAP = torch.rand(2, 3, 4), torch.rand(1, 2, 4, 4)
BOX, ONE = torch.tensor([[0.0, 0, 9, 9]]), torch.ones(1)
NAN = float("nan")

CALLS = {
    "hotd numpy": lambda: hotd(np.ones((2, 3)), 2),
    "hotd weights of another batch": lambda: hotd(PHI, 2, weights=torch.ones(5, 4)),
    "hotd weights without axes": lambda: hotd(PHI, 2, weights=torch.tensor(1.0)),
    "hotd weights as a list": lambda: hotd(PHI, 2, weights=[1.0] * 4),
    "hotd negative weights": lambda: hotd(PHI, 2, weights=-torch.ones(4)),
    "hotd numpy mean": lambda: hotd(PHI, 2, mean=np.ones(3)),
    "tso numpy": lambda: tso_superdiagonal(np.ones((2, 3)), 2, 7),
    "tso None": lambda: tso_superdiagonal(None, 2, 7),
    "dense_tso numpy": lambda: dense_tso(np.eye(2), 2),
    "dense_tso a vector": lambda: dense_tso(torch.ones(3), 2),
    "maxexp numpy": lambda: maxexp(np.eye(2), 2),
    "sigme list": lambda: sigme([0.1], 20),
    "roi_align numpy map": lambda: roi_align(np.ones((1, 2, 4, 4)), [BOX], 7),
    "roi_align whole numbers": lambda: roi_align(MAP.long(), [BOX], 7),
    "roi_align empty map": lambda: roi_align(torch.rand(1, 2, 0, 4), [BOX], 7),
    "roi_align size 0": lambda: roi_align(MAP, [BOX], 0),
    "roi_align size 7.0": lambda: roi_align(MAP, [BOX], 7.0),
    "roi_align three sizes": lambda: roi_align(MAP, [BOX], (7, 7, 7)),
    "roi_align NaN scale": lambda: roi_align(MAP, [BOX], 7, NAN),
    "roi_align numpy boxes": lambda: roi_align(MAP, [BOX.numpy()], 7),
    "roi_align boxes None": lambda: roi_align(MAP, None, 7),
    "roi_align list of lists": lambda: roi_align(MAP, [[[0, 0, 9, 9]]], 7),
    "nms numpy scores": lambda: nms(BOX, np.ones(1), 0.5),
    "nms short groups": lambda: nms(BOX, ONE, 0.5, torch.zeros(2)),
    "nms list groups": lambda: nms(BOX, ONE, 0.5, [0]),
    "nms text threshold": lambda: nms(BOX, ONE, "0.5"),
    "nms NaN box": lambda: nms(BOX * NAN, ONE, 0.5),
    "nms NaN score": lambda: nms(BOX, ONE * NAN, 0.5),
    "nms negative limit": lambda: nms(BOX, ONE, 0.5, limit=-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_in_one_line(name: str) -> None:
    with pytest.raises(TenetError) as refused:
        CALLS[name]()
    assert "\n" not in str(refused.value)
    assert "expected" in str(refused.value)
