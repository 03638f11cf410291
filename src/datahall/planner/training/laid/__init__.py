"""The step of a run on the layout that is asked for, or on the fastest; the same on other chips, and over weeks."""
