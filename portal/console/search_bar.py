"""What the search of every list in the console has in common: words, choices that apply at once, a span of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.forms import BoundField

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise  # the stubs' name of what gettext_lazy gives

MAX_QUERY_CHARACTERS: Final = 200


def words_field(label: _StrPromise) -> forms.CharField:
    """The field `q`; its label says what may be searched for."""
    attributes = {"placeholder": label, "aria-label": label}
    return forms.CharField(
        label=label,
        max_length=MAX_QUERY_CHARACTERS,
        required=False,
        widget=forms.TextInput(attrs={"type": "search", **attributes}),
    )


class SearchBar(forms.Form):
    """Drawn by console/_search.html. A value that is not known filters nothing: an old link still opens the page."""

    @property
    def choice_names(self) -> tuple[str, ...]:
        """The fields that are offered as lists."""
        return ()

    def known(self, name: str) -> Any:
        """The value of a field where it is valid, else None or an empty text."""
        self.is_valid()
        return self.cleaned_data.get(name)

    @property
    def query(self) -> str:
        """The words that are searched for, as they came; empty without any."""
        return str(self.data.get("q", "")).strip()

    @property
    def words(self) -> BoundField:
        return self["q"]

    @property
    def choices(self) -> list[BoundField]:
        """The lists, each of which is applied as soon as something is chosen."""
        for name in self.choice_names:
            field = self.fields[name]
            field.widget.attrs |= {"aria-label": field.label, "data-submit-on-change": True}
        return [self[name] for name in self.choice_names]

    @property
    def has_span(self) -> bool:
        return "since" in self.fields

    @property
    def is_filtered(self) -> bool:
        names = [*self.choice_names, *(("since", "until") if self.has_span else ())]
        return bool(self.query) or any(self.known(name) for name in names)
