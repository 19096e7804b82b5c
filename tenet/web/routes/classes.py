"""Classes and their shots."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from tenet.banks.registration import Registration
from tenet.errors import InputError
from tenet.web.looking import checked_size
from tenet.web.schemas import ERRORS, ClassInfo, ClassList, Renaming
from tenet.web.service import Served, class_info
from tenet.web.uploads import Pictures, read_all, read_box

router = APIRouter(prefix="/v1/classes", tags=["classes"], responses=ERRORS)
Name = Annotated[str, Path(min_length=1, max_length=100, examples=["pinecone"])]
ShotId = Annotated[int, Path(ge=1, le=2**62)]
JPEG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/jpeg": {}}, "description": "a JPEG picture"}
}


@router.get("")
async def list_classes(
    service: Served,
    start: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> ClassList:
    """All classes with their shots, in the order in which they came."""
    bank = await service.snapshot()

    def told() -> list[ClassInfo]:
        return [class_info(bank, name) for name in bank.names[start : start + limit]]

    return ClassList(
        model=service.model.name,
        threshold=service.model.runtime.threshold,
        total=len(bank.names),
        classes=await run_in_threadpool(told),
    )


@router.get("/{name}")
async def get_class(service: Served, name: Name) -> ClassInfo:
    """One class."""
    bank = await service.snapshot()
    return await run_in_threadpool(class_info, bank, name)


@router.patch("/{name}")
async def rename_class(service: Served, name: Name, renaming: Renaming) -> ClassInfo:
    """Call a class otherwise."""
    await run_in_threadpool(service.teacher.rename, name, renaming.name)
    return await run_in_threadpool(class_info, await service.snapshot(), renaming.name)


@router.delete("/{name}", status_code=204)
async def remove_class(service: Served, name: Name) -> Response:
    """Forget a class with all its shots."""
    await run_in_threadpool(service.teacher.remove, name)
    return Response(status_code=204)


@router.post("/{name}/shots", status_code=201)
async def add_shots(
    service: Served,
    name: Name,
    pictures: Pictures,
    boxes: Annotated[
        list[str] | None,
        Form(
            description="for each picture `x1,y1,x2,y2` in its pixels, or `whole`: all of it is the thing",
            examples=[["40,30,100,90"]],
        ),
    ] = None,
    replace: Annotated[bool, Form(description="forget the shots that the class has")] = False,
) -> ClassInfo:
    """Show the detector a class, or more shots of it; the answer says how well it sees them.

    One bad shot, and nothing is kept. A shot that the class has already is left out.
    """
    files = await read_all(pictures, service.limits)
    given = boxes or ["whole"] * len(files)
    if len(given) != len(files):
        raise InputError(f"boxes: expected one for each of {len(files)} pictures, got {len(given)}")
    shots: list[object] = []
    for row, ((label, file), text) in enumerate(zip(files, given, strict=True)):
        checked_size(file, label, service.limits)
        box = read_box(text, f"boxes, {row}")
        shots.append(file if box is None else (file, box))
    told: Registration = await service.call(lambda: service.teacher.add(name, shots, replace))
    own = tuple(note for note in told.notes if "left out" in note or "its box" in note)
    return await run_in_threadpool(class_info, await service.snapshot(), name, told.added, own)


@router.delete("/{name}/shots/{shot}")
async def remove_shot(service: Served, name: Name, shot: ShotId) -> ClassInfo:
    """Forget one shot; the class is encoded again from the others."""
    await service.call(lambda: service.teacher.remove_shot(name, shot))
    return await run_in_threadpool(class_info, await service.snapshot(), name)


@router.get("/{name}/shots/{shot}/thumbnail", response_class=Response, responses=JPEG)
async def thumbnail(service: Served, name: Name, shot: ShotId) -> Response:
    """The crop that the network saw."""
    jpeg = await run_in_threadpool(service.library.store.picture, name, shot, "crop")
    return _jpeg(jpeg)


@router.get("/{name}/shots/{shot}/scene", response_class=Response, responses=JPEG)
async def scene(service: Served, name: Name, shot: ShotId) -> Response:
    """The picture that the shot came with, scaled down."""
    jpeg = await run_in_threadpool(service.library.store.picture, name, shot, "scene")
    return _jpeg(jpeg)


def _jpeg(content: bytes) -> Response:
    # A shot never changes, and its id is never given to another one.
    return Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=86400"})
