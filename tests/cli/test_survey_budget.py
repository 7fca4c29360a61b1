"""A survey that could not finish: the result is inconclusive, and nothing false is said of it."""
import pytest


def package(folder, files):
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        "---\nname: tide-table\ndescription: Prints when the tide comes in.\n---\n"
        "Reads the table of one harbour and prints the next four tides for a day.\n")
    for n in range(files):
        (folder / f"part{n}.min.js").write_text("var a=1;" * 500)
    return folder


def limit(aquarium, size):
    state = aquarium.state / "state"
    state.mkdir(mode=0o700)
    (state / "policy.yaml").write_text(f"budgets:\n  surveyed-bytes: {size}\n")


def lines(report, risk):
    return [c["text"] for c in report["checklist"] if c["risk"] == risk]


def test_nothing_surveyed_has_no_shares(aquarium, tmp_path):
    limit(aquarium, 1)
    report = aquarium.validate(package(tmp_path / "p", 2), check=3)
    (finding,) = [f for f in report["findings"] if f["rule"] == "intake.survey"]
    assert finding["incomplete"] and "0 of 3 files" in finding["message"]
    assert "surveyed-bytes of 1 " in finding["message"]
    assert report["stages"][0]["decision"] == "inconclusive"
    assert report["survey"]["reason"] == finding["message"]
    assert not lines(report, "share")
    assert any("0 of 3 files" in text for text in lines(report, "unread"))
    html = aquarium.run("validate", "--html", "-", tmp_path / "p").stdout.decode()
    assert "made of" not in html and "Nothing generated" not in html


def test_part_surveyed_says_of_what_it_speaks(aquarium, tmp_path):
    limit(aquarium, 5000)
    report = aquarium.validate(package(tmp_path / "p", 2), check=3)
    (share,) = lines(report, "share")
    assert share.startswith("Of what was surveyed, 2 files") and "minified" in share
    assert any("2 of 3 files" in text for text in lines(report, "unread"))
    # What was read whole is still judged for what it lacks.
    assert report["stages"][1]["decision"] != "reject"


@pytest.mark.parametrize("files", [0, 2])
def test_a_whole_survey_says_nothing_of_it(aquarium, tmp_path, files):
    report = aquarium.validate(package(tmp_path / "p", files))
    assert report["survey"]["complete"] and report["survey"]["reason"] is None
    assert "intake.survey" not in {f["rule"] for f in report["findings"]}
    assert report["stages"][0]["decision"] == "pass"
    assert len(lines(report, "share")) == 1
