"""The report of an evaluation: one HTML file that needs nothing else. Loads no torch."""

from html import escape
from pathlib import Path

from tenet.data.episodes import support_set
from tenet.data.files import write_text
from tenet.data.shots import ShotList
from tenet.drawing.html_parts import data_uri, page
from tenet.engine.evaluation_charts import bars, curves, picture
from tenet.engine.evaluation_examples import Scene, choose_scenes
from tenet.engine.evaluation_result import Evaluation, versions
from tenet.scoring.report import TITLES, Spread, Summary

MOST_THUMBNAILS = 5
TRACK_WORDS = {
    "strict": "the encoder's weights have never seen the novel classes as boxes",
    "paper": "the encoder's weights may have seen novel classes, as those of the paper's ancestors",
}
PROTOCOL_WORDS = {
    "meta-test": "shots are only shown, nothing is learned from them",
    "fine-tuned": "the detector learned from each draw of shots before it was tested",
}


def write_report(evaluation: Evaluation, path: Path) -> None:
    """Write `path`, whole or not at all."""
    write_text(path, report_html(evaluation))


def report_html(evaluation: Evaluation) -> str:
    """The whole page."""
    body = [
        _head(evaluation),
        *_tables(evaluation),
        _charts(evaluation),
        *_scenes(evaluation),
        _foot(evaluation),
    ]
    return page(f"{evaluation.model} on {evaluation.plan.test.name}", STYLE, "".join(body))


def _head(evaluation: Evaluation) -> str:
    settings, plan = evaluation.settings, evaluation.plan
    metric = next(iter(evaluation.summaries))
    tiles = "".join(
        f"<div><b>{_first(summary)}</b><span>{shots} shot{'s' if shots > 1 else ''}</span></div>"
        for shots, summary in evaluation.summaries[metric].items()
    )
    side = "novel" if settings.novel else "base"
    objects = sum(plan.test.class_counts().values())
    return (
        f"<header><p class='kicker'>evaluation · {settings.protocol} · {settings.track} track</p>"
        f"<h1>{escape(evaluation.model)} <small>on {escape(plan.test.name)}</small></h1>"
        f"<p>{len(plan.test):,} pictures, {objects:,} objects, {len(settings.classes)} classes "
        f"({len(settings.base)} base, {len(settings.novel)} novel). "
        f"Shots from {escape(plan.shots_from.name)}, seeds {', '.join(map(str, settings.seeds))}. "
        f"<b>{settings.protocol}</b>: "
        f"{PROTOCOL_WORDS[settings.protocol]}{_dash(settings.adaptation)}. {_objectness(evaluation)}"
        f"<b>{settings.track}</b>: "
        f"{TRACK_WORDS[settings.track]}.</p></header>"
        f"<section class='tiles'>{tiles}<p>{escape(_title(evaluation, metric))}, {side} classes</p></section>"
    )


def _objectness(evaluation: Evaluation) -> str:
    """Said only where it is so."""
    words = "Closed-form objectness is fitted from the shots in their own pictures. "
    return words if evaluation.objectness else ""


def _dash(text: str) -> str:
    return f" ({escape(text)})" if text else ""


def _first(summary: Summary) -> Spread:
    """The headline number: novel if there are novel classes."""
    return (summary.groups.get("novel") or summary.groups["base"])["AP"]


def _title(evaluation: Evaluation, metric: str) -> str:
    iou = "" if metric == "coco" else f", IoU {evaluation.settings.iou:g}"
    seeds = ", mean ± std over seeds" if len(evaluation.settings.seeds) > 1 else ""
    return f"{TITLES[metric]}{iou}{seeds}"


def _tables(evaluation: Evaluation) -> list[str]:
    settings, found = evaluation.settings, []
    for metric, by_shots in evaluation.summaries.items():
        first = next(iter(by_shots.values()))
        positives = {score.name: score.positives for score in first.runs[0].classes}
        heads = "".join(f"<th>{shots} shot{'s' if shots > 1 else ''}</th>" for shots in by_shots)
        rows = []
        for side, names in settings.groups.items():
            rows.append(_row(side, [s.groups[side]["AP"] for s in by_shots.values()], "", "group"))
            for name in names:
                cells = [summary.classes[name]["AP"] for summary in by_shots.values()]
                rows.append(_row(name, cells, f"{positives[name]:,}", ""))
        for key in list(first.overall)[1:]:
            rows.append(_row(f"{key}, all classes", [s.overall[key] for s in by_shots.values()], "", "other"))
        found.append(
            f"<section><h2>{escape(_title(evaluation, metric))}</h2><div class='wide'><table><thead><tr>"
            f"<th>AP</th>{heads}<th>objects</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
        )
    return found


def _row(name: str, cells: list[Spread], last: str, kind: str) -> str:
    inner = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr class='{kind}'><th>{escape(name)}</th>{inner}<td>{last}</td></tr>"


def _charts(evaluation: Evaluation) -> str:
    by_shots = next(iter(evaluation.summaries.values()))
    most = max(by_shots)
    rows = [
        (name, [(f"{shots} shots", summary.classes[name]["AP"]) for shots, summary in by_shots.items()])
        for name in evaluation.settings.classes
    ]
    shots = ", ".join(map(str, by_shots))
    return (
        f"<section class='two'><div><h2>Precision over recall, {most} shot{'s' if most > 1 else ''}</h2>"
        f"{curves(by_shots[most].runs)}</div><div><h2>AP of each class</h2>{bars(rows)}"
        f"<p class='legend'>faint to full: {shots} shots; line: ± one standard deviation</p></div></section>"
    )


