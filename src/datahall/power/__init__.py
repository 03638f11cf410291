"""Power, from what a chip's kernels do to what a site draws.

A chip draws by its activity, which is that of the kernels that give the time; servers, racks, networks and sites add
what stands around it.
"""
