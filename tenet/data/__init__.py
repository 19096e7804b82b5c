"""From files on disk to episodes. Speaks numpy and PIL; loads no torch."""
