"""The version of skfair that a model was saved by."""

from __future__ import annotations

from typing import Any

from skfair._version import __version__
from skfair.utils.warn import warn_user


class SavedMixin:
    """Pickles of a model name the version of skfair, and another version that reads them warns.

    Private attributes may change with each version, so predictions may be wrong or fail.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "_skfair_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_skfair_version", None)
        if version != __version__:
            saved = "an earlier version of skfair" if version is None else f"skfair {version}"
            warn_user(
                f"This {type(self).__name__} was saved by {saved}, and is read by {__version__}: "
                "its predictions may fail or be wrong. Load it with the version that saved it, or "
                "fit it again."
            )
        super().__setstate__(state)  # type: ignore[misc]
