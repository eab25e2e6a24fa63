# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of reports on a terminal; shows nothing elsewhere."""

from __future__ import annotations

from rich import progress
from rich.console import Console


class Progress(progress.Progress):
    """A listener of a job: one line for reading and one for the queries, with the elapsed time."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._reading = self.add_task("reading the stores", total=None)
        self._asking = self.add_task("making reports", total=None)

    def reading(self, done: int, of: int) -> None:
        """So many of the parts are read."""
        self.update(self._reading, completed=done, total=of)

    def asking(self, done: int, of: int) -> None:
        """So many of the reports are made."""
        self.update(self._asking, completed=done, total=of)
