"""When a pool is full: what people write, what cron makes of it, and the days on which clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.classroom.timetable import (
    Timetable,
    TimetableError,
    Window,
    WindowDay,
    begun,
    check,
    crons,
    days_of,
    instants,
    lead_for,
    spans,
    surprises,
    window_days,
    windows_of,
    zone_named,
)

BERLIN = "Europe/Berlin"
ZONES = {
    BERLIN: (date(2027, 3, 28), date(2027, 10, 31)),
    "America/New_York": (date(2027, 3, 14), date(2027, 11, 7)),
    "America/Havana": (date(2027, 3, 14), date(2027, 11, 7)),
    "Australia/Lord_Howe": (date(2027, 4, 4), date(2027, 10, 3)),
    "Africa/Cairo": (date(2027, 4, 30), date(2027, 10, 29)),
    "Asia/Kolkata": (date(2027, 3, 28),),
}
"""Days on which clocks change, or one without any."""


def of(at: int, until: int, lead: int = 20, zone: str = BERLIN, days: str = "daily") -> Timetable:
    return Timetable(zone, days_of(days), (Window(at, until),), 24, 0, lead)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("mon,wed", (0, 2)),
        ("Mon, WEDNESDAY", (0, 2)),
        ("mon-fri", (0, 1, 2, 3, 4)),
        ("sat-mon", (0, 5, 6)),
        ("wed,mon,wed", (0, 2)),
        ("daily", (0, 1, 2, 3, 4, 5, 6)),
    ],
)
def test_days_as_people_write_them(text: str, days: tuple[int, ...]) -> None:
    assert days_of(text) == days


@pytest.mark.parametrize("text", ["", "wendesday", "mon,", "mo", "mon-", "1"])
def test_days_that_are_misspelt_are_told(text: str) -> None:
    with pytest.raises(TimetableError, match="is no day of the week; write mon, tue"):
        days_of(text)


@pytest.mark.parametrize(
    ("at", "until", "said"),
    [
        ("9", "17:00", "9 is no time of the day"),
        ("09:00", "24:00", "24:00 is no time of the day"),
        ("09:00", "09:00", "--until 09:00 is not after --at 09:00"),
        ("22:00", "02:00", "a class ends on the day on which it begins"),
        ("09:00,14:00", "12:00", "--at names 2 and --until 1 times"),
    ],
)
def test_hours_that_cannot_be_are_told(at: str, until: str, said: str) -> None:
    with pytest.raises(TimetableError, match=said):
        windows_of(at, until)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Europe/Berln", "do you mean Europe/Berlin"),
        ("", "an empty text is no time zone"),
        ("localtime", "no time zone"),
    ],
)
def test_zones_that_do_not_exist_are_told(name: str, said: str) -> None:
    with pytest.raises(TimetableError, match=said):
        zone_named(name)
    assert zone_named(BERLIN).key == BERLIN


@pytest.mark.parametrize(
    ("table", "begins", "ends"),
    [
        (of(540, 1020, 20, days="mon,wed"), ("40 8 * * 1,3",), ("0 17 * * 1,3",)),
        (of(540, 1020, 0, days="sun"), ("0 9 * * 0",), ("0 17 * * 0",)),
        (of(10, 60, 20, days="mon"), ("50 23 * * 0",), ("0 1 * * 1",)),
        (of(540, 1020), ("40 8 * * *",), ("0 17 * * *",)),
        (
            Timetable(BERLIN, (0, 2), (Window(540, 720), Window(840, 1020)), 24, 0, 30),
            ("30 8,13 * * 1,3",),
            ("0 12,17 * * 1,3",),
        ),
        (
            Timetable(BERLIN, (0,), (Window(540, 720), Window(855, 1020)), 24, 0, 30),
            ("30 8 * * 1", "45 13 * * 1"),
            ("0 12,17 * * 1",),
        ),
    ],
)
def test_days_and_hours_that_go_together_are_one_expression(
    table: Timetable, begins: tuple[str, ...], ends: tuple[str, ...]
) -> None:
    check(table)
    assert (table.begin_crons, table.end_crons) == (begins, ends)


@given(st.sets(st.integers(0, 7 * 1440 - 1), max_size=12))
def test_cron_expressions_name_each_minute_once(moments: set[int]) -> None:
    found = []
    for text in crons(moments):
        minute, hours, _, _, days = text.split()
        for day in range(7) if days == "*" else map(int, days.split(",")):
            found += [(day - 1) % 7 * 1440 + int(hour) * 60 + int(minute) for hour in hours.split(",")]
    assert sorted(found) == sorted(moments)


@pytest.mark.parametrize(
    ("windows", "lead"),
    [
        ((Window(540, 780), Window(780, 1020)), 20),
        ((Window(540, 720), Window(740, 1020)), 20),
        ((Window(540, 720), Window(540, 720)), 20),
        ((Window(540, 720), Window(750, 1020)), 20),
        ((Window(10, 1435),), 30),
        ((Window(30, 1435),), 25),
        ((Window(540, 1020),), 13 * 60),
    ],
)
def test_no_end_takes_away_what_the_next_begin_made(windows: tuple[Window, ...], lead: int) -> None:
    with pytest.raises(TimetableError):
        check(Timetable(BERLIN, tuple(range(7)), windows, 24, 0, lead))


def test_the_least_time_between_an_end_and_the_next_begin() -> None:
    twice = Timetable(BERLIN, (0, 2), (Window(540, 720), Window(751, 1020)), 24, 0, 20)
    check(twice)
    assert (twice.gap, of(540, 1020, days="mon").gap) == (11, 7 * 1440 - 500)
    assert of(35, 1435).gap == 20, "over midnight"


def test_boots_begin_a_little_earlier_than_was_measured() -> None:
    assert (lead_for(600, measured=True), lead_for(1800, measured=False), lead_for(61, measured=False)) == (12, 30, 2)


@pytest.mark.parametrize("zone", [zone for zone in ZONES if zone != "Asia/Kolkata"])
def test_a_class_at_nine_is_right_all_the_year(zone: str) -> None:
    table = of(540, 1020, 90, zone)
    assert surprises(table, date(2027, 1, 1)) == []
    for each in window_days(table, date(2027, 1, 1), 366):
        [begin], [at], [end] = each.begins, each.ats, each.ends
        assert at - begin == timedelta(minutes=90)
        assert (at.astimezone(ZoneInfo(zone)).hour, end.astimezone(ZoneInfo(zone)).hour) == (9, 17)


@pytest.mark.parametrize(
    ("table", "day", "said"),
    [
        (of(150, 300), "2027-03-28", ["clocks go forward past 02:30, which", "past 02:10, so that nothing is booted"]),
        (of(190, 300), "2027-03-28", ["clocks go forward past 02:50, so that nothing is booted for 03:10"]),
        (of(190, 300, 90), "2027-03-28", ["so that lablets are ready 60 minutes late"]),
        (of(60, 150, 10), "2027-03-28", ["clocks go forward past 02:30, so that the pool stays as it is"]),
        (of(185, 300, 30), "2027-10-31", ["clocks show 02:35 twice", "ready 60 minutes early"]),
        (of(210, 300, 120), "2027-10-31", ["lablets are ready 60 minutes early"]),
        (of(60, 150, 10), "2027-10-31", ["clocks show 02:30 twice, so that the pool gets smaller at the first"]),
        (of(150, 300, 40), "2027-10-31", []),
    ],
)
def test_what_happens_in_the_night_in_which_clocks_change_is_told(table: Timetable, day: str, said: list[str]) -> None:
    found = surprises(table, date.fromisoformat(day) - timedelta(days=1), 3)
    assert len(found) == len(said), found
    for text, part in zip(found, said, strict=True):
        assert text.startswith(f"{day}: ")
        assert part in text


@st.composite
def tables(draw: st.DrawFn) -> tuple[Timetable, date]:
    zone = draw(st.sampled_from(sorted(ZONES)))
    near = draw(st.sampled_from(ZONES[zone])) + timedelta(days=draw(st.integers(-1, 1)))
    at = draw(st.integers(0, 1438))
    until = draw(st.integers(at + 1, 1439))
    return of(at, until, draw(st.integers(0, 180)), zone), near


def fired(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """When a clock shows a minute, found by looking at every minute of three days."""
    first = (wall - timedelta(days=1)).replace(tzinfo=UTC)
    minutes = (first + timedelta(minutes=n) for n in range(2 * 1440))
    return [each for each in minutes if each.astimezone(zone).replace(tzinfo=None) == wall]


@given(tables())
@example((of(150, 300), date(2027, 3, 28)))
@example((of(185, 300, 30), date(2027, 10, 31)))
def test_a_day_is_told_or_exact(drawn: tuple[Timetable, date]) -> None:
    """Each begin comes once, just as long before as it should, and each end once; or it is said."""
    table, day = drawn
    [shown] = window_days(table, day, 1)
    zone = ZoneInfo(table.zone)
    midnight = datetime.combine(day, datetime.min.time())
    at = midnight + timedelta(minutes=shown.window.at)
    assert shown.ats == fired(at, zone)
    assert shown.begins == fired(at - timedelta(minutes=table.lead), zone)
    assert shown.ends == fired(midnight + timedelta(minutes=shown.window.until), zone)
    exact = (
        len(shown.begins) == len(shown.ends) == 1
        and shown.ats != []
        and shown.ats[0] - shown.begins[0] == timedelta(minutes=table.lead)
    )
    assert (surprises(table, day, 1) == []) is exact


def test_a_time_is_shown_never_once_or_twice() -> None:
    zone = ZoneInfo(BERLIN)
    shown = [len(instants(datetime(2027, *each, 2, 30), zone)) for each in ((3, 28), (6, 1), (10, 31))]  # noqa: DTZ001 (a clock on a wall)
    assert shown == [0, 1, 2]


@pytest.mark.parametrize(
    ("table", "hour", "minute", "day"),
    [
        (of(540, 1020), 8, 39, None),
        (of(540, 1020), 8, 40, 22),
        (of(540, 1020), 16, 59, 22),
        (of(540, 1020), 17, 0, None),
        (of(10, 60, 20), 23, 55, 23),  # for tomorrow
        (of(540, 1020, days="tue"), 12, 0, None),
    ],
)
def test_the_window_whose_boots_have_begun(table: Timetable, hour: int, minute: int, day: int | None) -> None:
    now = datetime(2027, 3, 22, hour, minute, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    found = begun(table, now)
    assert (found.day.day if found is not None else None) == day


def test_spans_are_of_the_days_to_come() -> None:
    table = of(540, 1020, 60, days="mon")
    since = datetime(2027, 3, 22, 12, tzinfo=UTC)
    found = spans(table, since, 7)
    assert [[f"{each:%d %H}" for each in pair] for pair in found] == [["22 07", "22 16"], ["29 06", "29 15"]]
    assert next(iter(window_days(table, since.date(), 1))).__class__ is WindowDay
