"""A fleet of several kinds of chip behind one router, where not enough can be had of the one that is cheapest alone."""
