"""The reference coordinator, `lightfr-harness serve`: rounds, uploads, aggregation and downloads over mutual TLS.

`service` answers messages, `coordinator` runs the rounds, `storage` keeps them, `publishing` makes what devices
download; `web` and `operations` are the two doors. It speaks the public protocol of proto/ and nothing else.
"""
