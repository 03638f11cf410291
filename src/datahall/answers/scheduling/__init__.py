"""Questions about a cluster that many share: what its queue comes to under which policy."""
