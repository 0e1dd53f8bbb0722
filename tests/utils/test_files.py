"""Files that are replaced as a whole, or not at all."""

import pytest

from skfair.utils.files import replacing


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_file_takes_its_place_when_it_is_complete(tmp_path, before, anew):
    place = tmp_path / "page.html"
    if before is not None:
        place.write_text(before)
        place.chmod(0o640)
    with replacing(place, anew=anew) as beside:
        assert beside.parent == tmp_path
        assert beside.suffix == ".html"
        beside.write_text("new")
        assert not place.exists() or place.read_text() == before
    assert place.read_text() == "new"
    assert [*tmp_path.iterdir()] == [place]
    if before is not None and not anew:
        assert place.stat().st_mode & 0o777 == 0o640


def test_a_failure_leaves_what_was_there(tmp_path):
    def write(place, text):
        with replacing(place) as beside:
            beside.write_text(text)
            if text == "half of":
                raise KeyboardInterrupt

    place, nowhere = tmp_path / "page.html", tmp_path / "no" / "page.html"
    place.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(place, "half of")
    assert place.read_text() == "old"
    assert [*tmp_path.iterdir()] == [place]
    with pytest.raises(FileNotFoundError) as caught:
        write(nowhere, "new")
    assert caught.value.filename == str(nowhere)  # not the file beside it


@pytest.mark.parametrize("anew", [False, True])
def test_links_are_followed_or_replaced(tmp_path, anew):
    place, link = tmp_path / "page.html", tmp_path / "link.html"
    place.write_text("old")
    link.symlink_to(place)
    with replacing(link, anew=anew) as beside:
        beside.write_text("new")
    assert link.read_text() == "new"
    assert link.is_symlink() != anew
    assert place.read_text() == ("old" if anew else "new")
