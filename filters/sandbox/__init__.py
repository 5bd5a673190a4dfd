"""What stands between a candidate and the machine: layers, each tried before it is trusted."""
