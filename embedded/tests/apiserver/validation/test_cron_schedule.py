"""When schedules come, and what is none."""

from datetime import UTC, datetime

import pytest

from embedded.apiserver.validation.cron_schedule import ScheduleError, parse_schedule, time_zone


def moment(text, zone="UTC"):
    return datetime.fromisoformat(text).replace(tzinfo=time_zone(zone)).timestamp()


def shown(seconds):
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


LONG = "9" * 5000  # more digits than Python reads


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-01-01 00:00:30", "2026-01-01 00:01:00"),
        ("*/15 * * * *", "2026-01-01 00:15:00", "2026-01-01 00:30:00"),
        ("5/20 * * * *", "2026-01-01 00:06:00", "2026-01-01 00:25:00"),
        ("0 3 * * mon-fri", "2026-01-02 04:00:00", "2026-01-05 03:00:00"),
        ("0 0 13 * 5", "2026-02-12 12:00:00", "2026-02-13 00:00:00"),
        ("0 0 13 * 5", "2026-02-13 12:00:00", "2026-02-20 00:00:00"),
        ("0 0 29 feb ?", "2026-01-01 00:00:00", "2028-02-29 00:00:00"),
        ("0 9,17 1 jan,jul *", "2026-01-01 10:00:00", "2026-01-01 17:00:00"),
        ("@hourly", "2026-01-01 00:00:00", "2026-01-01 01:00:00"),
        ("@daily", "2026-01-01 00:00:00", "2026-01-02 00:00:00"),
        ("@midnight", "2026-01-01 00:00:00", "2026-01-02 00:00:00"),
        ("@weekly", "2026-01-01 00:00:00", "2026-01-04 00:00:00"),
        ("@monthly", "2026-01-01 00:00:00", "2026-02-01 00:00:00"),
        ("@yearly", "2026-01-01 00:00:00", "2027-01-01 00:00:00"),
        ("@annually", "2026-01-01 00:00:00", "2027-01-01 00:00:00"),
        ("@every 1h30m", "2026-01-01 00:00:00", "2026-01-01 01:30:00"),
    ],
)
def test_the_next_moment(schedule, after, expected):
    """Every form the documentation names."""
    assert shown(parse_schedule(schedule, UTC)(moment(after))) == expected


def test_a_schedule_means_the_clock_of_its_zone():
    """Nine in Berlin is eight in winter and seven in summer."""
    following = parse_schedule("0 9 * * *", time_zone("Europe/Berlin"))
    assert shown(following(moment("2026-01-01 00:00:00"))) == "2026-01-01 08:00:00"
    assert shown(following(moment("2026-07-01 00:00:00"))) == "2026-07-01 07:00:00"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        (f"*/{LONG} * * * *", f"step of range should be a positive number: */{LONG}"),
        (f"{LONG} * * * *", f'failed to parse int from {LONG}: strconv.Atoi: parsing "{LONG}": value out of range'),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * L * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'),
        ("* * * * 1#2", 'failed to parse int from 1#2: strconv.Atoi: parsing "1#2": invalid syntax'),
        ("0 0 31 2 *", "bad day-of-month"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("1,,2 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
    ],
)
def test_what_is_no_schedule_says_why(schedule, message):
    """One line, for the person who wrote it."""
    with pytest.raises(ScheduleError) as raised:
        parse_schedule(schedule, UTC)
    assert str(raised.value) == message


def test_an_unknown_zone_says_so():
    """Also one that would be a path."""
    for name in ("Mars/Base", "../etc/passwd", "/etc/localtime"):
        with pytest.raises(ScheduleError, match="unknown time zone"):
            time_zone(name)
