"""TSO: the dense Algorithm 1 against the exact fast form, and the fast form at the paper's size.

examples:
  tenet bench tso
  tenet bench tso --channels 8 16 32 --rounds 9
"""

import argparse
from functools import partial

from tenet.bench.arguments import positive

TARGET_SPEEDUP, TARGET_SHARE = 200.0, 0.25
BATCHES = (1, 8)
"""Regions at once: alone the fast form is all call overhead, a detector has hundreds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--channels", type=positive, nargs="+", default=[8, 16, 24, 32], help="widths d for the dense form"
    )
    parser.add_argument(
        "--rounds", type=positive, default=7, help="interleaved rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--regions", type=positive, default=300, help="regions at the paper's size (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    import torch

    from tenet.bench.measure import machine

    print(machine(), "\n")
    with torch.no_grad():
        _dense_against_fast(args.channels, args.rounds)
        _paper_size(args.regions, args.rounds)
    return 0


def _dense_against_fast(channels: list[int], rounds: int) -> None:
    import torch

    from tenet.bench.measure import interleaved, mb, ms, peak_memory, table
    from tenet.ops import dense_tso, hotd, superdiagonal, tau, tso_superdiagonal
    from tenet.ops.high_order_pooling import EPSILON

    rows, verdicts = [], []
    for d, regions in ((d, regions) for regions in BATCHES for d in channels):
        phi = torch.rand(regions, d, 49, generator=torch.Generator().manual_seed(0))

        def fast(phi: torch.Tensor = phi) -> torch.Tensor:
            return tso_superdiagonal(phi, 4, 7)

        def dense(phi: torch.Tensor = phi) -> torch.Tensor:
            m = hotd(phi, 4) / (EPSILON + tau(phi, 4))[:, None, None, None, None]
            return superdiagonal(dense_tso(m, 7, order=4), 4)

        memory = peak_memory(fast), peak_memory(dense)
        time = interleaved({"fast": fast, "dense": dense}, rounds)
        gap = (fast() - dense()).abs().max().item()
        ratio = time["dense"] / time["fast"]
        if d == 32:
            verdict = "met" if ratio >= TARGET_SPEEDUP else "missed"
            verdicts.append(f"{verdict} with {regions} at once, {ratio:.0f} x")
        times = [ms(time["dense"]), ms(time["fast"]), f"{ratio:.0f} x"]
        rows.append([str(d), str(regions), *times, *map(mb, memory[::-1]), f"{gap:.0e}"])
    print("r = 4, eta = 7, N = 49, float32; peak memory is what the call adds.")
    header = ["d", "regions", "dense", "fast", "speed-up", "dense peak", "fast peak", "difference"]
    print(table(header, rows))
    print(f"target: at least {TARGET_SPEEDUP:.0f} x at d = 32: {'; '.join(verdicts) or 'not measured'}\n")


def _paper_size(regions: int, rounds: int) -> None:
    import torch

    from tenet.bench.measure import Work, interleaved, mb, ms, peak_memory, table
    from tenet.models.backbones import BACKBONES
    from tenet.ops import tso_superdiagonal

    groups = {2: 640, 3: 256, 4: 128}
    phi = {order: torch.rand(regions, width, 49) for order, width in groups.items()}
    resnet = BACKBONES["resnet50"]().eval()
    picture = torch.rand(1, 3, 600, 800)

    def all_orders() -> None:
        for order, features in phi.items():
            tso_superdiagonal(features, order, 7)

    work: dict[str, Work] = {
        **{f"r = {r}, d = {groups[r]}": partial(tso_superdiagonal, phi[r], r, 7) for r in groups},
        "all orders": all_orders,
        "ResNet-50 C4, 600x800": lambda: resnet.to_c4(picture),
    }
    memory = {name: peak_memory(function) for name, function in work.items()}
    time = interleaved(work, rounds)
    forward = time["ResNet-50 C4, 600x800"]
    rows = [
        [name, ms(seconds), f"{seconds / forward:.3f}", mb(memory[name])] for name, seconds in time.items()
    ]
    print(f"The paper's size: {regions} regions, N = 49, eta = 7, float32.")
    print(table(["what", "time", "share of C4", "peak"], rows))
    share = time["all orders"] / forward
    verdict = "met" if share <= TARGET_SHARE else "missed"
    print(f"target: all orders at most {TARGET_SHARE} of the C4 forward: {verdict}, {share:.3f}")
