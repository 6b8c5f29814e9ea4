"""`unshard metrics`: dashboard, alert rules and the list of metrics, printed, for Prometheus and Grafana."""

from __future__ import annotations

import json

import typer

metrics = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Print what Prometheus and Grafana need to watch Unshard."
)

HEAD = "# Made by `unshard metrics alerts`: don't edit it; rules of your own go into another file.\n"


@metrics.command("dashboard")
def print_dashboard() -> None:
    """Print the Grafana dashboard, as JSON to import."""
    typer.echo(dashboard_text(), nl=False)


@metrics.command("alerts")
def print_alerts() -> None:
    """Print the alert rules, as a rule file of Prometheus."""
    typer.echo(alerts_text(), nl=False)


@metrics.command("list")
def print_list() -> None:
    """Print each metric: its name, its kind, its labels, what it means."""
    from unshard.metrics.registry import METRICS

    for metric in METRICS.values():
        typer.echo(f"{metric.name}  {metric.kind}  {', '.join(metric.labels)}\n    {metric.help}")


def dashboard_text() -> str:
    """Return the dashboard for Grafana, as JSON."""
    from unshard.metrics.dashboard import dashboard

    return json.dumps(dashboard(), indent=2) + "\n"


def alerts_text() -> str:
    """Return the alert rules for Prometheus, as YAML."""
    import yaml

    from unshard.metrics.registry import rules

    return HEAD + yaml.safe_dump(rules(), sort_keys=False, width=120, allow_unicode=True)
