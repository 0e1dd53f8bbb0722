"""The file of laws: complete, dated, and the only place where pages have their dates from."""

import html
import re
from datetime import date, timedelta
from importlib import import_module, resources
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skfair.report import audit, words
from skfair.report.results.evidence import NUMBERS, evidence_of
from skfair.report.results.sentences import number
from skfair.report.words import PRESETS, laws

ROOT = Path(__file__).parents[3]
FIELDS = {
    *("name", "jurisdiction", "applies_from", "state", "source", "checked", "asks", "called"),
}
# What an entry has if something may change the law soon, or if it asks what is known
OPTIONAL = {"pending", "evidence", "preset"}
ROW = ("elsewhere", "no_number")
LAWS = {key: SimpleNamespace(**entry) for key, entry in laws().items()}
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
# "21 July 2026", "July 21, 2026", "July 2026", "2026-07-21", and years behind such words
WRITTEN = re.compile(
    rf"(?:(?P<day>\d\d?) )?(?P<month>{'|'.join(MONTHS)})(?: (?P<after>\d\d?),)? (?P<year>\d{{4}})"
    r"|(?P<iso>\d{4}-\d\d-\d\d)"
    r"|(?:(?<=of )|(?<=in )|(?<=since )|(?<=from )|(?<=until )|(?<=\())(?P<alone>(?:19|20)\d\d)\b"
)
NEAR = 300  # characters of the same paragraph, in which a date may be that of a law
# How laws are cited
CITED = re.compile(
    r"[HS]B \d[\d-]*|RIN \d{4}-[A-Z]{2}\d\d|FR-\d{4}-[A-Z]-\d\d|FR 20\d\d-\d+"
    r"|TS \d{4,}|Local Law \d+"
    r"|\d+ CFR \d+|\d+ C\.?CR \d+|\d+ RCNY \d+-\d+|\d+ U\.S\.C\. \d+"
    r"|N\.J\.A\.C\. \d+:\d+|Executive Order \d+|\b20\d\d/\d{3,4}\b"
)
MADE = {"_build", "generated", "auto_examples"}  # by the site
# Everything that users read
READ = [
    *(path for path in (ROOT / "doc").rglob("*.rst") if not MADE & set(path.parts)),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md")),
    *(ROOT / "skfair").rglob("*.py"),
    *(ROOT / "skfair" / "report").rglob("*.j2"),
    ROOT / "skfair" / "report" / "words.toml",
]


def dates_in(text):
    """The dates of a text and their places, as ISO as far as given: 2026, 2026-07, 2026-07-21."""
    for match in WRITTEN.finditer(text):
        found = match.groupdict()
        parts = [found["year"]]
        if found["month"]:
            parts.append(f"{MONTHS.index(found['month']) + 1:02}")
            parts += [f"{int(day):02}" for day in (found["day"] or found["after"],) if day]
        yield match.start(), found["iso"] or found["alone"] or "-".join(parts)


def texts_of(law):
    """All that the file says of a law, as one text."""
    dates = f"from {law.applies_from}, {law.checked}"
    pending = getattr(law, "pending", "")
    return f"{law.name}: {dates}. {law.state} {pending} {law.source} {law.asks} {law.called}"


def breaches(text, known):
    """The dates and citations of a page that are not those of the laws which it names nearby."""
    everything = " ".join(map(texts_of, known.values()))
    yield from (cited for cited in CITED.findall(text) if cited not in everything)
    for part in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
        part = " ".join(part.split())
        for place, day in dates_in(part):
            near = part[max(0, place - NEAR) : place + NEAR]
            named = [law for law in known.values() if any(word in near for word in law.called)]
            allowed = [own for law in named for _, own in dates_in(texts_of(law))]
            if named and not any(own.startswith(day) for own in allowed):
                yield day


