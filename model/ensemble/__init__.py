"""A ZooKeeper ensemble without I/O: servers, sessions and connections that speak the protocol.

It joins the sequential specification (`model.zookeeper`) and the protocol (`model.wire`) into
a service. A world passes a clock, and a transport for each connection. Read in this order:

  clock, settings       what it needs of a world; how it counts, limits and allows
  ensemble, entry       one history of writes, committed by a majority
  quorum                which server leads, and which ones close their connections
  server                what one server has applied, its watches and connections
  connection            one client: requests in order, answers in order
  sessions, session_ids when sessions end; their ids and passwords
  authentication        which identity a credential proves
  handlers              what a server does with each kind of request
  faults                what is lost, refused and delayed on purpose
  words                 the four-letter words, and what a server counts
  recorder, history     what it reports about itself, and the trace of all requests
  control/              faults as verbs, and what they have struck
"""
