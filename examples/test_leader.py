"""Test a leader election of your own on a ZooKeeper with faults, by the pytest plugin."""

from kazoo.exceptions import ConnectionLoss, NodeExistsError


class Candidate:
    """A program that leads while the znode `/leader` is its own."""

    def __init__(self, client, name):
        self.client = client
        self.name = name

    def stand(self):
        """Try to lead; a lost reply leaves open whether the attempt has succeeded."""
        while True:
            try:
                self.client.create("/leader", self.name, ephemeral=True)
                return True
            except ConnectionLoss:
                continue
            except NodeExistsError:
                # Without this look a candidate takes its own znode for that of another one.
                return self.leads()

    def leads(self):
        """Whether the znode belongs to this session."""
        stat = self.client.retry(self.client.exists, "/leader")
        return stat is not None and stat.ephemeralOwner == self.client.client_id[0]


def test_one_leads(zookeeper):
    """The second candidate does not lead while the first one does."""
    candidates = [Candidate(zookeeper.client(), name) for name in (b"ann", b"ben")]
    assert [candidate.stand() for candidate in candidates] == [True, False]


def test_a_lost_reply_is_no_lost_election(zookeeper):
    """A candidate whose reply is lost finds out that it leads."""
    lost = zookeeper.drop_next_reply("/leader", operation="create")
    assert Candidate(zookeeper.client(), b"ann").stand()
    assert lost.effects == {"replies lost": 1}


def test_another_one_leads_after_the_end_of_a_session(zookeeper):
    """The znode goes with its session, and the former leader notices."""
    ann, ben = (Candidate(zookeeper.client(), name) for name in (b"ann", b"ben"))
    assert ann.stand()
    ended = zookeeper.expire(ann.client)
    assert ben.stand()
    assert not ann.leads()
    assert ended.effects == {"sessions ended": 1}
