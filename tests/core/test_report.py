"""Tests of the report: hand-worked axes, then what every figure and page must hold."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.errors import DataError
from dtca_core.evaluation.comparison import paired_test, wilson_interval
from dtca_core.report import ReportInputs, render_report
from dtca_core.report.figures import (
    DotRow,
    Mark,
    Scale,
    Series,
    curve_panel,
    dot_plot,
    format_tick,
    printable,
    running_mean,
    smoothing_reach,
    thin,
    tick_step,
    ticks_over,
    ticks_within,
)
from dtca_core.report.page import PANELS, category_figure
from dtca_core.weights import CategoryEstimate, WeightArtifact

finite = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br"}
ATTACK = "<script>alert('x')</script>&\"\x00\x1b\ud800"


def estimate(mean, count=50, error=0.01, interval=None):
    return CategoryEstimate(
        weight=1.0,
        mean_delta_p=mean,
        standard_error=error,
        count=count,
        mean_interval=interval,
        weight_interval=[0.9, 1.1],
    )


def artifact(**categories):
    return WeightArtifact(
        tagger="math",
        tagger_version="1",
        normalisation="minmax",
        low=0.8,
        high=1.2,
        min_count=10,
        categories=categories,
        unseen_weight=1.0,
    )


def summary(correct, total=100):
    budget = {
        "gen_length": 64,
        "steps": 32,
        "total": total,
        "correct": correct,
        "accuracy": correct / total if total else 0.0,
        "interval": list(wilson_interval(correct, total)),
        "truncated": 0.02,
        "no_answer": 0.01,
        "undecided": 0.0,
        "boxed": 0.9,
        "published": [],
        "tokens_per_step": 2.0,
    }
    return {"protocol": "plain", "num_problems": total, "budgets": [budget]}


def pairs(gained, lost, both=40, neither=20):
    before = [True] * both + [False] * gained + [True] * lost + [False] * neither
    after = [True] * both + [True] * gained + [False] * lost + [False] * neither
    return paired_test(before, after)


def metrics(num_updates):
    rows = [{"update": 0, "validation_accuracy": 0.5}]
    for update in range(1, num_updates + 1):
        wave = math.sin(update)
        values = {metric: 1.0 + wave for panel in PANELS for metric in panel.curves}
        rows.append({"update": update, **values, "tokens_trained": 12})
    return rows


def example(text="6 * 7 = 42"):
    return {
        "question": "How many?",
        "reference": "42",
        "before_text": text,
        "before_correct": False,
        "after_text": text,
        "after_correct": True,
    }


@pytest.fixture
def inputs():
    return ReportInputs(
        title="Word problems",
        weights=artifact(NUM=estimate(0.3), VERB=estimate(0.1, count=5), X=estimate(0.2, 1, None)),
        metrics=metrics(60),
        before=summary(55),
        after=summary(65),
        comparisons=[pairs(25, 15)],
        examples=[example()],
        lineage=[
            ("train", "checkpoint/0a1b", "60 updates"),
            ("prepare", "dataset/1c", ""),
        ],
        config={"seed": 0, "train": {"updates": 60}},
    )


def shapes(svg, tag):
    return list(ElementTree.fromstring(svg).iter(SVG + tag))


def texts(svg):
    return [element.text for element in shapes(svg, "text")]


def figures_of(page):
    return re.findall(r"<svg.*?</svg>", page, re.DOTALL)


class Reader(HTMLParser):
    """Reads a page: its tags and attributes, and whether every tag is closed in turn."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.ids, self.open = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def draw(*values, **options):
    points = [(float(update), value) for update, value in enumerate(values)]
    options = {"unit": "nats", "title": "Entropy", "extent": (0.0, 10.0), **options}
    return curve_panel([Series(name="entropy", points=points)], **options)


# Axes


