/*
Package reservation has the protocol by which services get capacity of clusters: capacity
requests, reservations, and the decision which requests a cluster reserves capacity for.

A service writes one request for all clusters. Each cluster reads the requests that name it,
and keeps its reservations in one ledger. Everything here is pure: no client, no clock, and
the result does not depend on the order of the requests.

# Generations

A service reads a reservation some time after the cluster made it. Meanwhile the service may
have withdrawn a replica, so that its capacity went to another service, and then requested it
again. The reservation that it reads is then outdated. Generations tell this case apart.

A request has a generation, which is raised whenever a replica is added. Each replica has the
generation with which it was added. A cluster answers with the highest generation among the
replicas that are requested of it. If the answer has the generation of a replica, or a higher
one, then it answers a request that had the replica, which has been requested ever since. Such
a reservation is valid. An answer with a lower generation is older than the replica, and the
service waits for the next one.

The other replicas of the service keep their reservations meanwhile, and what runs keeps
running.
*/
package reservation
