"""A list of learners, as an instructor has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.classroom.roster import (
    LEARNERS_MAX,
    Learner,
    RosterError,
    as_list,
    look_alikes,
    read_roster,
)

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,OSPF\n,,,,,Manual Posting\n    Points Possible,,,,,20\n"
    '"Huber, Anna",17,s17,anna,Friday,\n"Student, Test",99,,5f1c0de,Friday,'
)
TEAMS = (
    "1. Summary\nMeeting title\tLogin\nAttended participants\t1\nStart time\t11/27/26, 9:00:00 AM\n\n"
    "2. Participants\n"
    "Name\tFirst Join\tEmail\tParticipant ID (UPN)\tRole\n"
    "Anna Huber\t11/27/26, 9:00:12 AM\ta@x.org\tanna@x.org\tAttendee\n\n"
    "3. In-Meeting Activities\nName\tJoin Time\tEmail\nAnna Huber\t11/27/26, 9:00:12 AM\tanother@x.org\n"
)


def users(content: bytes | str) -> tuple[str, ...]:
    return tuple(learner.user for learner in read_roster(content, "names.csv").learners)


@pytest.mark.parametrize(
    ("text", "learners"),
    [
        ("alice\nbob\n", ("alice", "bob")),
        ("\ufeffLearner,Class\nalice,friday\n\n# away: carol\n bob ,friday\nalice,x\n", ("alice", "bob")),
        ('"Miller, Ann";a@example.com\nbob;b@example.com', ("Miller, Ann", "bob")),
        ("learner\tseat\nalice@example.com\t1", ("alice@example.com",)),
        ("alice\nname\n", ("alice", "name")),
        ('username,remark\nclara,"CCNA; evening"\n', ("clara",)),
        ('username,remark\nclara,"CCNA\tevening"\n', ("clara",)),
        ("username,name\nemil,Emil\n,,\n,,", ("emil",)),
        ("jos\u00e9\njose\u0301\n", ("jos\u00e9",)),
        ('user,remark\nanna,"two\nlines"\nbob,x', ("anna", "bob")),
        ("sep=;\nusername;name\nalice;Alice, A\n", ("alice",)),
        ("# the class of Friday\n#,Name,Username\n1,Anna,anna\n# away\n2,Ben,ben", ("anna", "ben")),
        ("# name\nbob", ("bob",)),
        ("1. Anna\n2. Ben\nCarl", ("1. Anna", "2. Ben", "Carl")),
        ("Account,Username\n17,anna", ("anna",)),
        ("anna,\nben,7\ncarl,8", ("anna", "ben", "carl")),
        ("Account;Klasse\nalice;10a\nbob;10a", ("alice", "bob")),
        ("anna;M\u00fcller, Anna\nben;Maier, Ben", ("anna", "ben")),
        ("anna;M\u00fcller,Anna", ("anna",)),
        ("anna\tM\u00fcller, Anna; 10a", ("anna",)),
        ("clara,CCNA; evening\nemil,CCNA; evening", ("clara", "emil")),
        ("anna,g1;g2\nben,g1;g3", ("anna", "ben")),
    ],
)
def test_the_learners_of_a_list(text: str, learners: tuple[str, ...]) -> None:
    assert users(text) == learners


@pytest.mark.parametrize(
    ("text", "learner"),
    [
        (
            '"identifier","github_username","github_id","name"\n"anna@uni.org","anna-h","17","Anna Huber"',
            Learner("anna@uni.org", "Anna Huber"),
        ),
        (
            "id,first_name,last_name,email\nberta,Berta,Maier,b@uni.org",
            Learner("berta", "Maier, Berta", "b@uni.org"),
        ),
        (
            '"First name","Last name","ID number","Email address"\nAnna,Huber,17,anna@uni.org',
            Learner("anna@uni.org", "Huber, Anna", "anna@uni.org"),
        ),
        ("Vorname;Nachname;Anmeldename\nJ\u00f6rg;M\u00fcller;jm", Learner("jm", "M\u00fcller, J\u00f6rg")),
        ("Benutzername;Name\njo;Jo Blau", Learner("jo", "Jo Blau")),
        (
            CANVAS,
            Learner("anna", "Huber, Anna"),
        ),
        (
            '"Last Name","First Name","Username","Student ID","Last Access"\n"Huber","Anna","anna","17","never"',
            Learner("anna", "Huber, Anna"),
        ),
        (
            TEAMS,
            Learner("anna@x.org", "Anna Huber", "a@x.org"),
        ),
        (
            "Name\tFirst Join\tEmail\tParticipant ID (UPN)\tRole\nAnna Huber\t9:00\ta@x.org\tanna@x.org\tAttendee",
            Learner("anna@x.org", "Anna Huber", "a@x.org"),
        ),
        ("Nachname;Vorname;E-Mail-Adresse\nHuber;Anna;anna@x.org", Learner("anna@x.org", "Huber, Anna", "anna@x.org")),
    ],
    ids=[
        "github",
        "nbgrader",
        "moodle",
        "moodle-de",
        "excel-de",
        "canvas",
        "blackboard",
        "teams",
        "teams-table",
        "mail-alone",
    ],
)
def test_a_list_as_its_program_wrote_it(text: str, learner: Learner) -> None:
    assert read_roster(text, "names.csv").learners == (learner,)


@pytest.mark.parametrize(("encoding", "notes"), [("utf-8", 0), ("utf-8-sig", 0), ("utf-16", 0), ("cp1252", 1)], ids=str)
def test_a_file_in_each_encoding(encoding: str, notes: int) -> None:
    roster = read_roster("username;name\njm;J\u00f6rg M\u00fcller\n".encode(encoding), "names.csv")
    assert roster.learners == (Learner("jm", "J\u00f6rg M\u00fcller"),)
    assert len(roster.notes) == notes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names.csv names no learners"),
        ("learner\n", "names.csv names no learners"),
        ("alice,friday\n,friday\n", "names.csv, line 2: column 1 is empty, and has the user; read was friday"),
        ("alice\nb\x1bob\n", "names.csv, line 2, column 1: vkprovider.io/username is not a name"),
        ("\n".join(f"l{n}" for n in range(1001)), "names 1001 learners, more than 1000"),
        ("First name,Section\nAnna,Friday", "line 1: none of the headings 'First name', 'Section' says which column"),
        ("K\u00fcrzel;Raum\nah17;x\nbm18;x", "line 1: none of the headings 'K\u00fcrzel', 'Raum' says which column"),
        ("Kunde;Raum\nalice;10a\n", "line 1: none of the headings 'Kunde', 'Raum' says which column"),
        (
            "Vorname;Name\nAnna;M\u00fcller\nBen;M\u00fcller",
            "line 1: none of the headings 'Vorname', 'Name' says which",
        ),
        (
            "Name;Vorname\nM\u00fcller;Anna\nM\u00fcller;Ben",
            "line 1: none of the headings 'Name', 'Vorname' says which",
        ),
        ('username,name\nalice,"Alice A\nbob,Bob\n', "line 2: a quote that opens here is never closed"),
        ('username,name\nalice,"Alice" A\nbob,Bob\n', "line 2: ',' expected after '\"'"),
        ("1. Summary\nTitle\tOSPF\n2. Rooms\nRoom\tSeats\nA\t3", "none of its sections 1. Summary, 2. Rooms has a"),
        ('Student,SIS Login ID\n"Huber, Anna",\n', "line 2: column 2 is empty, and has the user"),
        ("anna, Anna M\u00fcller;10a\nben, Ben Huber;10b", "line 1: where the user ends in 'anna, Anna M\u00fcller'"),
        ("anna; M\u00fcller,Anna\nben; Huber,Ben", "line 1: where the user ends in 'anna; M\u00fcller' is not clear"),
    ],
)
def test_a_list_that_cannot_be_used(text: str, says: str) -> None:
    with pytest.raises(RosterError, match=says.replace(".", r"\.")):
        read_roster(text, "names.csv")


def test_a_line_that_is_no_csv() -> None:
    with pytest.raises(RosterError, match=r"names\.csv, line 2: field larger"):
        read_roster("alice\n" + "x" * 200_000, "names.csv")


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_a_list_or_is_refused_in_words(content: bytes | str) -> None:
    try:
        found = users(content)
    except RosterError:
        return
    assert 0 < len(found) <= LEARNERS_MAX
    assert len(set(found)) == len(found)
    assert all(name == name.strip() and name.isprintable() for name in found)


@pytest.mark.parametrize(
    ("learners", "others", "pairs"),
    [
        (("alice", "bob"), ("carol",), []),
        (("alice", "alice"), ("alice",), []),
        (("Bob", "bob"), (), [("Bob", "bob")]),
        (("bob", "BOB", "Bob"), (), [("bob", "BOB"), ("bob", "Bob")]),
        (("bob",), ("Bob", "Ann", "ann"), [("Bob", "bob")]),
        (("straße",), ("STRASSE",), [("STRASSE", "straße")]),
    ],
)
def test_names_that_differ_in_case_only(
    learners: tuple[str, ...], others: tuple[str, ...], pairs: list[tuple[str, str]]
) -> None:
    assert look_alikes(learners, others) == pairs


@given(st.text(max_size=60))
def test_a_list_that_was_read_is_sent_again_as_it_is(text: str) -> None:
    try:
        roster = read_roster(f"username,name\n{text}", "the list")
    except RosterError:
        return
    assert read_roster(as_list(roster), "again").learners == roster.learners


def test_marks_in_names_are_kept_in_a_list_that_is_sent_again() -> None:
    roster = read_roster('name,username,email\nx,#anna,\n"a ""b"" c","x,y;z",a@b', "the list")
    assert read_roster(as_list(roster), "again") == roster
