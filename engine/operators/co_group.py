"""`co_group`: a user's function per key and complete window, with the rows of both streams, either of which may have none.

A null in a key is a key like any other here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import Batch
from ..functions.error_policy import OnError, Refused, function_name
from ..functions.window import Window
from ..functions.window_results import Called, WindowResults
from ..joins.row_order import places_in_order
from ..joins.sides import LEFT, RIGHT, Side, key_names
from ..joins.window_rows import Complete
from ..keys.encoding import key_values
from ..time.sessions import SessionWindows
from ..time.windows import Windows
from .base import Context, Emit
from .function import FunctionInstance, FunctionOperator
from .keyed import KeyedOperator
from .window_bounds import END, START
from .windows_of_two import WindowsOfTwo
