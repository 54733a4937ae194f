"""What Warp compiles for the CPU."""
