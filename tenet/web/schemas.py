"""What goes over the wire, checked and described for OpenAPI. Boxes are [x1, y1, x2, y2] in pixels."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tenet.web import examples

Coordinate = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Box = Annotated[list[Coordinate], Field(min_length=4, max_length=4, examples=[[40.0, 30.0, 100.0, 90.0]])]
"""xyxy in pixels of the picture beside it."""
Name = Annotated[str, Field(min_length=1, max_length=100, examples=["pinecone"])]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Format = Literal["coco", "yolo", "voc", "csv"]


def _example(one: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [one]})


class Plain(BaseModel):
    """Settings of all: unknown fields are refused, aliases are for Python alone."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class ErrorText(Plain):
    """Why not."""

    code: str = Field(examples=["bad_input"])
    message: str = Field(examples=["red, shot 0: expected a picture, but it is not one"])


class Error(Plain):
    """Every answer that is no success."""

    model_config = _example(examples.ERROR)

    error: ErrorText


class ShotInfo(Plain):
    """A shot of a class."""

    id: int = Field(description="stays the same as long as the shot is there")
    number: int = Field(description="its place in the class, from 0, as detections tell it")
    thing: tuple[float, float] = Field(description="width and height in pixels of the picture it came with")
    picture: tuple[int, int] | None = Field(description="that picture's size; null: a bare crop")
    scene_box: list[float] | None = Field(description="xyxy in pixels of the kept scene; null: a bare crop")


class ClassInfo(Plain):
    """A class, and how well the detector knows it."""

    model_config = _example(examples.CLASS)

    name: Name
    colour: str = Field(description="of its boxes", examples=["#3cc3b4"])
    shots: list[ShotInfo]
    verdict: Literal["good", "doubtful", "poor", "unknown"]
    sentence: str = Field(description="the verdict in words, and what to do")
    notes: list[str] = Field(description="what could be better")
    added: int = Field(0, description="shots that were new in this request")


class ClassList(Plain):
    """A part of the classes, in the order in which they came."""

    model_config = _example(examples.CLASSES)

    model: str
    threshold: float = Field(description="the model's own, from which a detection is shown")
    total: int
    classes: list[ClassInfo]


class Renaming(Plain):
    """A new name for a class."""

    model_config = _example({"name": "pine cone"})

    name: Name


class Detection(Plain):
    """One thing that was found."""

    class_: Name = Field(alias="class")
    score: Score
    box: Box
    shot: int = Field(ge=0, description="the shot that matched best, from 0")
    shot_id: int | None = Field(None, description="the same shot by its id")


class PictureFound(Plain):
    """What was found in a picture, best first."""

    name: str = Field(max_length=300, examples=["forest.jpg"])
    width: int = Field(ge=1, le=1_000_000)
    height: int = Field(ge=1, le=1_000_000)
    detections: list[Detection] = Field(max_length=2000)


class PictureFailed(Plain):
    """A picture that could not be looked at."""

    name: str
    message: str


class Found(Plain):
    """What was found in the pictures of a request."""

    model_config = _example(examples.FOUND)

    model: str
    threshold: float
    classes: list[str]
    pictures: list[PictureFound]
    failed: list[PictureFailed]


class Pair(Plain):
    """Two positions that look alike, row by row from the upper left; `mutual`: each nearest to the other."""

    region: int
    shot: int
    cosine: float
    mutual: bool


class ExplainedDetection(Plain):
    """A detection with the network's reasons. Maps are rows of numbers from 0 to 1."""

    class_: Name = Field(alias="class")
    score: Score | None = Field(description="null for a box that was asked for and not found")
    box: Box
    shot: int = Field(ge=0, description="the shot that is most alike, from 0")
    shot_id: int | None = Field(None, description="the same shot by its id")
    shot_box: list[float] = Field(description="the thing, xyxy in pixels of the shot's thumbnail")
    cosines: list[float] = Field(description="how alike it is to each shot, -1 to 1")
    region_maps: dict[str, list[list[float]]] = Field(description="attention over the box")
    shot_maps: dict[str, list[list[float]]] = Field(description="attention over `shot_box`")
    pairs: list[Pair]
    side: int = Field(description="positions in a row of the maps that `pairs` count")


class Explained(Plain):
    """Why the best things were found."""

    model_config = _example(examples.EXPLAINED)

    note: str
    threshold: float
    below: bool | None = Field(
        description="nothing reaches the threshold: this is the best below it; null for a box asked for"
    )
    explained: list[ExplainedDetection]


class ExportRequest(Plain):
    """Results to be made into a file."""

    model_config = _example(examples.EXPORT)

    format: Format
    threshold: Score = 0.0
    classes: list[Name] = Field(max_length=20_000)
    pictures: list[PictureFound] = Field(max_length=5000)


class JobInfo(Plain):
    """A job and how far it is."""

    model_config = _example(examples.JOB)

    id: str
    state: Literal["loading", "waiting", "done"]
    created: float = Field(description="seconds since 1970")
    total: int
    done: int
    failed: int
    options: dict[str, Any]


class JobList(Plain):
    """The newest jobs."""

    model_config = _example({"jobs": [examples.JOB]})

    jobs: list[JobInfo]


class JobResults(Plain):
    """A part of what a job found so far."""

    model_config = _example(examples.RESULTS)

    total: int
    pictures: list[PictureFound]
    failed: list[PictureFailed]


class Imported(Plain):
    """What came in with a bank."""

    model_config = _example({"total": 1, "added": 1, "classes": [examples.CLASS]})

    total: int = Field(description="classes of the bank, each of them in the store now")
    added: int = Field(description="shots that were new")
    classes: list[ClassInfo] = Field(description="the classes, at most the first 1000")


class Health(Plain):
    """Whether the service works."""

    model_config = _example(examples.HEALTH)

    status: Literal["ok", "starting", "failed"]
    model: str
    version: str
    left_out: int = Field(0, description="classes that this model cannot encode; the log names them")


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "the request cannot be parsed"},
    401: {"model": Error, "description": "a token is needed"},
    403: {
        "model": Error,
        "description": "asked by another site's page, or by another name than this machine's",
    },
    404: {"model": Error, "description": "no such class, shot or job"},
    408: {"model": Error, "description": "the request took too long to arrive"},
    409: {"model": Error, "description": "another model's bank, or the class changed meanwhile"},
    413: {"model": Error, "description": "more than the service takes"},
    422: {"model": Error, "description": "bad input; the message says what was expected"},
    503: {"model": Error, "description": "busy; ask again after Retry-After seconds"},
    504: {"model": Error, "description": "took too long"},
}
