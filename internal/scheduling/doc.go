/*
Package scheduling decides in which clusters of the fleet a service runs. It is pure: no
client, no clock, and the same Demand and Snapshot give the same Result, in whatever order
their maps are read.

# Algorithm

 1. Members: the clusters that the placement names or selects, in its order, and then those
    where something of the service still is. A cluster that does not allow the tenant's
    namespace is left out, unless the service runs there.
 2. Candidates: each member with what its profile and its answers say, and what exists there.
    Eligibility says why a candidate takes nothing new, if so.
 3. Assign, by the placement's policy. Replicate assigns the whole service to each eligible
    candidate. Under Failover and Spread, each unit has one home: all groups together under
    Failover, and each replica group by itself under Spread. Here a unit is what moves together,
    and not what changes together in a rollout.
 4. Decisions: of what is assigned, replicas that are reserved or exist run, and the others
    are pending. What exists elsewhere leaves, or stays until its successor serves. Where two copies
    are too large for an answer, groups move one after the other (TestMovesInParts).
 5. Extra: what a rollout runs beyond what is wanted is added to the clusters that run the
    service. It has no part in what was decided before (TestExtra).
 6. Request: the capacity that the service requests of each cluster, for what runs there and
    for what is pending. It also records the homes.

# Homes

The home of a unit is recorded in the request, with an epoch. It stays what it is, unless:

  - the cluster has to be left (eligibility);
  - a group of the unit could not answer there within the start time-out, and another cluster has
    room. A group that is added to others which have started there has no time-out
    (TestAddedGroupNeverStarts), and none has one after its record was lost, if others answer
    (TestLostRecord);
  - several clusters have the unit, its home has no room for the rest, and another has all.

It changes only to a cluster where the unit exists or is reserved. So until another cluster has
reserved what the unit needs, nothing changes. A unit without such a cluster asks:

  - first, one cluster that seems to have the capacity: under Failover the first one, under
    Spread the one with the fewest groups for its weight;
  - all of them, as soon as that has refused, or has not answered for RequestTimeout. Under
    Failover also if none seems to have the capacity. The unit is then in the queue of each.

A unit that could not answer in time asks one cluster that seems to have the capacity, after a
refusal another one, and then all that reserve anything: an estimate of nothing may hide the last
nodes. It keeps its home meanwhile, and room may be held for it as for any other.

# Phases of a unit in a cluster

  - Absent: it does not exist there, and no capacity is requested.
  - Requested: capacity is requested, and not reserved so far.
  - Reserved: what the unit needs to start is reserved, and this is its home.
  - Running: some of it exists there, and this is its home.
  - Leaving: some of it exists there, and its home is another cluster or has to be left.

The state of a service in a cluster sums these up: NotPlaced, Pending, Placed, Leaving.

# Invariants

They hold for the replicas that the service wants. A replica that it no longer wants is removed
at once.

  - Nothing runs in a cluster of the fleet without a reservation, except what exists there
    (TestFleets).
  - What several clusters were asked for starts only once the request that was read names this
    home. A call that reads less than the one before may choose another cluster, whose capacity
    is withdrawn by then (TestAssign/HomeUnread).
  - No pod starts or grows beyond what is reserved for it, whatever somebody writes into the
    request. What is wanted comes from the spec, what is reserved from the answer, and what runs
    from the notes on the objects (TestForgedRequest).
  - What exists of a replica group is removed only after the request that was read back names
    another home. All of it has to be ready there, and not being updated. The group also has to be
    able to answer there, or to have all that it requires. So reads of different age never stop
    two copies. An object that was not written since the group has its home there does not count:
    it may be left from an earlier time there (TestHomeComesBack). If requests can reach it here,
    they have to reach it there (TestAssignServesRandomProblems). Exceptions are a group in an
    abandoned cluster, and one that could not answer within the start time-out and has not answered
    since (TestFailedCopy, TestLives).
  - What is removed keeps its capacity until its objects are gone (TestWithdrawn in
    internal/reservation and internal/cluster), also where an old read does not show them
    (TestLeft). What runs keeps its pods until the cluster has reserved a change (TestGrowthWaits in
    test/service). Its former capacity stays requested until the cluster runs the changed pods
    (TestReplacing).
  - A cluster that cannot be read is neither assigned nor left. Under Failover and Spread,
    nothing of what it may have is started elsewhere, unless an eligible cluster has some of it
    already (TestAssign).
  - A cluster that takes nothing new keeps what it has. It loses it if it drains, was abandoned,
    was deselected, or has weight 0 under Spread. Under Failover and Spread it also loses it
    once it is out of reach for longer than the failover time (TestAssign).
*/
package scheduling
