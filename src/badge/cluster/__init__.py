"""Pools that outgrow one machine: prediction, selection and experiments on a Ray cluster, with the picks of one machine."""

from badge.cluster.predicting import predict
from badge.cluster.selecting import select, select_from

__all__ = ["predict", "select", "select_from"]
