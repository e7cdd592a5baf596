/*
Package scheduling decides in which clusters of the fleet a service runs. It is pure: no
client, no clock, and the same Demand and Snapshot give the same Result, in whatever order
their maps are read.

# Algorithm

 1. Members: the clusters that the placement names or selects, in its order, and then those
    where something of the service still is. A cluster that does not allow the tenant's
    namespace is left out, unless the service runs there.
 2. Candidates: each member with what its InferenceCluster says, what was reserved there and
    what exists there. Eligibility says why a candidate takes nothing new, if so.
 3. Assign, by the placement's policy:
    Replicate assigns the whole service to each eligible candidate.
    Failover assigns it to one: where it exists, else where it is reserved, else where it was
    requested and still fits, else the first candidate with enough free capacity. Each try
    prefers clusters that a route can reach. While none has capacity, it requests capacity of
    all. While a cluster that cannot be read may run the service, it assigns nothing.
    Spread assigns each replica group by itself. It goes where it exists, else where it was
    reserved, else where it was requested and still fits. Else it goes to the cluster where
    it fits that has the fewest groups for its weight.
 4. Decisions: of what is assigned, replicas that are reserved or exist run, and the others
    are pending. What exists elsewhere leaves, or stays until its successor serves.
 5. Request: the capacity that the service requests of each cluster, for what runs there and
    for what is pending.

# States of a service in a cluster

  - NotPlaced: nothing is assigned, and nothing exists.
  - Pending: something is assigned, and all of it is pending.
  - Placed: something of what is assigned runs. Or something runs in a cluster that is unknown
    or out of reach, and that need not be left.
  - Leaving: something exists that is assigned elsewhere.

# Invariants

They hold for the replicas that the service wants. A replica that it no longer wants is removed
at once.

  - Nothing runs in a cluster of the fleet without a reservation, except what exists there
    (TestFleets).
  - What exists of a replica group is removed only after all of it is ready in a cluster that
    it is assigned to. If requests can reach it here, they have to reach it there
    (TestAssignServesRandomProblems). A group in an abandoned cluster is the exception.
  - A cluster that cannot be read is neither assigned nor left. Under Failover and Spread,
    nothing of what it may have is started elsewhere, unless an eligible cluster has some of it
    already (TestAssign).
  - A cluster that takes nothing new keeps what it has. It loses it if it drains, was abandoned,
    was deselected, or has weight 0 under Spread. Under Failover and Spread it also loses it
    once it is out of reach for longer than the failover time (TestAssign).
*/
package scheduling
