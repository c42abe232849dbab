"""The focal paper's statements, formulated as testable claims.

Sections 3 and 4 with Figures 1 to 3 are about training, and section 5 with Tables 1 to
3 is about calibration. The appendices are about a linear model (C), confident
predictions (H), norms (I), early stopping (J) and translation (K). Claims about
classifiers use only runs of the main recipe (not of its variants) that did not diverge.
"""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from softmax_temperature.papers.focal.contrasts import (
    Apart,
    BesideScaled,
    BesideSelected,
    Evaluated,
    LeastDifference,
    LeastRatio,
    OnOutliers,
)
from softmax_temperature.papers.focal.curves import (
    BEST_BLEU,
    CONFIDENT_MISTAKES,
    CRITERIA,
    DIRECTION,
    EARLY_WEIGHT_NORM,
    HALF_RISE_OF_WRONG,
    LOG_GRADIENT_NORM,
    RISE_OF_ECE,
    RISE_OF_WRONG,
    change_where_overfitted,
    overfitted_count,
    stopped_at_any_epoch,
    stopped_early,
)
from softmax_temperature.papers.focal.study import (
    ACCURACY,
    ADAPTIVE_ECE,
    AUROC,
    BEST_TEMPERATURE,
    BRIER,
    CE,
    CLASSWISE_ECE,
    CONFIDENT_SHARE,
    ECE,
    ECE_BY_NLL,
    ENTROPY_WRONG,
    ERROR,
    EXPERIMENT,
    FEATURE_NORM,
    FL_1,
    FL_2,
    FL_3,
    FLSD_53,
    GRID,
    IMAGES,
    LINEAR,
    LS_005,
    LS_01,
    MAIN,
    MMCE,
    NLL,
    NLL_RIGHT,
    TEMPERATURE,
    TEMPERATURES_APART,
    TOP_5,
    TRANSLATION,
    TRANSLATION_LOSSES,
    WEIGHT_NORM,
    after_scaling,
    any_of,
    at_selected_epoch,
)
from softmax_temperature.papers.shared.claims import (
    Claim,
    above,
    below,
    most,
    not_higher,
    not_worse,
    within,
)
from softmax_temperature.papers.shared.contrasts import (
    Difference,
    Having,
    Mean,
    Parts,
    Proportion,
    Ratio,
)
from softmax_temperature.papers.shared.factors import (
    Where,
    at_least,
    at_most,
    between,
    where,
)
from softmax_temperature.papers.shared.metrics import Measure, Metric
from softmax_temperature.papers.shared.runs import Runs

NEGLIGIBLE = 0.01
"""A difference in accuracy or AUROC below one point counts as no difference."""
ON_PAR = 0.005
"""A difference in ECE after scaling below half a point counts as no difference.

In Table 1, the ECEs after scaling of focal loss with gamma 3 and of cross-entropy
differ by at most 0.07 points for each of four networks on CIFAR-10.
"""
NEAR_ONE = 1.1
"""The upper end of what section 5 calls "very close to 1"."""
CLOSE_TO_ONE = (0.8, 1.25)
"""The range in which a ratio is usually regarded as equivalent to 1."""
BASELINES: Mapping[str, Where] = {
    "CE": CE,
    "Brier": BRIER,
    "MMCE": MMCE,
    "LS-0.05": LS_005,
}
"""Maps labels to the paper's baselines. FLSD-53 is compared with each of them."""
SAME_REGIONS = 180 * NEGLIGIBLE
"""The largest angle, in degrees, between two decision boundaries that count as equal.

At this angle, the predictions of the two models differ in one percent of all directions
from the origin.
"""
MANY_CLASSES = 100
"""The smallest number of classes that counts as many.

Table F.7 reports top-5 accuracies for CIFAR-100 and Tiny-ImageNet.
"""

