"""Options that argparse was told to take and that nothing of the script's reads."""

from __future__ import annotations

from collections.abc import Sequence

from harness.watch.bounded import First
from harness.watch.events import End, Fact, OptionsParsed
from harness.watch.recogniser import Recogniser


class OptionsRead(Fact):
    """A run is over that has parsed its command line. ``where`` it did."""

    needs = "command line that argparse parses, and that is not handed on whole"
    of_run = True
    options: int = 0
    unread: Sequence[tuple[str, str | None]] = ()
    """Flags that were not read in this run, and that no line of the user's reads, with where each was added."""


class Options(Recogniser):
    makes = (OptionsRead,)

    def begin(self) -> None:
        self._parsed = First[OptionsParsed]()

    def on_options_parsed(self, event: OptionsParsed) -> None:
        self._parsed.append(event)

    def on_end(self, event: End) -> None:
        names = {each.name for parsed in self._parsed for each in parsed.options}
        read = {name for parsed in self._parsed for name in parsed.reading.names}
        for parsed in self._parsed if event.at.complete else ():
            if parsed.reading.whole or not parsed.options:
                continue
            # What is read only in another mode of the script is no fault: then a line of it has the name.
            named = self.monitor.locator.read_names(names - read)
            unread = [(each.flag, each.where) for each in parsed.options if each.name not in read | named]
            where = unread[0][1] if unread else parsed.where
            self.tell(OptionsRead(options=len(parsed.options), unread=unread, where=where or parsed.where))
