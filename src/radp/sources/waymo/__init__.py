"""The Waymo Open Motion Dataset."""
