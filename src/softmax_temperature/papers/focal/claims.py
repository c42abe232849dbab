"""What the paper says, as claims with criteria that were fixed before the runs.

Sections 3 and 4 with Figures 1 to 3 speak of training, section 5 with Tables 1 to 3 of
calibration, the appendices of a linear model (C), confident predictions (H), norms (I),
early stopping (J) and translation (K). Every claim looks at the main recipe alone, not
at its variants, and at the runs that did not diverge.
"""

from functools import partial

from softmax_temperature.papers.focal import measures
from softmax_temperature.papers.focal.measures import (
    evaluated,
    last_epoch,
    temperature,
    translation,
)
from softmax_temperature.papers.focal.records import FIXED, PROPOSED
from softmax_temperature.papers.shared.claims import (
    Claim,
    above,
    below,
    claim,
    most,
    not_higher,
    not_worse,
    within,
)
from softmax_temperature.params.focal import REFERENCE

NEGLIGIBLE = 0.01  # A difference of accuracy or AUROC below one point is none.
# Nor is one of ECE after scaling below half a point: of gamma 3 the printed ones are
# 0.07 at most.
ON_PAR = 0.005
NEAR_ONE = 1.1  # Section 5: the upper end of "very close to 1".
CLOSE_TO_ONE = (0.8, 1.25)  # The usual range of equivalence of a ratio.
BASELINES = (REFERENCE, "Brier", "MMCE", "LS-0.05")
_TABLE_1 = "section 5, Table 1"
_PAIRED = "paired by task and seed."
_PRINTED = "Printed: Table 1, CIFAR-10 with ResNet-50."
_SCALED = "both with the temperature of least validation ECE"
_TEMPERATURE = "Temperature of least validation ECE"
_ratio = partial(last_epoch, log=True)
_over_baselines = partial(_ratio, pairs=[(PROPOSED, other) for other in BASELINES])
_accuracy = partial(last_epoch, column="accuracy")
_confident = partial(evaluated, column="confident_share", unit="share of predictions")
_at_one = partial(translation, of=measures.at_one, arms=("FL", "LS"))
_not_at_one = partial(
    translation, of=partial(measures.at_one, near=False), arms=(REFERENCE,)
)
_agreement = partial(translation, of=measures.in_agreement)
_scaled_outliers = partial(measures.outliers, scaled=True)
_ece = partial(
    translation, of=partial(measures.against_others, column="ece"), unit="ECE"
)
_bleu = partial(
    translation,
    of=partial(measures.against_others, column="best_bleu", scale=100),
    unit="BLEU",
)

