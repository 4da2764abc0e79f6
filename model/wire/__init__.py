"""ZooKeeper's client protocol without I/O: bytes in, events out; answers in, bytes out.

One implementation for the server, for clients in memory, and for the proxy that looks into
what passes. Sources: ZooKeeper's `zookeeper.jute`, and what Apache ZooKeeper 3.9.5 does with
each request, seen on the wire. Read in this order:

  fields             numbers, strings, lists and records in jute's encoding
  frames             a stream of bytes as payloads, and back
  opcodes            the numbers of the requests
  connect            the first frame of each side
  creates            the flags of a create, alone and in a multi
  requests           what a client requests
  replies            what a server answers, and its watch events
  server_connection  a server's end of a connection: which frame may come when
"""
