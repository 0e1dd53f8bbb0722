import functools
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skfair.exceptions import SmallGroupWarning
from skfair.groups.encoding import encode_groups
from skfair.groups.strata import read_strata
from skfair.metrics import demographic_parity_difference
from skfair.utils.factorize import factorize
from tests.families import rows_of_families
from tests.messages import messages
from tests.seeds import generator

SEX = ["m", "f", "f", "m", "m"]
RACE = ["b", "a", "a", "a", "b"]
TWO = encode_groups({"sex": SEX, "race": RACE}).levels
NUMBERS = encode_groups([0, 1]).levels
ONE_SIDED = np.array([1, 0, 0, 1, 0])  # "f" has only 0


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        np.array,
        lambda v: np.array(v, dtype=object),
        lambda v: np.array(v, dtype="S"),
        pd.Series,
        lambda v: pd.Series(v, index=[9, 7, 5, 3, 1], name="sex"),
        lambda v: pd.Series(v, dtype="category"),
        lambda v: pd.Series(v, dtype="string"),
        lambda v: pd.Series(v).to_frame("sex"),
        lambda v: np.array(v)[:, None],
        lambda v: {"sex": v},
        lambda v: pd.array(v, dtype="string"),
        lambda v: pd.Categorical(v),
        lambda v: [[x] for x in v],
    ],
)
def test_every_container_reads_alike(convert):
    encoding = encode_groups(convert(SEX))
    assert encoding.codes.tolist() == [[1, 0, 0, 1, 1]]
    assert encoding.codes.dtype == np.int64
    assert encoding.codes.flags.c_contiguous
    assert encoding.counts.tolist() == [2, 3]
    assert [name.strip("b'") for name in encoding.names] == ["f", "m"]


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64, bool, "Int64"]
)
def test_every_kind_of_number_reads_alike(dtype):
    values = pd.Series([1, 0, 0, 1]).astype(dtype)
    for container in (values, values.to_numpy()):
        encoding = encode_groups(container)
        assert encoding.codes[0].tolist() == [1, 0, 0, 1]
        assert encoding.levels.number(1) == 1


def test_extreme_integers_do_not_wrap():
    for values in (
        np.array([-128, 127, -128], dtype=np.int8),
        np.array([2**63, 2**64 - 1, 2**63], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 5, -(2**63)]),
        np.array([-(2**63), 2**63 - 1, -(2**63)]),
    ):
        encoding = encode_groups(values)
        assert encoding.codes[0].tolist() == [0, 1, 0]
        assert encoding.levels.keys() == sorted(set(values.tolist()))


