"""`sublet top` as text: aligned, limited to the height there is, `-` for what is not known."""

from __future__ import annotations

from cli.top.text import gangs_text, nodes_text, pods_text
from model.report import Usage
from view.answers import GangAnswer
from view.top import Amounts, NodeRow, PodRow

NODE = NodeRow("n-1", "Ready", Amounts(4000, 1000, 2150, 1500, 500, None), Amounts(8 << 30, used=3 << 29), 2)


def test_nodes() -> None:
    """Groups above their columns, the sum first."""
    assert nodes_text([NODE]).splitlines()[:4] == [
        "                 CPU, cores                                 MEMORY, GiB",
        "NODE    STATE    ALLOC  ONLINE  USED  LENT  TAKEN  BE USED  ALLOC  ONLINE  USED  LENT  TAKEN  BE USED  BE PODS",
        "1 node  1 Ready    4.0     1.0   2.1   1.5    0.5        -    8.0     0.0   1.5   0.0    0.0        -        2",
        "n-1     Ready      4.0     1.0   2.1   1.5    0.5        -    8.0     0.0   1.5   0.0    0.0        -        2",
    ]


def test_the_limit_has_a_column_where_one_is_told() -> None:
    """Of the other nodes it is not known."""
    told = NodeRow("n-2", "Ready", limit_millis=800)
    lines = nodes_text([NODE, told]).splitlines()
    assert [line.split()[-1] for line in lines[1:5]] == ["LIMIT", "≥0.8", "-", "0.8"]


def test_a_sum_of_which_a_part_is_unknown_says_so() -> None:
    """It is at least that much; a row that is out of sight counts too."""
    unknown = NodeRow("n-2", "Ready", Amounts(4000))
    whole = nodes_text([NODE, unknown], height=7).splitlines()[2].split()
    assert whole[:5] == ["2", "nodes", "2", "Ready", "8.0"]
    assert whole[5:10] == ["1.0", "≥2.1", "1.5", "0.5", "-"]


def test_as_many_lines_as_there_is_room_for() -> None:
    """The rest is counted, and still in the sum."""
    text = nodes_text([NODE] * 1500, height=20)
    assert len(text.splitlines()) == 20
    assert "… and 1,486 more nodes" in text and "1500 nodes" in text
    assert "more" not in nodes_text([NODE] * 1500)


def test_pods() -> None:
    """Used of requested."""
    rows = [PodRow("d", "p", "n-1", "Running", Usage(2000, 1 << 30), Usage(500, 1 << 29), "d/g")]
    rows.append(PodRow("d", "q", "n-1", "Pending", Usage(2000, 1 << 30)))
    assert [line.split() for line in pods_text(rows).splitlines()] == [
        ["NAMESPACE", "POD", "NODE", "PHASE", "GANG", "CPU", "OF", "MEMORY", "OF"],
        ["d", "p", "n-1", "Running", "d/g", "0.5", "2.0", "0.5", "1.0"],
        ["d", "q", "n-1", "Pending", "-", "-", "2.0", "-", "1.0"],
    ]
    assert pods_text([]) == "no pod lives on lent resources"
    assert len(pods_text(rows * 50, height=10).splitlines()) <= 10


def test_gangs() -> None:
    """With what is wrong with one."""
    rows = [GangAnswer("d", "g", 2, 3, 1, ""), GangAnswer("d", "h", 0, 1, 0, "minMember is 0")]
    lines = gangs_text(rows).splitlines()
    assert lines[1].split() == ["d", "g", "-", "2", "3", "1"] and "minMember is 0" in lines[2]
    assert gangs_text([]) == "the scheduler knows no gang"
