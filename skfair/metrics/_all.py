"""The public names of ``skfair.metrics``, imported when one of them is first used."""

from skfair.metrics.clusters import *
from skfair.metrics.disparity_tests import *
from skfair.metrics.fronts import *
from skfair.metrics.intervals import *
from skfair.metrics.labels import *
from skfair.metrics.losses import *
from skfair.metrics.own_metrics import *
from skfair.metrics.proxy_bounds import *
from skfair.metrics.reports import *
from skfair.metrics.scorers import *
from skfair.metrics.scores import *
from skfair.metrics.selection import *
from skfair.metrics.selective_labels import *