@pytest.mark.filterwarnings("ignore:.*differ only in case", "ignore:.*stand for missing values")
@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text(max_size=9), min_size=1, max_size=30),
    st.sampled_from(["U", "object", "S", "wide"]),
)
def test_strings_of_any_kind_equal_a_dictionary(values, kind):
    if kind == "S":
        array = np.array([v.encode()[:20] for v in values])
    elif kind == "wide":
        array = np.array(values, dtype="U90")
    else:
        array = np.array(values, dtype=None if kind == "U" else object)
    encoding = encode_groups(array)
    seen = array.tolist()  # numpy drops trailing null characters of fixed-width strings
    levels = sorted(set(seen))
    assert encoding.codes[0].tolist() == [levels.index(v) for v in seen]
    assert encoding.counts.tolist() == [seen.count(v) for v in levels]


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_intersections_and_separate_attributes_equal_counting(data):
    n = data.draw(st.integers(1, 40))
    n_attributes = data.draw(st.integers(2, 4))
    rows = data.draw(
        st.lists(st.tuples(*[st.integers(0, 2)] * n_attributes), min_size=n, max_size=n)
    )
    frame = pd.DataFrame(rows, columns=[f"a{j}" for j in range(n_attributes)])

    crossed = encode_groups(frame)
    levels = sorted(set(rows))
    assert crossed.codes.tolist() == [[levels.index(row) for row in rows]]
    assert crossed.counts.tolist() == [rows.count(level) for level in levels]
    assert crossed.levels.keys() == levels
    assert crossed.offsets.tolist() == [0, len(levels)]

    separate = encode_groups(frame, intersectional=False)
    number = 0
    for j in range(n_attributes):
        assert separate.offsets[j] == number
        for level in sorted({row[j] for row in rows}):
            assert separate.names[number] == f"a{j}={level}"
            here = separate.codes[j] == number
            assert here.tolist() == [row[j] == level for row in rows]
            assert separate.counts[number] == here.sum()
            assert separate.attribute_of_group[number] == j
            number += 1
    assert separate.n_groups == number == separate.offsets[-1]

    # Cells are the atoms of the algebra: rows are in one cell iff they agree in everything.
    classes = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    weights = np.array(data.draw(st.lists(st.floats(0.1, 2), min_size=n, max_size=n)))
    for encoding in (crossed, separate):
        cells = encoding.cells(classes, 2, sample_weight=weights)
        keys = [(*row, c) for row, c in zip(rows, classes.tolist(), strict=True)]
        for i in range(n):
            for k in range(n):
                assert (cells.codes[i] == cells.codes[k]) == (keys[i] == keys[k])
        for c in range(cells.weights.size):
            inside = cells.codes == c
            assert cells.weights[c] == pytest.approx(weights[inside].sum())
            assert set(classes[inside]) == {cells.classes[c]}
            owners = set(np.flatnonzero(cells.membership.toarray()[:, c]).tolist())
            assert owners == set(encoding.codes[:, np.flatnonzero(inside)[0]].tolist())


def test_many_attributes_do_not_overflow():
    rng = generator(0)
    table = rng.integers(0, 30, size=(50, 14))
    encoding = encode_groups(table)
    assert encoding.n_groups == 50
    assert np.array_equal(encoding.levels.encode(table), encoding.codes)


