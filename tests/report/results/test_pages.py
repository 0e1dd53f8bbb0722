"""The page of an audit: one sound file, with nothing from elsewhere."""

import builtins
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from skfair.report import audit
from skfair.report.results import pages, pictures
from skfair.utils.text import visible
from tests.seeds import generator

# Details within others: a table below the pictures of the scores.
NESTED = r"<details><summary>Calibration as a table.*?</details>"
VOID = {"meta", "input", "br", "line", "circle", "rect", "path", "polyline"}


class Page(HTMLParser):
    """What is on a page; complains about elements that are not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links = [], [], [], []
        self.headings, self.text, self.unlabelled = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[name] for name in ("href", "src", "xlink:href") if name in given]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg" and not (given.get("role") == "img" and given.get("aria-label")):
            self.unlabelled.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open, f"</{tag}> closes nothing"
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def sample():
    rng = generator(0)
    A = pd.DataFrame({"sex": rng.choice(["f", "<b>m</b>"], 600), "age": rng.integers(3, size=600)})
    score = rng.random(600)
    return A, (rng.random(600) < score).astype(int), (score > 0.5).astype(int), score


@pytest.fixture(scope="module")
def found(sample):
    A, y, p, score = sample
    within = pd.Series(A["age"] > 1, name="is_old")
    return audit(
        y, p, y_score=score, sensitive_features=A, before=(score > 0.4).astype(int),
        control_features=within, title="Loans & more", n_simulations=50,
    )  # fmt: skip


def test_the_page_is_sound(found, tmp_path):
    text = found.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    page = Page(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert not page.unlabelled
    assert dict(page.tags)["html"]["lang"] == "en"
    # Headings descend by one level at a time, from a single h1.
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("caption") == tags.count("table")
    heads = [given for tag, given in page.tags if tag == "th"]
    assert all(given.get("scope") in ("row", "col") for given in heads)
    # Nothing comes from elsewhere.
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not re.search(r"https?:|//\w+\.|@import|url\(", text)
    assert not {"link", "img", "iframe"} & set(tags)
    # Text of the data is escaped.
    assert "<b>" not in text
    assert "&lt;b&gt;m&lt;/b&gt;" in text
    assert "Loans &amp; more" in text
    # Everything is readable without the script.
    assert not any("hidden" in given for _, given in page.tags)
    for sentence in repr(found).split("\n")[1:]:
        assert sentence in page.text
    assert "It does not say" in page.text
    cell = Page(found._repr_html_())
    assert "Loans & more" in cell.text
    assert "h1" not in [tag for tag, _ in cell.tags]


def test_a_printed_page_has_numbers_repeated_heads_and_room_for_a_signature(found):
    page = found.to_html()
    printed = page[page.index("@media print") : page.index("</style>")]
    assert "counter(page)" in printed
    # Chromium prints no text of buttons in heads of tables that it repeats on the next page.
    assert "th button { display: contents; }" in printed
    assert re.search(r'class="sign".*Name.*date.*Signature', Page(page).text + page)


def test_a_glance_has_the_gaps_and_pictures_and_the_rest_is_folded(found):
    """What is folded has a line to unfold it, and is printed."""
    text = found.to_html()
    closed = re.sub(r"<details.*?</details>", "", re.sub(NESTED, "", text, flags=re.S), flags=re.S)
    for name in ("sex", "age", "sex x age"):
        assert f'aria-label="How far groups of {name} are apart"' in closed
        for table in ("Measures of each group", "Calibration of each group"):
            assert f'aria-label="{table} of {name}' in text
            assert f'aria-label="{table} of {name}' not in closed
    assert closed.count('class="dots"') == text.count('class="dots"') - 4  # those of the crossing
    assert text.count("<details") == text.count("<summary>")
    printed = text[text.index("@media print") : text.index("</style>")]
    assert ".folded::details-content { display: block; content-visibility: visible; }" in printed
    assert "details:not([open], .folded) { display: none; }" in printed


@pytest.mark.parametrize(
    ("measure", "values", "scale"),
    [
        ("selection_rate", [0.2, 0.3, 0.25], (0, 1)),  # shares have a scale of their own
        ("mean_prediction", [5.0, 15.0, 10.0], (0, 15)),
        ("mean_residual", [-10.0, 30.0, 20.0], (-10, 30)),
    ],
)
def test_dots_and_their_intervals_stand_on_the_scale(measure, values, scale):
    low, high, value = values
    columns = {"measure": [measure], "group": ["f"], "value": [value]}
    rates = pd.DataFrame({**columns, "value_low": [low], "value_high": [high]})
    picture = pictures.whiskers(rates, measure, low, has_before=False)
    assert (picture["low"], picture["high"]) == scale
    (row,) = picture["rows"]
    drawn = [row["from"], row["to"], row["at"], picture["overall"]]
    expected = [300 * (one - scale[0]) / (scale[1] - scale[0]) for one in [*values, low]]
    assert drawn == pytest.approx(expected, abs=0.01)


def test_markdown(found, tmp_path):
    text = found.to_markdown(tmp_path / "card.md")
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == text
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    assert len(tables) > 5
    for table in tables:
        widths = {line.replace("\\|", "").count("|") for line in table.strip().split("\n")}
        assert len(widths) == 1
        assert re.fullmatch(r"\|(-+:?\|)+", table.split("\n")[1])


def test_a_page_of_many_groups_is_small(sample):
    _, y, p, score = sample
    A = pd.DataFrame({f"c{j}": np.arange(600) // (j + 1) % k for j, k in enumerate((2, 3, 2, 2))})
    text = audit(y, p, y_score=score, sensitive_features=A, n_simulations=20).to_html()
    assert len(text.encode()) < 1_000_000


def test_without_jinja(found, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("jinja2"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    pages._environment.cache_clear()
    with pytest.raises(ImportError, match=r"skfair-suite\[report\]"):
        found.to_html()
    assert found.to_json()


PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    "<!-- a",
    "[here](https://evil.example)",
    "![x](//evil.example/a.png)",
    "https://evil.example www.evil.example <https://evil.example>",
    "a | b | c",
    "a\n\n# big\n\n- item",
    "# big",
    "*em* __strong__ ~~gone~~ `code`",
    "1. one",
    "- ---",
    "&lt;b&gt; \\",
    "a\u2028b\x1b[31m",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markdown_shows_names_of_users_as_text(payload):
    rng, reader = generator(0), MarkdownIt("commonmark").enable(["table"])
    group = np.where(rng.random(200) < 0.5, payload, "b")
    labels = np.array([payload, "no", "perhaps"])
    options = {"n_simulations": 5, "min_group_size": 10, "title": payload}
    audits = [
        audit(
            rng.choice(labels, 200),
            rng.choice(labels, 200),
            sensitive_features={payload: group, "a": rng.choice(["c", "d"], 200)},
            control_features={payload + "2": rng.permutation(group)},
            task="classes",
            **options,
        ),
        audit(None, rng.integers(0, 2, 200), sensitive_features={payload: group}, **options),
    ]
    for found, n_headings in zip(audits, (6, 4), strict=True):
        text = found.to_markdown()
        tokens = reader.parse(text)
        every = tokens + [one for token in tokens for one in token.children or []]
        kinds = {token.type for token in every} - {"text", "text_special", "inline"}
        assert {kind.rpartition("_")[0] for kind in kinds} <= {
            *("heading", "paragraph", "bullet_list", "list_item"),
            *("table", "thead", "tbody", "tr", "th", "td"),
        }
        kinds = [token.type for token in tokens]
        assert kinds.count("heading_open") == n_headings
        assert kinds.count("bullet_list_open") == 2
        assert not re.search(r"\w://|www\.", text)  # what GitHub makes a link as it stands
        shown = "".join(one.content for one in every if one.type != "inline")
        assert visible(" ".join(payload.split())) in shown


def test_a_terminal_is_not_told_what_names_say(sample):
    group = np.where(sample[0]["sex"] == "f", "\x1b[31mred\x07", "\u202eback")
    found = audit(None, sample[2], sensitive_features={"a\x1b": group[:600]}, title="\x1b]0;x\x07")
    assert repr(found).replace("\n", "").isprintable()
    assert "\\x1b]0;x\\x07" in repr(found)
