"""Sentences of the notebook that explain how to read a study's tables and figures.

The notebook shows a sentence only if the sentence applies to the study.
"""

EXPERIMENTS = {
    "select": "*Select* is the epoch whose weights are evaluated.",
    "noise": "*Noise* is the source of the images with Gaussian noise: CIFAR-10-C, or "
    "generated images with the same standard deviation.",
    "embeddings": "Experiments on texts count texts as images. *Embeddings* is the "
    "source of their word vectors: learned with the rest, or read from a file, with "
    "the share of the vocabulary that it covers. The paper uses GloVe's.",
}
"""Maps columns of the table of experiments to explanations of their meaning."""


def of_table_1(*, is_printed: bool, is_empty: bool) -> dict[str, bool]:
    """Sentences on Table 1, and whether each applies to the study."""
    return {
        "The column next to ours has the printed number, with the difference in "
        "standard errors. The standard error covers our numbers only, over seeds or, "
        "for one seed, from the bootstrap; two seeds estimate it poorly, and a printed "
        "number is a single run too.": is_printed,
        "The paper has no numbers for this data and network; claims cite the nearest "
        "printed value.": not (is_printed or is_empty),
    }


def of_the_summary(*, is_printed: bool, has_guesses: bool) -> dict[str, bool]:
    """Sentences on the calibration summary, and whether each applies to the study."""
    return {
        "Crosses are printed values.": is_printed,
        "A network that never learned guesses, and the ECE of guessing is near 0: the "
        "figure leaves such a run out, and the row of its loss says so. Table 1 above "
        "and Figure 4 below include it in their means.": has_guesses,
    }