def faults(law):
    """What an entry of the file lacks: a field, a citation, or the day of the check."""
    known = vars(law)
    yield from FIELDS ^ ({name for name, value in known.items() if value} - OPTIONAL)
    if not re.fullmatch(r"\d{4}(-\d\d-\d\d)?|not known", known.get("applies_from", "")):
        yield "no date"
    checked = known.get("checked")
    if type(checked) is not date or not date(2026, 1, 1) <= checked <= date.today():
        yield "no day of a check"
    if not re.search(r"\d", known.get("source", "")):
        yield "no citation"
    texts = [known.get(name, "") for name in ("state", "source", "asks")]
    ends = [*texts, known.get("pending", ".")]
    if not all(text.endswith(".") for text in ends) or len(re.split(r"\.(?= |$)", texts[2])) != 2:
        yield "no sentence"


@pytest.mark.parametrize("key", LAWS)
def test_each_law_has_a_state_a_source_and_the_day_on_which_it_was_checked(key):
    assert list(faults(LAWS[key])) == []


def test_what_changed_in_2026_is_in_the_file():
    since = {key: law.applies_from for key, law in LAWS.items()}
    assert since["ecoa"] == "2026-07-21"
    assert since["new_jersey"] == "2025-12-15"
    assert since["colorado"] == "2027-01-01"
    assert since["ai_act"] == "2027-12-02"
    assert "deleted the effects test" in LAWS["ecoa"].state
    assert "RIN 3046-AB43" in LAWS["ugesp"].pending
    assert since["title_vi"] == "2025-12-10"
    assert since["illinois"] == "2026-01-01"
    assert since["connecticut"] == "2026-10-01"
    assert since["california_ccpa"] == "2027-01-01"
    assert "ISO/IEC TS 12791:2024" in LAWS["iso_12791"].name
    assert "NIST AI RMF" in LAWS["nist_ai_rmf"].name
    assert "FR-6540-P-01" in LAWS["hud"].pending
    assert "A suit" in LAWS["colorado"].pending
    assert "Data (Use and Access) Act 2025" in LAWS["uk_gdpr"].state
    assert "31 March 2026" in LAWS["ico"].pending
    assert "ISO/IEC 42001" in LAWS["iso_42001"].name


def test_pages_have_the_dates_and_citations_of_the_file():
    found = {path: list(breaches(path.read_text(encoding="utf-8"), LAWS)) for path in READ}
    assert {path.relative_to(ROOT): own for path, own in found.items() if own} == {}


def test_pages_name_laws():
    """Or the test above would compare nothing."""
    texts = [path.read_text(encoding="utf-8") for path in READ]
    named = {key for key, law in LAWS.items() for t in texts if any(w in t for w in law.called)}
    assert {"ecoa", "ll144", "ugesp", "new_jersey", "ai_act"} <= named


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The effects test was deleted on 21 July 2026.", []),
        ("The effects test was deleted on July 22, 2026.", ["2026-07-22"]),
        ("ECOA changed in July 2026.", []),
        ("ECOA changed in 2025.", ["2025"]),
        ("- Colorado: from 2027-01-01.\n- ECOA: from 2027-01-01.", ["2027-01-01"]),
        ("Colorado's act (SB 24-205) applies from 30 June 2026.", ["2026-06-30"]),
        ("Another act (SB 25-001) applies.", ["SB 25-001"]),
        ("Illinois HB 3773 and HB 1.", ["HB 1"]),
        ("Illinois: from 2026-02-01.", ["2026-02-01"]),
        ("HUD has proposed FR-6540-P-01, and not FR-6541-P-02.", ["FR-6541-P-02"]),
        ("The guidelines are rescinded (RIN 3046-AB44).", ["RIN 3046-AB44"]),
        ("Nobody knows what is from 30 June 2026.", []),
        ("The AI Act:\nhigh-risk duties apply from 2 August\n2026.", ["2026-08-02"]),
    ],
)
def test_a_wrong_date_and_a_law_that_is_not_in_the_file_are_found(text, found):
    assert list(breaches(text, LAWS)) == found


def selections(preset=None, **options):
    sex = np.repeat(["f", "m"], 200)
    chosen = np.r_[np.arange(200) < 80, np.arange(200) < 120].astype(int)
    options = {"n_simulations": 20, "preset": preset, "sensitive_features": {"sex": sex}, **options}
    return audit(None, chosen, **options)


