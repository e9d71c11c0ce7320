"""Text of how a job goes whose controller runs in the cluster: phase, pods, restarts, and what happened to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from model.queue import JobProgress, ProgressEvent

_MOST_EVENTS = 10
_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def progress_text(progress: JobProgress, name: str, now: float) -> str:
    """Several lines; the newest events last."""
    since = f" for {duration(now - progress.since_seconds)}" if progress.since_seconds else ""
    return "\n".join(
        (
            f"{progress.kind} {name}  {progress.phase}{since}{_why(progress)}",
            *(f"  {task}: {counts_text(pods)}" for task, pods in progress.tasks.items() if pods),
            *([f"  on {', '.join(progress.nodes)}"] if progress.nodes else []),
            *_times(progress, now),
            f"  retries: {_retries(progress)}",
            *_events(progress.events, now),
        )
    )


def counts_text(pods: Mapping[str, int]) -> str:
    """`3 running, 1 pending`."""
    return ", ".join(f"{count} {word}" for word, count in pods.items() if count)


def duration(seconds: float) -> str:
    """In its largest unit, and the next: `2 h 5 min`."""
    rest, parts = max(0, int(seconds)), list[str]()
    for size, unit in _STEPS:
        whole, rest = divmod(rest, size)
        if whole or parts:
            parts.append(f"{whole} {unit}" if whole else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or "0 s"


def _why(progress: JobProgress) -> str:
    told = ": ".join(each for each in (progress.reason, progress.message) if each)
    return f"\n  {told}" if told else ""


def _times(progress: JobProgress, now: float) -> Iterator[str]:
    """How long it waits, or waited before it ran first, and how long ago that is or was at its end."""
    created, began, ended = progress.created_seconds, progress.began_seconds, progress.ended_seconds
    if not created:
        return
    if began:
        since = f"ended {duration(ended - began)} later" if ended else f"{duration(now - began)} ago"
        yield f"  ran first {duration(began - created)} after its creation, {since}"
    elif not ended:
        yield f"  created {duration(now - created)} ago, has not run yet"


def _retries(progress: JobProgress) -> str:
    evictions = f"{progress.evictions} {'eviction' if progress.evictions == 1 else 'evictions'}"
    return f"{progress.failures} of {progress.most_failures} failures, {evictions}"


def _events(events: Iterable[ProgressEvent], now: float) -> Iterator[str]:
    last = tuple(events)[-_MOST_EVENTS:]
    if last:
        yield "  events:"
    for each in last:
        mark = "Warning " if each.warning else ""
        yield f"    {duration(now - each.at_seconds)} ago  {mark}{each.reason}: {each.message}"