@pytest.mark.parametrize(
    ("span", "about", "step"),
    # By hand: 1 / 4 = 0.25 needs 0.5; exactly 4 steps of 0.2 or of 5 stay; 7 / 4 = 1.75 needs 2;
    # 24 / 4 = 6 is above 5 and needs 10.
    [(1.0, 4, 0.5), (0.8, 4, 0.2), (20.0, 4, 5.0), (7.0, 4, 2.0), (24.0, 4, 10.0), (3e-4, 4, 1e-4)],
)
def test_the_tick_step_is_one_two_or_five(span, about, step):
    assert tick_step(span, about) == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.13, 0.87, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),  # span 0.74, step 0.2
        (-0.2, 0.2, [-0.2, -0.1, 0.0, 0.1, 0.2]),
        (0.0, 0.0, [0.0, 0.5, 1.0]),
        (3.0, 3.0, [1.0, 2.0, 3.0, 4.0, 5.0]),  # 1.5 to 4.5, step 1
        (-2.0, -2.0, [-3.0, -2.5, -2.0, -1.5, -1.0]),  # span 2, step 0.5
    ],
)
def test_ticks_over_values(low, high, expected):
    assert ticks_over(low, high) == expected


def test_ticks_within_are_whole_numbers():
    assert ticks_within(0.0, 60.0) == [0.0, 20.0, 40.0, 60.0]
    assert ticks_within(0.0, 5000.0) == [0.0, 2000.0, 4000.0]
    assert ticks_within(1.0, 3.0) == [1.0, 2.0, 3.0]
    assert ticks_within(0.5, 1.5) == [1.0]


@given(finite, finite)
def test_ticks_over_cover_and_are_few_and_even(one, other):
    low, high = sorted((one, other))
    ticks = ticks_over(low, high)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] <= low + 1e-6 * abs(low)
    assert ticks[-1] >= high - 1e-6 * abs(high)
    gaps = [after - before for before, after in pairwise(ticks)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps), rel=1e-3)


@pytest.mark.parametrize(
    ("value", "step", "label"),
    [
        (0.3, 0.1, "0.3"),
        (-0.05, 0.05, "−0.05"),  # noqa: RUF001 - the minus sign is meant
        (2000.0, 500.0, "2,000"),
        (1.0, 0.5, "1.0"),
        (2e-6, 1e-6, "2e−06"),  # noqa: RUF001
        (2e7, 1e7, "2e+07"),
    ],
)
def test_tick_labels(value, step, label):
    assert format_tick(value, step) == label


def test_a_scale_maps_its_ends_and_what_is_between():
    # By hand: 0.25 is a quarter of the way from 100 up to 20, which is 100 - 20 = 80.
    scale = Scale(low=0.0, high=1.0, start=100.0, end=20.0)
    assert [scale(0.0), scale(0.25), scale(1.0)] == [100.0, 80.0, 20.0]


# Curves


def test_the_running_mean_is_narrower_at_the_ends():
    # By hand, reach 1: (1+2)/2, (1+2+6)/3, (2+6+4)/3, (6+4)/2.
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, 6.0), (5.0, 4.0)]
    assert running_mean(points, 1) == [(1.0, 1.5), (2.0, 3.0), (3.0, 4.0), (5.0, 5.0)]
    assert running_mean(points, 0) == points


def test_a_short_curve_is_not_smoothed():
    assert [smoothing_reach(n) for n in (1, 7, 8, 32, 160)] == [0, 0, 1, 2, 10]


def test_thinning_keeps_ends_and_spikes():
    # By hand, limit 6: stretches [0, 5) and [5, 10), of each its lowest and highest.
    values = [5.0, 1.0, 9.0, 5.0, 5.0, 5.0, 5.0, -3.0, 7.0, 5.0]
    points = [(float(i), value) for i, value in enumerate(values)]
    assert [i for i, _ in thin(points, 6)] == [0, 1, 2, 7, 8, 9]
    assert thin(points) == points


@given(st.lists(finite, min_size=1, max_size=3000), st.integers(4, 400))
def test_thinning_keeps_order_and_extremes(values, limit):
    points = [(float(i), value) for i, value in enumerate(values)]
    kept = thin(points, limit)
    assert len(kept) <= limit
    assert kept == sorted(kept)
    assert {min(values), max(values)} <= {value for _, value in kept}


def test_five_thousand_updates_are_drawn_with_few_points():
    svg = draw(*[math.sin(i) for i in range(5000)], extent=(0.0, 4999.0))
    lines = shapes(svg, "polyline")
    assert [line.get("class") for line in lines] == ["s0 raw", "s0 curve"]
    assert all(len(line.get("points").split()) <= 400 for line in lines)


def test_a_curve_has_axes_ticks_unit_and_legend():
    said = texts(draw(*[i / 10 for i in range(11)]))
    assert {"entropy", "nats", "update", "0.0", "0.5", "1.0", "0", "5", "10"} <= set(said)