def shown(found):
    page = html.unescape(re.sub(r"<[^>]*>", "", found.to_html()))
    cell, card = html.unescape(found._repr_html_()), found.to_markdown().replace("\\", "")
    return repr(found), page, cell, card


@pytest.mark.parametrize("preset", PRESETS)
def test_what_names_a_law_warns_if_it_may_change_or_was_checked_long_ago(preset, monkeypatch):
    law, found = LAWS[preset], selections(preset, reference="m")
    pending = getattr(law, "pending", None)
    for days, is_old in ((0, False), (183, False), (184, True), (2000, True)):
        monkeypatch.setattr(words, "today", lambda days=days: law.checked + timedelta(days))
        for text in shown(found):
            assert ("Warning about the law" in text) == (is_old or pending is not None)
            assert (f"last looked up on {law.checked}, more than six" in text) == is_old
            assert pending is None or pending in text
    monkeypatch.setitem(words.laws()[preset or "ugesp"], "pending", "A draft may change it.")
    monkeypatch.setattr(words, "today", lambda: law.checked)
    for text in shown(found):
        assert f"({law.name}): it may change soon. A draft may change it." in text
    if preset is not None:
        assert "A draft may change it." in selections(preset, reference="m").rule


def test_what_names_no_law_warns_of_none(monkeypatch):
    monkeypatch.setattr(words, "today", lambda: date(9999, 1, 1))
    y = np.arange(400) % 2
    numbers = audit(None, y / 3, sensitive_features=np.repeat(["f", "m"], 200), n_simulations=20)
    for found in (numbers, selections(), selections(reference="m")):
        assert not any("Warning" in text for text in shown(found))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_page_with_a_preset_says_the_state_of_its_law(preset):
    law, found = LAWS[preset], selections(preset, reference="m")
    for said in (law.state, law.source, f"as of {law.checked}", f"from {law.applies_from}"):
        assert said in found.rule
    end = found.to_html().partition("<footer>")[2].partition("</footer>")[0]
    for text in (end, found.to_markdown().rstrip().splitlines()[-1].replace("\\", "")):
        assert f"State of the law as of {law.checked}: {law.name} ({law.jurisdiction})" in text
        assert f"applies from {law.applies_from}. This page is not legal advice." in text


def test_a_page_that_says_four_fifths_says_the_state_of_that_rule_and_others_none():
    text = f"State of the law as of {LAWS['ugesp'].checked}: {LAWS['ugesp'].name}"
    assert not any(
        "four fifths" in said or "State of the law" in said for said in shown(selections())
    )
    found = selections("ugesp")
    assert "four fifths" in repr(found)
    assert text in found.to_html()
    assert text in found.to_markdown()
    y = np.arange(400) % 2
    numbers = audit(
        y / 2.0, y / 3.0, sensitive_features={"sex": np.repeat(["f", "m"], 200)}, n_simulations=20
    )
    for page in (numbers.to_html(), numbers.to_markdown()):
        assert "State of the law" not in page


