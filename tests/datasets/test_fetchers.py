"""The fetchers, without a network: fakes shaped like OpenML's tables, and a cached copy of one."""

import socket
from http.client import IncompleteRead
from importlib import resources
from urllib.error import HTTPError, URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from skfair import datasets
from skfair.datasets import _openml
from skfair.datasets._openml_specs import SPECS
from tests.older import needs_new_cache

N = 24


def _cycle(*values):
    return [values[i % len(values)] for i in range(N)]


def _category(*values):
    return pd.Categorical(_cycle(*values))


# Columns, types and labels as OpenML has them (a few columns stand for the rest).
AGES = np.linspace(19, 80, N).round()
WORK = _category("Private", "State-gov")
WORK[3] = np.nan
TABLES = {
    1590: {
        "age": AGES,
        "workclass": WORK,
        "race": _category("White", "Black", "Asian-Pac-Islander"),
        "sex": _category("Male", "Female"),
        "class": _category(">50K", "<=50K", "<=50K"),
    },
    1461: {f"V{i}": np.arange(N) for i in range(1, 17)}
    | {"V1": AGES, "V3": _category("married", "single", "divorced")}
    | {"Class": _category("1", "1", "2")},
    42193: {
        "sex": _category("0", "1", "1"),
        "age": AGES,
        "race_African-American": _category("1", "0", "0"),
        "race_Caucasian": _category("0", "1", "1"),
        "twoyearrecid": _category("0", "1"),
    },
    31: {
        "personal_status": _category(
            "male single", "female div/dep/mar", "male div/sep", "male mar/wid"
        ),
        "age": AGES,
        "credit_amount": np.arange(N) * 100.0,
        "class": _category("good", "bad", "good"),
    },
    315: {
        "state": np.arange(N),
        "county": np.full(N, np.nan),
        "communityname": _cycle("Lakewoodcity", "Tukwilacity"),
        "fold": np.arange(N) % 10,
        "racepctblack": np.linspace(0, 0.12, N).round(2),
        "racePctWhite": np.linspace(1, 0.7, N).round(2),
        "ViolentCrimesPerPop": np.linspace(0, 1, N).round(2),
    },
    43141: {
        "AGEP": AGES,
        "SEX": _cycle(1.0, 2.0),
        "RAC1P": _cycle(1.0, 2.0, 6.0, 9.0),
        "ST": np.arange(N) % 3 + 1,
        "PINCP": np.linspace(100, 100_000, N),
    },
}


def openml_table(data_id):
    return pd.DataFrame(TABLES[data_id]).copy()


@pytest.fixture
def openml(monkeypatch):
    """Stand in for fetch_openml; return the list of the calls it got."""
    calls = []

    def fake(**arguments):
        calls.append(arguments)
        frame = openml_table(arguments["data_id"])
        return Bunch(frame=frame, DESCR=f"About {arguments['data_id']}.")

    monkeypatch.setattr(_openml, "fetch_openml", fake)
    return calls


def fetch(name, **arguments):
    return getattr(datasets, f"fetch_{name}")(**arguments)


@pytest.mark.parametrize("name", SPECS)
def test_what_every_fetcher_returns(name, openml):
    dataset, spec = fetch(name, data_home="somewhere", cache=False), SPECS[name]
    assert openml == [
        {"data_id": spec.data_id, "data_home": "somewhere", "cache": False, "as_frame": True}
    ]
    assert dataset.target.dtype == np.int64
    assert set(dataset.target) == {0, 1}
    assert dataset.sensitive_names == [a.name for a in spec.sensitive]
    assert dataset.sensitive_features.columns.tolist() == dataset.sensitive_names
    assert dataset.sensitive_features.index.equals(dataset.frame.index)
    assert dataset.sensitive_features.nunique().min() >= 2
    assert dataset.data.columns.tolist() == dataset.feature_names
    removed = set(dataset.frame.columns) - set(dataset.feature_names)
    assert removed == {*dataset.dropped_columns, dataset.target.name}
    assert str(spec.data_id) in dataset.DESCR
    whole = (dataset.data, dataset.target, dataset.sensitive_features)
    parts = fetch(name, return_X_y=True)
    assert all(part.equals(one) for part, one in zip(parts, whole, strict=True))


