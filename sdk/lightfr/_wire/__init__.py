"""The only door bytes leave the device by: conversion between the SDK's objects and the messages of proto/."""

from lightfr._wire.training import decode_round_model, encode_update

__all__ = ["decode_round_model", "encode_update"]
