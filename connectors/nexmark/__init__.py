"""The streams of the NexMark benchmark: people, auctions and bids, as columns that are functions of the event's number."""
