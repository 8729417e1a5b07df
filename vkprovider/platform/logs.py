"""Structured logs: JSON lines in a cluster, colours on a terminal; libraries' lines look like ours."""

import logging
import sys
from typing import Final

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import Processor

_TRACES: Final = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
"""Local variables would bring secrets into the log."""


class _Logger(structlog.PrintLogger):
    """A logger that knows its name, as those of the standard logging do."""

    def __init__(self, name: str) -> None:
        super().__init__(sys.stderr)
        self.name = name


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a line of asyncio says more than that a TLS connection has ended.

    uvloop calls it a fatal error if that was closed here while the other side still sent; other loops say nothing.
    """
    error = record.exc_info[1] if record.exc_info else None
    closed = isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")
    return not (closed and record.getMessage().startswith("Fatal error on SSL protocol"))


def set_up(level: str, format_: str) -> None:
    """Configure structlog and, for libraries, the standard logging.

    Args:
        level: `debug`, `info`, `warning` or `error`; of libraries but `tunnels` never less than warnings.
        format_: `json`, `console`, or `auto`: by whether standard error is a terminal.
    """
    number = getattr(logging, level.upper())
    console = format_ == "console" or (format_ == "auto" and sys.stderr.isatty())
    renderer: Processor = structlog.processors.JSONRenderer()
    if console:  # plain tracebacks: prettier ones print local variables
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    traces: list[Processor] = [] if console else [_TRACES]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_logger_name,
            structlog.processors.add_log_level,
            stamp,
            *traces,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=_Logger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, stamp],
            processors=[ProcessorFormatter.remove_processors_meta, *traces, renderer],
        )
    )
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)
    logging.getLogger("asyncio").addFilter(_is_news)
    logging.getLogger("tunnels").setLevel(number)  # ours: to whom an agent is connected, and why not