_TABLE_1 = "section 5, Table 1"
_PAIRED = "paired by task and seed."
_PRINTED = "Printed: Table 1, CIFAR-10 with ResNet-50."
_SCALED = "both with the temperature of least validation ECE"
_TEMPERATURE = "Temperature of least validation ECE"
_FULL = "focal_full"
"""The study of Table 1's losses on all of CIFAR-10, with the released recipe.

The study has no profile yet, because a pilot must first choose the network
(docs/protocol.md).
"""
_IMAGES = "focal_cifar10"
"""The study of every loss on 10,000 training images, without augmentation."""
_MORE_IMAGES = "focal_cifar100"
_TRANSLATION = "translation_multi30k"
_FIVE = {_FULL: 5}
"""Maps studies to the planned number of seeds for cross-entropy and for FLSD-53."""
_THREE = {_FULL: 3}
"""Maps studies to the planned number of seeds for each other loss of Table 1."""
_LOOKS_AT_IMAGES = {_IMAGES: 3}
"""There were three looks: cross-entropy and FLSD-53 had four seeds at the first look,
six at the second, and eleven at the third.
"""
_LOOKS_AT_CE = {_IMAGES: {"FLSD-53 against CE": 3}}
"""The same looks, but only at the part that compares FLSD-53 with cross-entropy.

The other parts of a claim compare FLSD-53 with other baselines, which have only two
seeds.
"""
_LOOKS_AT_RISE = {_IMAGES: {"rise of CE": 3}}
_LOOKS_AT_TRANSLATION = {_TRANSLATION: 2}
"""There were two looks: each loss had three seeds at the first look, and six at the
second.
"""
_STAND_IN = {
    _TRANSLATION: "Multi30k in place of WMT14; gamma 1 and smoothing 0.1 are from "
    "memory",
}


def _difference(
    first: Where, second: Where, of: Measure, among: Where = MAIN
) -> Difference:
    """The metric `of` for the loss `first` minus the same metric for the loss `second`.

    The two runs of a pair may have different recipes, so `sharing` is empty. For
    example, the released code for images averages the Brier loss over a batch, but sums
    the other losses.
    """
    return Difference(
        of=of,
        first=first,
        second=second,
        among=among,
        tasks=EXPERIMENT,
        sharing=(),
    )


def _ratio(first: Where, second: Where, of: Measure, among: Where = MAIN) -> Ratio:
    """The log ratio of the metric `of` for the loss `first` to that for `second`."""
    return Ratio(
        of=of,
        first=first,
        second=second,
        among=among,
        tasks=EXPERIMENT,
        sharing=(),
    )


def _against_every_baseline(of: Measure, among: Where = MAIN) -> Parts:
    """The log ratio of the metric `of` for FLSD-53 to that for each baseline."""
    return Parts(
        {
            f"FLSD-53 against {name}": _ratio(FLSD_53, baseline, of, among)
            for name, baseline in BASELINES.items()
        }
    )


def _throughout(first: Where, second: Where, of: Metric) -> LeastDifference:
    """The smallest difference in the metric `of` over all recorded epochs."""
    return LeastDifference(
        of=of,
        first=first,
        second=second,
        among=MAIN,
        tasks=EXPERIMENT,
        sharing=(),
    )


def _least_ratio(first: Where, second: Where, of: Metric) -> LeastRatio:
    """The smallest log ratio of the metric `of` over all recorded epochs."""
    return LeastRatio(
        of=of,
        first=first,
        second=second,
        among=MAIN,
        tasks=EXPERIMENT,
        sharing=(),
    )


def _in_the_end(
    first: Where, second: Where, of: Metric, among: Where = MAIN
) -> BesideSelected:
    """The difference in the metric `of` between two losses after the last epoch.

    A note gives the difference at the selected epoch.
    """
    difference = _difference(first, second, of, among)
    return BesideSelected(difference=difference, selected=at_selected_epoch(of))


def _evaluated(
    first: Where, second: Where, of: Measure, among: Where = MAIN
) -> Evaluated:
    """The evaluation metric `of` for the loss `first` minus that for the loss `second`.

    Both are measured after the last epoch.
    """
    return Evaluated(_difference(first, second, of, among))


def _ece_after_scaling(loss: Where) -> Mean:
    """The mean ECE after temperature scaling, over the runs trained with `loss`."""
    return Mean(of=after_scaling(ECE), among=MAIN & loss, tasks=EXPERIMENT)


def _temperature_of(loss: Where) -> Evaluated:
    """The mean temperature that scaling chooses for the runs trained with `loss`."""
    return Evaluated(
        Mean(
            of=TEMPERATURE,
            among=MAIN & loss,
            tasks=EXPERIMENT,
            resolution=GRID,
            note=_at_bound,
        )
    )


def _at_bound(runs: Runs, chosen: pd.DataFrame) -> str:
    """A note on the number of temperatures at an end of the grid; "" for 0."""
    count = replace(TEMPERATURE, name="at_bound").of(runs, chosen).sum()
    return f"{count:.0f} at the bound of the grid" if count else ""


def _overfitting(name: str, *, sign: int) -> Mean:
    """`sign` times the change in the NLL `name`, in the runs with CE that overfit.

    See `change_where_overfitted`.
    """
    return Mean(
        of=change_where_overfitted(name, sign=sign),
        among=MAIN & CE,
        tasks=EXPERIMENT,
        unit_as="nats",
        note=overfitted_count,
    )


