"""The reference coordinator, `lightfr-harness serve`: rounds, uploads, aggregation and downloads over mutual TLS.

`service` answers messages, `coordinator` runs the rounds, `storage` keeps them, `publishing` makes what devices
download; `web` serves devices over HTTP, and `operations` whoever runs it. It speaks the public protocol of proto/
and nothing else.
"""
