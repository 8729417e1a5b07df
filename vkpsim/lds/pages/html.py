"""The learner's pages: plain HTML without scripts or outside assets."""

import html
from collections.abc import Iterable
from typing import Final

from vkpsim.lds.errors import E
from vkpsim.lds.model import Device, Form, Session, instant
from vkpsim.lds.states import RULES, Op

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .35rem .6rem .35rem 0 }
th { border-bottom: 2px solid #57606a } td { border-bottom: 1px solid #d0d7de }
label { display: block; margin: .6rem 0 } input, textarea, select { font: inherit; width: 100%; box-sizing: border-box }
button { font: inherit; padding: .4rem 1rem; margin: .6rem 0 } .state { color: #57606a }
"""


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{html.escape(title)}</h1>\n{body}</body></html>\n"
    )


def login_page(session: Session, link: str) -> str:
    """Render the page that a login URL shows."""
    return _page(
        "Lab login",
        '<form method="post" action="/login">'
        f'<input type="hidden" name="token" value="{html.escape(link)}">'
        f'<p>This link is for <strong id="username">{html.escape(session.username)}</strong>.</p>'
        '<button id="login">Log in</button></form>\n',
    )


def session_page(session: Session, form: Form) -> str:
    """Render the page of a session that its user is logged in to."""
    part = session.parts[-1]
    answers = {answer.item: answer.answer for answer in session.answers.values() if answer.part == part.id}
    body = (
        f"<p>{html.escape(session.username)}, until {instant(part.ends_unix_s)}: "
        f'<span id="state" class="state">{session.state}</span></p>\n{_devices(session.devices)}'
    )
    if _may(Op.ANSWER, session):
        tasks = "".join(
            f'<label>{html.escape(task)}<textarea name="{html.escape(task)}">'
            f"{html.escape(str(answers.get(task, '')))}</textarea></label>"
            for task in form.tasks
        )
        body += f"<h2>Tasks</h2>\n{_form(session, 'answers', 'Save', tasks)}"
        body += f"<h2>Finish</h2>\n{_form(session, 'finish', 'Finish', '')}"
    if _may(Op.GIVE_FEEDBACK, session):
        ratings = "".join(f"<option>{rating}</option>" for rating in range(1, 6))
        body += "<h2>Feedback</h2>\n" + _form(
            session,
            "feedback",
            "Send",
            f'<label>Rating<select name="rating">{ratings}</select></label>'
            '<label>Comment<textarea name="comment"></textarea></label>',
        )
    return _page(part.form, body)


def problem_page(message: str) -> str:
    """Render the page that says what is wrong."""
    return _page("This does not work", f'<p id="problem">{html.escape(message)}</p>\n')


def _may(op: Op, session: Session) -> bool:
    return not isinstance(RULES[op][session.state], E)


def _devices(devices: Iterable[Device]) -> str:
    rows = "".join(
        f'<tr class="device"><td>{html.escape(device.name)}</td><td>{device.protocol}</td>'
        f"<td>{html.escape(device.host)}</td><td>{device.port}</td>"
        f"<td>{_link(device.uri)}</td><td>{html.escape(device.username or '')}</td>"
        f"<td>{html.escape(device.password or '')}</td></tr>\n"
        for device in devices
    )
    heads = "".join(f"<th>{head}</th>" for head in ("Device", "Access", "Address", "Port", "Link", "User", "Password"))
    table = f'<table id="devices"><thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table>\n'
    return "<h2>Devices</h2>\n" + (table if rows else '<p id="devices">There are no devices.</p>\n')


def _link(uri: str) -> str:
    """Make a link of a URI with a device's scheme; other schemes would not be safe to click."""
    shown = html.escape(uri)
    safe = uri.startswith(("ssh://", "telnet://", "vnc://", "http://", "https://"))
    return f'<a href="{shown}" rel="noreferrer">{shown}</a>' if safe else shown


def _form(session: Session, action: str, button: str, fields: str) -> str:
    return (
        f'<form method="post" action="/sessions/{html.escape(session.id)}/{action}">{fields}'
        f'<button id="{action}">{button}</button></form>\n'
    )