def test_a_single_update_is_a_dot_in_the_middle():
    svg = draw(0.5, extent=(0.0, 0.0))
    [dot] = shapes(svg, "circle")
    grid = [line for line in shapes(svg, "line") if line.get("class") == "axis"]
    middle = (float(grid[0].get("x1")) + float(grid[0].get("x2"))) / 2
    assert float(dot.get("cx")) == pytest.approx(middle, abs=0.01)
    assert dot.find(SVG + "title").text == "update 0: 0.5"


@given(st.lists(finite, min_size=1, max_size=30))
def test_every_curve_is_well_formed_and_inside_its_figure(values):
    svg = draw(*values, extent=(0.0, 30.0))
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.get("viewBox").split())
    for line in root.iter(SVG + "polyline"):
        for place in line.get("points").split():
            x, y = map(float, place.split(","))
            assert -0.01 <= x <= width + 0.01
            assert -0.01 <= y <= height + 0.01


def test_no_values_say_so():
    assert texts(draw()) == ["no values"]
    assert texts(dot_plot([], names=[], unit="", title="none")) == ["no values"]


# Dots


def test_dots_lie_on_the_scale_and_intervals_around_them():
    rows = [
        DotRow(label="a", marks=[Mark(value=0.0), Mark(value=50.0, low=25.0, high=75.0)]),
        DotRow(label="b" * 40, marks=[Mark(value=100.0)], note="+1"),
    ]
    svg = dot_plot(rows, names=["before", "after"], unit="%", title="Accuracy", note_title="points")
    left, right = (float(dot.get("cx")) for dot in shapes(svg, "circle")[1:])
    whisker = next(line for line in shapes(svg, "line") if "whisker" in line.get("class"))
    low, high = whisker.get("x1"), whisker.get("x2")
    assert float(low) == pytest.approx(left + (right - left) / 4, abs=0.01)
    assert float(high) == pytest.approx(left + (right - left) * 3 / 4, abs=0.01)
    assert {"before", "after", "%", "points", "+1", "b" * 21 + "…"} <= set(texts(svg))


def test_a_legend_that_is_too_wide_wraps():
    names = ["n" * 30, "m" * 30]
    svg = dot_plot([DotRow(label="a", marks=[Mark(value=1.0)] * 2)], names=names, unit="", title="")
    first, second = (text for text in shapes(svg, "text") if text.text in names)
    assert first.get("x") == second.get("x")
    assert float(first.get("y")) < float(second.get("y"))


def test_categories_are_sorted_and_rare_ones_hollow():
    svg = category_figure(artifact(A=estimate(0.1), B=estimate(0.3, 5), C=estimate(0.2, 1, None)))
    labels = [text for text in texts(svg) if text in {"A", "B", "C"}]
    assert labels == ["B", "C", "A"]
    assert "seen less than 10 times" in texts(svg)
    kinds = [dot.get("class") for dot in shapes(svg, "circle")]
    assert kinds == ["s0 dot", "s0 hollow", "s0 hollow", "s0 hollow", "s0 dot"]


def test_a_contribution_has_its_interval_over_responses_where_it_is_known():
    figure = category_figure(
        artifact(A=estimate(0.2, interval=[0.125, 0.25]), B=estimate(0.1, interval=None))
    )
    # The first circle is the legend's.
    _, known, unknown = shapes(figure, "circle")
    assert known.find(SVG + "title").text == "0.2 (0.125 to 0.25)"
    assert unknown.find(SVG + "title").text == "0.1"


def test_unprintable_characters_are_replaced():
    assert printable("a\x00\ud800\n\tb") == "a��\n\tb"


# The page


def test_the_headline_says_before_after_and_how_sure(inputs):
    page = render_report(inputs)
    words = re.sub(r"\s+", " ", page.replace("&nbsp;", " "))
    assert "55.0% → 65.0%" in words
    assert "+10.0 points (95% interval" in words
    # By hand: 40 changes, 15 lost: 2 P(X <= 15), X ~ B(40, 1/2), is 0.154.
    assert "p = 0.15. Chance alone could explain this difference." in words
    assert "65 of 100" in words


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (pairs(30, 5), "the model better, beyond"),
        (pairs(5, 30), "the model worse, beyond"),
        (pairs(30, 5), "p&nbsp;&lt; 0.001"),
        (pairs(8, 2), "p&nbsp;= 0.11"),  # by hand: 2 (1 + 10 + 45) / 1024 = 0.109
        (pairs(6, 0), "p&nbsp;= 0.031"),  # by hand: 2 / 64
        (pairs(0, 0), "0.0 points"),
        (pairs(0, 0, 0, 0), "Nothing was compared."),
    ],
)
def test_the_verdict_follows_the_exact_test(inputs, comparison, said):
    assert said in render_report(replace(inputs, comparisons=[comparison]))


