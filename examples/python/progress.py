"""A progress bar for a terminal, and plain lines everywhere else."""

from __future__ import annotations

import shutil
import sys
import time

_PARTS = " ▏▎▍▌▋▊▉█"
# A terminal shows no more than this often: drawing must not slow the work down.
_INTERVAL_S = 0.05


class Progress:
    """Shows how far a task of `total` steps is; `finish` leaves one line."""

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.total = total
        # (Notebooks let a line be written anew, too.)
        self.is_live = sys.stdout.isatty() or "ipykernel" in sys.modules
        self._shown_at = 0.0

    def update(self, done: int, text: str) -> None:
        """Redraws the bar, in a terminal only."""
        now = time.monotonic()
        if not self.is_live or (now - self._shown_at < _INTERVAL_S and done < self.total):
            return
        self._shown_at = now
        columns = shutil.get_terminal_size().columns
        width = max(10, min(32, columns - len(self.name) - len(text) - 12))
        eighths = round(8 * width * done / self.total)
        bar = "█" * (eighths // 8) + (_PARTS[eighths % 8] if eighths % 8 else "")
        line = f"{self.name} │{bar:<{width}}│ {100 * done // self.total:3d}%  {text}"
        sys.stdout.write("\r\x1b[K" + line[: columns - 1])
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Prints a line that stays, where there is no live bar."""
        if not self.is_live:
            print(f"{self.name}  {text}", flush=True)

    def finish(self, text: str) -> None:
        """Replaces the bar by its last line."""
        if self.is_live:
            sys.stdout.write("\r\x1b[K")
        print(f"{self.name}  {text}", flush=True)
