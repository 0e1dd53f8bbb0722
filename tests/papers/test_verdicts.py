"""Verdicts of benchmarks: words beside figures come from the record as the figures do."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

harness = pytest.importorskip("benchmarks.harness", reason="benchmarks come with a checkout")
from benchmarks import _verdicts  # noqa: E402

DOC = Path(harness.HERE).parent / "doc"
RECORDED = sorted({path.stem for path in harness.RECORDS.glob("*.json")} - {"check"})
PAGES = {
    path.relative_to(DOC).with_suffix("").as_posix(): path.read_text()
    for path in sorted(DOC.rglob("*.rst"))
    if not {"_build", "auto_examples", "generated"} & {*path.relative_to(DOC).parts}
}
FIGURE = re.compile(r"\{(?:(\w+)\.)?([\w-]+)(?::[^{}]*)?\}")
# What a figure may say, so that it must not be typed beside it. Elsewhere "all" is often no result,
# as in "9 GiB in all".
SAYS = r"\b(?:ahead|behind|level|match(?:es)?|zero|(?:more|less|as) accurate)\b"
SAYS_IN_VERDICTS = rf"{SAYS}|\b(?:all|none|every)\b"
VERDICT = re.compile(r"\.\. admonition:: Verdict\n\n((?: {3}.+\n)+)")


@cache
def claims_of(record):
    """The sentences that a benchmark checks by its record, each with whether it holds."""
    module = harness.module_of(record)
    offered = getattr(module, "claims", lambda results: {})
    return offered(harness.read(record)["results"])


def typed(text, own, claimed):
    """The words of a page that say what a figure says, and are neither filled nor checked.

    A verdict is one sentence; elsewhere a sentence counts if it quotes a record.
    """
    verdict = VERDICT.search(text)
    found = []
    for paragraph in re.split(r"\n *\n", text):
        is_verdict = bool(verdict) and paragraph.strip() in verdict[1]
        prose = " ".join(paragraph.split())
        for claim in claimed:
            prose = prose.replace(claim, "")
        for sentence in [prose] if is_verdict else re.split(r"(?<=[.!?]) ", prose):
            if {of or own for of, _ in FIGURE.findall(sentence)} & {*RECORDED}:
                words = re.sub(FIGURE, "", sentence)
                found += re.findall(SAYS_IN_VERDICTS if is_verdict else SAYS, words, re.IGNORECASE)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_no_word_beside_a_figure_says_what_the_record_may_deny(page):
    """One verdict counted one lead and no losses, of which there were six; one said 1 for two."""
    own = page.removeprefix("benchmarks/")
    named = {of or own for of, _ in FIGURE.findall(PAGES[page])} & {*RECORDED}
    claimed = [claim for record in named for claim in claims_of(record)]
    assert typed(PAGES[page], own, claimed) == []


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("skfair does so for {skfair}: it matches rows, and returns zero.", ["matches", "zero"]),
        ("It is ahead by {compas}, in {clear} of {cells} cells.", ["ahead"]),
        ("Elsewhere both are level, with {elsewhere}.", ["level"]),
        ("Decisions are as accurate: their lead is {threshold}.", ["as accurate"]),
        ("The lead is {parity}. equipy is level.", ["level"]),
        ("It reaches every cost, and {adult} results.", ["every"]),
        ("skfair is {tally} of the cells, with a lead of {lead:.1f}.", []),
        ("Nothing is filled, and skfair is ahead.", []),
    ],
)
def test_the_rule_finds_what_was_typed(sentence, words):
    text = f"Title\n=====\n\n.. admonition:: Verdict\n\n   {sentence}\n\nMore.\n"
    assert typed(text, "decisions", []) == words
    assert typed(text, "decisions", [sentence]) == []
    beside = f"Title\n=====\n\nAs {{monitor.seen:.0%}} of the streams, 9 GiB in all. {sentence}\n"
    assert typed(beside, "", []) == []  # the figures of a sentence elsewhere name their record


@pytest.mark.parametrize("record", RECORDED)
def test_what_stands_beside_a_figure_is_what_the_record_says(record):
    text = " ".join(" ".join(PAGES.values()).split())
    for claim, holds in claims_of(record).items():
        assert holds, claim
        assert claim in text


def test_a_tally_shows_both_sides_and_level_is_within_two_errors():
    leads = [harness.Lead(mean, 0.01) for mean in (0.03, 0.019, 0.0, -0.019, -0.03, -0.04)]
    leads.append(harness.Lead(-0.5, np.nan))  # without an error nothing is beyond chance
    words = [_verdicts.standing(lead) for lead in leads]
    assert words == ["ahead", "level", "level", "level", "behind", "behind", "level"]
    counted = _verdicts.tally(leads)
    assert f"{counted}" == "ahead in 1 and behind in 2 of 7 cells"
    assert _verdicts.tally_of_signs([0.2, -0.2, 0.1], 0.1)[:3] == (1, 1, 3)