def _rise_of_wrong() -> Parts:
    """Compare how much the misclassified samples' NLL rises late in training.

    The first part is the rise with CE. The second is half of this rise minus the rise
    with FL-3.
    """
    half = Difference(
        of=HALF_RISE_OF_WRONG,
        first=CE,
        of_second=RISE_OF_WRONG,
        second=FL_3,
        among=MAIN,
        tasks=EXPERIMENT,
        sharing=(),
    )
    rise = Mean(of=RISE_OF_WRONG, among=MAIN & CE, tasks=EXPERIMENT)
    return Parts({"rise of CE": rise, "half of CE's rise minus FL-3's": half})


def _by_every_criterion() -> Parts:
    """The error and ECE of FLSD-53 minus those of CE, per criterion of early stopping.

    Training until the last epoch does not count as a criterion here.
    """
    parts = {}
    for criterion, words in CRITERIA.items():
        if criterion == "last":
            continue
        for metric in (ERROR, ECE):
            measure = stopped_at_any_epoch(metric, criterion)
            parts[f"{metric.unit} {words}"] = _difference(FLSD_53, CE, measure)
    return Parts(parts, unit_as="error or ECE")


def _price_of_stopping_by_ece() -> Parts:
    """The fall in ECE and the rise in error if CE is stopped early by validation ECE.

    Both parts compare the chosen epoch with the last epoch of the same run, on test
    data.
    """
    stopped = stopped_at_any_epoch(ECE, "ece")
    gain = Difference(
        of=ECE,
        first=CE,
        of_second=stopped,
        second=CE,
        among=MAIN,
        tasks=EXPERIMENT,
    )
    loss = replace(gain, of=stopped_at_any_epoch(ERROR, "ece"), of_second=ERROR)
    parts = {"ECE of the last epoch minus that": gain, "error minus the last's": loss}
    return Parts(parts, unit_as="error or ECE")


def _by_ece_instead_of_nll() -> Evaluated:
    """The baselines' ECE at one temperature minus their ECE at another.

    The first temperature is the one with the lowest validation ECE, and the second is
    the one with the lowest validation NLL.
    """
    baselines = any_of(BASELINES)
    return Evaluated(
        Difference(
            of=after_scaling(ECE),
            first=baselines,
            of_second=ECE_BY_NLL,
            second=baselines,
            among=MAIN,
            tasks=EXPERIMENT,
            averaged_over=("loss",),
            sharing=(),
        )
    )


def _directions_apart() -> Parts:
    """The angle between the linear model's weights with CE and with each focal loss."""
    losses = {"FL-1": FL_1, "FL-2": FL_2, "FL-3": FL_3}
    parts = {
        name: Apart(of=DIRECTION, first=CE, second=loss, among=LINEAR, tasks=EXPERIMENT)
        for name, loss in losses.items()
    }
    return Parts(parts, required=False)


def _linear(of: Measure) -> dict[str, Difference]:
    """Compare the metric `of` of linear models with CE and with each focal loss."""
    losses = {"FL-1": FL_1, "FL-2": FL_2, "FL-3": FL_3}
    return {name: _of_linear_models(loss, of) for name, loss in losses.items()}


def _of_linear_models(loss: Where, of: Measure) -> Difference:
    kind = Difference if of is CONFIDENT_MISTAKES else Ratio
    return kind(of=of, first=CE, second=loss, among=LINEAR, tasks=EXPERIMENT)


def _norms_of_linear_models() -> Parts:
    parts = {}
    for name in ("weight", "logit"):
        norm = Metric(f"{name}_norm")
        for loss, ratio in _linear(norm).items():
            parts[f"{name} norm, {loss}"] = ratio
    return Parts(parts, required=False, unit_as="logarithm of the ratio")


def _share_of_trainings(losses: list[str], condition: Where) -> Parts:
    """For each of `losses`, the share of translation models that meet `condition`."""
    return Parts(
        {
            name: Proportion(
                of=Having("trainings", condition),
                among=TRANSLATION & TRANSLATION_LOSSES[name],
                unit_as="of the trainings",
            )
            for name in losses
        }
    )


def _focal_against_others(of: Measure) -> Parts:
    """In translation, the metric `of` for focal loss minus that for each other loss."""
    return Parts(
        {
            f"against {name}": Difference(
                of=of,
                first=TRANSLATION_LOSSES["FL"],
                second=TRANSLATION_LOSSES[name],
                among=TRANSLATION,
                tasks=EXPERIMENT,
            )
            for name in ("CE", "LS")
        }
    )


