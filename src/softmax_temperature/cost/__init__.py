"""What a run will cost, from shapes alone: minutes, memory of a GPU, disk (docs/scaling.md).

Nothing is computed and nothing has to be there: networks are built without weights, and the sizes of data sets are
those of their cards, or those that their authors state.
"""

from softmax_temperature.cost.cells import CellCost, cell_cost
from softmax_temperature.cost.data_sizes import DataSize, data_size
from softmax_temperature.cost.networks import NetworkCost, image_network_cost
from softmax_temperature.cost.rates import RATES, Rate, seconds, spread

__all__ = [
    "RATES",
    "CellCost",
    "DataSize",
    "NetworkCost",
    "Rate",
    "cell_cost",
    "data_size",
    "image_network_cost",
    "seconds",
    "spread",
]
