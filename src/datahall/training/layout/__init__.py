"""How a model is spread over chips: layouts, the rules they keep, their files, the space of them and its best."""
