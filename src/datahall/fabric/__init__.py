"""Many chips: topologies as arrays, the ways through them, what they are made of and what is left when parts
fail.

`design` makes a fabric by name, `topology` its arrays, `routing` the path of each flow; `flows` and `collectives` say
what is sent.
"""
