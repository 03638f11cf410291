"""Parts of the catalogue by subject, each a class that `Catalog` is made of."""
