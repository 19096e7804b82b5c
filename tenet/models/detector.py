"""TENET (Fig. 2): support crops and query pictures in, boxes of each class out.

`forward` is the figure from left to right. Inference goes by three calls, so that a class is encoded
once and a picture once for all classes: `encode_images`, `encode_supports`, `match`.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tenet.config import ModelConfig
from tenet.errors import ConfigError, InputError
from tenet.models.box_fit import OUTPUTS, correct, learn_boxes
from tenet.models.box_quality import DELTA_SCALES, BoxQualityHead, Refined, quality
from tenet.models.box_quality import Cells as QualityCells
from tenet.models.closed_form import Layout
from tenet.models.common_objectness import common_loss
from tenet.models.cosine_prior import CosinePrior
from tenet.models.encoder import EncodedImage, EncodingNetwork, Maps, RegionFeatures
from tenet.models.hop import HOP
from tenet.models.known_classes import KnownClasses, learn_names
from tenet.models.losses import label_regions, learn_quality, relation_loss, rpn_loss
from tenet.models.multi_relation import MultiRelationHead
from tenet.models.neck import PyramidNeck, SingleLevel
from tenet.models.objectness import Cells, fit_cells
from tenet.models.proposals import Filter, Proposals, Selection, best_proposals, score, select
from tenet.models.relation_head import Described, Relation, TransformerRelationHead
from tenet.models.rivals import ROWS, all_known, in_place_cosines, rows_of
from tenet.models.rpn import RPNOutput, TenetRPN, propose
from tenet.models.sampling import sample_proposals
from tenet.models.supports import SupportFeatures, Supports, most_alike
from tenet.models.targets import QueryTarget, check_targets
from tenet.ops import clip_boxes, decode_boxes
from tenet.structures import Detections

Losses = dict[str, Tensor]
BOX_PARTS = ("neck.", "rpn.conv.", "rpn.common.", "rpn.deltas.", "box_quality.")
"""Parameters that `box_losses` teach."""
UNDER_BOXES = (*BOX_PARTS, "encoder.adapt4.", "encoder.backbone.")
"""All parameters that boxes come from; relations share the last two."""


class Parts(NamedTuple):
    """The boxes of the figure, as `build_detector` makes them."""

    encoder: EncodingNetwork
    neck: SingleLevel | PyramidNeck
    rpn_hop: HOP
    head_hop: HOP
    rpn: TenetRPN
    box_quality: BoxQualityHead | None
    relation_head: TransformerRelationHead | MultiRelationHead | None
    cosine_prior: CosinePrior | None


class TENET(nn.Module):
    """The whole detector. With targets `forward` gives losses, without them detections."""

    def __init__(self, parts: Parts, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.neck, self.rpn_hop, self.head_hop = parts[:4]
        self.rpn, self.box_quality, self.relation_head, self.cosine_prior = parts[4:]

    def forward(
        self, images: list[Tensor], supports: Supports, targets: list[QueryTarget] | None = None
    ) -> tuple[list[Detections], Losses]:
        """E pictures (3, H, W) in 0…255, supports of K classes, and in training the pictures' objects.

        Returns what was found in each picture (nothing while training) and the losses (none otherwise).
        """
        encoded = self.encode_images(images)
        classes = self.encode_supports(supports)
        if targets is None:
            return self.match(encoded, classes), {}
        return [], self.losses(encoded, classes, targets)

    def match(self, images: list[EncodedImage], classes: SupportFeatures) -> list[Detections]:
        """Every class in every picture; boxes are xyxy in pixels of the pictures that were encoded."""
        classes.check(len(images), self.encoder.d, self.closed_form.lengths)
        if not images:
            return []
        output = self._search(images, classes)
        proposals = self._propose(output, images)
        proposals, placed = self._refine(images, proposals, classes)
        regions = self._describe(images, proposals.boxes)
        relation = self._relate(regions, classes)
        boxes = decode_boxes(relation.deltas, proposals.boxes, DELTA_SCALES) if placed is None else placed
        rivals = self._compare_in_place(relation.logits, images, proposals.boxes, regions.raw, classes)
        scores = score(relation.logits, proposals, self.config.head, rivals)
        shots = most_alike(regions.phi, classes)
        rule = Selection(self.config.score_threshold, self.config.nms, self.config.max_detections)
        return [select(boxes[e], scores[e], shots[e], one.maps.size, rule) for e, one in enumerate(images)]

    def losses(
        self, images: list[EncodedImage], classes: SupportFeatures, targets: list[QueryTarget]
    ) -> Losses:
        """The parts of the loss for pictures and classes that are encoded already."""
        check_targets(targets, len(images), classes.mask.shape[1])
        classes.check(len(images), self.encoder.d, self.closed_form.lengths)
        head = self.config.head
        output = self._search(images, classes)
        losses = self._learn_rpn(output, classes, targets)
        boxes, mask = self._sample(self._propose(output, images), targets)
        if self.box_quality is not None:
            boxes, quality_losses = self._learn_quality(images, (boxes, mask), targets)
            losses |= quality_losses
        relation = self._relate(self._describe(images, boxes), classes)
        labels = label_regions(
            boxes, mask, targets, relation.logits.shape[1], head.foreground_iou, exclusive=head.competing
        )
        losses |= relation_loss(
            relation.logits,
            relation.deltas,
            boxes,
            labels,
            hard_ratio=head.hard_ratio,
            competing=head.competing,
        )
        return losses

    def box_losses(
        self, images: list[EncodedImage], targets: list[QueryTarget], known: KnownClasses | None = None
    ) -> Losses:
        """The parts of the loss that need no shots: common objectness, boxes and box quality; with `known`
        also the names of the objects, whose `ways` are then rows of its means.
        """
        if not self.rpn.locates or self.box_quality is None:
            raise ConfigError(
                "train.learn: expected rpn.common and box_quality.enabled to learn boxes alone; "
                'set them, or train.learn = "all"'
            )
        output = self.rpn.locate([image.pyramid for image in images])
        regions = self._sample(self._propose(output, images), targets)
        losses = common_loss(output, targets) | self._learn_quality(images, regions, targets)[1]
        if known is None:
            return losses
        maps = [image.maps.raw5 for image in images]
        return losses | learn_names(known, self.encoder.last_means, maps, regions, targets)

    # Encoding ---------------------------------------------------------------------------------------

    def encode_images(self, images: list[Tensor]) -> list[EncodedImage]:
        """Query pictures (3, H, W) with values in 0…255, of any sizes."""
        return [self.add_pyramid(maps) for maps in self.encoder(images)]

    def add_pyramid(self, maps: Maps) -> EncodedImage:
        """Maps from the encoder, or from a cache, with the RPN's levels."""
        return EncodedImage(maps, self.neck(maps))

    def encode_supports(self, supports: Supports) -> SupportFeatures:
        """Support crops → features of classes."""
        if not isinstance(supports, Supports):
            raise InputError(
                f"supports: expected Supports(crops, boxes, rows), got {type(supports).__name__}"
            )
        supports.check()
        regions = [
            self.encoder.regions(maps, box.unsqueeze(0))
            for maps, box in zip(self.encoder(supports.crops), supports.boxes, strict=True)
        ]
        return self.group_shots(
            RegionFeatures(*(torch.cat(part) for part in zip(*regions, strict=True))), supports.rows
        )

    def group_shots(self, shots: RegionFeatures, rows: Tensor) -> SupportFeatures:
        """Features of M shots, by `rows` (E, K, Z) with −1 for none → features of classes."""
        mask, rows = rows >= 0, rows.clamp(min=0)
        local = shots.local.flatten(-2)
        psi_rpn, psi = self.rpn_hop(local), self.head_hop(local)
        return SupportFeatures(psi_rpn[rows], psi[rows], shots.phi[rows], shots.raw[rows], mask)

    def fit_objectness(
        self,
        images: list[EncodedImage],
        boxes: list[Tensor],
        classes: SupportFeatures,
        bare: bool = False,
        cells: list[Cells] | None = None,
    ) -> Tensor:
        """What one class teaches in closed form, (w,), by pictures that show it at boxes (G, 4) each: the
        parts of `tenet.models.closed_form`. `bare`: without surroundings; training pictures' cells are the
        negatives, and objectness is all that is learned. `cells`: of the pictures, where known.
        """
        if not self.rpn.closed_form:
            raise ConfigError("closed-form objectness is off; set rpn.closed_form = true")
        if not images or len(boxes) != len(images) or any(len(own) == 0 for own in boxes):
            raise InputError(f"pictures: expected at least one box each, got {len(images)} and {len(boxes)}")
        cells = cells or [self.cells(image, classes) for image in images]
        objectness = fit_cells(cells, boxes, self.rpn.background, bare)
        return objectness if bare else torch.cat([objectness, self.learn_in_place(images, boxes)])

    @torch.no_grad()
    def learn_in_place(self, images: list[EncodedImage], boxes: list[Tensor]) -> Tensor:
        """The parts after objectness of what one class teaches, flat: the box fit, and how it looks."""
        layout, parts = self.closed_form, []
        if layout.box_fit:
            assert self.box_quality is not None
            pictures = [(image.pyramid, image.maps.size) for image in images]
            parts.append(learn_boxes(self.box_quality, pictures, boxes).flatten())
        if layout.in_place:
            shots = [self.encoder.place(image.maps, own) for image, own in zip(images, boxes, strict=True)]
            whole = [self.encoder.place(image.maps) for image in images]
            parts.append(rows_of(torch.cat(shots), torch.cat(whole)).flatten())
        return torch.cat([boxes[0].new_zeros(0), *parts])

    @torch.no_grad()
    def cells(self, image: EncodedImage, classes: SupportFeatures) -> Cells:
        """What the RPN says of a picture for the first class, or for all in common, anchor by anchor."""
        if self.rpn.locates:
            output = self.rpn.locate([image.pyramid])
        else:
            output = self.rpn([image.pyramid], classes.psi_rpn[:1, :1], classes.mask[:1, :1], None)
        anchors_per_cell = output.logits.shape[-1] // output.cells.shape[2]
        each = output.cells[0, 0].repeat_interleave(anchors_per_cell, 0)
        features = torch.cat([each, output.logits[0, 0].unsqueeze(-1)], -1)
        boxes = clip_boxes(decode_boxes(output.deltas[0, 0], output.anchors), image.maps.size)
        return Cells(features, boxes)

    def describe(self, image: EncodedImage, boxes: Tensor) -> Described:
        """Regions (n, 4) of a picture as the relation head sees them: phi (n, 2d, S, S), ψ (n, d)."""
        regions = self._describe([image], boxes[None, None])
        return Described(regions.phi[0, 0], regions.local[0, 0])

    # Stages of the figure ---------------------------------------------------------------------------

    def _search(self, images: list[EncodedImage], classes: SupportFeatures) -> RPNOutput:
        weights = self.closed_form.take_apart(classes.closed_form).objectness
        found: RPNOutput = self.rpn(
            [image.pyramid for image in images], classes.psi_rpn, classes.mask, weights
        )
        return found

    def _propose(self, output: RPNOutput, images: list[EncodedImage]) -> Proposals:
        rpn = self.config.rpn
        stage = 0 if self.training else 1
        crowd = 0 if self.training else rpn.crowd
        rule = Filter(rpn.pre_nms[stage], rpn.post_nms[stage], rpn.nms, rpn.min_size, crowd)
        return propose(
            output, [image.maps.size for image in images], rule, self.config.head.regions == "union"
        )

    @property
    def _shares_regions(self) -> bool:
        """Whether all classes are compared with the same regions (K' = 1)."""
        return self.config.head.regions == "union" or self.config.rpn.conditioning == "none"

    def _refine(
        self, images: list[EncodedImage], proposals: Proposals, classes: SupportFeatures
    ) -> tuple[Proposals, Tensor | None]:
        """Each proposal moved by the box-quality head, with its value, and the best of them kept; then, where
        boxes are fitted, one pass more: quality (E, K, P) and boxes (E, K, P, 4) as each class corrects them.

        Boxes that are moved onto the same object lie on each other: after each pass they are thinned out, so
        that the next has fewer to look at.
        """
        head = self.box_quality
        if head is None:
            return self._thin(proposals), None
        maps = [head.prepare(image.pyramid) for image in images]
        for _ in range(head.passes):
            passes, lead = self._pass(head, images, maps, proposals), proposals.boxes.shape[1:3]
            moved = torch.stack([refined.boxes.unflatten(0, lead) for refined in passes])
            value = torch.stack([quality(refined).unflatten(0, lead) for refined in passes])
            proposals = self._thin(proposals._replace(boxes=moved, quality=value))
        if not self.config.box_quality.fitted:
            return proposals, None
        passes, lead = self._pass(head, images, maps, proposals), proposals.boxes.shape[1:3]
        weights = self.closed_form.take_apart(classes.closed_form).box_fit  # (E or 1, K, c + 1, 5)
        if weights is None:
            weights = classes.raw.new_zeros(1, classes.mask.shape[1], head.hidden + 1, OUTPUTS)
        placed = [
            correct(refined, weights[e % len(weights)], (lead[0], lead[1]), images[e].maps.size)
            for e, refined in enumerate(passes)
        ]
        boxes, value = (torch.stack(part) for part in zip(*placed, strict=True))
        moved = torch.stack([refined.boxes.unflatten(0, lead) for refined in passes])
        return proposals._replace(boxes=moved, quality=value), boxes

    @staticmethod
    def _pass(
        head: BoxQualityHead, images: list[EncodedImage], maps: list[QualityCells], proposals: Proposals
    ) -> list[Refined]:
        """One pass of the box-quality head over every picture's proposals."""
        return [
            head.refine(levels, own.flatten(0, 1), image.maps.size)
            for image, levels, own in zip(images, maps, proposals.boxes, strict=True)
        ]

    @property
    def closed_form(self) -> Layout:
        """Lengths of what a class teaches in closed form."""
        head, in_place = self.box_quality, self.config.head.in_place > 0 and self.cosine_prior is not None
        fitted = (head.hidden + 1) * OUTPUTS if head is not None and self.config.box_quality.fitted else 0
        place = (ROWS + 1) * sum(self.encoder.place_widths) if in_place else 0
        return Layout(objectness=self.rpn.cell_features + 1, box_fit=fitted, in_place=place)

    def _thin(self, proposals: Proposals) -> Proposals:
        """The proposals that are worth describing; where classes have their own, all."""
        if not (self.config.head.described and self._shares_regions):
            return proposals
        few = self.config.head.described * (1 if proposals.objectness.shape[1] == 1 else 2)
        return best_proposals(proposals, few, self.config.rpn.nms, self.config.rpn.crowd)

    def _describe(self, images: list[EncodedImage], boxes: Tensor) -> RegionFeatures:
        """Features of regions (E, K', P, 4): phi, ψ in the place of `local`, raw."""
        found = [
            self.encoder.regions(image.maps, own.flatten(0, 1))
            for image, own in zip(images, boxes, strict=True)
        ]
        phi, local, raw = (torch.stack(part) for part in zip(*found, strict=True))  # (E, K'·P, …)
        psi = self.head_hop(local.flatten(-2))
        lead = boxes.shape[1:3]
        return RegionFeatures(phi.unflatten(1, lead), psi.unflatten(1, lead), raw.unflatten(1, lead))

    def _relate(self, regions: RegionFeatures, classes: SupportFeatures) -> Relation:
        """Log-odds (E, K, P) and deltas (E, K, P, 4), from the relation head and the cosine prior."""
        prior = None
        if self.cosine_prior is not None:
            prior = self.cosine_prior(regions.raw, classes.raw, classes.mask)
        if self.relation_head is None:
            assert prior is not None
            return Relation(prior, prior.new_zeros(*prior.shape, 4))
        relation: Relation = self.relation_head(
            Described(regions.phi, regions.local), Described(classes.phi, classes.psi), classes.mask
        )
        if prior is None:
            return relation
        weight = 1.0 if self.training else self.config.head.relation_weight
        return relation._replace(logits=weight * relation.logits + prior)

    def _compare_in_place(
        self, logits: Tensor, images: list[EncodedImage], boxes: Tensor, raw: Tensor, classes: SupportFeatures
    ) -> Tensor | None:
        """Log-odds (E, K, P) as rivals compare them, of regions (E, 1, P, 4) that all classes share, with
        means (E, 1, P, c₅); None where they are the same."""
        head, prior = self.config.head, self.cosine_prior
        places = self.closed_form.take_apart(classes.closed_form).in_place
        if prior is None or not head.competing or logits.shape[1] < 2 or not all_known(places):
            return None
        scale = head.in_place * prior.log_scale.exp()
        there = in_place_cosines(
            raw.squeeze(1),
            partial(self._earlier_means, images, boxes) if head.earlier_maps else None,
            places,
            prior.get_buffer("centre"),
            self.encoder.place_widths,
            scale,
        )
        return logits + scale * (there - prior.cosine(raw, classes.raw, classes.mask))

    def _earlier_means(self, images: list[EncodedImage], boxes: Tensor) -> Tensor:
        means = self.encoder.earlier_means
        return torch.stack([means(image.maps, own[0]) for image, own in zip(images, boxes, strict=True)])

    # Training ---------------------------------------------------------------------------------------

    def _learn_rpn(self, output: RPNOutput, classes: SupportFeatures, targets: list[QueryTarget]) -> Losses:
        """The RPN's losses: of every class, and of what classes have in common."""
        rpn, judge = self.config.rpn, None
        if output.shared is not None:
            judge = partial(self.rpn.judge, output.shared, classes.psi_rpn, classes.mask)
        losses = rpn_loss(
            output,
            targets,
            batch=rpn.batch,
            positive_share=rpn.positive_share,
            iou=rpn.iou,
            negative_branch=rpn.negative_branch,
            class_agnostic=rpn.conditioning == "none",
            focal=rpn.loss == "focal",
            judge=judge,
        )
        return losses if output.common is None else losses | common_loss(output, targets)

    def _sample(self, proposals: Proposals, targets: list[QueryTarget]) -> tuple[Tensor, Tensor]:
        """Regions to learn from: (E, K', P, 4) and their mask."""
        head = self.config.head
        return sample_proposals(
            proposals,
            targets,
            shared=self._shares_regions,
            count=head.rois,
            share=head.foreground_share,
            iou=head.foreground_iou,
        )

    def _learn_quality(
        self, images: list[EncodedImage], regions: tuple[Tensor, Tensor], targets: list[QueryTarget]
    ) -> tuple[Tensor, Losses]:
        """The box-quality head's losses, and the regions as it moves them."""
        assert self.box_quality is not None
        pictures, jittered = (
            [(one.pyramid, one.maps.size) for one in images],
            self.config.box_quality.jittered,
        )
        return learn_quality(self.box_quality, pictures, regions, targets, jittered)
