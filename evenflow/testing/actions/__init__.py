"""Actions of simulated runs in addition to those of every run: crashes, moves, scaling, full disks, policies and so on."""
