"""Results as files."""

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from tenet.errors import InputError
from tenet.web.examples import COCO
from tenet.web.exports import Download, export
from tenet.web.looking import picture_result
from tenet.web.schemas import ERRORS, ExportRequest

router = APIRouter(prefix="/v1", tags=["files"], responses=ERRORS)
DOWNLOADS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/json": {"example": COCO}, "application/zip": {}, "text/csv": {}},
        "description": "a file: COCO JSON, CSV, or a zip of YOLO or VOC files",
    }
}


@router.post("/export", response_class=Response, responses=DOWNLOADS)
async def export_results(request: ExportRequest) -> Response:
    """Make detections into a file of COCO, YOLO, VOC or CSV."""

    def made() -> Download:
        known = set(request.classes)
        asked = {row.class_ for one in request.pictures for row in one.detections}
        if not asked <= known or len(known) != len(request.classes):
            raise InputError(
                "classes: expected every class of the detections, once; some are missing or twice"
            )
        answers = [one.model_dump(by_alias=True) for one in request.pictures]
        return export(
            [picture_result(one, request.classes, request.threshold) for one in answers], request.format
        )

    return as_response(await run_in_threadpool(made))


def as_response(made: Download) -> Response:
    """A download; its name is ours."""
    headers = {"Content-Disposition": f'attachment; filename="{made.file_name}"'}
    return Response(made.content, media_type=made.media_type, headers=headers)