def test_unused_categories_are_no_groups():
    values = pd.Series(pd.Categorical(["b", "b", "c"], categories=["c", "a", "b"]))
    with pytest.warns(SmallGroupWarning, match="declares 1 level that no row has: 'a'"):
        encoding = encode_groups(values)
    assert encoding.names == ("c", "b")
    assert encoding.codes[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("empty", [["z"], ["A", "m", "z"], []])
def test_a_declared_category_without_rows_is_named(empty, is_lazy):
    """By a metric, and on the pages of audits of predictions and of data."""
    rng = generator(0)
    levels = [*empty[:1], "b", *empty[1:], "c"]
    frame = pd.DataFrame({"race": pd.Categorical(rng.choice(["b", "c"], 400), levels)})
    frame["p"] = rng.integers(0, 2, 400)
    plain = frame.astype({"race": str})
    if is_lazy:
        frame = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    given = {"sensitive_features": frame[["race"]]}
    calls = [
        lambda: demographic_parity_difference(None, frame["p"], **given),
        *(
            partial(read, frame["p"], **given)
            for read, reads_dask in rows_of_families("READERS_OF_DECISIONS")
            if reads_dask or not is_lazy
        ),
    ]
    found = []
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(call())
        texts = [str(one.message) for one in caught if one.category is SmallGroupWarning]
        assert bool(texts) == bool(empty)
        assert all(repr(level) in text for text in texts for level in empty)
    value, *pages = found
    assert value == demographic_parity_difference(
        None, plain["p"], sensitive_features=plain["race"]
    )
    for page in pages:
        assert page.hidden["group"].tolist() == empty
        assert all(f"{level} (race)" in page.to_markdown() for level in empty)


def test_levels_of_mixed_types_stay_apart():
    with pytest.warns(UserWarning, match="case, spaces or type"):
        encoding = encode_groups(np.array([1, "1", 2.5, "x", 1], dtype=object))
    assert len(set(encoding.names)) == encoding.n_groups == 4
    assert encoding.levels.number("1") != encoding.levels.number(1)
    assert encoding.counts[encoding.levels.number(1)] == 2


def test_new_rows_are_encoded_like_old_ones():
    for intersectional in (True, False):
        frame = pd.DataFrame({"sex": SEX, "race": RACE})
        encoding = encode_groups(frame, intersectional=intersectional)
        again = encoding.levels.encode(frame[["race", "sex"]])  # columns in another order
        assert np.array_equal(again, encoding.codes)
        subset = encoding.levels.encode(frame.iloc[2:], n_samples=3)
        assert np.array_equal(subset, encoding.codes[:, 2:])
    single = encode_groups(SEX)
    assert single.levels.encode(pd.Series(["m"], name="anything")).tolist() == [[1]]
    numbers = encode_groups([0, 1, 2])
    assert numbers.levels.encode([2.0, 0.0]).tolist() == [[2, 0]]


def test_strangers_have_no_number_where_they_are_allowed():
    seen = {"sex": SEX, "race": RACE}
    new = {"sex": ["m", "x", "f", "f"], "race": ["b", "a", "c", "b"]}
    apart = encode_groups(seen, intersectional=False).levels
    assert apart.encode(new, allow_unseen=True).tolist() == [[1, -1, 0, 0], [3, 2, -1, 3]]
    crossed = encode_groups(seen).levels  # nobody was f and b
    assert crossed.names == ("sex=f, race=a", "sex=m, race=a", "sex=m, race=b")
    assert crossed.encode(new, allow_unseen=True).tolist() == [[2, -1, -1, -1]]
    nobody = {"sex": ["x", "x"], "race": ["a", "c"]}
    assert crossed.encode(nobody, allow_unseen=True).tolist() == [[-1, -1]]


def test_groups_are_found_by_name_and_by_key():
    crossed = encode_groups({"sex": SEX, "race": RACE})
    assert crossed.levels.number(("m", "b")) == crossed.levels.number("sex=m, race=b") == 2
    separate = encode_groups({"sex": SEX, "race": RACE}, intersectional=False)
    assert separate.levels.number(("race", "b")) == separate.levels.number("race=b") == 3
    numbers = encode_groups([0, 1])
    assert numbers.levels.number("1") == numbers.levels.number(np.int64(1)) == 1
    assert encode_groups(np.ma.array([1, 2, 1])).names == ("1", "2")


AGES = np.arange(18, 90)
MASKED = np.ma.array([1, 2, 1], mask=[False, True, False])
BAD = [
    (["a", None, np.nan, "b"], ValueError, "2 missing values in 4 rows.*fillna"),
    (pd.Series(["a", pd.NA], dtype="string"), ValueError, "1 missing value"),
    ([1.0, np.nan], ValueError, "1 missing value"),
    (pd.Series(pd.Categorical(["a", None])), ValueError, "1 missing value"),
    (MASKED, ValueError, "1 missing value in 3 rows"),
    (MASKED[:, None], ValueError, "1 missing value in 3 rows"),
    ({"sex": MASKED}, ValueError, "1 missing value in 3 rows"),
    (np.linspace(0, 1, 60), ValueError, "60 different numeric values.*qcut"),
    (AGES, ValueError, "looks continuous"),
    (AGES.tolist(), ValueError, "looks continuous"),
    (AGES.astype(object), ValueError, "looks continuous"),
    ((AGES / 7).tolist(), ValueError, "looks continuous"),
    (pd.date_range("2020", periods=60), ValueError, "looks continuous"),
    ([str(i) for i in range(1001)], ValueError, "1001 levels.*identifier"),
    ([], ValueError, "empty"),
    ({}, ValueError, "empty"),
    (pd.DataFrame(), ValueError, "empty"),
    (np.zeros((2, 2, 2)), ValueError, "3 dimensions"),
    ([["a"], ["a", "b"]], ValueError, "differ in length"),
    ({"a": [1], "b": [1, 2]}, ValueError, "differ in length"),
    (sparse.csr_array([[1], [2]]), TypeError, "sparse"),
    ("abc", TypeError, "array-like"),
    (None, TypeError, "array-like"),
    (3, TypeError, "array-like"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "two columns of the same name"),
    (["Male", "male", "f"] * 40, UserWarning, "differ only in case.*'[Mm]ale'"),
    (["Male", "Male ", "f"] * 40, UserWarning, "differ only in case.*'[Mm]ale'"),
    (([1, 2, "1", "2"]) * 40, UserWarning, "case, spaces or type, (1, '1'|'1', 1) and "),
    (([1.0, 2.0, "1", "x"]) * 40, UserWarning, "case, spaces or type, (1.0, '1'|'1', 1.0)\\."),
    (
        ([True, False, "True"]) * 40,
        UserWarning,
        "case, spaces or type, (True, 'True'|'True', True)",
    ),
]


def new_rows(sex, race, **options):
    known = encode_groups({"sex": SEX, "race": RACE}).levels
    return known.encode(pd.DataFrame({"sex": sex, "race": race}), **options)


def nonempty(groups, *y_and_classes, **options):
    encode_groups(groups).check_nonempty(*y_and_classes, **options)


def columns_named(*names, n=5):
    encode_groups(list(names), n_samples=n)


test_bad_groups_are_refused_with_advice = messages(
    *((error, words, functools.partial(encode_groups, groups)) for groups, error, words in BAD),
    # New rows.
    (ValueError, "'race' has 1 level that did not occur at fit: 'z'", lambda: new_rows("f", ["z"])),
    (ValueError, r"1 row in an inter.* 'sex=f, race=b'", lambda: new_rows(["f", "m"], "b")),
    (ValueError, "1 missing value", lambda: new_rows(None, ["b"])),
    (ValueError, "has 2 rows but the.* 3", lambda: new_rows(SEX[:2], RACE[:2], n_samples=3)),
    (ValueError, "1 columns but the groups were learned from 2", lambda: TWO.encode(["f"])),
    (ValueError, "no column 'race'", lambda: TWO.encode({"sex": ["f"], "rase": ["b"]})),
    (ValueError, "no group 'x'. The groups are '0', '1'", lambda: NUMBERS.number("x")),
    # Cells without rows.
    (ValueError, "group 'f' with y='yes'", lambda: nonempty(SEX, ONE_SIDED, ["no", "yes"])),
    (
        *(ValueError, "no sample weight.*group 'f'"),
        lambda: nonempty(SEX, sample_weight=np.array([1.0, 0, 0, 1, 1])),
    ),
    (
        *(ValueError, "20 cells.*and 15 more"),
        lambda: nonempty([str(i) for i in range(20)], np.zeros(20, np.int64), [0, 1]),
    ),
    # Names of columns in place of values.
    (ValueError, r"names of columns of X, set sensitive=\['sex'", lambda: columns_named("sex")),
    (ValueError, "names of columns of X, set sens", lambda: columns_named("sex", "age")),
    (
        *(ValueError, "Pass one value per row. An estimator in something that samples rows"),
        lambda: columns_named(*["f", "m"] * 20),
    ),
)


@pytest.mark.parametrize("levels", [["01", "1"], ["1", "1.0"], ["001", 1], ["02", "2.00", "2"]])
def test_numbers_are_spellings_of_one(levels):
    with pytest.warns(UserWarning, match="levels that differ only in case, spaces or type"):
        assert encode_groups(levels * 40).n_groups == len(levels)


@pytest.mark.parametrize(
    "levels",
    [["male", "f"], [1, "2"], ["a b", "ab"], [1.0, 2.0], ["1", "10"], ["0", "01"], ["1.5", "15"]],
)
def test_other_levels_are_no_spellings_of_each_other(levels):
    assert encode_groups(levels * 40).n_groups == 2  # and no warning


def test_many_codes_are_allowed_as_strings():
    assert encode_groups([str(i) for i in range(954)]).n_groups == 954
    assert encode_groups(pd.Categorical(np.arange(60))).n_groups == 60


def test_rows_out_of_order_are_noticed():
    X = pd.DataFrame({"x": range(5)}, index=list("abcde"))
    sex = pd.Series(SEX, index=list("abcde"))
    for column in (sex, {"sex": sex}):
        assert encode_groups(column, like=X).n_groups == 2
    for column in (sex[::-1], {"sex": sex[::-1]}):
        with pytest.raises(ValueError, match=r"different order.*loc\[X.index\]"):
            encode_groups(column, like=X)
    for labels, n_shared in (("vwxyz", 0), ("aabcd", 4)):
        few = rf"only {n_shared} of 5 index labels.*loc\[X.index\].*to_numpy"
        with pytest.raises(ValueError, match=few):
            encode_groups(sex.set_axis(list(labels)), like=X)
    # An index that counts, or none, says nothing about the order.
    assert encode_groups(sex.reset_index(drop=True), like=X).n_groups == 2
    assert encode_groups(sex.iloc[:3], like=X).n_groups == 2
    assert encode_groups(SEX, like=X).n_groups == 2


@pytest.mark.parametrize("kind", ["list", "category", "string", "Int64", "polars", "categories"])
def test_the_advice_on_missing_groups_works_for_what_was_passed(kind):
    """The method fillna fails for categories, and polars has none."""
    column = ["f", None, "m", "f"]
    if kind in ("polars", "categories"):
        polars = pytest.importorskip("polars")
        column = polars.Series(column, dtype=polars.Categorical if kind != "polars" else None)
    elif kind != "list":
        column = pd.Series([1, None, 2, 1] if kind == "Int64" else column, dtype=kind)
    with pytest.raises(ValueError, match="'sensitive_feature' has 1 missing value") as told:
        encode_groups(column)
    advice = str(told.value).split(": ")[-1].removesuffix(".")
    groups = encode_groups(eval(advice, {"pandas": pd, "column": column}))
    assert groups.counts.tolist() == [2, 1, 1]
    assert "not stated" in groups.names


def test_groups_in_an_array_of_the_array_api():
    """That of its strict reference has no length, and numpy reads it by DLPack only."""

    class Array:
        dtype = "its own"

        def __iter__(self):
            raise TypeError("no rows")

        def __dlpack__(self, **options):
            return np.array([1, 0, 1]).__dlpack__(**options)

        def __dlpack_device__(self):
            return np.zeros(1).__dlpack_device__()

    assert encode_groups(Array()).counts.tolist() == [1, 2]


def test_one_of_several_attributes_is_that_column_alone():
    columns = {"sex": SEX, "race": RACE, "old": [True, True, False, True, False]}
    apart = encode_groups(columns, intersectional=False)
    for a, (name, column) in enumerate(columns.items()):
        found, alone = apart.of_attribute(a), encode_groups({name: column})
        assert found.codes.tolist() == alone.codes.tolist()
        assert found.counts.tolist() == alone.counts.tolist()
        assert found.offsets.tolist() == alone.offsets.tolist() == [0, 2]
        assert found.levels.keys() == alone.levels.keys()
        assert found.levels.attributes == (name,)
        assert found.names == apart.names[2 * a : 2 * a + 2]
    unnamed = encode_groups(np.array([SEX, RACE]).T, intersectional=False)
    assert unnamed.levels.attributes == ("sensitive_feature_0", "sensitive_feature_1")
    assert unnamed.names[0] == "sensitive_feature_0=f"
    assert encode_groups(SEX).levels.attributes == ("sensitive_feature",)


def test_other_data_frames_are_read_column_by_column():
    class Frame:  # what polars and others have in common
        columns = ("sex", "race")

        def __getitem__(self, name):
            return np.array({"sex": SEX, "race": RACE}[name])

    assert encode_groups(Frame()).names == encode_groups({"sex": SEX, "race": RACE}).names


@pytest.mark.parametrize("levels", [["f", "m"], [1, 2], [0.5, 1.5]], ids=str)
def test_arrays_of_pandas_around_numpy_arrays(levels, monkeypatch):
    """pandas 2 warns that it will not read them in the future."""
    values = pd.Series(levels * 5, dtype=object if levels == ["f", "m"] else None).array
    assert isinstance(values, pd.arrays.NumpyExtensionArray)
    factorize = pd.factorize

    def strict(values, **options):
        assert isinstance(values, np.ndarray)
        return factorize(values, **options)

    monkeypatch.setattr(pd, "factorize", strict)
    found = encode_groups(values)
    assert list(found.names) == [str(level) for level in levels]
    assert found.codes.tolist() == [[0, 1] * 5]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["m", "f", "m"], dtype=object),
        pd.Series(["m", "f", None], dtype="string"),
        pd.Series(["m", None, float("nan")], dtype=object),
        pd.Series(["f", 1, True], dtype=object),
        pd.Series([3, -1, 3]),
        pd.Series([3, None, 3], dtype="Int64"),
        pd.Series([2.0, 1.0, float("nan")]),
        pd.Series([True, False, True]),
        pd.Series(["m", "f"], dtype=pd.CategoricalDtype(["m", "f", "x"])),
        pd.Series([2**63, 5], dtype=np.uint64),
        pd.Series(["m"]),
        pd.Series([b"m", b"f"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [pd.Series, np.asarray])
def test_a_few_rows_are_read_as_many_are(values, kind):
    few, many = factorize(kind(values)), factorize(kind(pd.concat([values] * 20)))
    assert few.levels == many.levels
    assert list(map(type, few.levels)) == list(map(type, many.levels))
    assert few.codes.tolist() == many.codes[: len(values)].tolist()
    assert few.codes.dtype == many.codes.dtype


@pytest.mark.parametrize(
    "given",
    [
        ["a\ud800", "b"],
        np.array(["a\ud800", "b"]),
        pd.Series(["a\ud800", "b"], dtype=object),
        {"sex": ["f", "m"], "race": ["a\ud800", "b"]},
        {"a\ud800": ["f", "m"]},
    ],
    ids=["list", "array", "series", "two", "name"],
)
def test_half_a_character_is_no_name(given):
    """Files, pages and pandas cannot hold it, so it is refused before any of them sees it."""
    known = encode_groups({"a": ["b", "c"]}).levels
    readers = [encode_groups, read_strata, known.encode]
    for read in readers if len(given) == 2 and "race" not in given else readers[:2]:
        with pytest.raises(ValueError, match=r"'a\\ud800' is no valid text") as caught:
            read(given)
        assert type(caught.value) is ValueError
        str(caught.value).encode()


@pytest.mark.parametrize("kind", [int, float, bool])
def test_one_attribute_in_several_columns_is_noticed(kind):
    """Columns of 0 and 1 of which each row has a single 1 compare groups with everybody else."""
    rng = generator()
    race = rng.choice(list("abcd"), 300)
    table = pd.get_dummies(pd.Series(race)).astype(kind)
    with pytest.warns(UserWarning, match="one attribute in several columns.*idxmax"):
        encode_groups(table, intersectional=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode_groups(table)  # intersections are the groups
        encode_groups(table[["a", "b"]], intersectional=False)
        encode_groups(table.assign(d=rng.integers(0, 2, 300)), intersectional=False)
        encode_groups(pd.DataFrame({"race": race, "sex": race == "a"}), intersectional=False)
