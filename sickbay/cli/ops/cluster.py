"""What these commands share: the options of the connection, and how a call becomes an answer or one line of error."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ParamSpec, TypeVar

import click
import msgspec

from sickbay.cli.ops import session
from sickbay.cli.ops.session import Session
from sickbay.cli.process import configure_logs
from sickbay.kube import errors
from sickbay.kube.client import Client

P = ParamSpec("P")
T = TypeVar("T")


def connection(function: Callable[..., Any]) -> Callable[..., Any]:
    """--kubeconfig and --context, handed on as `call`: run a coroutine with a client."""

    @click.option("--kubeconfig", default="", help="Default: $KUBECONFIG, the service account, ~/.kube/config.")
    @click.option("--context", "context_name", default="", help="Context of the kubeconfig; default: its current one.")
    @functools.wraps(function)
    def wrapped(kubeconfig: str, context_name: str, **arguments: Any) -> Any:
        configure_logs("error")

        def call(work: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
            reached = session.current()
            return reached.run(_with_client(reached, kubeconfig, context_name, work))

        return function(call=call, **arguments)

    return wrapped


async def _with_client(
    reached: Session, kubeconfig: str, context: str, work: Callable[[Client], Coroutine[Any, Any, T]]
) -> T:
    client = reached.connect(kubeconfig, context)
    try:
        return await work(client)
    except errors.NotFound as error:
        raise click.ClickException(_not_found(error)) from None
    except errors.Forbidden as error:
        raise click.ClickException(f"not permitted: {error.message}") from None
    except errors.Unreachable as error:
        server = str(client.http.base_url).rstrip("/")
        raise click.ClickException(f"the API server {server} cannot be reached: {error.message}") from None
    except errors.ApiError as error:
        raise click.ClickException(str(error)) from None
    finally:
        await client.aclose()


def _not_found(error: errors.NotFound) -> str:
    if "could not find the requested resource" in error.message or "page not found" in error.message:
        return (
            "this cluster does not know Sickbay's kinds; install them: sickbay crds | kubectl apply --server-side -f -"
        )
    return error.message


output = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)


def print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(headings: list[str], rows: list[list[str]], empty: str) -> None:
    """Columns as kubectl prints them; `empty` where there is nothing."""
    if not rows:
        click.echo(empty)
        return
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        click.echo("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def counted(number: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def section(title: str, lines: list[str]) -> Iterator[str]:
    """A title and its lines, indented; nothing where there are none."""
    if lines:
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)
