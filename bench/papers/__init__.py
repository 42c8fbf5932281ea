"""The workloads of papers about scaling and comparing stream processors."""