def _scenes(evaluation: Evaluation) -> list[str]:
    draw, found = evaluation.example.draw, []
    thumbnails = _thumbnails(evaluation)
    for title, scenes in choose_scenes(evaluation).items():
        if scenes:
            cards = "".join(_card(scene, thumbnails[scene.focus]) for scene in scenes)
            found.append(f"<section><h2>{escape(title)}</h2><div class='cards'>{cards}</div></section>")
    if not found:
        return []
    note = (
        f"<section><h2>Examples</h2><p>{draw.shots} shot{'s' if draw.shots > 1 else ''}, seed {draw.seed}. "
        "Boxes above the score that gives each class its best F1 on this very draw: "
        "<b class='key right'>right</b> <b class='key wrong'>wrong</b> <b class='key missed'>missed</b>. "
        "Under each picture, shots of the class that it is shown for.</p></section>"
    )
    return [note, *found]


def _card(scene: Scene, thumbnails: str) -> str:
    return (
        f"<figure>{picture(scene.record.picture(), scene.marks)}<figcaption><b>{escape(scene.caption)}</b>"
        f"<span>{escape(scene.record.file_name)}</span></figcaption>"
        f"<div class='shots'><span>{escape(scene.focus)}</span>{thumbnails}</div></figure>"
    )


def _thumbnails(evaluation: Evaluation) -> dict[str, str]:
    """Class → its first shots as small pictures."""
    drawn = evaluation.example.draw.list
    few = {name: refs[:MOST_THUMBNAILS] for name, refs in drawn.classes.items()}
    crops = support_set(
        evaluation.plan.shots_from,
        ShotList(drawn.source, drawn.seed, MOST_THUMBNAILS, few),
        96,
        evaluation.settings.context,
    )
    return {
        name: "".join(f"<img alt='shot of {escape(name)}' src='{data_uri(crop, 96)}'>" for crop in own)
        for name, (own, _) in crops.items()
    }


def _foot(evaluation: Evaluation) -> str:
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    return (
        f"<footer>{escape(made)} · {evaluation.seconds:,.0f} s · weights {escape(evaluation.weights[:12])} · "
        f"scores from {evaluation.settings.threshold:g}</footer>"
    )


STYLE = """
:root{--right:#0a9d54;--wrong:#d92f2f;--missed:#f2c200}
@media(prefers-color-scheme:dark){:root{--right:#19c46d;--wrong:#ff5a52;--missed:#ffd83a}}
.tiles{display:flex;flex-wrap:wrap;gap:12px;align-items:end}
.tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 18px;
  min-width:130px}
.tiles b{display:block;font-size:24px;font-variant-numeric:tabular-nums}
.tiles span,.tiles p{color:var(--soft);margin:0}
.tiles p{flex-basis:100%;font-size:13px}
tr.group th,tr.group td{font-weight:700;background:color-mix(in srgb,var(--accent) 10%,transparent)}
tr.other th,tr.other td{color:var(--soft);font-size:13px;padding-block:3px}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:20px;align-items:start}
.two>div{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px}
.chart{width:100%;height:auto;display:block}
.grid{stroke:var(--rule);stroke-width:1}
.tick,.name{fill:var(--soft);font-size:11px}
.name{fill:var(--ink);font-size:12px}
.line{fill:none;stroke:hsl(var(--h) 65% var(--l));stroke-width:1.6}
.line.mean{stroke:var(--ink);stroke-width:3}
.bar{fill:var(--accent)}
.whisker{stroke:var(--ink);stroke-width:1.5}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;margin:8px 0 0;color:var(--soft);font-size:13px}
.legend i{display:inline-block;width:16px;height:3px;margin-right:5px;vertical-align:middle;
  background:hsl(var(--h) 65% var(--l))}
.legend .mean i{background:var(--ink)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(262px,1fr));gap:14px;align-items:start}
.scene{display:block;width:100%;height:auto;background:#0002}
.shots{display:flex;gap:5px;align-items:center;padding:4px 12px 12px;font-size:12px;color:var(--soft);
  flex-wrap:wrap}
.shots span{flex-basis:100%}
.shots img{width:40px;height:40px;border-radius:5px;object-fit:cover}
.scene .box{fill:none}
.right .box{stroke:var(--right)}
.wrong .box{stroke:var(--wrong)}
.missed .box{stroke:var(--missed);stroke-dasharray:6 4}
.scene text{font-family:system-ui,sans-serif;font-weight:600;fill:#fff}
.right .tag{fill:#067a40}
.wrong .tag{fill:#b81d1d}
.missed .tag{fill:var(--missed)}
.scene .missed text{fill:#2b2300}
.key{padding:1px 8px;border-radius:5px;color:#fff}
.key.right{background:#067a40}
.key.wrong{background:#b81d1d}
.key.missed{background:var(--missed);color:#2b2300;outline:2px dashed var(--bg);outline-offset:-2px}
"""
