"""The page and the service: `tenet serve` (docs/service.md). Needs the extra `serve`."""
