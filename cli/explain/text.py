"""Text of `sublet explain`: an answer in, lines of text out."""

from __future__ import annotations

from cli.explain.decision_text import dated
from cli.explain.queue_text import waiting_text
from cli.tables import aligned
from model import explain
from model.placement import Scored
from model.quantity import format_bytes, format_millis
from model.report import Usage
from view.answers import EvictionsAnswer, GangExplained, LimitAnswer, NodeAnswer, PendingAnswer, PodAnswer
from view.explained import score_table, telling


def evictions_text(answer: EvictionsAnswer, now: float) -> str:
    """Each rule's need with its terms, then the pods."""
    pending = [f"pod {one.pod_uid} is terminating, {_when(one, now)}" for one in answer.pending]
    parts = [
        explain.text(answer.needs) or "no rule that evicts is on, or nothing was measured yet",
        "\n".join(pending) or "no pod is terminating",
        explain.text(answer.past) or "no pod was evicted since the agent started",
    ]
    return "\n\n".join(parts)


def _when(one: PendingAnswer, now: float) -> str:
    if one.notified_until_seconds is not None:
        return f"told {now - one.since_seconds:.0f} s ago, evicted in {max(one.notified_until_seconds - now, 0):.0f} s"
    return f"evicted {now - one.since_seconds:.0f} s ago, counted as gone for {max(one.until_seconds - now, 0):.0f} s"


def node_text(answer: NodeAnswer, now: float, *, everything: bool = False) -> str:
    """The node's usage as a small table, then each decision with its terms."""
    age = f"{max(0.0, now - answer.observed_at_seconds):.1f} s ago" if answer.observed_at_seconds else "never"
    rows = (
        ("capacity", answer.capacity),
        ("used", answer.usage),
        ("  online", answer.online),
        ("  best effort", answer.best_effort),
        ("  system", answer.system),
        *((f"  {name}", usage) for name, usage in answer.host_applications.items()),
    )
    asked = format_millis(answer.best_effort_request_millis)
    limit = answer.best_effort_limit_millis
    held = "no known limit" if limit is None else f"{format_millis(limit)} at most"
    woken = {cause: count for cause, count in sorted(answer.wakes.items()) if count}
    state = [
        f"node {answer.node}  {answer.ready_reason or 'not judged yet'}  observed {age}",
        *([f"  {answer.ready_message}"] if answer.ready_message else []),
        *(_usage_row(name, usage) for name, usage in rows),
        f"  best-effort CPU: {held} now, its pods asked for {asked}",
        f"  agent {answer.agent_version}: {answer.ticks} ticks, {answer.late_ticks} late; "
        f"brake {answer.brake_mechanism or 'none'}, {answer.brake_cuts} cuts; "
        f"link to the scheduler {'up' if answer.link_connected else 'down'}",
        *([f"  early ticks: {', '.join(f'{n} by {what}' for what, n in woken.items())}"] if woken else []),
        f"  cgroups {answer.cgroups or 'unknown'}",
    ]
    shown = answer.reclaimable if everything else telling(answer.reclaimable)
    left = len(answer.reclaimable) - len(shown)
    more = f"\n\n{left} more decisions with --all" if left else ""
    return "\n".join(state) + "\n\n" + (explain.text(shown) or "nothing has been computed yet") + more


def pod_text(answer: PodAnswer, now: float) -> str:
    """Where the pod is, its gang, its place in the queue, and the decision with its terms and its time."""
    head = [f"pod {answer.namespace}/{answer.name}  {f'on node {answer.node}' if answer.node else 'waiting'}"]
    if answer.gang:
        head.append(f"  member of gang {answer.gang}")
    if answer.nominated_node:
        head.append(f"  room is being made for it on node {answer.nominated_node}")
    head += [f"  {text}" for text in answer.unserved]
    scores = f"\n\n{_scores(answer.scored)}" if answer.scored else ""
    return "\n".join([*head, *_waiting(answer)]) + "\n\n" + _reasons(answer, now) + scores


def _scores(scored: Scored) -> str:
    """One row a score: weight × points on the chosen node, and on the next best where there is one."""
    table = score_table(scored)
    return "\n".join(aligned([table.head, *table.rows], left=1))


def gang_text(answer: GangExplained, now: float) -> str:
    """How many members have a node, the gang's place in the queue, and the decision with its terms and its time."""
    gang = answer.gang
    head = [
        f"gang {gang.namespace}/{gang.name}  {gang.scheduled} of {gang.members} members have a node, "
        f"{gang.min_member} are needed at once",
        *([f"  {gang.problem}"] if gang.problem else []),
        *(f"  room is being made for {pod} on node {node}" for pod, node in sorted(answer.nominated_nodes.items())),
    ]
    return "\n".join([*head, *_waiting(answer)]) + "\n\n" + _reasons(answer, now)


def _waiting(answer: PodAnswer | GangExplained) -> list[str]:
    """What is said of one that waits, nothing of any other."""
    told = [f"  {line}" for line in waiting_text(answer.queue, answer.stage, answer.shortages)]
    told += [f"  number {answer.queue_position} in the queue"] if answer.queue_position else []
    said = answer.decision.detail if answer.decision else ""
    if answer.message and answer.message not in said:  # the record below ends with its words
        told.append(f"  {answer.message}")
    return [*told, *([f"  nearest fit: {answer.nearest}"] if answer.nearest else [])]


def _reasons(answer: PodAnswer | GangExplained, now: float) -> str:
    known = [decision for decision in (answer.decision, answer.preemption) if decision is not None]
    return "\n\n".join(dated(decision, now) for decision in known) or "no decision about it is known"


def limits_text(answers: tuple[LimitAnswer, ...]) -> str:
    """Each limit with its terms, and whether the kernel holds it."""
    return "\n\n".join(_limit_text(answer) for answer in answers) or "the agent keeps no limit at this moment"


def _limit_text(answer: LimitAnswer) -> str:
    decided = answer.decided_value or answer.decision.value
    verdict = "as decided" if answer.matches else f"NOT as decided ({decided})"
    place = f"  {answer.path}" + (f", of {answer.owner}" if answer.owner else "")
    return "\n".join([*explain.lines(answer.decision), place, f"  the kernel holds {answer.kernel_value}: {verdict}"])


def _usage_row(name: str, usage: Usage) -> str:
    return f"  {name:<14} cpu {format_millis(usage.cpu_millis):>8}   memory {format_bytes(usage.memory_bytes):>12}"
