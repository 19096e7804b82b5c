"""Looking for classes in pictures, and saying why."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Response, UploadFile
from starlette.concurrency import run_in_threadpool

from tenet.data.images import encode_png
from tenet.drawing.explain import Explained as Reasons
from tenet.errors import InputError, TenetError
from tenet.looks.request import asked_classes
from tenet.looks.views import check_size
from tenet.web.batching import Asked
from tenet.web.library import Snapshot
from tenet.web.looking import (
    checked_size,
    explain_answer,
    picture_answer,
    reasons_of,
    reasons_of_box,
)
from tenet.web.schemas import ERRORS, Explained, Found
from tenet.web.service import Served, Service
from tenet.web.uploads import Pictures, read_all, read_box

router = APIRouter(prefix="/v1", tags=["detect"], responses=ERRORS)
Picture = Annotated[UploadFile, File(description="a picture file")]
Classes = Annotated[
    list[str] | None, Form(description="only these classes; without it all", examples=[["pinecone"]])
]
Threshold = Annotated[float | None, Form(ge=0, le=1, description="least score; without it the model's own")]
Size = Annotated[
    str,
    Form(
        pattern=r"^(auto|thorough|once|original|[0-9]{2,4})$",
        description="auto, thorough, once, original, or the longer side in pixels",
    ),
]
Tiles = Annotated[bool, Form(description="whether a large picture with small things may be cut into tiles")]
Limit = Annotated[int, Form(ge=1, le=1000, description="most detections of a picture")]
Top = Annotated[int, Form(ge=1, le=10, description="how many detections to explain")]
BoxText = Annotated[str | None, Form(description="explain this box, x1,y1,x2,y2 in pixels, with one class")]


def asked_of(threshold: float | None, classes: list[str] | None, size: str, tiles: bool, limit: int) -> Asked:
    """How to look, from the fields of a form."""
    working: str | int = int(size) if size.isdecimal() else size
    check_size(working)
    return Asked(threshold, tuple(classes) if classes else None, working, tiles, limit)


@router.post("/detect")
async def detect(
    service: Served,
    pictures: Pictures,
    threshold: Threshold = None,
    classes: Classes = None,
    size: Size = "auto",
    tiles: Tiles = True,
    limit: Limit = 300,
) -> Found:
    """Look for the classes in one or several pictures. Boxes are xyxy in pixels of each picture.

    A picture that cannot be read is named in `failed`; if that is all of them, the answer is an error.
    """
    asked = asked_of(threshold, classes, size, tiles, limit)
    bank = await service.snapshot()
    asked_classes(bank.names, asked.classes)
    good, sizes, failed = [], [], []
    error: BaseException | None = None
    for name, file in await read_all(pictures, service.limits):
        try:
            sizes.append(checked_size(file, name, service.limits))
            good.append((name, file, sizes[-1][0] * sizes[-1][1]))
        except TenetError as wrong:
            error = wrong
            failed.append({"name": name, "message": str(wrong)})
    bank, found = await service.look(good, asked, bank) if good else (bank, [])
    answers = []
    for (name, _, _), shape, one in zip(good, sizes, found, strict=True):
        if isinstance(one, BaseException):
            error = one
            if not isinstance(one, TenetError):
                raise one
            failed.append({"name": name, "message": str(one)})
        else:
            answers.append(await run_in_threadpool(picture_answer, name, shape, one, bank))
    if error is not None and not answers:
        raise error
    least = service.model.runtime.threshold if threshold is None else threshold
    return Found.model_validate(
        {
            "model": service.model.name,
            "threshold": least,
            # Of the classes that were looked for, which may be others than those at the beginning.
            "classes": asked_classes(bank.names, asked.classes),
            "pictures": answers,
            "failed": failed,
        }
    )


@router.post("/explain")
async def explain(
    service: Served,
    picture: Picture,
    top: Top = 1,
    threshold: Threshold = None,
    classes: Classes = None,
    box: BoxText = None,
) -> Explained:
    """Why the best things were found: attention maps, the shot that matched, positions that are alike."""
    bank, reasons = await _reasons(service, picture, top, threshold, classes, box)
    return Explained.model_validate(await run_in_threadpool(explain_answer, reasons, bank))


@router.post(
    "/explain/figure",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "the figure"}},
)
async def explain_figure(
    service: Served,
    picture: Picture,
    top: Top = 3,
    threshold: Threshold = None,
    classes: Classes = None,
    box: BoxText = None,
) -> Response:
    """The same as one picture, as `tenet explain` draws it."""
    _, reasons = await _reasons(service, picture, top, threshold, classes, box)
    png = await run_in_threadpool(lambda: encode_png(reasons.figure()))
    return Response(png, media_type="image/png")


async def _reasons(
    service: Service,
    picture: UploadFile,
    top: int,
    threshold: float | None,
    classes: list[str] | None,
    box: str | None,
) -> tuple[Snapshot, Reasons]:
    [(name, file)] = await read_all([picture], service.limits)
    shape = checked_size(file, name, service.limits)
    bank = await service.snapshot()
    asked = asked_classes(bank.names, classes or None)
    corners = None if box is None else read_box(box, "box")
    if corners is None:
        work = lambda: reasons_of(service.model, bank, file, top, threshold, asked)  # noqa: E731
        return bank, await service.call(work)
    if len(asked) != 1:
        raise InputError(f"classes: expected the one class that the box is compared with, got {len(asked)}")
    within = (
        max(0.0, corners[0]),
        max(0.0, corners[1]),
        min(shape[0], corners[2]),
        min(shape[1], corners[3]),
    )
    if not (within[2] - within[0] >= 1 and within[3] - within[1] >= 1):
        raise InputError(f"box: expected at least 1 x 1 px inside {shape[0]} x {shape[1]} px, got {box!r}")
    return bank, await service.call(lambda: reasons_of_box(service.model, bank, file, asked[0], within))