CLAIMS: tuple[Claim, ...] = (
    claim(
        "fl-3-calibrates",
        _TABLE_1,
        below(),
        partial(last_epoch, pairs=[(FIXED, REFERENCE)]),
        -0.0287,
    )(
        "Focal loss with gamma 3 trains better calibrated networks than cross-entropy.",
        f"Test ECE of FL-3 minus that of CE after the last epoch, {_PAIRED} {_PRINTED}",
    ),
    claim("flsd-53-calibrates", _TABLE_1, below(), last_epoch, -0.028)(
        "Focal loss with sample-dependent gamma (FLSD-53) trains better calibrated networks than cross-entropy.",
        f"Test ECE of FLSD-53 minus that of CE after the last epoch, {_PAIRED} {_PRINTED}",
    ),
    claim(
        "fl-3-calibrates-after-scaling",
        _TABLE_1,
        not_higher(ON_PAR),
        partial(evaluated, arm=FIXED),
        0.0007,
    )(
        "Focal loss with gamma 3 is as well calibrated as cross-entropy, or better, even after temperature scaling.",
        f"Test ECE of FL-3 minus that of CE, {_SCALED}, {_PAIRED} {_PRINTED}",
    ),
    claim("flsd-53-calibrates-after-scaling", _TABLE_1, below(), evaluated, -0.004)(
        "FLSD-53 is better calibrated than cross-entropy even after temperature scaling.",
        f"Test ECE of FLSD-53 minus that of CE, {_SCALED}, {_PAIRED} {_PRINTED}",
    ),
    claim(
        "flsd-53-calibrates-on-texts",
        _TABLE_1,
        below(),
        partial(last_epoch, texts=True),
        -0.0459,
    )(
        "FLSD-53 trains better calibrated networks than cross-entropy on texts, too.",
        f"The same before scaling, on texts alone, {_PAIRED} Printed: Table 1, mean of 20 Newsgroups and SST Binary.",
    ),
    claim("flsd-53-beats-every-baseline", _TABLE_1, below(), _over_baselines, -0.161)(
        "FLSD-53 is better calibrated than cross-entropy, Brier loss, MMCE and label smoothing.",
        "Logarithm of the ratio of test ECE after the last epoch, FLSD-53 over each baseline: ECEs of tasks differ "
        f"tenfold. {_PAIRED.capitalize()} Printed: Table 1, CIFAR-10 with ResNet-50, against Brier loss.",
    ),
    claim(
        "gamma-order",
        "section 4, appendix F",
        below(),
        partial(_ratio, pairs=measures.BY_GAMMA),
    )(
        "Of the fixed gammas, 3 calibrates better than 2, and 2 better than 1.",
        f"Logarithm of the ratio of test ECE after the last epoch, of neighbours and of 3 over 1, {_PAIRED}",
    ),
    claim(
        "label-smoothing-0.05",
        "section 5",
        below(),
        partial(_ratio, pairs=[("LS-0.05", "LS-0.1")]),
    )(
        "Label smoothing with 0.05 does better than with 0.1.",
        f"Logarithm of the ratio of test ECE after the last epoch, LS-0.05 over LS-0.1, {_PAIRED}",
    ),
    claim(
        "accuracy-is-kept",
        "section 5, Table 2",
        not_worse(NEGLIGIBLE),
        _accuracy,
        -0.0003,
    )(
        "FLSD-53 keeps the accuracy of cross-entropy.",
        f"Test accuracy of FLSD-53 minus that of CE after the last epoch, {_PAIRED} Printed: Table 2, CIFAR-10 with "
        "ResNet-50.",
    ),
    claim(
        "flsd-53-temperature-near-one",
        _TABLE_1,
        within(*CLOSE_TO_ONE),
        temperature,
        1.1,
    )(
        "The optimal temperatures of FLSD-53 are very close to 1, mostly between 0.9 and 1.1.",
        f"{_TEMPERATURE}, whose mean must be equivalent to 1, within a factor of 1.25; that most tasks are within 0.1 "
        f"of 1 cannot be shown with the paper's 8 of 11. {_PRINTED}",
    ),
    claim(
        "ce-temperature-well-above-one",
        _TABLE_1,
        above(NEAR_ONE),
        partial(temperature, arm=REFERENCE),
        2.5,
    )(
        "The optimal temperatures of cross-entropy are significantly higher than 1.",
        f"{_TEMPERATURE}, compared with the end of what the paper calls close to 1. {_PRINTED}",
    ),
    claim(
        "overfitting-is-of-the-wrong",
        "section 3, Figure 1",
        above(),
        measures.overfitting,
    )(
        "With cross-entropy, the test NLL overfits because of the misclassified samples alone.",
        "CE, from the epoch with the least test NLL to the last, in the runs whose test NLL rises by 5 % or more: "
        "change of the misclassified samples' NLL, and of the right ones' with its sign reversed.",
    ),
    claim(
        "weight-norms-end-reversed",
        "section 4, Figure 2(e)",
        above(),
        measures.weight_norms,
    )(
        "The weight norm of the last layer is initially higher with focal loss than with cross-entropy; in the end the "
        "order is reversed.",
        "Norm with FL-3 minus norm with CE, mean over the first 150/350 of the epochs, before the learning rate first "
        "falls; norm with CE minus norm with FL-3 after the last epoch.",
    ),
    claim(
        "gradient-norms-become-lower",
        "section 4, Figure 3(b-d)",
        below(),
        measures.gradient_norms,
    )(
        "As training progresses, gradient norms of the last layer are lower with focal loss than with cross-entropy.",
        "Mean logarithm of the norms over training samples at the recorded epochs but the first, FL-3 minus CE, "
        + _PAIRED,
    ),
    claim(
        "feature-norm-order", "appendix I, Figure I.1", below(), measures.feature_norms
    )(
        "Throughout training, feature norms are highest with cross-entropy, and lower the larger gamma is.",
        "Logarithm of the ratio of feature norms on training samples, mean over the epochs, of neighbours in the order "
        f"FL-3, FL-2, FL-1, CE and of its ends, {_PAIRED}",
    ),
    claim(
        "early-stopping-does-not-save-ce",
        "appendix J, Table J.1",
        below(),
        measures.stopped_early,
    )(
        "Whatever the criterion of early stopping, focal loss is better calibrated than cross-entropy.",
        "Test ECE of FLSD-53 minus that of CE, at the last epoch and at those that validation accuracy, NLL and ECE "
        f"choose among the epochs within two points of the best validation accuracy, {_PAIRED}",
    ),
    claim("flsd-53-detects-outliers", "section 5, Table 3", above(), measures.outliers)(
        "FLSD-53 is better at detecting out-of-distribution samples than cross-entropy.",
        "AUROC by entropy of FLSD-53 minus that of CE, not scaled, mean over SVHN and CIFAR-10-C's noise, "
        + _PAIRED,
    ),
    claim(
        "scaling-does-not-help-outliers",
        "section 5, Table 3",
        not_higher(NEGLIGIBLE),
        _scaled_outliers,
    )(
        "Temperature scaling does not help cross-entropy to detect out-of-distribution samples.",
        "AUROC by entropy of CE with the temperature of least validation ECE minus that without, likewise.",
    ),
    claim(
        "focal-is-less-confident-unscaled",
        "appendix H, Table H.1",
        below(),
        partial(_confident, scaling="none"),
    )(
        "Before temperature scaling, far fewer predictions of FLSD-53 than of cross-entropy are above 99 % confidence.",
        f"Share of test predictions with confidence 0.99 or more, FLSD-53 minus CE, {_PAIRED}",
    ),
    claim(
        "focal-is-more-confident-scaled", "appendix H, Table H.1", above(), _confident
    )(
        "After temperature scaling, more predictions of FLSD-53 than of cross-entropy are above 99 % confidence.",
        f"The same share, {_SCALED}.",
    ),
    claim(
        "linear-norms-are-larger", "appendix C, Figure C.1", above(), measures.linear
    )(
        "In a linear model, weights and logits grow larger with cross-entropy than with focal loss.",
        "Logarithm of the ratio of norms after the last epoch, CE over each focal loss, paired by seed.",
    ),
    claim(
        "linear-mistakes-are-confident",
        "appendix C, Figure C.2",
        above(),
        partial(measures.linear, mistakes=True),
    )(
        "A linear model makes more mistakes with over 90 % confidence under cross-entropy than under focal loss.",
        "Share of misclassified test points with confidence above 0.9, CE minus each focal loss, paired by seed.",
    ),
    claim(
        "translation-focal-temperature-is-one", "appendix K, Table K.1", most(), _at_one
    )(
        "The translation model trained with focal loss has an optimal temperature of 1, just like the one trained with "
        "label smoothing.",
        f"{_TEMPERATURE} on the grid of 0.1: share of the trainings where it is 1.0, with focal loss and with label "
        "smoothing.",
    ),
    claim(
        "translation-ce-temperature-is-not-one",
        "appendix K, Figure K.1",
        most(),
        _not_at_one,
    )(
        "The translation model trained with cross-entropy has another optimal temperature than 1.",
        f"{_TEMPERATURE} on the grid of 0.1: share of the trainings where it is not 1.0. The paper says so by leaving "
        "this model out of the sentence on the other two.",
    ),
    claim("translation-focal-calibrates", "appendix K, Table K.1", below(), _ece)(
        "The translation model trained with focal loss outperforms its competitors on ECE.",
        "ECE of next-token predictions on test data, not scaled, focal loss minus each other loss, paired by seed.",
    ),
    claim("translation-focal-bleu", "appendix K, Table K.1", above(), _bleu, 0.03)(
        "The translation model trained with focal loss has a competitive edge over the others on BLEU.",
        "Highest test BLEU over temperatures, focal loss minus each of the others, in points, paired by seed. Printed: "
        "against label smoothing.",
    ),
    claim(
        "translation-calibrated-where-good",
        "appendix K, Figure K.1",
        most(),
        _agreement,
    )(
        "Translation models obtain the highest BLEU at around the same temperatures at which they obtain low ECE.",
        "Share of the seeds where, for all losses, the temperatures of highest test BLEU and of least validation ECE "
        "are at most 0.2 apart.",
    ),
)
