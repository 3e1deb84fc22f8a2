"""The pure core: bytes and times in, bytes and effects out; no sockets, no clock, no logging.

The map, in the order a command travels:

    resp (syntax)         a client's bytes -> request frames
      framers             made when they are first fed
    command, key_spec     a frame -> Command: its name, its keys; command_table: what each command is
    conversation          the one door: one client and its upstream connection
      lane                the short way for what no rule acts on (glance: which that is; reading: how far; measuring, strides:
                          where it ends; opening: many that begin alike taken for one)
      line                what its two directions share: outboxes, queues, events; awaited, describing: what is still to come on it, and all of it
      intake              client -> upstream: one request after the other meets the rules (beginning: a part of one)
        before            what was decided adds up and is carried out: delays, barrier, vanishing, repeating, bucket
          remembering     what keys are before each write (memory)
        pretending        what a cluster's node would answer by itself, where one server is the cluster (node: to CLUSTER, and what it
                              refuses; slot_map)
        ending            answered, cut off or lost before Redis saw it
        swallowing        a write the server computes and nobody keeps (swallow: how; reach: which commands are about their keys alone)
        renewing, past    a time that is not renewed, a read of what was; computing: what all three have computed
                              (rights: whether the client may do it itself)
      returns (reply)     upstream -> client: each reply finds its slot (slot) and settles the modes (modes, transaction, channels)
        addresses         where servers are, put as the client is to see it
        passing           what is unfinished, and what is larger than may be held
        pushes            frames nobody asked for meet the rules too
        after             what happens to a reply once Redis has applied the command
        leaving           replies leave in the client's order, each at its time; pending: their events till then
    steering              what a user asks of a profile in force: act now, or no longer
    engine                which rules act, in profile order: live_rule (its match: circumstances, glob; when: its turns, rolls)
      rule                what a profile is made of; setting, units, scalar, distribution: how its values are read
      replay              a recording in place of chance
      firing              what a fault has done, as an event
      fault, decision     what a fault is, and what it may ask for
        errors            the servers' exact texts; ttl: where commands carry times
        reply_maker       replies nobody computed, by their reply_shape
        spots, texts      places in a reply that profiles name; what they may change in one
    failing               a command meets the failovers in force: it begins one, waits for a step of it, or is refused
      failover            its steps, who is on the old primary; undoing: what it may have to undo is taken down (undo: the log; lost: what its end comes to)
    admission             what a new connection meets, before there is a conversation
    effect                what a conversation asks of the outside; value: what a reply says
    world                 what all conversations of one proxy share; tally: a command's counts and times

Five words: an *exchange* is one command and its reply; a *rule* is a fault with its match, when and position; a *turn* is a match
that is to be acted on; a *slot* is the place of a reply in the client's order; *hidden* is what the proxy sends for itself.
"""