def test_the_same_inputs_give_the_same_bytes(inputs):
    assert render_report(inputs).encode() == render_report(inputs).encode()


def test_a_page_needs_nothing_from_elsewhere(inputs):
    page = render_report(inputs)
    assert not re.search(r"https?://", page.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert "url(" not in page
    assert "@import" not in page
    reader = Reader(page)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(reader.tags)
    assert not {"src", "href", "srcset", "data"} & set(reader.attributes)
    assert "default-src 'none'" in page


def test_a_page_is_well_formed_with_headings_and_captions(inputs):
    reader = Reader(render_report(inputs))
    assert not reader.open
    assert reader.tags.count("h1") == 1
    assert reader.tags.count("caption") == reader.tags.count("table") == 4
    assert reader.ids == ["accuracy", "weights", "training", "examples", "lineage", "config"]


@pytest.mark.parametrize("num_updates", [1, 60, 5000])
def test_every_figure_is_named_and_well_formed(inputs, num_updates):
    figures = figures_of(render_report(replace(inputs, metrics=metrics(num_updates))))
    assert len(figures) == 2 + len(PANELS)
    for svg in figures:
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert "nan" not in svg


def test_whatever_a_model_writes_is_shown_and_not_run(inputs):
    rows = [*metrics(3), {"update": 4, "reward": 0.5}]
    page = render_report(
        replace(
            inputs,
            title=ATTACK,
            weights=artifact(**{ATTACK: estimate(0.1)}),
            metrics=rows,
            examples=[{**example(ATTACK), "question": ATTACK, "reference": ATTACK}],
            lineage=[(ATTACK, ATTACK, ATTACK)],
            config={ATTACK[:20]: ATTACK[:20]},
        )
    )
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 9
    assert not Reader(page).open
    page.encode()
    for svg in figures_of(page):
        ElementTree.fromstring(svg)


def test_text_of_a_response_keeps_its_lines(inputs):
    page = render_report(replace(inputs, examples=[example("\n\n1 < 2\n  so")]))
    # A parser drops the first newline of a <pre>, which is the template's.
    assert '<pre dir="auto">\n\n\n1 &lt; 2\n  so</pre>' in page


def test_values_that_are_missing_or_not_finite_are_skipped(inputs):
    rows = [
        {"update": 0, "validation_accuracy": 0.5},
        {"update": 1, "reward": 0.25, "entropy": None},
        {"update": 2, "reward": math.nan, "gradient_norm": math.inf},
        {"update": 3, "reward": 1},
    ]
    page = render_report(replace(inputs, metrics=rows))
    [_, _, panel] = figures_of(page)
    dots = [title.text for title in shapes(panel, "title")]
    assert dots == ["update 1: 0.25", "update 3: 1", "update 0: 0.5"]


def test_values_that_are_all_equal_have_an_axis(inputs):
    rows = [{"update": update, "lambda": 0.0} for update in range(20)]
    [_, _, panel] = figures_of(render_report(replace(inputs, metrics=rows)))
    assert {"0.0", "0.5", "1.0"} <= set(texts(panel))


def test_what_was_not_recorded_is_said(inputs):
    nothing = {"protocol": "plain", "num_problems": 0, "budgets": []}
    page = render_report(
        replace(
            inputs,
            weights=artifact(),
            metrics=[],
            before=nothing,
            after=nothing,
            comparisons=[],
            examples=[],
            lineage=[],
            config={},
        )
    )
    for said in ("No evaluation", "No category", "No update", "No example", "No artifact"):
        assert said in page
    assert not figures_of(page)


def test_evaluations_of_different_budgets_are_refused(inputs):
    other = summary(65)
    other["budgets"][0]["steps"] = 16
    with pytest.raises(DataError, match=r"64 tokens, 16 steps.*same budgets"):
        render_report(replace(inputs, after=other))
    with pytest.raises(DataError, match="0 comparisons"):
        render_report(replace(inputs, comparisons=[]))
