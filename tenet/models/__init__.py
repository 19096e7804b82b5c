"""The detector, one file for each box of the paper's figure.

    encoder         Encoding Network (EN), over a backbone of `backbones/`
    neck            feature pyramid (beyond the paper)
    hop             HOP unit
    attention       RBF and softmax attention, transformer block
    rpn             TENET-RPN; `anchors`, `proposals`, `objectness` beside it
    box_quality     how well a box fits (beyond the paper)
    relation_head   Transformer Relation Head: Z-shot and Spatial-HOP; `multi_relation` is FSOD's
    cosine_prior    frozen features as a start (beyond the paper)
    losses          what training minimises
    sampling        which regions it learns from
    detector        all of it, in the order of the figure
    build           from a configuration to a detector

Shape letters, the same in every file: E query pictures, K classes (ways), Z shots, P proposals (the
paper's B), N positions of a map, S side of a region's map, d channels of the C4 map, 2d of the C5 map,
A anchors, T heads. Boxes are xyxy in pixels of the picture given to the network.
"""
