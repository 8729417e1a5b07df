"""Structured logs: JSON lines in a cluster, colours on a terminal."""

import logging
import sys

import structlog
from structlog.tracebacks import ExceptionDictTransformer


def set_up(level: str, format_: str) -> None:
    """Configure structlog and, for libraries, the standard logging."""
    number = getattr(logging, level.upper())
    console = format_ == "console" or (format_ == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if console:  # plain tracebacks: prettier ones print local variables, and secrets with them
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    traces = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if console else [traces]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        level=max(number, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s %(message)s"
    )
