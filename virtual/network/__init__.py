"""Sockets in virtual time, and the links between processes. Read in this order:

  network, endpoint  addresses, ports, links; one end of a connection
  stream             a connection as a service without threads has it
  socket, polling    what stands for `socket`, `select` and `selectors`
  socket_file        what `makefile` makes
  socket_pair        what `socketpair` makes
  resolution         host names
  descriptors        the flags of descriptors
  patches            the names that are replaced

Nothing here knows ZooKeeper.
"""
