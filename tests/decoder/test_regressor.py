"""Numbers instead of classes: folds, scores, maps, permutations, curves and saved models of GAMPRegressor."""

import nibabel
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from mvpa_gamp import GAMPDecoder, GAMPRegressor
from mvpa_gamp.decoding import leave_one_run_out
from mvpa_gamp.decoding.regression import number_scores, permuted_numbers, regression_test, usual_exchange
from mvpa_gamp.methods.regression import REGRESSIONS, RidgeRegression, find_regression

AFFINE = np.diag([3.0, 3.0, 3.0, 1.0])
GROUPS = np.repeat(np.arange(1, 11), 6)


class Rated:
    """Maps of ten people, six each, of whom two voxels follow a rating; people differ in their level."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.rating = rng.normal(50, 10, 60)
        values = rng.normal(0, 1, (60, 5, 6, 4)) + rng.normal(0, 2, (10, 5, 6, 4))[GROUPS - 1]
        values[:, 1, 2, 1] += (self.rating - 50) / 5
        values[:, 3, 4, 2] -= (self.rating - 50) / 5
        self.images = [nibabel.Nifti1Image(each.astype(np.float32), AFFINE) for each in values]
        self.mask = nibabel.Nifti1Image(np.ones((5, 6, 4), dtype=np.uint8), AFFINE)


@pytest.fixture(scope="module")
def rated():
    return Rated()


@pytest.fixture(scope="module")
def fitted(rated):
    return GAMPRegressor("vamp-bg-reg", mask=rated.mask, scaling="centre", target="rating").fit(
        rated.images, rated.rating, GROUPS
    )


@pytest.mark.parametrize("name", REGRESSIONS)
def test_every_method_predicts_the_rating(rated, name):
    model = GAMPRegressor(name, mask=rated.mask, scaling="centre").fit(rated.images, rated.rating, GROUPS)
    assert model.scores_.correlation > 0.4 and model.scores_.within > 0.5 and model.scores_.r2 > 0.15
    assert len(model.cv_predictions_) == 60 and model.status_.shape[0] == 11
    weights = model.coef_img_.get_fdata()
    assert weights[1, 2, 1] > np.quantile(weights, 0.95) and weights[3, 4, 2] < np.quantile(weights, 0.05)


def test_ridge_is_that_of_scikit_learn_at_the_chosen_penalty():
    rng = np.random.default_rng(1)
    X, runs = rng.standard_normal((40, 70)) * rng.uniform(0.5, 3, 70) + 5, np.repeat(np.arange(5), 8)
    y = X @ rng.standard_normal(70) + rng.standard_normal(40) + 100
    train = runs[:, None] != np.arange(5)
    fits = RidgeRegression().fit_folds(X, y, train, runs)
    scaled = X / X.std(axis=0)
    for column in range(5):
        rows = train[:, column]
        centred = scaled[rows] - scaled[rows].mean(axis=0)
        unit = np.square(centred).sum() / rows.sum()
        own = Ridge(alpha=fits.parameters["penalty"][column] * unit).fit(scaled[rows], y[rows])
        np.testing.assert_allclose(fits.decision[:, column], own.predict(scaled), rtol=1e-6)


def test_the_penalty_is_that_of_the_runs_left_out():
    rng = np.random.default_rng(2)
    X, runs = rng.standard_normal((30, 50)), np.repeat(np.arange(5), 6)
    y = X[:, :8].sum(axis=1) + rng.standard_normal(30)
    chosen = RidgeRegression().fit_folds(X, y, np.ones((30, 1), bool), runs).parameters["penalty"][0]
    scaled = X / X.std(axis=0)
    unit = np.square(scaled - scaled.mean(axis=0)).sum() / 30
    errors = []
    for share in np.logspace(-3, 3, 13):
        left = [
            np.square(Ridge(share * unit).fit(scaled[a], y[a]).predict(scaled[b]) - y[b]).sum()
            for a, b in LeaveOneGroupOut().split(X, y, runs)
        ]
        errors.append(sum(left))
    best = np.logspace(-3, 3, 13)[int(np.argmin(errors))]
    assert (
        abs(np.log10(chosen / best)) <= 0.51
    )  # the mean of the targets is learnt with the run, a step at most


@pytest.mark.parametrize("name", REGRESSIONS)
def test_held_out_numbers_are_never_read_and_columns_do_not_meet(name):
    rng = np.random.default_rng(3)
    X, runs = rng.standard_normal((30, 40)), np.repeat(np.arange(5), 6)
    y, train = X[:, 0] * 3 + rng.standard_normal(30), runs[:, None] != np.arange(5)
    graph = {"connectivity": np.eye(40, k=1) + np.eye(40, k=-1)} if "sbg" in name else {}
    method = REGRESSIONS[name]
    whole = method.fit_folds(X, y, train, runs, **graph)
    for column in (0, 3):
        hidden = np.where(train[:, column], y, np.nan)
        alone = method.fit_folds(X, hidden, train[:, [column]], runs, **graph)
        np.testing.assert_allclose(alone.coef[:, 0], whole.coef[:, column], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_units_of_the_number_and_of_the_images_do_not_matter(name):
    rng = np.random.default_rng(4)
    X, runs = rng.standard_normal((30, 40)), np.repeat(np.arange(5), 6)
    y, train = X[:, 0] * 3 + rng.standard_normal(30), runs[:, None] != np.arange(5)
    graph = {"connectivity": np.eye(40, k=1) + np.eye(40, k=-1)} if "sbg" in name else {}
    one = REGRESSIONS[name].fit_folds(X, y, train, runs, **graph)
    two = REGRESSIONS[name].fit_folds(X * 1000, y * 7 - 30, train, runs, **graph)
    np.testing.assert_allclose(two.decision, one.decision * 7 - 30, rtol=1e-6, atol=1e-8)


def test_a_regressor_of_scikit_learn_agrees_with_itself(rated):
    svr = make_pipeline(StandardScaler(), SVR(kernel="linear", C=0.1))
    model = GAMPRegressor(svr, mask=rated.mask, scaling="centre").fit(rated.images, rated.rating, GROUPS)
    train, test = GROUPS != 3, GROUPS == 3
    own = make_pipeline(StandardScaler(), SVR(kernel="linear", C=0.1)).fit(
        model._X[train], rated.rating[train]
    )
    said = model.cv_predictions_.query("group == 3")["predicted"]
    np.testing.assert_allclose(said, own.predict(model._X[test]), rtol=1e-10)


def test_scores_are_what_they_say():
    y, groups = np.array([1.0, 2, 3, 5, 6, 7]), [1, 1, 1, 2, 2, 2]
    folds = leave_one_run_out(groups)
    said = np.tile(np.array([3.0, 2, 1, 5, 6, 7])[:, None], 2)
    found = number_scores(y, said, folds, groups)
    usual = np.repeat([6.0, 2.0], 3)  # means of the other groups
    assert found.correlation == pytest.approx(np.corrcoef(y - usual, said[:, 0] - usual)[0, 1])
    assert found.within == pytest.approx(0.0) and found.error == pytest.approx(4 / 6)
    assert found.r2 == pytest.approx(1 - 8 / (25 + 16 + 9 + 9 + 16 + 25))


# --- what is exchanged


@pytest.mark.parametrize(
    ("y", "groups", "series", "expected"),
    [
        ([1, 2, 3, 4], None, False, "all"),
        ([1, 2, 3, 4], [1, 2, 3, 4], False, "all"),
        ([1, 1, 3, 3], [1, 1, 2, 2], False, "groups"),
        ([1, 2, 3, 3], [1, 1, 2, 2], False, "within"),
        ([1, 2, 3, 3], [1, 1, 2, 2], True, "shift"),
    ],
)
def test_what_may_be_exchanged(y, groups, series, expected):
    assert usual_exchange(np.array(y, float), groups, series) == expected


@pytest.mark.parametrize("exchange", ["within", "groups", "all", "shift"])
def test_permutations_keep_what_they_must(exchange):
    y = np.repeat([1.0, 5, 9], 4) if exchange == "groups" else np.arange(12.0)
    groups = np.repeat([1, 2, 3], 4)
    drawn = permuted_numbers(y, groups, 50, 3, exchange)
    assert (np.sort(drawn, axis=0) == np.sort(y)[:, None]).all()
    assert (drawn == permuted_numbers(y, groups, 80, 3, exchange)[:, :50]).all()
    by_group = drawn.reshape(3, 4, 50)
    if exchange in ("within", "shift"):
        assert (np.sort(by_group, axis=1) == y.reshape(3, 4, 1)).all()
    if exchange == "shift":
        steps = np.diff(by_group, axis=1, append=by_group[:, :1])
        assert (np.sort(steps, axis=1)[:, 1:] == 1).all()
    if exchange == "groups":
        assert (np.ptp(by_group, axis=1) == 0).all()


def _pvalues(exchange, dependent, count=60, n=19):
    """P-values of sets without an effect; ``dependent``: numbers and images drift slowly within groups."""
    rng, groups, out = np.random.default_rng(5), np.repeat(np.arange(4), 12), []
    folds, method = leave_one_run_out(groups), RidgeRegression()
    for _ in range(count):
        X, y = rng.standard_normal((48, 12)), rng.standard_normal(48)
        if dependent:
            walk = np.cumsum(rng.standard_normal((4, 12, 13)), axis=1).reshape(48, 13)
            X, y = walk[:, :12], walk[:, 12]
        test = regression_test(method, X, y, groups, folds, n, groups=groups, exchange=exchange)
        out.append(test.pvalue)
    return np.array(out)


def test_p_values_are_uniform_without_an_effect():
    values = _pvalues("within", dependent=False)
    assert abs((values <= 0.25).mean() - 0.25) < 3 * np.sqrt(0.25 * 0.75 / 60)
    assert (values <= 0.05).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_the_test_finds_a_rating_and_says_where_few_arrangements_exist(fitted, rated):
    test = fitted.permutation_test(39)
    assert test.pvalue == test.pvalue_r2 == 1 / 40 and test.exchange == "within" and not test.caution
    assert test.correlation == pytest.approx(fitted.scores_.correlation)
    few = GAMPRegressor("ridge").fit(np.eye(4), [1.0, 2, 1, 2], groups=[1, 1, 2, 2])
    assert "Only 4 arrangements" in few.permutation_test(9).caution


def test_learning_curve_rises(fitted):
    curve = fitted.learning_curve(5)
    assert curve.n_train_groups.tolist() == [2, 5, 8, 9] and curve.correlation[-1] > curve.correlation[0]


# --- predictions, files, input


def test_new_people_are_scaled_as_asked(fitted, rated):
    there, rows = rated.images[:6], fitted._X[:6]
    np.testing.assert_allclose(
        fitted.predict(there, groups=GROUPS[:6]), rows @ fitted.coef_ + fitted.intercept_, rtol=1e-4
    )
    alone = np.stack([image.get_fdata().ravel() for image in there]) - fitted._model.scaling.center
    np.testing.assert_allclose(fitted.predict(there), alone @ fitted.coef_ + fitted.intercept_, rtol=1e-5)
    assert fitted.score(rated.images, rated.rating) < 1


def test_a_saved_regressor_says_the_same_to_the_bit(fitted, rated, tmp_path, capsys):
    loaded = GAMPRegressor.load(fitted.save(tmp_path / "model"))
    for groups in (None, GROUPS):
        np.testing.assert_array_equal(
            loaded.predict(rated.images, groups), fitted.predict(rated.images, groups)
        )
    with pytest.raises(ValueError, match="holds its weights and no images"):
        loaded.permutation_test()
    with pytest.raises(ValueError, match="not of classes"):
        GAMPDecoder.load(tmp_path / "model")
    from mvpa_gamp.__main__ import main

    nibabel.save(rated.images[0], tmp_path / "one.nii.gz")
    assert main(["predict", str(tmp_path / "model"), "--maps", str(tmp_path / "one.nii.gz")]) == 0
    said = float(capsys.readouterr().out.splitlines()[1].split("\t")[2])
    assert said == pytest.approx(fitted.predict(rated.images[:1])[0], rel=1e-5)


@pytest.mark.parametrize("cv", [3, GroupKFold(5)])
def test_any_splitter_and_a_number(rated, cv):
    model = GAMPRegressor("ridge", mask=rated.mask, cv=cv).fit(rated.images, rated.rating, GROUPS)
    for train, test in zip(model._folds.train.T, model._folds.tested.T, strict=True):
        assert not set(GROUPS[train]) & set(GROUPS[test])


@pytest.mark.parametrize(
    ("settings", "y", "groups", "message"),
    [
        ({"method": "gamp-sbg-lr"}, None, GROUPS, "expected one of vamp-bg-reg, .*got 'gamp-sbg-lr'"),
        ({"method": SVR}, None, GROUPS, r"the class SVR: write SVR\(\)"),
        ({"scaling": "minmax"}, None, GROUPS, "scaling: expected none, centre, zscore, got 'minmax'"),
        ({}, np.full(60, 3.0), GROUPS, "expected different numbers"),
        ({}, np.array(["a"] * 60), GROUPS, "For classes use GAMPDecoder"),
        ({}, np.arange(59.0), GROUPS, "60 images and 59 numbers"),
        ({"cv": 11}, None, GROUPS, "2 to 10 folds, the number of groups, got 11"),
        ({"scaling": "centre"}, None, np.arange(60), "at least 2 images of every group, got 1"),
    ],
)
def test_bad_input_ends_in_a_sentence(rated, settings, y, groups, message):
    with pytest.raises(ValueError, match=message):
        GAMPRegressor(mask=rated.mask, **settings).fit(rated.images, rated.rating if y is None else y, groups)


def test_classification_of_a_rating_names_the_regressor(rated):
    with pytest.raises(ValueError, match=r"Unknown label type.*use GAMPRegressor \(commands: --target\)"):
        GAMPDecoder(mask=rated.mask).fit(rated.images, rated.rating, GROUPS)


def test_methods_are_found():
    assert find_regression("ridge").name == "ridge" and find_regression(Ridge()).label == "Ridge"
