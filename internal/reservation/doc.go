/*
Package reservation has the protocol by which services get capacity of clusters, and decides
what a cluster grants. It is pure: no client, no clock, and the result does not depend on the
order of the requests.

A service writes one request for all clusters. Each cluster reads the requests that name it,
and keeps what it grants in one ledger. The service starts what it was granted.

# Ledger

A grant stands alone. The ledger has, for each replica that was granted, its pods and their
shapes. So what is granted can be counted while a request is missing, wrong or changed.

# Pools

A replica gets one pool for all of its pods, if they fit into one that has labels. The grant has it
as a pin, and its pods count in that pool only. The service gives the pods the labels of the pool.
A replica on nodes of several pools has no pin, and its pods count wherever they fit: they are made
of one template, which cannot tell which of them go to which pool.

Pods count only on nodes whose taints they tolerate. If nodes of a pool get other taints, it is as if they
were gone for pods that do not tolerate these.

A pin never changes, because another one would restart the pods. So the request says of each
replica that runs to which pool it is pinned. One that is pinned elsewhere than the grant says, or
nowhere, is counted wherever it fits. A replica that runs grows in its pool only.

# Generations

A service reads a grant some time after the cluster made it. Meanwhile it may have withdrawn
the replica, so that another service got the room, and requested it again. Or it may have
changed what the replica requests. So each replica of a request has a generation, which is
raised whenever it is added or its pods change. A grant has the generation that it answers.

  - A grant of the same or a higher generation: the replica is reserved as it is requested.
    The service also compares the hash of the granted pods with that of the pods that it wants.
    A generation is what a request says, and a tenant may write that (TestPodsHash).
  - A lower one: what was granted before is still kept, and what is requested now is not
    granted.
  - No grant, or a lower one, and the cluster's answer has that generation as pending: not now.

# Rules

Reserve decides in this order:

 1. A request that does not have a replica any more frees its grant at once, if the service has never
    said that it runs the replica. Not every request is read. So a request also has what the last one
    said to run and this one does not (Left), until the grant is gone. If the last one is lost, that is
    all that was granted and does not run. Else the grant is kept as long as there are workloads of it
    in the cluster, or that is not known, and for LeavingGrace at least. A request that is missing or
    cannot be read keeps its grants in the same way as long as its service has any workloads there, and
    for Grace at least. Nobody else gets that room.
 2. A group that changes before it has started may not be able to start with what it was granted. If
    the rest has not fitted for Grace, all of it is freed, and the group is served like a new one.
    The same holds for a single replica that may start alone. One that left, and comes back with more,
    loses its grant as soon as its workloads are gone (TestAgainLarger). While these may run, it is
    granted nothing else (TestComesBackElsewhere), and what it was granted stays (TestComesBackSmaller).
    One that comes back as it was is granted at once (TestComesBackAlike).
 3. Pods that request less are granted as they are now, which always fits. While the request says
    that pods from before may still run (Replacing), a grant covers these and those that come: each
    pod takes the place of one that covers it, or that it covers (func union).
 4. All grants are counted. If they do not fit, nodes are gone: the cluster is overcommitted,
    everything is kept, and nothing new is granted. If only pinned pods do not fit, that is so for
    their pools alone.
 5. What runs without a grant is counted if it fits, and the ledger is not full.
 6. Everything else is served in the order of func order. A group that has not started gets all
    that it wants, or what suffices to start (ToStart), and then what fits of the rest. A replica
    that grows is served like a new one, in exchange for its grant. What does not fit is pending,
    and does not stop those after it.
 7. The quota of a namespace is what its services may have granted. All that is within the nominal
    quotas is served first, and then what borrows. Among either of them, the highest priority
    comes first, and then the oldest service. Only the cluster knows quotas and priorities, and
    what a service claims to run does not pass them. A grant stays, even if its quota is lowered.
 8. Room is held for the first pending request that has waited for HoldAfter and would fit the
    cluster beside its own grants. Whatever is free of what it wants goes to nobody younger. So
    small services cannot overtake a large one for ever. What its quota refuses holds no room. Quota
    is held in the same way, from services of the namespace that come after. The namespaces share
    how many services the ledger remembers the time of (TestWaitingOfNamespaces).

If the ledger is nearly full, namespaces with more than their share of it get nothing new (Heavy). The
grants of some of them change no more until they are withdrawn (Frozen, TestFrozen).

TestPools and TestPinnedPodsCount prove what is said of pools, TestTolerationsOfFormerVersion what
becomes of grants from before tolerations counted, and TestGrowthBesideShortPool what rule 4 says of
them. TestMissing and TestWithdrawn prove rule 1, TestGiveBack rule 2, TestUnion what rule 3 counts,
and TestQuotas rule 7. TestHold, TestHoldQuota and TestGangIsNotOvertaken prove rule 8, and
TestReserve the others. TestReserveInvariants checks all of them for random requests.

# Cost

Pods of equal shapes are packed together. Units (what is served together: a replica group) are tried
many at once and then by halves (func halve), with the same result as one by one. Equal requests that
do not fit are tried once, or once for each namespace that has no move or no search left. All searches of a call have one
budget, which the namespaces share. What is not looked at stays pending until the next call.
*/
package reservation
