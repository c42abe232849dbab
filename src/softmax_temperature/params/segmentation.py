"""The part of the paper `cooling` that classifies pixels (section 4.4)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.section import Name, Section

Side = Annotated[int, Field(gt=0, multiple_of=16)]
Sides = Annotated[list[Side], Field(min_length=2, max_length=2)]


class Segmentation(Section):
    """A U-Net with `width` channels at full size, trained with and without last-layer Cooling, `seeds` times each.

    `dataset` is "glyph-scenes-N" or a folder below `data.root`; its label maps hold classes from 0 to `classes` - 1,
    and `void` where there is none. `crop` is the height and width that are cut out of the middle of each image, `size`
    what that is resized to (null: neither); both are multiples of 16. At most `train_limit` and `test_limit` images are
    used (null: all). Of the former, `cooling_images` are set aside in both arms to fit the temperature on (null: those
    of the data set's own validation part), which is raised to `factor`. The recipe does not augment. `panels` test
    images are shown with their predictions (0 where images may not be passed on).
    """

    dataset: Name
    classes: Annotated[int, Field(ge=2, le=255)]
    void: Annotated[int, Field(ge=0, le=255)]
    crop: Sides | None
    size: Sides | None
    train_limit: PositiveInt | None
    test_limit: PositiveInt | None
    cooling_images: PositiveInt | None
    width: PositiveInt
    factor: NonNegativeFloat
    recipe: Recipe
    seeds: PositiveInt
    panels: Annotated[int, Field(ge=0, le=8)]

    @model_validator(mode="after")
    def _fits_together(self) -> Segmentation:
        if self.void < self.classes:
            raise ValueError(f"void: {self.void}, is one of the {self.classes} classes")
        if self.recipe.crop_padding or self.recipe.flip:
            raise ValueError("recipe: crop_padding must be 0 and flip false, because labels do not move with images")
        return self
