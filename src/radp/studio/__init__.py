"""What if: a page served on this machine in which a scenario is changed, planned again and driven on."""
