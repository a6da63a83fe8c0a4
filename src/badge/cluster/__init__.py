"""Pools that outgrow one machine: prediction, selection and experiments on a Ray cluster, with the picks of one machine."""

from badge.cluster.predicting import predict

__all__ = ["predict"]
