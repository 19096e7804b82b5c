"""What runs the network: three calls, numpy in and out (`protocol`). torch is the first implementation."""
