"""The data sets that have a name here: what they are, under which licence, and what to put where.

Data sets that no program may download say how to turn the original into class folders. A data set that is not listed
here needs no entry: its name is that of its archive in data.root.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Entry:
    """What is known about a data set before it is there.

    Attributes:
        title: its name in print.
        classes: how many it has when complete.
        licence: as its authors state it.
        by_hand: where to get it and how to lay it out; empty when it is built in or torchvision downloads it.
        texts: whether its samples are texts, not images.
        trees: whether they are sentences with their parse.
        leaves_out_empty_texts: whether its copies are known to have texts without a word; they are counted on its card
            and not used. In any other data set an empty text is an error.
    """

    title: str
    classes: int
    licence: str = NOT_STATED
    by_hand: str = ""
    texts: bool = False
    trees: bool = False
    leaves_out_empty_texts: bool = False


_IMAGENET_TERMS = "ImageNet terms of access: non-commercial research and education"

CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {
        "digits": Entry("Optical Recognition of Handwritten Digits (scikit-learn's copy)", 10, "CC BY 4.0"),
        "mnist": Entry("MNIST", 10),
        "fashion_mnist": Entry("Fashion-MNIST", 10, "MIT"),
        "kmnist": Entry("Kuzushiji-MNIST", 10, "CC BY-SA 4.0"),
        "emnist_letters": Entry("EMNIST Letters", 26),
        "emnist_balanced": Entry("EMNIST Balanced", 47),
        "emnist_digits": Entry("EMNIST Digits", 10),
        "emnist_byclass": Entry("EMNIST ByClass", 62),
        "cifar10": Entry("CIFAR-10", 10),
        "cifar100": Entry("CIFAR-100", 100),
        "svhn": Entry("Street View House Numbers", 10, "non-commercial use only"),
        "dtd": Entry("Describable Textures", 47, "for research purposes"),
        "caltech101": Entry("Caltech-101", 101, "CC BY 4.0"),
        "caltech256": Entry("Caltech-256", 256, "CC BY 4.0"),
        "omniglot": Entry("Omniglot", 1623, "MIT"),
        "photoart": Entry(
            "Photo-Art-50",
            50,
            "non-commercial research and other fair dealing; many images are under copyright",
            "Get github.com/BathVisArtData/PhotoArt50 and move its 50 folders NNN.CLASS/ to {folder}/all/NNN.CLASS/ "
            "(not gt_bb/); it has no split of its own, so it is split when prepared.",
        ),
        "pinterest_faces_105": Entry(
            "105-PinterestFaces",
            105,
            NOT_STATED,
            "Get kaggle.com/datasets/hereisburak/pins-face-recognition and move the 105 folders "
            "105_classes_pins_dataset/pins_PERSON/ to {folder}/all/pins_PERSON/; it is split when prepared.",
        ),
        "cub200": Entry(
            "Caltech-UCSD Birds-200-2011",
            200,
            "non-commercial research and education",
            "Get CUB_200_2011.tgz (data.caltech.edu/records/65de6-vp158). For each line 'ID CLASS/FILE' of images.txt "
            "copy images/CLASS/FILE to {folder}/train/CLASS/FILE where train_test_split.txt says 'ID 1', and to "
            "{folder}/test/CLASS/FILE where it says 'ID 0' (5,994 and 5,794 files).",
        ),
        "imagenet_r": Entry(
            "ImageNet-R",
            200,
            "MIT",
            "Get imagenet-r.tar (github.com/hendrycks/imagenet-r) and move its 200 folders imagenet-r/nXXXXXXXX/ to "
            "{folder}/all/nXXXXXXXX/; it has no split of its own, so it is split when prepared.",
        ),
        "fss1000": Entry(
            "FSS-1000",
            1000,
            NOT_STATED,
            "Get fewshot_data.zip (github.com/HKUSTCV/FSS-1000) and copy fewshot_data/CLASS/*.jpg of its 1,000 classes "
            "to {folder}/all/CLASS/, without the masks *.png beside them; it is split when prepared.",
        ),
        "imagenet_mini": Entry(
            "ImageNetMini (1,000 classes)",
            1000,
            _IMAGENET_TERMS,
            "Get kaggle.com/datasets/ifigotin/imagenetmini-1000, move imagenet-mini/train/ to {folder}/train/ and "
            "imagenet-mini/val/ to {folder}/test/ (1,000 folders nXXXXXXXX in each).",
        ),
        "things": Entry(
            "THINGS",
            1854,
            "research use; the images' own copyright holds",
            "Get the object images (osf.io/jum2f) and move their 1,854 folders CONCEPT/ to {folder}/all/CONCEPT/ "
            "(26,107 files); it has no split of its own, so it is split when prepared.",
        ),
        "tiny_imagenet": Entry(
            "Tiny ImageNet",
            200,
            _IMAGENET_TERMS,
            "Get tiny-imagenet-200.zip (cs231n.stanford.edu). Move train/nXXXXXXXX/images/*.JPEG to "
            "{folder}/train/nXXXXXXXX/, and each val/images/FILE to {folder}/test/CLASS/FILE with the CLASS that "
            "val/val_annotations.txt gives in its second column.",
        ),
        "imagenet": Entry(
            "ImageNet (ILSVRC 2012)",
            1000,
            _IMAGENET_TERMS,
            "Get ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar (image-net.org). Unpack the first to "
            "{folder}/train/nXXXXXXXX/, and move each image of the second to {folder}/test/nXXXXXXXX/ by the "
            "development kit's ground truth.",
        ),
        "imagenet64": Entry(
            "ImageNet at 64 x 64 pixels (downsampled)",
            1000,
            _IMAGENET_TERMS,
            "Get Downsampled ImageNet, 64 x 64 (image-net.org), and write {folder}.npz: x_train and x_test "
            "(N, 64, 64, 3; uint8) from the rows of their `data`, which are (3, 64, 64) each, y_train and y_test from "
            "their `labels` less 1 (1,281,167 and 50,000 images).",
        ),
        "phrases": Entry("Phrases (made-up sentences, generated by this project)", 2, "MIT", texts=True),
        "imdb": Entry(
            "IMDB (Large Movie Review Dataset)",
            2,
            NOT_STATED,
            "Get aclImdb_v1.tar.gz (ai.stanford.edu/~amaas/data/sentiment) and write a line to {folder}.jsonl for each "
            "file: split train for train/neg and train/pos, test for the others, label 0 for neg and 1 for pos (25,000 "
            "lines of each split; train/unsup is not used).",
            texts=True,
        ),
        "sst2": Entry(
            "Stanford Sentiment Treebank, two classes, whole sentences",
            2,
            NOT_STATED,
            "Get the data folder of github.com/clairett/pytorch-sentiment-classification and write a line to "
            "{folder}.jsonl for each line of SST2/train.tsv, dev.tsv and test.tsv, with label 0 or 1 (6,920, 872 and "
            "1,821 lines).",
            texts=True,
        ),
        "sst_trees": Entry(
            "Stanford Sentiment Treebank, two classes, parse trees",
            2,
            NOT_STATED,
            "Get trainDevTestTrees_PTB.zip (nlp.stanford.edu/sentiment) and write a line to {folder}.jsonl for each "
            "line of trees/train.txt, dev.txt and test.txt, with that line as the tree (8,544, 1,101 and 2,210 lines; "
            "sentences whose root is neutral are left out).",
            texts=True,
            trees=True,
        ),
        "newsgroups20": Entry(
            "20 Newsgroups",
            20,
            NOT_STATED,
            "Get 20news-bydate.tar.gz (qwone.com/~jason/20Newsgroups) and write a line to {folder}.jsonl for each file "
            "of 20news-bydate-train and -test: the label is the group's name, the text all after the first blank line "
            "(11,314 and 7,532 lines; what remains of some is empty and is left out).",
            texts=True,
            leaves_out_empty_texts=True,
        ),
        "newsgroups20_all": Entry(
            "20 Newsgroups, all documents",
            20,
            NOT_STATED,
            "Get 20news-19997.tar.gz (qwone.com/~jason/20Newsgroups) and write a line to {folder}.jsonl for each file: "
            "the label is the group's name, the text all after the first blank line, the split test for every fifth "
            "file of a group in the order of their names and train for the others (15,998 and 3,999 lines).",
            texts=True,
            leaves_out_empty_texts=True,
        ),
    }
)
