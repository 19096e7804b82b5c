"""Examples of what goes over the wire, for the description; a test checks that they are right."""

from typing import Any

SHOT: dict[str, Any] = {
    "id": 1,
    "number": 0,
    "thing": [118.0, 140.0],
    "picture": [640, 480],
    "scene_box": [20.0, 31.0, 138.0, 171.0],
}
CLASS: dict[str, Any] = {
    "name": "pinecone",
    "colour": "#3cc3b4",
    "shots": [SHOT],
    "verdict": "good",
    "sentence": "pinecone: good",
    "notes": [],
    "added": 1,
}
HIT: dict[str, Any] = {
    "class": "pinecone",
    "score": 0.91,
    "box": [100.0, 120.0, 170.0, 180.0],
    "shot": 0,
    "shot_id": 1,
}
PICTURE: dict[str, Any] = {"name": "forest.jpg", "width": 640, "height": 480, "detections": [HIT]}
JOB: dict[str, Any] = {
    "id": "0123456789abcdef",
    "state": "waiting",
    "created": 1760000000.0,
    "total": 200,
    "done": 40,
    "failed": 1,
    "options": {"threshold": 0.25, "classes": ["pinecone"]},
}
FAILED: dict[str, Any] = {
    "name": "notes.png",
    "message": "notes.png: expected a picture, but it is not one",
}
CLASSES: dict[str, Any] = {"model": "tenet_pair", "threshold": 0.25, "total": 1, "classes": [CLASS]}
FOUND: dict[str, Any] = {
    "model": "tenet_pair",
    "threshold": 0.25,
    "classes": ["pinecone"],
    "pictures": [PICTURE],
    "failed": [],
}
_MAPS: dict[str, Any] = {"fo_ho": [[0.1, 0.2], [0.4, 1.0]], "spatial": [[0.0, 0.3], [0.5, 1.0]]}
EXPLAINED: dict[str, Any] = {
    "note": "",
    "threshold": 0.25,
    "below": False,
    "explained": [
        {
            **HIT,
            "shot_box": [10.0, 12.0, 118.0, 120.0],
            "cosines": [0.87],
            "region_maps": _MAPS,
            "shot_maps": _MAPS,
            "pairs": [{"region": 3, "shot": 3, "cosine": 0.91, "mutual": True}],
            "side": 2,
        }
    ],
}
EXPORT: dict[str, Any] = {
    "format": "csv",
    "threshold": 0.3,
    "classes": ["pinecone"],
    "pictures": [PICTURE],
}
RESULTS: dict[str, Any] = {"total": 2, "pictures": [PICTURE], "failed": [FAILED]}
COCO: dict[str, Any] = {
    "images": [{"id": 1, "file_name": "forest.jpg", "width": 640, "height": 480}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [100.0, 120.0, 70.0, 60.0], "score": 0.91}
    ],
    "categories": [{"id": 1, "name": "pinecone"}],
}
HEALTH: dict[str, Any] = {"status": "ok", "model": "tenet_pair", "version": "1.0.0", "left_out": 0}
ERROR: dict[str, Any] = {
    "error": {"code": "bad_input", "message": "red, shot 0: expected a picture, but it is not one"}
}