def test_adult(openml):
    dataset = datasets.fetch_adult()
    np.testing.assert_array_equal(dataset.target, dataset.frame["class"] == ">50K")
    assert set(dataset.sensitive_features["sex"]) == {"Male", "Female"}
    assert set(dataset.sensitive_features["race"]) == {"White", "Black", "Asian-Pac-Islander"}
    assert dataset.data["workclass"].isna().sum() == 1


def test_bank_gets_its_names_and_loses_the_leak(openml):
    dataset = datasets.fetch_bank()
    assert dataset.feature_names[:3] == ["age", "job", "marital"]
    assert len(dataset.feature_names) == 15
    assert dataset.dropped_columns == ["duration"]
    assert dataset.target.sum() == N // 3
    inside = (dataset.data["age"] >= 25) & (dataset.data["age"] <= 60)
    np.testing.assert_array_equal(dataset.sensitive_features["age_25_60"] == "25-60", inside)
    assert set(dataset.sensitive_features["marital"]) == {"married", "single", "divorced"}


def test_compas(openml):
    dataset = datasets.fetch_compas()
    black = dataset.sensitive_features["race"] == "African-American"
    np.testing.assert_array_equal(black, dataset.data["race_African-American"] == "1")
    assert set(dataset.sensitive_features["race"]) == {"African-American", "Caucasian"}
    assert set(dataset.sensitive_features["sex"]) == {"0", "1"}


def test_german_credit(openml):
    dataset = datasets.fetch_german_credit()
    female = dataset.frame["personal_status"].astype(str).str.startswith("female")
    np.testing.assert_array_equal(dataset.sensitive_features["sex"] == "female", female)
    over = dataset.sensitive_features["age_over_25"] == "over 25"
    np.testing.assert_array_equal(over, dataset.data["age"] > 25)
    np.testing.assert_array_equal(dataset.target, dataset.frame["class"] == "good")


def test_communities_crime(openml):
    dataset = datasets.fetch_communities_crime()
    assert dataset.feature_names == ["racepctblack", "racePctWhite"]
    np.testing.assert_array_equal(dataset.target, dataset.frame["ViolentCrimesPerPop"] > 0.28)
    black = dataset.sensitive_features["black_median"] == "racepctblack >= median"
    np.testing.assert_array_equal(black, dataset.frame["racepctblack"] >= 0.06)


def test_acs_income(openml):
    dataset = datasets.fetch_acs_income()
    assert dataset.feature_names == ["AGEP", "SEX", "RAC1P"]
    np.testing.assert_array_equal(dataset.target, dataset.frame["PINCP"] > 50_000)
    assert dataset.sensitive_features["sex"].tolist()[:2] == ["Male", "Female"]
    assert dataset.sensitive_features["race"].tolist()[2:4] == ["Asian alone", "Two or more races"]


def replace_table(monkeypatch, change):
    def fake(data_id, **_):
        return Bunch(frame=change(openml_table(data_id)), DESCR="")

    monkeypatch.setattr(_openml, "fetch_openml", fake)


def test_columns_are_found_whatever_their_spelling(monkeypatch):
    replace_table(monkeypatch, lambda t: t.rename(columns={"twoyearrecid": "Two_Year_Recid"}))
    assert datasets.fetch_compas().target.name == "Two_Year_Recid"


