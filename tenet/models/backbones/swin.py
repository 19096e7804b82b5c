"""Swin-B with windows of 7 and 12 (supplement A), through `transformers` (extra `[hf]`).

C4 is stage 3 (stride 16, 512 channels), C5 is stage 4 (1024). Patch merging belongs to the stage
before it in `transformers`, so our fifth stage starts with it. Weight files carry the names of
`transformers`' Swin models, with or without a classifier.
"""

from typing import Any

from torch import Tensor, nn

from tenet.errors import MissingExtraError
from tenet.models.backbones.base import Backbone


class SwinB(Backbone):
    """The four stages of `SwinBackbone`, run one by one."""

    channels = (256, 512, 1024)
    nonnegative = False
    other_weights = ("classifier.",)
    own_weights = ("hidden_states_norms.", "swin.layernorm.")

    def __init__(self, window: int, embed_dim: int = 128, depths: tuple[int, ...] = (2, 2, 18, 2)) -> None:
        super().__init__()
        try:
            from transformers import SwinBackbone, SwinConfig
        except ImportError as error:
            raise MissingExtraError("A Swin encoder", "hf") from error
        self.channels = (2 * embed_dim, 4 * embed_dim, 8 * embed_dim)
        settings: dict[str, Any] = {
            "image_size": 32 * window,
            "window_size": window,
            "embed_dim": embed_dim,
            "depths": list(depths),
            "num_heads": [embed_dim // 32 * 2**i for i in range(4)],
            "out_features": ["stage2", "stage3", "stage4"],
        }
        self.body: Any = SwinBackbone(SwinConfig(**settings))

    def to_c4(self, images: Tensor) -> tuple[Tensor, Tensor]:
        hidden, size = self.body.swin.embeddings(images)
        maps = []
        for layer in self.body.swin.encoder.layers[:3]:
            hidden, before_merging, _ = layer(
                hidden, size, always_partition=True, output_hidden_states_before_downsampling=True
            )
            maps.append(before_merging)
            size = ((size[0] + 1) // 2, (size[1] + 1) // 2)
        return self._normed("stage2", maps[1]), maps[2]

    def norm_c4(self, c4: Tensor) -> Tensor:
        return self._normed("stage3", c4)

    def stage5(self, c4: Tensor) -> Tensor:
        size = (c4.shape[2], c4.shape[3])
        merge = self.body.swin.encoder.layers[2].downsample
        hidden = merge(c4.flatten(2).transpose(1, 2).contiguous(), size)
        half = ((size[0] + 1) // 2, (size[1] + 1) // 2)
        _, c5, _ = self.body.swin.encoder.layers[3](hidden, half, always_partition=True)
        return self._normed("stage4", c5)

    def _normed(self, stage: str, x: Tensor) -> Tensor:
        normed: Tensor = self.body.hidden_states_norms[stage](x.permute(0, 2, 3, 1))
        return normed.permute(0, 3, 1, 2)

    def named_like_files(self) -> nn.Module:
        body: nn.Module = self.body
        return body

    def learning_stages(self) -> list[nn.Module]:
        return [self.body.swin.embeddings, *self.body.swin.encoder.layers]


def swin_b_7() -> SwinB:
    return SwinB(7)


def swin_b_12() -> SwinB:
    return SwinB(12)
