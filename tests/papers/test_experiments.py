"""Published methods against their definitions, and against what was published."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from papers import gallery
from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.noise import SimulatedNoise
from privatest_papers import awan_wang, images
from privatest_papers.balog import RandomFeatures, pre_images, sequential_basis
from privatest_papers.comparing import against_best, against_published
from privatest_papers.entries import all_experiments, experiment
from privatest_papers.experiments import balog
from privatest_papers.experiments.kim_schrab_arms import HSIC_ARMS, MMD_ARMS
from privatest_papers.images import image_samples
from privatest_papers.raj_moments import embedded, paper_nte_pvalues, paper_tcmc_pvalues
from privatest_papers.results import Row, Rows, published, shipped
from privatest_papers.running import run_experiment

X, Y = np.random.default_rng(1).standard_normal((2, 30))


def statistic(name, *samples):
    return float(awan_wang.TESTS[name].statistic(*(rows[None] for rows in samples))[0])


def test_statistics_of_awan_and_wang_are_those_of_scipy():
    assert statistic("KS", X) == pytest.approx(stats.kstest(X, "norm").statistic)
    squares = stats.cramervonmises(X, "norm").statistic
    assert statistic("Cramér-von Mises", X) == pytest.approx(np.sqrt(squares / 30))
    assert statistic("two-sample KS", X, Y) == pytest.approx(stats.ks_2samp(X, Y).statistic)
    above = stats.ks_2samp(X, Y, alternative="greater").statistic
    below = stats.ks_2samp(X, Y, alternative="less").statistic
    assert statistic("two-sample Kuiper", X, Y) == pytest.approx(above + below)
    one_side = [
        stats.ks_1samp(X, stats.norm.cdf, alternative=a).statistic for a in ("less", "greater")
    ]
    assert statistic("Kuiper", X) == pytest.approx(sum(one_side))
    u = stats.mannwhitneyu(X, Y).statistic
    smaller = min(u, 900 - u) + 30 * 31 / 2
    assert statistic("Mann-Whitney", X, Y) == pytest.approx(-smaller)
    ranks = stats.rankdata(np.concatenate([X, Y]))
    assert statistic("median", X, Y) == (ranks[:30] > 30).sum()
    assert statistic("Wilcoxon", X) == pytest.approx((stats.rankdata(abs(X)) * np.sign(X)).sum())
    mirrored = stats.ks_2samp(X, -X).statistic
    assert statistic("paired KS", X) == pytest.approx(mirrored)


@pytest.mark.parametrize("name", list(awan_wang.TESTS))
def test_tests_of_awan_and_wang_have_their_level_and_see_a_shift(name):
    test = awan_wang.TESTS[name]
    rng, rates = np.random.default_rng(2), []
    for shift in (0.0, 2.0):
        found = []
        for seed in range(200):
            samples = rng.standard_normal((test.samples, 40))
            samples[-1] += shift
            noise = SimulatedNoise(seed)
            found.append(awan_wang.paper_decision(name, *samples, epsilon=2.0, noise=noise))
        rates.append(np.mean(found))
    assert rates[0] < 0.12  # fixed seeds; 5 standard errors and the error of 1000 replicates
    assert rates[1] > 0.9
    with pytest.raises(PrivacyError):
        awan_wang.paper_decision(name, *samples, epsilon=1.0, noise=None)


def test_balogs_algorithm_is_the_published_one():
    numbers = published("balog-d2.json")["alg1_leak"]
    sizes = [size for size in numbers["M"] if size <= 104]
    basis = sequential_basis(balog.data()[:104], balog.data(), 1e-4 / 2, balog.OWN)
    for place, size in enumerate(sizes):
        kept = int(np.searchsorted(basis.parents, size))
        left = basis.squared - np.square(basis.coefficients[:kept]).sum()
        assert np.sqrt(left) == pytest.approx(numbers["dists_proj"][place], rel=2e-4)
        # noise is small here, so that one release is as good as another
        found = basis.distance(size, 1.0, 1e-6, SimulatedNoise(0))
        assert found == pytest.approx(numbers["dists_alg1"][2][place], rel=0.01)
    with pytest.raises(PrivacyError):
        basis.distance(5, 1.0, 1e-6, None)


def test_pre_images_find_the_points_of_a_mixture():
    places, shares = np.array([[0.0, 0.0], [900.0, 0.0], [0.0, 900.0]]), np.array([0.5, 0.3, 0.2])
    features = RandomFeatures.drawn(2, 1e-4 / 2, 2000, np.random.default_rng(0))
    assert features.of(places) @ features.of(places).T == pytest.approx(np.eye(3), abs=0.1)
    rows = np.repeat(places, [50, 30, 20], axis=0)
    mean = features.mean(rows)
    assert mean == pytest.approx(shares @ features.of(places))
    sizes, starts = [1, 3, 5], places[[0, 1, 2, 0, 1]] + 60
    released = pre_images(features, mean, starts, sizes, n=10**6)
    assert [len(points) for points, _ in released] == sizes
    for points, weights in released[1:]:
        left = mean - weights @ features.of(points)
        assert np.linalg.norm(left) < 0.1 * np.linalg.norm(mean)
        nearest = np.square(points[:3, None] - places).sum(axis=2)
        assert np.sqrt(nearest.min(axis=1)) == pytest.approx(np.zeros(3), abs=40)


def test_weights_of_pre_images_are_those_of_the_lasso():
    from sklearn.linear_model import Lasso

    features = RandomFeatures.drawn(2, 1e-4 / 2, 400, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    mean = features.mean(rng.normal(scale=200, size=(500, 2)))
    noisy, starts, n = mean + rng.normal(scale=0.01, size=400), rng.normal(size=(12, 2)) * 300, 2000
    [(points, weights)] = pre_images(features, noisy, starts, [12], n)
    reference = Lasso(fit_intercept=False, alpha=100 / (2 * n * 400), tol=1e-8, max_iter=100_000)
    reference.fit(features.of(points).T, noisy)

    def loss(found):
        return np.square(noisy - found @ features.of(points)).sum() + 100 / n * abs(found).sum()

    assert loss(weights) == pytest.approx(loss(reference.coef_), rel=1e-3)


@pytest.mark.parametrize("arms", [MMD_ARMS, HSIC_ARMS])
@pytest.mark.parametrize("name", ["TOT", "SARRM"])
def test_epsilons_share_the_p_values_of_subsets(arms, name):
    run = next(arm.run for arm in arms if arm.names == (name,))
    study = {"n": 400, "d": 1, "amplitude": 0.9}
    study |= {"scale": 4.0} if arms is HSIC_ARMS else {}
    settings = [{"epsilon": epsilon} for epsilon in (0.01, 20.0, 50.0)]
    for seed in range(3):
        together = run(study, settings, seed)[0]
        # SARRM has the same five subsets at the second and third, none at the first
        assert together == [run(study, [each], seed)[0][0] for each in settings]
        assert together[2] is True
    assert (together[0] is None) == (name == "SARRM")


def test_moments_of_raj_have_their_level_and_see_a_shift():
    rng = np.random.default_rng(3)
    points = rng.standard_normal((3, 2))
    rates = {}
    for shift in (0.0, 0.5):
        found = []
        for seed in range(60):
            x, y = rng.standard_normal((2, 2000, 2))
            features = embedded(x, points, 1.0), embedded(y + shift, points, 1.0)
            options: Any = {"epsilon": 2.0, "delta": 1e-5, "rng": rng}
            options["noise"] = SimulatedNoise(seed)
            found.append(
                [
                    paper_tcmc_pvalues(*features, **options)[0],
                    paper_nte_pvalues(*features, **options)[0],
                ]
            )
        rates[shift] = np.mean(np.array(found) < 0.05, axis=0)
    assert (rates[0.0] < 0.17).all()  # fixed seeds
    assert (rates[0.5] > 0.9).all()
    with pytest.raises(PrivacyError):
        paper_tcmc_pvalues(*features, epsilon=1.0, delta=1e-5, rng=rng, noise=None)


def test_an_entry_runs():
    entry = experiment("dunsche-1")
    found = run_experiment(entry, runs=1)
    assert {row.method for row in found.rows} == set(entry.methods)
    assert len(found.rows) == len(entry.points) * len(entry.methods)


def test_images_are_mixed_as_asked():
    rng = np.random.default_rng(4)
    x, y = image_samples("digits", 400, 0.0, rng)
    assert x.shape == y.shape == (400, 64)
    assert 0 <= x.min() < x.max() <= 1
    first = {row.tobytes() for row in images._digits()[0]}
    assert all(row.tobytes() in first for row in (*x, *y))
    _, other = image_samples("digits", 400, 1.0, rng)
    assert not any(row.tobytes() in first for row in other)


def test_celeba_is_read_from_a_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(images.FOLDER, raising=False)
    with pytest.raises(ParameterError, match="PRIVATEST_CELEBA"):
        image_samples("CelebA", 4, 0.5, np.random.default_rng(0))
    pictures = tmp_path / "img_align_celeba"
    pictures.mkdir()
    for name, shade in (("000001.jpg", 10), ("000002.jpg", 240)):
        Image.new("RGB", (4, 3), (shade, shade, shade)).save(pictures / name)
    lines = ["2", "Bald Male Young", "000001.jpg -1 -1  1", "000002.jpg  1  1 -1", ""]
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(lines))
    monkeypatch.setenv(images.FOLDER, str(tmp_path))
    x, y = image_samples("CelebA", 5, 1.0, np.random.default_rng(0))
    assert x.shape == (5, 36)
    assert x.mean() == pytest.approx(10 / 255, abs=0.02)
    assert y.mean() == pytest.approx(240 / 255, abs=0.02)


def test_comparisons_say_who_is_ahead_and_who_is_off():
    entry = experiment("kim-schrab-2")
    point = next(p for p in entry.points if p.published["dpMMD"] == 0.835)
    where = (point.panel, point.x)
    rows = Rows(
        entry.name,
        (
            Row(*where, "dpMMD", "paper", 200, 100, 100),
            Row(*where, "TCS-ME", "paper", 200, 200, 200),  # not private: no yardstick
            Row(*where, "mmd_test", "ours", 200, 60, 60),
        ),
    )
    (against,) = against_best(entry, rows)
    assert against.gain == pytest.approx(-0.2)
    assert against.worse
    off = {one.method: one for one in against_published(entry, rows)}
    assert off["dpMMD"].errors > 3
    assert off["dpMMD"].found == 0.5


def test_dpmmd_is_as_published():
    entry = experiment("kim-schrab-2")
    found = [o for o in against_published(entry, shipped(entry)) if o.method == "dpMMD"]
    assert len(found) == 18
    assert max(abs(one.found - one.value) for one in found) <= 0.07
    entry = experiment("kim-schrab-3")
    found = [o for o in against_published(entry, shipped(entry)) if o.method == "dpMMD"]
    assert len(found) == 15
    assert max(one.errors for one in found) <= 3


def test_table_1_of_dunsche_is_as_published():
    entry = experiment("dunsche-table-1")
    found = against_published(entry, shipped(entry))
    assert len(found) == 96
    assert sum(one.errors <= 3 for one in found) >= 0.9 * 96
    assert all(one.errors <= 3 for one in found if one.method == "bootstrap (3.4)")


def test_the_gallery_is_up_to_date():
    for name, text in gallery.render().items():
        page = (gallery.PAGES / name).read_text(encoding="utf-8")
        assert page == text, "run: python -m papers.gallery"
    for entry in all_experiments().values():
        drawn = (gallery.PICTURES / f"{entry.name}.png").exists()
        assert drawn is bool(shipped(entry).rows)
