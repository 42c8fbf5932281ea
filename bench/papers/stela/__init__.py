"""The topologies of Stela's evaluation as flows whose operators wait for each record, and the effect of a node more or less.

Xu, Peng, Gupta: Stela: Enabling Stream Processing Systems to Scale-in and Scale-out On-demand, IC2E 2016: the micro-benchmarks linear, star
and diamond, Yahoo's PageLoad and Processing, and IBM's Network.

>>> sorted(TOPOLOGIES)
['diamond', 'linear', 'network', 'page_load', 'processing', 'star']
"""

from __future__ import annotations

from .topologies import TOPOLOGIES

__all__ = ["TOPOLOGIES"]