def test_codes_may_be_numbers_or_booleans(monkeypatch):
    expected = ["African-American", "Caucasian", "Caucasian"]
    for kind in (int, float, lambda v: v == "1"):

        def change(table, kind=kind):
            column = table["race_African-American"].astype(object).map(kind)
            return table.assign(**{"race_African-American": column.infer_objects()})

        replace_table(monkeypatch, change)
        groups = datasets.fetch_compas().sensitive_features["race"]
        assert groups.tolist()[:3] == expected


def test_missing_groups_stay_missing(monkeypatch):
    def change(table):
        status = table["personal_status"].astype(object)
        status[0] = np.nan
        return table.assign(personal_status=status)

    replace_table(monkeypatch, change)
    assert datasets.fetch_german_credit().sensitive_features["sex"].isna().tolist()[:2] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop(columns="personal_status"),
            r"data set 31 \('credit-g'\) has no column 'personal_status'; it has \['age'",
        ),
        (
            lambda t: t.assign(personal_status="single"),
            "Column 'personal_status' holds 'single', which is no known code of sex",
        ),
        (
            lambda t: t.assign(**{"class": _category("yes", "no")}),
            r"the target 'class' never is 'good'; its labels are \['no', 'yes'\]",
        ),
    ],
)
def test_a_table_that_changed_is_an_error(monkeypatch, change, message):
    replace_table(monkeypatch, change)
    with pytest.raises(ValueError, match=message):
        datasets.fetch_german_credit()


@pytest.mark.parametrize(
    "error",
    [
        URLError(socket.gaierror(-2, "Name or service not known")),
        HTTPError("https://www.openml.org", 503, "Service Unavailable", None, None),
        TimeoutError("timed out"),
        ConnectionResetError("reset by peer"),
        OSError("tunnel failed"),
        IncompleteRead(b""),
    ],
)
def test_without_a_network_the_error_says_what_to_do(monkeypatch, error):
    def fail(**_):
        raise error

    monkeypatch.setattr(_openml, "fetch_openml", fail)
    said = r"data set 1590 \('adult'\).*network connection.*data_home.*load_local"
    with pytest.raises(ConnectionError, match=said) as info:
        datasets.fetch_adult()
    assert info.value.__cause__ is error


def test_trouble_with_the_cache_folder_is_left_as_it_is(monkeypatch, tmp_path):
    file = tmp_path / "no_folder"
    file.write_text("")
    with pytest.raises(OSError, match="no_folder") as info:
        datasets.fetch_adult(data_home=file)
    assert not isinstance(info.value, ConnectionError)


@needs_new_cache
def test_a_cached_copy_needs_no_network(monkeypatch, tmp_path):
    # scikit-learn ships the first rows of the true Adult for its own tests.
    try:
        shipped = resources.files("sklearn.datasets.tests.data.openml.id_1590")
        files = {item.name: item.read_bytes() for item in shipped.iterdir() if item.is_file()}
    except (ModuleNotFoundError, FileNotFoundError):
        pytest.skip("this build of scikit-learn ships no test data")
    cache = tmp_path / "openml" / "openml.org"
    for source, place in {
        "api-v1-jd-1590.json.gz": "api/v1/json/data/1590.gz",
        "api-v1-jdf-1590.json.gz": "api/v1/json/data/features/1590.gz",
        "api-v1-jdq-1590.json.gz": "api/v1/json/data/qualities/1590.gz",
        "data-v1-dl-1595261.arff.gz": "data/v1/download/1595261/adult.arff.gz",
    }.items():
        (cache / place).parent.mkdir(parents=True, exist_ok=True)
        (cache / place).write_bytes(files[source])

    def no_network(*_, **__):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", no_network)
    dataset = datasets.fetch_adult(data_home=tmp_path)
    assert dataset.data.shape == (10, 14)
    assert dataset.target.tolist() == [0, 0, 1, 1, 0, 0, 0, 1, 0, 0]
    assert dataset.sensitive_features["sex"].value_counts().to_dict() == {"Male": 8, "Female": 2}
    assert "census" in dataset.DESCR.lower()
