"""The only door bytes leave the device by: messages of proto/, Connect calls and downloads over mutual TLS."""

from lightfr._wire.training import decode_round_model, encode_update

__all__ = ["decode_round_model", "encode_update"]
