"""What a site does with the stream of its members' activity: the design page's use cases.

`generator` makes events, the other modules make answers of them: a news feed, relevance,
defence against crawlers and spam, alerts, and a warehouse. `events` says what an event is.
"""
