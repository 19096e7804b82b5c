"""What the Encoding Network asks of a backbone."""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tenet.errors import WeightsError

PAD_MULTIPLE = 32
"""Pictures are padded at the right and bottom to a multiple of this, so that every stride divides them."""


class Stages(NamedTuple):
    """A backbone's own maps of a batch of pictures: what a feature cache holds.

    c3 (E, ·, H/8, W/8), c4 (E, ·, H/16, W/16), c5 (E, ·, H/16 or H/32, …); c5 is None where only
    single regions pass the last stage.
    """

    c3: Tensor
    c4: Tensor
    c5: Tensor | None


class Backbone(nn.Module):
    """A backbone says what it is in class attributes, and gives its maps in two steps."""

    channels: tuple[int, int, int]
    """Channels of c3, c4, c5."""
    c5_stride: int = 32
    fuse_c5: bool = False
    """Whether the detector's C4 map takes in c5 as well: where c4 alone is not semantic enough."""
    nonnegative: bool = True
    """Whether c4 and c5 come out of a ReLU (odd tensor orders need it)."""
    scales: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Typical magnitude of c3, c4, c5, divided out before maps are mixed."""
    shifts: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How far, in pixels, what the cells of c3, c4, c5 see lies right of and below (i + ½)·stride."""
    other_weights: tuple[str, ...] = ("fc.",)
    """Names in a weight file that the backbone does without: its classifier."""
    own_weights: tuple[str, ...] = ()
    """Names that a weight file may lack, because only detection needs them."""
    mean: tuple[float, float, float] = (123.675, 116.28, 103.53)
    std: tuple[float, float, float] = (58.395, 57.12, 57.375)
    """Normalisation of RGB values in 0…255."""

    def to_c4(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Normalised (E, 3, H, W), H and W multiples of 32 → c3 and c4."""
        raise NotImplementedError

    def stage5(self, c4: Tensor) -> Tensor:
        """c4 of a picture, or c4-like maps of single regions → c5."""
        raise NotImplementedError

    def norm_c4(self, c4: Tensor) -> Tensor:
        """c4 as the detector reads it; backbones whose stages end without a norm add it here."""
        return c4

    def learning_stages(self) -> list[nn.Module]:
        """Stem and stages in order, for freezing from the front."""
        raise NotImplementedError

    def load(self, path: str) -> None:
        """Take the weights of a file, by the names that this kind of network usually has."""
        load_into(self.named_like_files(), load_tensors(path), self.other_weights, self.own_weights, path)

    def named_like_files(self) -> nn.Module:
        """The module whose names a weight file has."""
        return self

    def drop_classifier(self) -> None:
        """Leave what detection does without, if the network was made with it."""

    def freeze(self, stages: int | None) -> None:
        """Keep the stem and the first `stages` stages as they are; None keeps everything."""
        if stages is None:
            self.requires_grad_(False)
            return
        for part in self.learning_stages()[: stages + 1]:
            part.requires_grad_(False)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.requires_grad_(False)

    def train(self, mode: bool = True) -> "Backbone":
        """BatchNorm stays frozen while training, as in the ancestor; a frozen network stays as it is."""
        super().train(mode and any(p.requires_grad for p in self.parameters()))
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self


def load_tensors(path: str | Path) -> dict[str, Tensor]:
    """Tensors of a .safetensors file, or of a .pth file read with `weights_only`: never unpickled."""
    path = Path(path)
    if not path.is_file():
        raise WeightsError(f"weights: expected a .safetensors or .pth file, found none at {path}")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(
            f"weights: {path} cannot be read as tensors ({type(error).__name__}: {error})"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise WeightsError(f"weights: expected {path} to hold a plain dict from name to tensor")
    return state


def load_into(
    module: nn.Module,
    state: dict[str, Tensor],
    other: tuple[str, ...],
    own_only: tuple[str, ...],
    source: str,
) -> None:
    """Load by name and shape. Names that start with `other` may be in the file alone, those that start with
    `own_only` in the module alone."""
    own = module.state_dict()
    counters = {name for name in own if name.endswith("num_batches_tracked")}
    missing = [
        n for n in own if n not in state and n not in counters and not n.startswith(own_only or ("\0",))
    ]
    extra = [n for n in state if n not in own and not n.startswith(other or ("\0",))]
    wrong = [name for name in own if name in state and own[name].shape != state[name].shape]
    for problem, names in (("lacks", missing), ("has unknown", extra), ("has another shape for", wrong)):
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise WeightsError(f"weights: {source} {problem} {shown}; give the weights of this very backbone")
    module.load_state_dict({name: state[name] for name in own if name in state}, strict=False)