_NEAREST_TO_1 = where(**{BEST_TEMPERATURE: between(0.95, 1.05)})
"""Selects the models whose best temperature is 1.

The next temperatures on the grid, 0.9 and 1.1, lie outside these bounds.
"""
_WITHIN_0_2 = where(**{TEMPERATURES_APART: at_most(2 * GRID + 1e-9)})

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="fl-3-calibrates",
        where=_TABLE_1,
        statement="Focal loss with gamma 3 trains better calibrated networks than "
        "cross-entropy.",
        compares=f"Test ECE of FL-3 minus that of CE after the last epoch, {_PAIRED} "
        f"{_PRINTED}",
        contrast=_in_the_end(FL_3, CE, ECE),
        criterion=below(),
        published=-0.0287,
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="flsd-53-calibrates",
        where=_TABLE_1,
        statement="Focal loss with sample-dependent gamma (FLSD-53) trains better "
        "calibrated networks than cross-entropy.",
        compares=f"Test ECE of FLSD-53 minus that of CE after the last epoch, "
        f"{_PAIRED} {_PRINTED}",
        contrast=_in_the_end(FLSD_53, CE, ECE),
        criterion=below(),
        published=-0.028,
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="fl-3-calibrates-after-scaling",
        where=_TABLE_1,
        statement="Focal loss with gamma 3 is as well calibrated as cross-entropy, or "
        "better, even after temperature scaling.",
        compares=f"Test ECE of FL-3 minus that of CE, {_SCALED}, {_PAIRED} {_PRINTED}",
        contrast=_evaluated(FL_3, CE, after_scaling(ECE)),
        criterion=not_higher(ON_PAR),
        published=0.0007,
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="flsd-53-calibrates-after-scaling",
        where=_TABLE_1,
        statement="FLSD-53 is better calibrated than cross-entropy even after "
        "temperature scaling.",
        compares=f"Test ECE of FLSD-53 minus that of CE, {_SCALED}, {_PAIRED} "
        f"{_PRINTED}",
        contrast=_evaluated(FLSD_53, CE, after_scaling(ECE)),
        criterion=below(),
        published=-0.004,
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="flsd-53-beats-every-baseline",
        where=_TABLE_1,
        statement="On images, FLSD-53 is better calibrated than cross-entropy, Brier "
        "loss, MMCE and label smoothing.",
        compares="Logarithm of the ratio of test ECE after the last epoch, FLSD-53 "
        f"over each baseline: ECEs of tasks differ tenfold. {_PAIRED.capitalize()} "
        "Table 1's own rows of texts say otherwise: label smoothing is ahead on both, "
        f"every baseline on SST. {_PRINTED}",
        contrast=_against_every_baseline(ECE, IMAGES),
        criterion=below(),
        published={
            "FLSD-53 against CE": -1.032,
            "FLSD-53 against Brier": -0.161,
            "FLSD-53 against MMCE": -1.079,
            "FLSD-53 against LS-0.05": -0.647,
        },
        primary=_FULL,
        n=_THREE,
        looks_of_parts=_LOOKS_AT_CE,
    ),
    Claim(
        id="gamma-order",
        where="section 4, appendix F",
        statement="Before temperature scaling, gamma 3 calibrates better than 2, and 2 "
        "better than 1 (the fixed gammas are the released code's: our copy of the "
        "paper lost the numbers).",
        compares="Logarithm of the ratio of test ECE after the last epoch, of "
        f"neighbours and of 3 over 1, {_PAIRED}",
        contrast=BesideScaled(
            Parts(
                {
                    "FL-3 against FL-2": _ratio(FL_3, FL_2, ECE),
                    "FL-2 against FL-1": _ratio(FL_2, FL_1, ECE),
                    "FL-3 against FL-1": _ratio(FL_3, FL_1, ECE),
                }
            ),
            {
                "FL-1": _ece_after_scaling(FL_1),
                "FL-2": _ece_after_scaling(FL_2),
                "FL-3": _ece_after_scaling(FL_3),
            },
        ),
        criterion=below(),
        primary=_IMAGES,
    ),
    Claim(
        id="label-smoothing-0.05",
        where="section 5",
        statement="Before temperature scaling, label smoothing with 0.05 is better "
        "calibrated than with 0.1 (both factors are the released code's: our copy of "
        "the paper lost the numbers).",
        compares="Logarithm of the ratio of test ECE after the last epoch, LS-0.05 "
        f"over LS-0.1, {_PAIRED}",
        contrast=BesideScaled(
            BesideSelected(
                difference=_ratio(LS_005, LS_01, ECE), selected=at_selected_epoch(ECE)
            ),
            {"LS-0.05 minus LS-0.1": _difference(LS_005, LS_01, after_scaling(ECE))},
        ),
        criterion=below(),
        primary=_IMAGES,
    ),
    Claim(
        id="accuracy-is-kept",
        where="section 5, Table 2",
        statement="FLSD-53 keeps the accuracy of cross-entropy.",
        compares="Test accuracy of FLSD-53 minus that of CE after the last epoch, "
        f"{_PAIRED} Printed: Table 2, CIFAR-10 with ResNet-50.",
        contrast=_in_the_end(FLSD_53, CE, ACCURACY),
        criterion=not_worse(NEGLIGIBLE),
        published=-0.0003,
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="flsd-53-temperature-near-one",
        where=_TABLE_1,
        statement="The optimal temperatures of FLSD-53 are very close to 1, mostly "
        "between 0.9 and 1.1.",
        compares=f"{_TEMPERATURE}, whose mean must be equivalent to 1, within a factor "
        "of 1.25; that most tasks are within 0.1 of 1 cannot be shown with the paper's "
        f"8 of 11. {_PRINTED}",
        contrast=_temperature_of(FLSD_53),
        criterion=within(*CLOSE_TO_ONE),
        published=1.1,
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="ce-temperature-well-above-one",
        where=_TABLE_1,
        statement="The optimal temperatures of cross-entropy are significantly higher "
        "than 1.",
        compares=f"{_TEMPERATURE}, compared with the end of what the paper calls close "
        f"to 1. {_PRINTED}",
        contrast=_temperature_of(CE),
        criterion=above(NEAR_ONE),
        published=2.5,
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="overfitting-is-of-the-wrong",
        where="section 3, Figure 1",
        statement="With cross-entropy, the test NLL overfits because of the "
        "misclassified samples alone.",
        compares="CE, from the epoch with the least test NLL to the last, in the runs "
        "whose test NLL rises by 5 % or more: change of the misclassified samples' "
        "NLL, and of the right ones' with its sign reversed.",
        contrast=Parts(
            {
                "misclassified": _overfitting("nll_wrong", sign=1),
                "right, sign reversed": _overfitting("nll_right", sign=-1),
            },
            unit_as="nats",
        ),
        criterion=above(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="weight-norms-end-reversed",
        where="section 4, Figure 2(e)",
        statement="The weight norm of the last layer is initially higher with focal "
        "loss than with cross-entropy; in the end the order is reversed.",
        compares="Norm with FL-3 minus norm with CE, mean over the first 150/350 of "
        "the epochs, before the learning rate first falls; norm with CE minus norm "
        "with FL-3 after the last epoch.",
        contrast=Parts(
            {
                "FL-3 above CE at first": _difference(FL_3, CE, EARLY_WEIGHT_NORM),
                "CE above FL-3 in the end": _difference(CE, FL_3, WEIGHT_NORM),
            }
        ),
        criterion=above(),
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="gradient-norms-become-lower",
        where="section 4, Figure 3(b-d)",
        statement="As training progresses, gradient norms of the last layer are lower "
        "with focal loss than with cross-entropy.",
        compares="Mean logarithm of the norms over training samples at the recorded "
        f"epochs but the first, FL-3 minus CE, {_PAIRED}",
        contrast=_difference(FL_3, CE, LOG_GRADIENT_NORM),
        criterion=below(),
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="feature-norm-order",
        where="appendix I, Figure I.1",
        statement="Throughout training, feature norms are highest with cross-entropy, "
        "and lower the larger gamma is.",
        compares="Logarithm of the ratio of feature norms on training samples, of "
        "neighbours in the order CE, FL-1, FL-2, FL-3 and of its ends, at the recorded "
        f"epoch at which it is least, {_PAIRED}",
        contrast=Parts(
            {
                "CE against FL-1": _least_ratio(CE, FL_1, FEATURE_NORM),
                "FL-1 against FL-2": _least_ratio(FL_1, FL_2, FEATURE_NORM),
                "FL-2 against FL-3": _least_ratio(FL_2, FL_3, FEATURE_NORM),
                "CE against FL-3": _least_ratio(CE, FL_3, FEATURE_NORM),
            }
        ),
        criterion=above(),
        primary=_IMAGES,
    ),
    Claim(
        id="early-stopping-does-not-save-ce",
        where="appendix J, Table J.1",
        statement="Whatever the criterion of early stopping, focal loss is better "
        "calibrated than cross-entropy.",
        compares="Test ECE of FLSD-53 minus that of CE, at the epochs that validation "
        "accuracy, NLL and ECE choose among those within two points of the best "
        f"validation accuracy, {_PAIRED} The last epoch is the claim on FLSD-53 above.",
        contrast=Parts(
            {
                words: _difference(FLSD_53, CE, stopped_early(ECE, criterion))
                for criterion, words in CRITERIA.items()
                if criterion != "last"
            }
        ),
        criterion=below(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="flsd-53-detects-outliers",
        where="section 5, Table 3",
        statement="FLSD-53 is better at detecting out-of-distribution samples than "
        "cross-entropy.",
        compares="AUROC by entropy of FLSD-53 minus that of CE, not scaled, mean over "
        f"SVHN and CIFAR-10-C's noise, {_PAIRED}",
        contrast=Evaluated(OnOutliers(difference=_difference(FLSD_53, CE, AUROC))),
        criterion=above(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="scaling-does-not-help-outliers",
        where="section 5, Table 3",
        statement="Temperature scaling does not help cross-entropy to detect "
        "out-of-distribution samples.",
        compares="AUROC by entropy of CE with the temperature of least validation ECE "
        "minus that without, over the same sets.",
        contrast=Evaluated(
            OnOutliers(difference=_difference(CE, CE, AUROC), scaled=True)
        ),
        criterion=not_higher(NEGLIGIBLE),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="focal-is-less-confident-unscaled",
        where="appendix H, Table H.1",
        statement="Before temperature scaling, far fewer predictions of FLSD-53 than "
        "of cross-entropy are above 99 % confidence.",
        compares="Share of test predictions with confidence 0.99 or more, FLSD-53 "
        f"minus CE, {_PAIRED}",
        contrast=_evaluated(FLSD_53, CE, CONFIDENT_SHARE),
        criterion=below(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="focal-is-more-confident-scaled",
        where="appendix H, Table H.1",
        statement="After temperature scaling, more predictions of FLSD-53 than of "
        "cross-entropy are above 99 % confidence.",
        compares=f"The same share, {_SCALED}.",
        contrast=_evaluated(FLSD_53, CE, after_scaling(CONFIDENT_SHARE)),
        criterion=above(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="linear-norms-are-larger",
        where="appendix C, Figure C.1",
        statement="In a linear model, weights and logits grow larger with "
        "cross-entropy than with focal loss.",
        compares="Logarithm of the ratio of norms after the last epoch, CE over each "
        "focal loss, paired by seed.",
        contrast=_norms_of_linear_models(),
        criterion=above(),
        primary=_IMAGES,
        same_everywhere=True,
    ),
    Claim(
        id="linear-mistakes-are-confident",
        where="appendix C, Figure C.2",
        statement="A linear model makes more mistakes with over 90 % confidence under "
        "cross-entropy than under focal loss.",
        compares="Share of misclassified test points with confidence above 0.9, CE "
        "minus each focal loss, paired by seed.",
        contrast=Parts(_linear(CONFIDENT_MISTAKES), required=False),
        criterion=above(),
        primary=_IMAGES,
        same_everywhere=True,
    ),
    Claim(
        id="flsd-53-is-lowest-after-scaling",
        where=_TABLE_1,
        statement="After temperature scaling, FLSD-53 has a lower calibration error "
        "than cross-entropy, Brier loss, MMCE and label smoothing.",
        compares="Logarithm of the ratio of test ECE, FLSD-53 over each baseline, "
        f"{_SCALED}, {_PAIRED} The part against CE is the claim above, as a ratio. "
        f"{_PRINTED}",
        contrast=Evaluated(_against_every_baseline(after_scaling(ECE))),
        criterion=below(),
        published={
            "FLSD-53 against CE": -0.351,
            "FLSD-53 against Brier": -0.128,
            "FLSD-53 against MMCE": -0.225,
            "FLSD-53 against LS-0.05": -0.564,
        },
        primary=_FULL,
        n=_THREE,
        looks_of_parts=_LOOKS_AT_CE,
    ),
    Claim(
        id="flsd-53-beats-every-baseline-by-adaece",
        where="section 5, Table F.1",
        statement="On images, FLSD-53 has a lower AdaECE than cross-entropy, Brier "
        "loss, MMCE and label smoothing.",
        compares="Logarithm of the ratio of test AdaECE after the last epoch, FLSD-53 "
        f"over each baseline, {_PAIRED} On images, as for ECE: the printed ECEs on "
        "texts do not show it.",
        contrast=Evaluated(_against_every_baseline(ADAPTIVE_ECE, IMAGES)),
        criterion=below(),
        primary=_FULL,
        n=_THREE,
        looks_of_parts=_LOOKS_AT_CE,
    ),
    Claim(
        id="flsd-53-beats-every-baseline-by-classwise-ece",
        where="section 5, Table F.2",
        statement="On images, FLSD-53 has a lower Classwise-ECE than cross-entropy, "
        "Brier loss, MMCE and label smoothing.",
        compares="Logarithm of the ratio of test Classwise-ECE after the last epoch, "
        f"FLSD-53 over each baseline, {_PAIRED} On images, as for ECE.",
        contrast=Evaluated(_against_every_baseline(CLASSWISE_ECE, IMAGES)),
        criterion=below(),
        primary=_FULL,
        n=_THREE,
        looks_of_parts=_LOOKS_AT_CE,
    ),
    Claim(
        id="top-5-is-higher",
        where="appendix F, Table F.7",
        statement="Where there are many classes, FLSD-53 has a higher top-5 accuracy "
        "than cross-entropy, which is less calibrated.",
        compares="Test top-5 accuracy of FLSD-53 minus that of CE after the last "
        f"epoch, on data with {MANY_CLASSES} classes or more, {_PAIRED}",
        contrast=_evaluated(
            FLSD_53, CE, TOP_5, MAIN & where(classes=at_least(MANY_CLASSES))
        ),
        criterion=above(),
        primary=_MORE_IMAGES,
    ),
    Claim(
        id="ece-chooses-stronger-baselines",
        where="section 5",
        statement="The temperature of least validation ECE makes stronger baselines "
        "than that of least validation NLL.",
        compares="Test ECE at the temperature of least validation ECE minus that at "
        "the temperature of least validation NLL, mean over the baselines (CE, Brier, "
        "MMCE, LS-0.05) within a seed.",
        contrast=_by_ece_instead_of_nll(),
        criterion=below(),
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="mmce-temperature-well-above-one",
        where=_TABLE_1,
        statement="The optimal temperatures of MMCE are significantly higher than 1, "
        "as those of cross-entropy.",
        compares=f"{_TEMPERATURE}, compared with the end of what the paper calls close "
        f"to 1. {_PRINTED}",
        contrast=_temperature_of(MMCE),
        criterion=above(NEAR_ONE),
        published=2.6,
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="ece-rises-late-in-training",
        where="section 3, Figure 1(c)",
        statement="With cross-entropy, the test ECE rises after the learning rate "
        "first falls.",
        compares="Test ECE of CE after the last epoch minus that at the first recorded "
        "epoch after 150/350 of the training.",
        contrast=Mean(of=RISE_OF_ECE, among=MAIN & CE, tasks=EXPERIMENT),
        criterion=above(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="focal-nll-remains-low",
        where="section 4, Figure 2(a)",
        statement="Towards the end of training, the test NLL of focal loss remains "
        "lower than that of cross-entropy.",
        compares=f"Test NLL of FL-3 minus that of CE after the last epoch, {_PAIRED}",
        contrast=_difference(FL_3, CE, NLL),
        criterion=below(),
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="focal-nll-of-right-is-higher",
        where="section 4, Figure 2(b)",
        statement="Throughout training, the NLL of the correctly classified test "
        "samples is higher with focal loss than with cross-entropy.",
        compares="FL-3 minus CE at the recorded epoch at which the difference is "
        f"least, {_PAIRED}",
        contrast=_throughout(FL_3, CE, NLL_RIGHT),
        criterion=above(),
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="rise-of-wrong-nll-is-less-severe",
        where="section 4, Figure 2(c)",
        statement="The NLL of the misclassified test samples rises with cross-entropy "
        "once the learning rate falls; with focal loss the rise is much less severe.",
        compares="NLL of the misclassified after the last epoch minus that at the "
        "first recorded epoch after 150/350 of the training: the rise of CE, and half "
        f"of it minus the rise of FL-3, {_PAIRED} The paper gives no number; much less "
        "is read as less than half.",
        contrast=_rise_of_wrong(),
        criterion=above(),
        primary=_FULL,
        n=_THREE,
        looks_of_parts=_LOOKS_AT_RISE,
    ),
    Claim(
        id="entropy-of-wrong-is-higher",
        where="section 4, Figure 2(d)",
        statement="The entropy of the misclassified test samples is consistently, if "
        "marginally, higher with focal loss than with cross-entropy.",
        compares="FL-3 minus CE at the recorded epoch at which the difference is "
        f"least, {_PAIRED}",
        contrast=_throughout(FL_3, CE, ENTROPY_WRONG),
        criterion=above(),
        primary=_FULL,
        n=_THREE,
    ),
    Claim(
        id="every-stopping-criterion-favours-flsd-53",
        where="section 4, appendix J, Table J.1",
        statement="With every criterion of early stopping, focal loss outperforms "
        "cross-entropy in both test error and ECE.",
        compares="Test error and ECE of FLSD-53 minus those of CE, at the epochs that "
        "validation accuracy, NLL and ECE choose among all, as in Table J.1, "
        f"{_PAIRED} Among epochs near the best the ECEs are the claim above.",
        contrast=_by_every_criterion(),
        criterion=below(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="stopping-by-ece-costs-accuracy",
        where="section 4, appendix J, Table J.1",
        statement="Stopping cross-entropy by validation ECE improves its test ECE, at "
        "the cost of a higher test error.",
        compares="CE at the epoch of least validation ECE among all, and at its last "
        "epoch: by how much the ECE is lower, and the error higher.",
        contrast=_price_of_stopping_by_ece(),
        criterion=above(),
        primary=_FULL,
        n=_FIVE,
        looks=_LOOKS_AT_IMAGES,
    ),
    Claim(
        id="linear-decision-regions-agree",
        where="appendix C, Figure C.2(b, c)",
        statement="In a linear model, cross-entropy and focal loss give the same "
        "decision regions.",
        compares="Angle in degrees between the weights with CE and with each focal "
        "loss after the last epoch, paired by seed. The paper gives no number; 1.8 "
        "degrees is one percent of the half circle, as one point is negligible "
        "elsewhere.",
        contrast=_directions_apart(),
        criterion=below(SAME_REGIONS),
        primary=_IMAGES,
        same_everywhere=True,
    ),
    Claim(
        id="translation-focal-temperature-is-one",
        where="appendix K, Table K.1",
        statement="The translation model trained with focal loss (gamma 1, which is "
        "from memory) has an optimal temperature of 1, just like the one trained with "
        "label smoothing.",
        compares=f"{_TEMPERATURE} on the grid of 0.1: share of the trainings where it "
        "is 1.0, with focal loss and with label smoothing.",
        contrast=_share_of_trainings(["LS", "FL"], _NEAREST_TO_1),
        criterion=most(),
        primary=_TRANSLATION,
        looks=_LOOKS_AT_TRANSLATION,
        stand_in=_STAND_IN,
    ),
    Claim(
        id="translation-ce-temperature-is-not-one",
        where="appendix K, Figure K.1",
        statement="The translation model trained with cross-entropy has another "
        "optimal temperature than 1.",
        compares=f"{_TEMPERATURE} on the grid of 0.1: share of the trainings where it "
        "is not 1.0. The paper says so by leaving this model out of the sentence on "
        "the other two.",
        contrast=_share_of_trainings(["CE"], ~_NEAREST_TO_1),
        criterion=most(),
        primary=_TRANSLATION,
        looks=_LOOKS_AT_TRANSLATION,
        stand_in=_STAND_IN,
    ),
    Claim(
        id="translation-focal-calibrates",
        where="appendix K, Table K.1",
        statement="The translation model trained with focal loss (gamma 1, which is "
        "from memory) outperforms its competitors on ECE.",
        compares="ECE of next-token predictions on test data, not scaled, focal loss "
        "minus each other loss, paired by seed.",
        contrast=_focal_against_others(at_selected_epoch(ECE)),
        criterion=below(),
        primary=_TRANSLATION,
        looks=_LOOKS_AT_TRANSLATION,
        stand_in=_STAND_IN,
    ),
    Claim(
        id="translation-focal-bleu",
        where="appendix K, Table K.1",
        statement="The translation model trained with focal loss (gamma 1, which is "
        "from memory) has a competitive edge over the others on BLEU.",
        compares="Highest test BLEU over temperatures, focal loss minus each of the "
        "others, in points, paired by seed. Printed: against label smoothing.",
        contrast=_focal_against_others(BEST_BLEU),
        criterion=above(),
        published=0.03,
        primary=_TRANSLATION,
        looks=_LOOKS_AT_TRANSLATION,
        stand_in=_STAND_IN,
    ),
    Claim(
        id="translation-calibrated-where-good",
        where="appendix K, Figure K.1",
        statement="Translation models obtain the highest BLEU at around the same "
        "temperatures at which they obtain low ECE.",
        compares="Share of the seeds where, for all losses, the temperatures of "
        "highest test BLEU and of least validation ECE are at most 0.2 apart.",
        # The three models of one seed, one per loss, start from the same weights. A
        # seed is therefore one trial, which succeeds only if all three models do.
        contrast=Proportion(
            of=Having("trainings", _WITHIN_0_2),
            among=TRANSLATION,
            unit_as="of the trainings",
        ),
        criterion=most(),
        primary=_TRANSLATION,
        looks=_LOOKS_AT_TRANSLATION,
        stand_in=_STAND_IN,
    ),
)