def test_the_page_about_the_law_has_the_list_of_the_file(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    listed = import_module("law_list").text()
    for law, entry in zip(LAWS.values(), re.split(r"\n\n(?=\S)", listed), strict=True):
        assert entry.startswith(f"{law.name} ({law.jurisdiction})\n")
        texts = [law.state, law.source, getattr(law, "pending", ""), f"Checked on {law.checked}."]
        texts += [law.applies_from] * (law.applies_from != "not known")
        for said in texts:
            assert said in entry
            assert not re.search(r"[*|\\`]|_(?!\w)", said)  # it would be markup
    page = (ROOT / "doc" / "user_guide" / "concepts.rst").read_text()
    assert ".. include:: ../generated/laws.txt" in page
    conf = (ROOT / "doc" / "conf.py").read_text()
    assert "laws.txt" in conf
    assert "evidence.txt" in conf


def test_the_page_about_tables_has_what_each_law_asks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    table = import_module("law_list").evidence()
    rows = [row for law in LAWS.values() for row in getattr(law, "evidence", [])]
    assert table.count("\n   * - ") == 1 + len(rows)
    for row in rows:
        assert f" {row['asks']}\n" in table
        assert f"\n     - {row['no_number']}\n" in table
        for name in row["numbers"]:
            words = NUMBERS[name].words
            assert words[1:] in table
    page = (ROOT / "doc" / "how_to" / "legal_tables.rst").read_text()
    assert ".. include:: ../generated/evidence.txt" in page


@pytest.mark.parametrize("law", [law for law in LAWS.values() if hasattr(law, "evidence")])
def test_the_questions_of_a_law_are_sentences_with_known_numbers(law):
    assert getattr(law, "preset", None) in (None, *PRESETS)
    for row in law.evidence:
        assert {"asks", "numbers", "no_number"} <= set(row) <= {*("asks", "numbers"), *ROW}
        assert set(row["numbers"]) <= set(NUMBERS)
        for text in (row["asks"], row["no_number"], row.get("elsewhere", ".")):
            assert text.endswith(".")
            assert not re.search(r"[*|\\`]", text)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_page_says_which_number_answers_and_what_none_can(preset):
    found = selections(preset, reference="m")
    rows = evidence_of(found)
    of_preset = [law for law in LAWS.values() if law.name in {row.law for row in rows}]
    assert LAWS[preset] in of_preset
    for text in shown(found)[1::2]:  # the page and the card
        for row in rows:
            assert row.asks in text
            assert row.here in text
            assert row.no_number in text
    assert evidence_of(selections()) == []
    assert "No number can answer" not in selections().to_html()


def test_the_numbers_of_a_row_are_those_of_the_audit():
    """Forty points are between the rates, the ratio is one third, and nobody has an outcome."""
    sex = np.repeat(["f", "m"], 200)
    chosen = np.r_[np.arange(200) < 40, np.arange(200) < 120].astype(int)
    options = {"n_simulations": 20, "preset": "uk", "sensitive_features": {"sex": sex}}
    found = audit(None, chosen, **options)
    first, second, *_ = (row.here for row in evidence_of(found))
    (gap,) = found.gaps.query("metric == 'demographic_parity_difference'").itertuples()
    interval = f"({number(gap.value_low)} to {number(gap.value_high)})"
    assert f"difference of selection rates 0.400 {interval} for f and m" in first
    assert "impact ratio 0.333 (f against m)" in first
    z = found.impact["z"].min()
    assert f"sex: {z:.3g} standard deviations" in first
    assert "has no outcomes" in second
    assert "none were named" in second
    levels = {"job": np.arange(400) // 4 % 2}
    more = audit(np.arange(400) % 2, chosen, control_features=levels, **options)
    _, second, *_ = (row.here for row in evidence_of(more))
    assert "difference of true positive rates" in second
    assert "within job" in second
    alone = audit(None, chosen, **options | {"sensitive_features": {"sex": ["f"] * 400}})
    first, *_ = (row.here for row in evidence_of(alone))
    assert "No impact ratio: no two groups" in first


def test_the_number_of_unknown_people_and_the_facts_of_the_head():
    race = np.repeat(["A", "B", "not stated"], [200, 170, 30])
    chosen = (np.arange(400) % 3 == 0).astype(int)
    facts = {"source": "the <register>"}
    found = audit(
        None, chosen, sensitive_features={"race": race}, preset="ll144", unknown="not stated",
        n_simulations=20, about=facts,
    )  # fmt: skip
    text = " ".join(row.here for row in evidence_of(found))
    for said in ("race: 30 of unknown category (not stated)", "400 rows", "period: not stated"):
        assert said in text
    assert "source: the &lt;register&gt;" in found.to_html()


def test_the_file_is_installed():
    found = resources.files("skfair.report") / "law.toml"
    assert found.is_file()
    patterns = re.search(r'"skfair.report" = (\[.*\])', (ROOT / "pyproject.toml").read_text())[1]
    assert any(Path("law.toml").match(one) for one in re.findall(r'"(.*?)"', patterns))
